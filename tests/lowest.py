"""The lowest versions that `pyproject.toml` declares, as constraints for pip: `make test-lowest`.

python tests/lowest.py            what every installation needs
python tests/lowest.py data train and what these extras need
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def lowest(extras: list[str]) -> list[str]:
    """``name==version`` for each requirement with a lower bound."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(r for extra in extras for r in optional[extra])]
    bounds = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", line) for line in requirements]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
