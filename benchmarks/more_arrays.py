"""Real arrays with known layouts, made from data that packages of R and Python bring along.

    python benchmarks/more_arrays.py FOLDER [NAME ...] [--again]
    python benchmarks/more_arrays.py --list

Each becomes FOLDER/NAME.npz, as benchmarks/real_arrays.py reads them (with the yardstick score.py
next to them), and one line says whether the layout is in the data at all: the median |correlation|
of true neighbours next to that of all pairs, and how many columns have their most correlated column
among the true nearest. What is not installed is left out, with one line that names it. The data
belong to other people and are not in this repository.

Tables of kind "none" have no layout: whatever is found in them is wrong, and must not be believed.

What can be installed, on Debian and from PyPI (no other package of this repository is needed):

    apt-get install --no-install-recommends PACKAGES     (`--list` prints both lines in full)
    pip install PACKAGES
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import _array_tables_python
import _array_tables_r
from _array_tables import Table, layout_in_data, save


def makers() -> dict[str, Callable[[], Table]]:
    """All arrays, by name."""
    from_r = {
        name: partial(_array_tables_r.read, one) for name, one in _array_tables_r.RECIPES.items()
    }
    return {**from_r, **_array_tables_python.TABLES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--again", action="store_true", help="make what is there once more")
    parser.add_argument("--list", action="store_true", help="say what can be installed, and stop")
    asked = parser.parse_args()
    if asked.list:
        print(f"apt-get install --no-install-recommends {_array_tables_r.PACKAGES}")
        print(f"pip install {_array_tables_python.PACKAGES}")
        return
    if asked.folder is None:
        parser.error("name the folder that the arrays are to be written to")
    known = makers()
    unknown = sorted(set(asked.names) - set(known))
    if unknown:
        parser.error(f"no array named {', '.join(unknown)}: choose from {', '.join(known)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in asked.names or known:
        if (asked.folder / f"{name}.npz").exists() and not asked.again:
            continue
        try:
            one = known[name]()
        except (ImportError, OSError, RuntimeError) as problem:
            print(f"{name}: left out ({problem})", flush=True)
            continue
        save(asked.folder, name, one)
        near, typical, agree = layout_in_data(one)
        n, d = one.X.shape
        of = "" if one.kind == "none" else f"{near:.2f} of neighbours, "
        print(
            f"{name}: {one.kind}, {n} x {d}; |r| {of}{typical:.2f} of all pairs; "
            f"best partner near in {agree:.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
