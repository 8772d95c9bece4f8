"""What a public project has besides its code: workflows, metadata and versions agree with each
other.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import symlift

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(
    re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)


def steps(path: Path) -> list[dict]:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path):
    commands = [step["run"] for step in steps(path) if "run" in step]
    assert commands
    for command in commands:
        make, target = command.split()
        assert make == "make"
        assert target in TARGETS


def test_workflows_cover_tests_docs_and_wheel():
    assert [path.stem for path in WORKFLOWS] == ["docs", "test", "wheel"]


@pytest.mark.parametrize("name", ["test", "wheel"])
def test_workflows_run_on_the_supported_versions(name):
    jobs = yaml.safe_load(
        (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    )["jobs"]
    versions = jobs[name]["strategy"]["matrix"]["python-version"]
    classifiers = [
        c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)
    ]
    assert versions == classifiers
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_issue_forms_and_hooks_are_well_formed():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 2
    for form in forms:
        content = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= set(content)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][
        0
    ]["hooks"]
    assert {hook["id"] for hook in hooks} == {"ruff-check", "ruff-format", "mypy"}


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == symlift.__version__


@pytest.mark.parametrize(
    "module",
    [
        "symlift",
        "symlift.datasets",
        "symlift.metrics",
        "symlift.plotting",
        "symlift.diagnosis",
        "symlift_paper",
    ],
)
def test_completion_shows_public_names_only(module):
    package = importlib.import_module(module)
    assert dir(package) == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)


def test_the_changelog_has_a_section_for_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(
        rf"^## \[{re.escape(symlift.__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    )


def test_extras_that_are_named_exist():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {
        extra
        for path in pages
        for extras in re.findall(r"(?:symlift|\.)\[([a-z,]+)\]", path.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    }
    assert "train" in named
    assert named <= set(PROJECT["optional-dependencies"])


def test_the_doctor_names_extras_that_exist():
    from symlift.cli.doctor import EXTRAS

    requirements = {
        extra: " ".join(packages).replace("-", "_").lower()
        for extra, packages in PROJECT["optional-dependencies"].items()
    }
    for module, extra in EXTRAS.items():
        assert module.lower() in requirements[extra]
