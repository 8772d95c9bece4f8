"""CONTRIBUTING's list of equations: the files and names exist, and are what a reader expects to
open.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("## Where is")[2].partition("\n## ")[0]
EQUATIONS = re.findall(r"^\|.+\| `([\w/]+\.py)` \| `([\w.]+)` \|$", SECTION, re.MULTILINE)
FURTHER = re.findall(r"`([\w/]+\.py)` \(`(\w+)`\)", SECTION)


def documented(tree: ast.Module, name: str) -> str | None:
    """The docstring of a class, function or method of a module; None without one."""
    node: ast.AST = tree
    for part in name.split("."):
        node = next(
            inner
            for inner in ast.iter_child_nodes(node)
            if isinstance(inner, ast.ClassDef | ast.FunctionDef) and inner.name == part
        )
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    return ast.get_docstring(node)


def test_ten_equations_are_listed():
    assert len(EQUATIONS) == 10
    assert len(FURTHER) >= 3


@pytest.mark.parametrize(("file", "name"), EQUATIONS + FURTHER)
def test_the_code_of_an_equation_is_where_the_guide_says(file, name):
    path = ROOT / "src" / "symlift" / file
    assert documented(ast.parse(path.read_text(encoding="utf-8")), name)


@pytest.mark.parametrize(
    "file", sorted(set(re.findall(r"`((?:tests|docs|benchmarks)/[\w./-]+\.\w+)`", GUIDE)))
)
def test_files_that_the_guide_names_exist(file):
    assert (ROOT / file).is_file()
