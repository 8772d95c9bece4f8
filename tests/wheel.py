"""Try the installed wheel as a user would: `make test-wheel` runs this in an environment that has
nothing else in it.

The demonstration, then the README's Python and its commands, word for word, on what that left;
none of them may need PyTorch.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import symlift

README = Path(__file__).parent.parent / "README.md"


def block(language: str, number: int = 0) -> str:
    """One of the README's blocks of code."""
    text = README.read_text(encoding="utf-8")
    pattern = rf"^```{language}\n(.*?)^```$"
    return str(re.findall(pattern, text, re.MULTILINE | re.DOTALL)[number])


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
        symlift_command = str(Path(sys.executable).with_name("symlift"))
        Path(folder, "readme.py").write_text(block("python"), encoding="utf-8")
        for command in (
            [symlift_command, "demo", "--out", "demo"],
            [sys.executable, "readme.py"],
            *(
                [symlift_command, *shlex.split(line, comments=True)[1:]]
                for line in block("sh", 1).splitlines()
            ),
            [symlift_command, "experiment", "--help"],
        ):
            subprocess.run(command, cwd=folder, check=True)
        for made in (
            "page.html",
            "run/report.html",
            "run/placement.csv",
            "signals.npy",
            "demo/demo.png",
        ):
            if not Path(folder, made).stat().st_size:
                raise SystemExit(f"{made} is empty")
    print(f"symlift {symlift.__version__}, Python {sys.version.split()[0]}: the wheel works")


if __name__ == "__main__":
    main()
