"""What decides whether a placement is believed is in one place."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import symlift
from symlift.search.judge import Judge

PACKAGE = Path(symlift.__file__).parent
ROOMS = (
    *(PACKAGE / "search").rglob("*.py"),
    *(PACKAGE / "solvers" / "starts").glob("*.py"),
    *(PACKAGE / "solvers" / "fast" / "place").glob("*.py"),
    *(PACKAGE / "solvers" / "fast" / f"{n}.py" for n in ("propose", "arrange", "bits")),
)
#: names of what says how good a result is
SCORES = re.compile(r"^share$|explain|agreement|score|ceiling|signific|returned")
#: very many columns have no z score: there is a least part of a column that its partners predict
EXCEPT = {("wide.py", "ceiling > _LEAST")}


def test_the_judge_is_small() -> None:
    assert len(fields(Judge)) <= 12
    assert Judge.__dataclass_params__.frozen


def numbers(part: ast.expr) -> bool:
    """Whether an expression has a number of its own, or a module's constant."""
    return any(
        (isinstance(x, ast.Constant) and isinstance(x.value, float) and x.value not in (0.0, 1.0))
        or (isinstance(x, ast.Name) and re.fullmatch("_[A-Z_]+", x.id))
        for x in ast.walk(part)
    )


def named(part: ast.expr) -> set[str]:
    names = {x.id for x in ast.walk(part) if isinstance(x, ast.Name)}
    return names | {x.attr for x in ast.walk(part) if isinstance(x, ast.Attribute)}


def test_no_other_module_compares_a_score_with_a_number_of_its_own() -> None:
    found = set()
    for path in ROOMS:
        if path.name == "judge.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Compare):
                continue
            parts = [node.left, *node.comparators]
            scores = any(SCORES.search(name) for part in parts for name in named(part))
            if scores and any(map(numbers, parts)):
                found.add((path.name, ast.unparse(node)))
    # columns for each point, which is not a score
    assert found - EXCEPT - {("engine.py", "share > 1.5")} == set()


@pytest.mark.parametrize(
    ("kind", "explained", "accepted"), [("partial", 0.55, True), ("lags", 0.55, False)]
)
def test_plain_correlations_have_to_explain_more(
    kind: str, explained: float, accepted: bool
) -> None:
    assert Judge().accepts(kind, explained, 1.0, 6.0) is accepted
    assert not Judge().accepts(kind, explained, 1.0, 4.0)
    assert not Judge().accepts(kind, 0.0, 0.0, 6.0)


def test_what_was_not_looked_at_does_not_agree() -> None:
    assert not Judge().finds_again(None)
    assert Judge().finds_again(0.9)
