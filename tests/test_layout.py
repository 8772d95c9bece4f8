"""The rooms of the house and the one direction of dependence between them, and what importing
costs.
"""

from __future__ import annotations

import ast
import math
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import symlift
import symlift_paper

ROOT = Path(symlift.__file__).parent
PAPER = Path(symlift_paper.__file__).parent
PACKAGES = {"symlift", "symlift_paper"}
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
# the report of an estimator is drawn by a room further down; the package and its errors belong to
# no room
EXCEPTIONS = {("_keeps_fit", "report"), ("several", "report")}
EVERYWHERE = {"symlift", "errors"}


def rooms() -> list[set[str]]:
    """The table in CONTRIBUTING: each row names one or more rooms, and may import only from rows
    above it and from itself.
    """
    rows = re.findall(
        r"^\| (`.*?`) \|", CONTRIBUTING.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return [set(re.findall(r"`([a-z_]+)`", row)) for row in rows]


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def is_module(name: str) -> bool:
    path = ROOT.parent / Path(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module of ours that a file imports, inside functions as well; type checking only is not
    running.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unreal = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in unreal:
            continue
        if (
            isinstance(node, ast.ImportFrom)
            and node.level == 0
            and (node.module or "").split(".")[0] in PACKAGES
        ):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield node.lineno, inner if is_module(inner) else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (
                (node.lineno, name.name)
                for name in node.names
                if name.name.split(".")[0] in PACKAGES
            )
        elif (
            isinstance(node, ast.Constant)
            and re.fullmatch(r"symlift(_paper)?(\.[a-z_]+)+", str(node.value))
            and is_module(str(node.value))
        ):
            yield node.lineno, str(node.value)  # imported by name, as the registry of solvers does


def wrong_imports() -> list[str]:
    level = {room: i for i, row in enumerate(rooms()) for room in row}
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        here = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if here in ("__init__", "__main__", "errors"):
            continue
        for line, module in imports(path):
            other = room_of(module)
            if other in EVERYWHERE or (here, other) in EXCEPTIONS:
                continue
            if level.get(other, 99) > level[here]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    return wrong


def our_modules() -> Iterator[tuple[str, Path]]:
    """Every module of both packages, and its name as a path from ``src``."""
    for path in sorted((*ROOT.rglob("*.py"), *PAPER.rglob("*.py"))):
        yield path.relative_to(ROOT.parent).as_posix(), path


def test_every_room_is_in_the_table_and_every_entry_exists():
    named = set().union(*rooms())
    existing = {
        p.name.removesuffix(".py")
        for p in ROOT.iterdir()
        if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert named == existing - {"__init__", "__main__", "errors"}


def test_imports_point_one_way():
    assert wrong_imports() == []


def test_nothing_in_the_library_imports_the_papers_tables():
    def packages(path: Path) -> set[str]:
        return {module.split(".")[0] for _, module in imports(path)}

    assert [path for path in ROOT.rglob("*.py") if "symlift_paper" in packages(path)] == []
    assert packages(PAPER / "runner.py") == PACKAGES


def test_solvers_never_meet_data_sets_or_plots():
    for room in ("core", "statistics", "metrics", "storage", "search", "solvers"):
        for path in (ROOT / room).rglob("*.py"):
            used = {room_of(module) for _, module in imports(path)}
            assert not used & {"datasets", "plotting", "report", "runs", "cli"}, path


def test_torch_is_needed_by_training_only():
    allowed = {
        "symlift/core/differentiable.py",
        "symlift/cli/doctor.py",
        "symlift_paper/baselines/liegan.py",
        "symlift_paper/baselines/embedding.py",
    }
    for name, path in our_modules():
        if name.startswith("symlift/solvers/neural/") or name in allowed:
            continue
        assert not re.search(
            r"^\s*(import torch|from torch)", path.read_text(encoding="utf-8"), re.MULTILINE
        ), name


def lines_without_docstrings(path: Path) -> int:
    """Lines of a module; those of docstrings do not count, since numpydoc is long."""
    text = path.read_text(encoding="utf-8")
    docstrings = 0
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            first = node.body[0]
            docstrings += (first.end_lineno or first.lineno) - first.lineno + 1
    return len(text.splitlines()) - docstrings


def test_modules_are_short():
    long = {name: lines_without_docstrings(path) for name, path in our_modules()}
    assert {name: lines for name, lines in long.items() if lines > 500} == {}


# -- names -----------------------------------------------------------------------------------------

# one name, one thing: what several modules define under one name follows one protocol
PROTOCOLS = {
    "solve": "every solver has one, which the registry calls",
    "fit": "every baseline of the paper has one",
    "paint": "every figure of the paper has one",
    "inspect": "a command, and what it calls",
    "recover": "commands, and what they call",
    "transform": "a command, and what it calls",
    "plane_basis": "for arrays and for tensors",
    "rotate_planes": "for arrays and for tensors",
    "spread_filter": "for arrays and for tensors",
}
# local names that say nothing about what they hold
EMPTY_NAMES = {"told", "said", "found", "there", "kept"}


def defined_names() -> dict[str, list[str]]:
    """Public functions and classes of all modules, and where they are defined."""
    homes: dict[str, list[str]] = {}
    for name, path in our_modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                if any(getattr(one, "id", "") == "overload" for one in node.decorator_list):
                    continue
                homes.setdefault(node.name, []).append(name)
    return homes


def test_a_public_name_is_defined_once():
    twice = {name: homes for name, homes in defined_names().items() if len(homes) > 1}
    assert {name: homes for name, homes in twice.items() if name not in PROTOCOLS} == {}
    assert set(PROTOCOLS) <= set(twice)


def test_variables_say_what_they_hold():
    top = Path(__file__).parents[1]
    folders = [top / name for name in ("src", "benchmarks", "examples", "docs")]
    paths = sorted(path for folder in folders for path in folder.rglob("*.py"))
    wrong = [
        f"{path.relative_to(top)}:{node.lineno} {name}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in [getattr(node, "id", None) or getattr(node, "arg", None)]
        if isinstance(node, ast.Name | ast.arg) and name in EMPTY_NAMES
    ]
    # `Evidence.found` is public
    allowed = "src/symlift/solvers/contract.py"
    assert [at for at in wrong if not at.startswith(allowed)] == []


# -- what importing costs --------------------------------------------------------------------------


def cpu_seconds(code: str) -> float:
    """CPU time of a fresh interpreter that runs ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


RECOVER_NOTHING = (
    "import sys; sys.argv = ['symlift', 'recover', 'nothing.csv']; from symlift.cli import main;"
    " main()"
)


@pytest.mark.parametrize(
    ("code", "share"),
    [("from symlift import LatentDomain", 1.15), ("import symlift", 0.1), (RECOVER_NOTHING, 0.5)],
    ids=["LatentDomain", "symlift", "a file that is not there"],
)
def test_imports_cost_little(code, share):
    # in turns, and the least of each: on a busy machine the same import can take twice as long
    least = dict.fromkeys(("pass", "import sklearn.decomposition", code), math.inf)
    for _ in range(8):
        least = {text: min(seconds, cpu_seconds(text)) for text, seconds in least.items()}
        nothing, scikit_learn, ours = least.values()
        if ours - nothing < share * (scikit_learn - nothing):
            return
    pytest.fail(f"{code!r} takes {ours:.2f} s, scikit-learn's decomposition {scikit_learn:.2f} s")


@pytest.mark.parametrize(
    "code",
    ["from symlift import LatentDomain, load", "import symlift.cli", "import symlift.report"],
)
def test_nothing_heavy_is_imported_unasked(code):
    heavy = ["torch", "matplotlib", "yaml", "umap", "dask"]
    text = f"{code}\nimport sys\nprint(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
