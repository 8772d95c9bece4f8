"""Make a notebook of each tutorial and run it: python docs/_notebooks.py [--out FOLDER] [NAME …]

A tutorial that follows a script of `examples` becomes the cells of that script: imports, helpers,
and the body of `main`, block by block.  One without a script becomes its page, text and code.  The
first code cell of each installs what it needs, and nothing where that is there already.  With
``--no-run`` notebooks are written and not run.  Nothing is committed: `make test-notebooks` makes
and runs them in an environment of its own.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = "git+https://github.com/symlift/symlift"
PAGES = "https://github.com/symlift/symlift/tree/main/docs/tutorials"
SECONDS = 1_800


@dataclass(frozen=True)
class Tutorial:
    """A page, its script if it has one, and the extras of symlift and the packages it needs."""

    page: str
    script: str = ""
    extras: str = ""
    packages: tuple[str, ...] = ()
    module: str = "symlift"  # what is there when nothing has to be installed


TUTORIALS = (
    Tutorial("shuffled-image-sensor", "shuffled_image_sensor", "data"),
    Tutorial("unknown-scrambler", "unknown_scrambler", packages=("scikit-image",)),
    Tutorial("unplaced-sensors", "unplaced_sensors"),
    Tutorial("neural-population", "neural_population"),
    Tutorial("grid-cells", "grid_cells"),
    Tutorial("permuted-mnist", "permuted_mnist", "data,train"),
    Tutorial("electrodes", "which_wire_is_which_electrode", "ephys", module="spikeinterface"),
    Tutorial("montages", "", "eeg", module="mne"),
    Tutorial("cell-cycle", "", "cells", module="anndata"),
    Tutorial("eeg-caps"),
    Tutorial("chromosomes"),
)

Cell = tuple[str, str]  # "markdown" or "code", and its text


def cells_of(tutorial: Tutorial) -> list[Cell]:
    """The cells of a notebook, the install cell second."""
    page = (HERE / "tutorials" / f"{tutorial.page}.md").read_text(encoding="utf-8")
    title = page.splitlines()[0]
    link = f"A notebook of the tutorial [{tutorial.page}]({PAGES}/{tutorial.page}.md)."
    cells: list[Cell] = [("markdown", f"{title}\n\n{link}"), ("code", install_cell(tutorial))]
    if not tutorial.script:
        return cells + list(_of_page(page))
    path = ROOT / "examples" / f"{tutorial.script}.py"
    return cells + list(_of_script(path.read_text(encoding="utf-8"), tutorial.page))


def install_cell(tutorial: Tutorial) -> str:
    """Install what the notebook needs, if it is not there."""
    extras = f"[{tutorial.extras}]" if tutorial.extras else ""
    wanted = " ".join([f"'symlift{extras} @ {SOURCE}'", *tutorial.packages])
    modules = ", ".join(f'"{name}"' for name in dict.fromkeys(["symlift", tutorial.module]))
    return (
        "from importlib.util import find_spec\n\n"
        f"if not all(map(find_spec, [{modules}])):\n    %pip install -q {wanted}"
    )


def _of_page(page: str) -> Iterator[Cell]:
    """Text and code of a page below its title; commands of a shell are not run."""
    for part in re.split(r"(^```\w*\n.*?^```$)", page.partition("\n")[2], flags=re.M | re.S):
        block = re.fullmatch(r"```(\w*)\n(.*?)```", part, flags=re.S)
        if block is not None and block[1] in ("py", "python"):
            yield "code", block[2].strip()
        elif block is None and part.strip():
            yield "markdown", part.strip()


def _of_script(source: str, page: str) -> Iterator[Cell]:
    """What a script does, as cells that share their names."""
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree) or ""
    yield "markdown", docstring.partition("\n\n")[0].replace("\n", " ")
    head = [node for node in tree.body if not _is_left_out(node)]
    imports = [node for node in head if isinstance(node, ast.Import | ast.ImportFrom)]
    yield "code", "\n".join(_text(source, node) for node in imports)
    main = next(n for n in head if isinstance(n, ast.FunctionDef) and n.name == "main")
    for node in head:
        if node not in imports and node is not main and not _is_start(node):
            yield "code", _text(source, node)
    start = next(node for node in tree.body if _is_start(node))
    assert isinstance(start, ast.If)
    yield "code", _settings(source, main, start, page)
    yield from _blocks(source, main)
    yield (
        "code",
        "from IPython.display import Image, display\n\n"
        'for picture in sorted(out.glob("*.png")):\n    display(Image(picture))',
    )


def _is_left_out(node: ast.stmt) -> bool:
    """Docstring, `argparse` and future imports."""
    if isinstance(node, ast.Import):
        return node.names[0].name == "argparse"
    return (isinstance(node, ast.ImportFrom) and node.module == "__future__") or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _is_start(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def _text(source: str, node: ast.stmt) -> str:
    lines = source.splitlines()
    return textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))


def _settings(source: str, main: ast.FunctionDef, start: ast.If, page: str) -> str:
    """What the command line gives: defaults of `main`, and what is made before it is called."""
    arguments = [*main.args.args, *main.args.kwonlyargs]
    values = [*main.args.defaults, *main.args.kw_defaults]
    defaults = dict(zip(reversed([one.arg for one in arguments]), reversed(values), strict=False))
    lines = []
    for name in [one.arg for one in arguments]:
        value = defaults.get(name)
        if name == "out":
            lines.append(f'out = Path("figures/{page}")')
        elif value is not None:
            lines.append(f"{name} = {ast.unparse(value)}")
    options = _options(start)
    for node in start.body:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if isinstance(node, ast.Assign) and not names & {"parser", "argparse"}:
            line = _text(source, node)
            lines.append(re.sub(r"arguments\.(\w+)", lambda option: options[option[1]], line))
    return "\n".join(lines)


def _options(start: ast.If) -> dict[str, str]:
    """The defaults of the options of a command line."""
    defaults = {}
    for call in ast.walk(start):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[-1], ast.Constant):
            name = str(call.args[-1].value).lstrip("-")
            given = [word.value for word in call.keywords if word.arg == "default"]
            if given:
                defaults[name] = ast.unparse(given[0])
    return defaults


def _blocks(source: str, main: ast.FunctionDef) -> Iterator[Cell]:
    """The body of `main`, divided where the script has an empty line between two statements."""
    lines = source.splitlines()
    body = main.body[1:] if ast.get_docstring(main) else main.body
    ends = [node.end_lineno or node.lineno for node in body]
    first = (main.body[0].end_lineno or 0) if ast.get_docstring(main) else body[0].lineno - 1
    begin = first
    for i, node in enumerate(body):
        between = lines[ends[i] : body[i + 1].lineno - 1] if i + 1 < len(body) else [""]
        if all(line.strip() for line in between) and i + 1 < len(body):
            continue
        block = textwrap.dedent("\n".join(lines[begin : ends[i]])).strip()
        if isinstance(node, ast.Return):
            block = re.sub(r"(?m)^return ", "", block)
        yield "code", block
        begin = ends[i]


def notebook(cells: list[Cell]) -> dict[str, Any]:
    """The cells as a notebook of format 4.5, not run."""
    code = {"execution_count": None, "outputs": []}
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "cells": [
            {
                "id": f"cell-{i}",
                "cell_type": kind,
                "metadata": {},
                "source": text,
                **(code if kind == "code" else {}),
            }
            for i, (kind, text) in enumerate(cells)
        ],
    }


def run(made: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a notebook from top to bottom in ``folder``; raises where a cell does."""
    import nbformat
    from nbclient import NotebookClient

    loaded = nbformat.from_dict(made)
    client = NotebookClient(loaded, timeout=SECONDS, resources={"metadata": {"path": str(folder)}})
    client.execute()
    done: dict[str, Any] = json.loads(nbformat.writes(loaded))
    return done


def main() -> None:
    """Write all notebooks, or those that are named, and run them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="pages; all unless given")
    parser.add_argument("--out", type=Path, default=ROOT / "notebooks", help="folder of notebooks")
    parser.add_argument("--no-run", action="store_true", help="only write them")
    parser.add_argument(
        "--missing", action="store_true", help="leave out those whose packages are missing"
    )
    asked = parser.parse_args()
    from importlib.util import find_spec

    asked.out.mkdir(parents=True, exist_ok=True)
    for tutorial in TUTORIALS:
        if asked.names and tutorial.page not in asked.names:
            continue
        if asked.missing and find_spec(tutorial.module) is None:
            print(f"{tutorial.page}: {tutorial.module} is not installed", file=sys.stderr)
            continue
        made, begin = notebook(cells_of(tutorial)), time.perf_counter()
        if not asked.no_run:
            made = run(made, asked.out)
        path = asked.out / f"{tutorial.page}.ipynb"
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {len(made['cells'])} cells, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
