"""``python -m symlift``."""

from symlift.cli import main

main()
