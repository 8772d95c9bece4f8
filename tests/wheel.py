"""Try the installed wheel as a user would: `make test-wheel` runs this in an environment that has
nothing else in it.

The README's Python block, the command line from a file to a report, and the demonstration; none of
them may need PyTorch.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import symlift
from symlift.datasets import gsn

README = Path(__file__).parent.parent / "README.md"


def main() -> None:
    """Raise where anything fails."""
    installed = Path(symlift.__file__)
    if "site-packages" not in installed.parts:
        raise SystemExit(f"{installed} is not the installed wheel: run make test-wheel")
    if importlib.util.find_spec("torch") is not None:
        raise SystemExit(
            "PyTorch is installed here, so nothing shows that symlift works without it"
        )
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "shuffled.npy"), gsn(2000, (15, 15), transform="permutation").X)
        block = re.search(
            r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        if block is None:
            raise SystemExit("README.md has no Python block")
        Path(folder, "readme.py").write_text(block[1], encoding="utf-8")
        symlift_command = str(Path(sys.executable).with_name("symlift"))
        for command in (
            [sys.executable, "readme.py"],
            [symlift_command, "inspect", "shuffled.npy"],
            [symlift_command, "recover", "shuffled.npy", "--grid", "15x15", "--out", "run-of-file"],
            [symlift_command, "demo", "--out", "demo"],
            [symlift_command, "experiment", "--help"],
        ):
            subprocess.run(command, cwd=folder, check=True)
        for made in (
            "page.html",
            "run-of-file/report.html",
            "run-of-file/placement.csv",
            "demo/demo.png",
        ):
            if not Path(folder, made).stat().st_size:
                raise SystemExit(f"{made} is empty")
    print(f"symlift {symlift.__version__}, Python {sys.version.split()[0]}: the wheel works")


if __name__ == "__main__":
    main()
