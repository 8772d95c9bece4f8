"""What a public project has besides its code: workflows, metadata and versions agree with each
other.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
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


def jobs(path: Path) -> dict[str, dict]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def steps(path: Path) -> list[dict]:
    return [step for job in jobs(path).values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path):
    # besides the Makefile, only make itself has to come from somewhere
    commands = [step["run"] for step in steps(path) if "run" in step]
    commands = [command for command in commands if not command.startswith("choco install make ")]
    assert commands
    for command in commands:
        make, target = command.split()
        assert make == "make"
        assert target in TARGETS


def test_workflows_cover_tests_docs_wheel_nights_and_releases():
    assert {"docs", "nightly", "release", "test", "wheel"} <= {path.stem for path in WORKFLOWS}


@pytest.mark.parametrize("name", ["test", "wheel"])
def test_workflows_run_on_the_supported_versions(name):
    job = jobs(ROOT / ".github" / "workflows" / f"{name}.yml")[name]
    versions = job["strategy"]["matrix"]["python-version"]
    classifiers = [
        c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)
    ]
    assert versions[: len(classifiers)] == classifiers
    assert PROJECT["requires-python"] == f">={versions[0]}"
    # what is not declared is tried, and may fail
    for undeclared in versions[len(classifiers) :]:
        assert f"matrix.python-version == '{undeclared}'" in job["continue-on-error"]
    systems = {system.split("-")[0] for system in job["strategy"]["matrix"]["os"]}
    assert systems == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_only_what_publishes_may_write(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    writing = {name for name, job in workflow["jobs"].items() if "permissions" in job}
    assert writing == {"docs": {"deploy"}, "release": {"publish"}}.get(path.stem, set())
    for name in writing:
        assert "run" not in {key for step in workflow["jobs"][name]["steps"] for key in step}
        assert workflow["jobs"][name]["if"]


def test_the_lowest_versions_are_those_declared():
    command = [sys.executable, ROOT / "tests" / "lowest.py", "data"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    pins = dict(line.split("==") for line in done.stdout.splitlines())
    assert len(pins) == len(PROJECT["dependencies"]) + len(PROJECT["optional-dependencies"]["data"])
    assert f"numpy>={pins['numpy']}" in PROJECT["dependencies"]


def test_the_source_archive_has_what_the_makefile_and_the_tests_read():
    listed = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").split()
    # these come by themselves
    automatic = {"LICENSE", "README.md", "pyproject.toml", "src", "MANIFEST.in"}
    ignored = {".ci", ".git", ".gitignore"}
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    assert {name.split("/")[0] for name in tracked} <= {*listed, *automatic, *ignored}


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
