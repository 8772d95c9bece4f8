"""Notebooks of the tutorials: made from scripts and pages; `make test-notebooks` runs them."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "_notebooks.py")
assert _SPEC is not None
assert _SPEC.loader is not None
notebooks = importlib.util.module_from_spec(_SPEC)
sys.modules["notebooks"] = notebooks  # dataclasses look their module up
_SPEC.loader.exec_module(notebooks)

BY_PAGE = {tutorial.page: tutorial for tutorial in notebooks.TUTORIALS}


def code_of(page: str) -> list[str]:
    return [text for kind, text in notebooks.cells_of(BY_PAGE[page]) if kind == "code"]


def test_every_tutorial_and_every_script_has_a_notebook():
    assert set(BY_PAGE) == {path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md")}
    scripts = {tutorial.script for tutorial in BY_PAGE.values()} - {""}
    assert scripts == {path.stem for path in (ROOT / "examples").glob("*.py")}


@pytest.mark.parametrize("page", BY_PAGE)
def test_cells_are_code_with_one_that_installs(page):
    code = code_of(page)
    assert sum("%pip" in cell for cell in code) == 1
    assert "%pip" in code[0]
    for cell in code:
        ast.parse(re.sub(r"(?m)^( *)%pip.*", r"\1pass", cell))
    made = notebooks.notebook(notebooks.cells_of(BY_PAGE[page]))
    assert json.loads(json.dumps(made))["nbformat"] == 4
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in filter(None, BY_PAGE[page].extras.split(",")):
        assert f"\n{extra} = [" in extras


@pytest.mark.parametrize("page", [page for page, one in BY_PAGE.items() if one.script])
def test_a_notebook_does_what_its_script_does(page):
    """Every statement of the script is there, in its order, once."""
    tree = ast.parse((ROOT / "examples" / f"{BY_PAGE[page].script}.py").read_text())
    main = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main")
    body = [ast.dump(node) for node in main.body[1:] if not isinstance(node, ast.Return)]
    cells = ast.parse("\n".join(code_of(page)[1:]))
    shown = [ast.dump(node) for node in cells.body]
    places = [shown.index(statement) for statement in body]
    assert places == sorted(places)
    helpers = [
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node is not main
    ]
    assert [n.name for n in cells.body if isinstance(n, ast.FunctionDef)] == helpers
    assert "out.mkdir(" in "\n".join(code_of(page))
    assert "argparse" not in "\n".join(code_of(page))
    assert "arguments." not in "\n".join(code_of(page))


@pytest.mark.filterwarnings("ignore")
def test_cells_run_one_after_the_other(tmp_path, monkeypatch):
    """The cells of one tutorial, without a kernel; the last one shows pictures in a notebook."""
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    for cell in code_of("unplaced-sensors")[1:-1]:
        exec(cell.replace("n = 6000", "n = 1500"), scope)  # noqa: S102 - our own script
    assert scope["first"]["rho"] > 0.99
    assert (tmp_path / "figures" / "unplaced-sensors" / "sensors.png").is_file()
