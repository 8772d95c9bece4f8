"""The command line: what people type."""

from symlift.cli.limits import within_limits

try:
    within_limits()  # before any library is loaded
    from symlift.cli.app import app, main
except KeyboardInterrupt:  # before there is anything that could catch it
    import sys

    sys.stderr.write("error: interrupted\n")
    raise SystemExit(130) from None

__all__ = ["app", "main"]
