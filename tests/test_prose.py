"""Habits of writing that are easy to search for, in docstrings, comments and documentation."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path
    for path in (*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    if path.name != "results.md"  # written from results
)
MODULES = sorted(
    path for folder in ("src", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")
)

UNITS = "seconds?|minutes?|hours?|days?|m?s|MB|operations|spikes|cycles|evaluations|passes|fits"
THINGS = "step|row|seed|cell|degree|point|column|file|run|set|seed|fit|plane|image|channel|core"
HABITS = {
    "'a' for 'per'": rf"\b\d*({UNITS}) an? ({THINGS})\b",
    "'beside' for 'next to', 'relative to' or 'in addition to'": r"\bbeside\b",
    "'but for' for 'except' or 'up to'": r"\bbut for\b",
    # "cannot tell" is a verdict on a map
    "'tell' for 'distinguish', 'report' or 'show'": r"(?<!cannot )\b(tells?|told|telling)\b",
    "a role of Sphinx": r":(func|class|meth|mod|attr|data):`[~\w]",
    "an item of a list that readers do not have": r"\(items? \d",
}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of a page, or of the docstrings and comments of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), start=1)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            words = ast.get_docstring(node)
            if words:
                yield node.body[0].lineno, words
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


# pages whose lines are longer still: a page that is edited is wrapped, and leaves this list
LONG = {
    "0003-selection-and-evidence.md", "0005-placement.md", "0006-dense-mixings.md",
    "0007-electrodes.md", "0011-one-search.md", "0012-near-pairs.md", "choosing-the-grid.md",
    "cost.md", "electrodes.md", "reading-files.md", "reading-the-diagnosis.md", "when-it-fails.md",
}  # fmt: skip


def test_lines_of_pages_end_at_120_columns():
    # tables, pictures, code and options of the reference cannot be wrapped
    wide = [
        f"{page.relative_to(ROOT).as_posix()}:{number}"
        for page in PAGES
        if page.name not in LONG
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > 120 and not re.match(r"\s*\||!\[|      members:", line)
    ]
    assert wide == []
    assert LONG <= {page.name for page in PAGES}


@pytest.fixture(scope="module")
def everything() -> list[tuple[str, str]]:
    """(where, text) of all that is searched, read once."""
    return [
        (f"{path.relative_to(ROOT).as_posix()}:{line}", " ".join(words.split()))
        for path in (*PAGES, *MODULES)
        for line, words in prose(path)
    ]


@pytest.mark.parametrize("habit", HABITS)
def test_habits_stay_away(habit, everything):
    pattern = re.compile(HABITS[habit], re.IGNORECASE)
    hits = [
        f"{where} {match[0]}" for where, words in everything if (match := pattern.search(words))
    ]
    assert hits == []


def test_habits_are_recognised():
    examples = (
        "3 seconds a step", "the sensors beside it", "all but for one", "rows tell the place",
        ":func:`fit`", "(item 4)",
    )  # fmt: skip
    for pattern, example in zip(HABITS.values(), examples, strict=True):
        assert re.search(pattern, example)
        assert not re.search(pattern, "a step takes three seconds, on a core of a laptop")
