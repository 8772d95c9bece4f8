"""The report: what is in the file, that it trusts nothing, and that it works in a browser."""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import eye_array

from pages.browser import Browser
from symlift import LatentDomain, load
from symlift._estimator_file import (
    EstimatorRecord,
    PlacementRecord,
    read_estimator,
    write_estimator,
)
from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.datasets import gsn
from symlift.diagnosis import Diagnosis, NextStep, Test, Verdict
from symlift.errors import InputError, SymliftError
from symlift.report import write_report
from symlift.report.draw import fold, pixel_map, smooth_ring
from symlift.report.facts import of_trace
from symlift.report.gather import read_run
from symlift.report.ring import stratified
from symlift.report.signals import shown_samples
from symlift.report.verdict import evidence_bar
from symlift.runs.record import InputRecord, Run, RunRecord, RunSettings, Status, Timings
from symlift.runs.recover import recover
from symlift.solvers.contract import (
    Evidence,
    GridCandidate,
    Placement,
    Stage,
    Trace,
    TrainingSummary,
)
from symlift.storage.model_file import save_model
from symlift.storage.sample_file import Samples

FIXTURE = Path(__file__).parent / "fixtures" / "v0.1.0"
KINDS: dict[str, tuple[tuple[int, ...], Any]] = {
    "line": ((31,), False),
    "ring": ((15,), True),
    "image": ((7, 6), False),
    "volume": ((4, 4, 3), (False, True, False)),
}
TESTS = (
    Test("locality_beyond_control", 8.25, 0.2, True, "locality that no control reaches"),
    Test("locality_on_a_ring", 0.95, 0.9, False, "a ring must not explain the columns as well"),
    Test("effective_rank", 11.93),
)
STEPS = (
    NextStep(
        "a ring fits as well: try it",
        {"grid": [31], "periodic": True},
        "symlift recover DATA --periodic",
    ),
)
DIAGNOSIS = Diagnosis(Verdict.PRESENT, 0.97, TESTS, STEPS)
RECORD = RunRecord(
    status=Status.DONE,
    started="2026-11-16T14:00:00+00:00",
    input=InputRecord(name="data.npy", sha256="ab" * 32, shape=(5000, 31), dtype="float32"),
    settings=RunSettings(grid="31", seed=7),
    versions={"symlift": "0.1.0", "numpy": "2.0.0"},
    solver="fast",
    score=-0.25,
    diagnosis=DIAGNOSIS,
    warnings=["three constant columns get weight 0"],
    timings=Timings(read=0.1, fit=12.34, check=1.0),
)
TRACE = Trace(
    "fast",
    "coordinates",
    (
        Stage("localise", 3.21, {"quality": {"kurtosis": 4.3}}),
        Stage(
            "polish",
            0.5,
            {"quality": {"residual": 0.013}, "loss": [1.0, 0.5, 0.3, 0.2, 0.15, 0.12]},
        ),
    ),
    {"fit_rows": 40_000},
)
PANELS = {
    "verdict",
    "signals",
    "move",
    "generators",
    "spectrum",
    "moments",
    "convergence",
    "take",
    "reading",
}


@functools.cache
def fitted(kind: str) -> tuple[LatentDomain, np.ndarray]:
    """A fit to shuffled shot noise, and its rows; made once."""
    shape, periodic = KINDS[kind]
    X = gsn(300, shape, periodic=periodic, transform="permutation", random_state=3).X.astype(
        np.float32
    )
    solver = "random" if kind == "volume" else "fast"  # volumes have no small example that is quick
    return LatentDomain(shape, periodic=periodic, solver=solver, random_state=0).fit(X), X


def make_run(
    folder: Path, kind: str = "line", record: RunRecord | None = RECORD, samples: int = 64
) -> LiftedModel:
    """A saved fit with a record and samples beside it, as a run has them."""
    estimator, X = fitted(kind)
    estimator.save(folder, overwrite=True)
    change_estimator(folder, trace=TRACE, diagnosis=None)  # the run's own is the one that counts
    if record is not None:
        Run(folder, record).write()
    keep_samples(folder, observed=X[:samples], row=np.arange(samples) + 100)
    return estimator.model_


def change_estimator(folder: Path, **changes: Any) -> None:
    write_estimator(read_estimator(folder).model_copy(update=changes), folder)


def keep_samples(folder: Path, **arrays: Any) -> None:
    np.savez(folder / "samples.npz", **arrays)


def changed(**changes: Any) -> RunRecord:
    return RECORD.model_copy(update=changes)


class Page(HTMLParser):
    """Elements and text of a page; void elements do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.data = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "img", "input", "br", "path", "circle"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            if self.elements[-1][1].get("type") == "application/json":
                self.data += data
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page_of(folder: Path) -> Page:
    return Page(write_report(folder).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One written report of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    for kind in KINDS:
        make_run(folder / kind, kind)
        write_report(folder / kind)
    return {kind: folder / kind for kind in KINDS}


# -- what is in it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_has_every_panel(runs: dict[str, Path], kind: str) -> None:
    page = Page((runs[kind] / "report.html").read_text(encoding="utf-8"))
    assert not page.open  # well nested to the end
    axes = len(KINDS[kind][0])
    panels = {a.get("id") for a in page.all("section")}
    more = {"ring": {"ring", "places"}, "volume": set()}.get(
        kind, {"places"}
    )  # a random model has no places
    assert panels == PANELS | more | {"grid"}
    assert sum(a.get("class") == "pair" for a in page.all("figure")) == 8
    sliders = [a for a in page.all("input") if a.get("type") == "range"]
    assert len(sliders) == axes
    assert all(a["aria-valuetext"] for a in sliders)
    assert {a["for"] for a in page.all("label") if "for" in a} == {a["id"] for a in sliders}
    maps = [a for a in page.all("img") if a.get("class") == "map"]
    assert len(maps) == 2 * axes + 2  # generators twice, correlations before and after
    assert sum(a.get("class") == "map strip" for a in page.all("img")) == len(
        maps
    )  # each with its colour bar
    assert all(a.get("alt") for a in page.all("img"))
    assert all(a.get("aria-label") for a in page.all("svg") + page.all("canvas"))
    for words in (
        "data.npy",
        "A symmetry is present",
        "confidence 0.97",
        "12.3 s",
        "8.25",
        "localise",
        "three constant columns",
        "loss 1 → 0.12 6 values",
        "fit rows 40,000",
    ):
        assert words in page.text
    assert "row 100" in page.text or "row 1" in page.text


def test_the_verdict_comes_first(runs: dict[str, Path]) -> None:
    text = (runs["line"] / "report.html").read_text(encoding="utf-8")
    assert text.index('id="verdict"') < min(
        text.index(f'id="{panel}"') for panel in ("signals", "move", "generators")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_is_one_file_that_asks_for_nothing(runs: dict[str, Path], kind: str) -> None:
    path = runs[kind] / "report.html"
    text = path.read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text
    for _, attributes in Page(text).elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert "default-src 'none'" in text
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        (Verdict.PRESENT, "yes"),
        (Verdict.ABSENT, "no"),
        (Verdict.UNIDENTIFIABLE, "partly"),
        (Verdict.ORDERED, "ordered"),
    ],
)
def test_each_verdict_has_its_colour(tmp_path: Path, verdict: Verdict, kind: str) -> None:
    make_run(tmp_path, record=changed(diagnosis=Diagnosis(verdict, 0.5)), samples=8)
    page = page_of(tmp_path)
    assert next(a["class"] for a in page.all("section")) == f"verdict {kind}"
    assert f".verdict.{kind} " in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert verdict.words[1:] in page.text


def test_an_unknown_verdict_is_a_damaged_record(tmp_path: Path) -> None:
    make_run(tmp_path, samples=8)
    text = (tmp_path / "run.json").read_text().replace('"present"', '"hm"')
    (tmp_path / "run.json").write_text(text)
    page = page_of(tmp_path)
    assert next(a["class"] for a in page.all("section")) == "verdict none"
    assert "run.json is damaged (ValidationError)" in page.text
    assert str(tmp_path) not in page.text  # reports are passed on


def test_tests_have_number_threshold_and_reading(runs: dict[str, Path]) -> None:
    page = Page((runs["line"] / "report.html").read_text(encoding="utf-8"))
    for words in (
        "Locality beyond control 8.25 needs at least 0.2 passed locality that no control reaches",
        "Locality on a ring 0.95 needs at most 0.9 not passed a ring must not explain",
        "The grid Any data can be arranged on some grid.",
        "Line of 31 points given Others, when the result was checked Ring 0.95 does equally well",
        "More numbers",
        "Effective rank 11.93",
        (
            "What to do next A ring fits as well: try it LatentDomain(grid=(31,), periodic=True)"
            " symlift recover data.npy --grid 31 --periodic"
        ),
    ):
        assert words in page.text


# -- runs as they come -----------------------------------------------------------------------------


def test_what_recover_wrote_is_reported(tmp_path: Path) -> None:
    _, X = fitted("ring")
    names = [f"channel {i}" for i in range(15)]
    np.savetxt(tmp_path / "ring.csv", X, delimiter=",", header=",".join(names), comments="")
    run = recover(tmp_path / "ring.csv", tmp_path / "run", grid="15", periodic=True, seed=3)
    assert run is not None
    assert run.record.diagnosis is not None
    page = page_of(run.folder)
    assert {a.get("id") for a in page.all("section")} == PANELS | {"ring", "places", "grid"}
    for words in (
        "15 columns form a ring: channel",
        "symlift recover ring.csv --grid 15 --periodic --seed 3",
        "From 300 rows, drawn at random.",
        "ring.csv",
        "Ring of 15 points",
        "300 rows × 15 columns",
        "auto (fast)",
        run.record.diagnosis.verdict.words[1:],
        run.record.input.sha256,
        "Stationarity",
        "place",
        "All 15 columns have a place",
        "All names begin with “channel ”",
        "Seed 3",
    ):
        assert words in page.text
    assert {(a.get("title") or "").split(" (")[0] for a in page.all("li")} >= set(names)
    assert "missing" not in page.text
    assert "damaged" not in page.text


def test_what_an_estimator_saved_is_reported(tmp_path: Path) -> None:
    estimator, _ = fitted("image")
    estimator.save(tmp_path / "saved image")
    page = page_of(tmp_path / "saved image")
    for words in (
        "saved image",
        "7 × 6 grid",
        "300 rows × 42 columns",
        "What is claimed",  # by the diagnosis that every fit makes and keeps
        "Each pair is one sample",
        "LatentDomain(grid=(7, 6), solver='fast', random_state=0).fit(X)",
    ):
        assert words in page.text
    assert "missing" not in page.text
    estimator.save(tmp_path / "bare", samples=False)
    assert not (tmp_path / "bare" / "samples.npz").exists()
    assert "No gallery" in page_of(tmp_path / "bare").text


def test_a_saved_fit_a_fit_in_memory_and_a_loaded_one_have_the_same_page(tmp_path: Path) -> None:
    _, X = fitted("ring")
    estimator = LatentDomain((15,), periodic=True, solver="fast", random_state=0).fit(X)
    found = estimator.diagnose(X)
    estimator.save(tmp_path / "page")

    def body(path: Path) -> str:
        return re.sub(r"<dt>Report</dt><dd>.*?</dd>", "", path.read_text(encoding="utf-8"))

    pages = [
        body(path)
        for path in (
            estimator.report(tmp_path / "page.html"),
            write_report(tmp_path / "page"),
            load(tmp_path / "page").report(tmp_path / "page.html"),
        )
    ]
    assert pages[0] == pages[1] == pages[2]
    assert f"confidence {found.confidence:.2f}" in pages[0]


@pytest.mark.parametrize("what", ["run", "ring"])
def test_what_0_1_wrote_is_reported(tmp_path: Path, what: str) -> None:
    shutil.copytree(FIXTURE / what, tmp_path, dirs_exist_ok=True)
    page = page_of(tmp_path)
    assert not page.open
    expected = {
        "run": [
            "shuffled.npy",
            "4 × 5 grid",
            "600 rows × 20 columns",
            "A symmetry is present",
            "confidence 0.91",
            "Agreement of halves 0.998",
            "arrange",
            "coordinates",
            "Each pair is one sample",
        ],
        "ring": ["Ring of", "No gallery", "nothing has been checked yet"],
    }[what]
    for words in expected:
        assert words in page.text


# -- what it must not do ---------------------------------------------------------------------------


def test_names_are_escaped(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&.npy"
    record = changed(
        status=Status.FAILED,
        error=evil,
        input=InputRecord(name=evil, sha256=evil, shape=(3, 4)),
        settings=RunSettings(solver=evil),
        versions={evil: evil},
        warnings=[evil],
        ended=evil,
        diagnosis=Diagnosis(
            Verdict.ABSENT,
            1.0,
            (Test(evil, 1.0, 2.0, False, evil), Test(evil, None)),
            (NextStep(evil, {evil: evil}, evil),),
        ),
    )
    make_run(tmp_path, record=record)
    stages = (Stage(evil, 1.0, {evil: evil}), Stage(evil, 1.0, {evil: [1, 2, 3, 4, 5]}))
    names = [f"{i:02}{evil}" for i in range(31)]
    change_estimator(tmp_path, feature_names=names, trace=Trace(evil, evil, stages, {evil: evil}))
    page = page_of(tmp_path)
    assert len(page.all("script")) == 3
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert page.text.count("<script>alert(1)</script>") >= 15
    assert names[0][:11] + "…" in page.text  # the name of a column, in its place
    assert json.loads(page.data)["kind"] == "line"


def test_only_its_own_script_may_run(runs: dict[str, Path]) -> None:
    import hashlib

    text = (runs["line"] / "report.html").read_text(encoding="utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 2
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    assert f"script-src {hashes};" in text


# -- the numbers in the page -----------------------------------------------------------------------


def decode(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype).astype(np.float64)


def lift_as_the_page_does(
    data: dict[str, Any], sample: int, t: list[float]
) -> tuple[np.ndarray, np.ndarray]:
    """The script's formula, written again: the lifted signal, and the moved plane coordinates."""
    D, axes = data["dimension"], len(data["shape"])
    theta, r = decode(data["theta"], "<f4").reshape(axes, -1), decode(data["r"], "<f4")
    c = decode(data["coordinates"], "<f4").reshape(-1, D)[sample]
    points = np.stack(np.unravel_index(np.arange(np.prod(data["shape"])), data["shape"]), axis=1)
    angles = (points - (np.array(data["shape"]) - 1) / 2 - np.array(t)) @ theta
    K = D // 2
    y = np.cos(angles) @ (r[:K] * c[0 : 2 * K : 2]) + np.sin(angles) @ (r[:K] * c[1 : 2 * K : 2])
    turn = np.array(t) @ theta
    moved = c.copy()
    moved[0 : 2 * K : 2] = np.cos(turn) * c[0 : 2 * K : 2] - np.sin(turn) * c[1 : 2 * K : 2]
    moved[1 : 2 * K : 2] = np.sin(turn) * c[0 : 2 * K : 2] + np.cos(turn) * c[1 : 2 * K : 2]
    return y + (r[K] * c[D - 1] if D % 2 else 0.0), moved


@pytest.mark.portable
@pytest.mark.parametrize("kind", KINDS)
def test_embedded_numbers_are_the_models_own(runs: dict[str, Path], kind: str) -> None:
    data = json.loads(Page((runs[kind] / "report.html").read_text(encoding="utf-8")).data)
    run = read_run(runs[kind])
    assert run.observed is not None
    sample = 2
    x = run.observed[run.rows == int(data["samples"][sample].split()[1])]
    axes = len(data["shape"])
    lifted = run.model.lift(x)[0]
    size = np.abs(lifted).max()
    np.testing.assert_allclose(
        lift_as_the_page_does(data, sample, [0.0] * axes)[0], lifted, atol=2e-5 * size
    )
    t = [1.25, -0.5, 2.0][:axes]
    y, moved = lift_as_the_page_does(data, sample, t)
    acted = run.model.act(x, t)
    if all(run.model.grid.periodic):  # nothing is lost at an end
        np.testing.assert_allclose(y, run.model.lift(acted)[0], atol=2e-5 * size)
    seen = data["observation"]
    back = decode(seen["matrix"], "<i2").reshape(-1, data["dimension"]) * seen["unit"]
    observation = decode(seen["mean"], "<f4") + back @ moved
    # entries are whole multiples of a unit: each is off by half of it at most
    rounding = 0.5 * seen["unit"] * np.abs(moved).sum()
    np.testing.assert_allclose(observation, acted[0], atol=rounding + 1e-4 * np.abs(acted).max())


def test_pictures_show_every_point_once() -> None:
    assert sorted(pixel_map(42, (7, 6)).ravel()) == list(range(42))
    volume = pixel_map(11 * 4 * 3, (11, 4, 3), finer=1)
    assert sorted(volume[volume >= 0]) == list(range(132))
    other = pixel_map(10, (3, 3))  # d is not the grid's size
    assert other.shape == (3, 4)
    assert sorted(other[other >= 0]) == list(range(10))


def test_folding_keeps_thin_lines() -> None:
    matrix = np.zeros((300, 300))
    matrix[np.arange(300), np.arange(300)] = -2.0
    folded = fold(matrix)
    assert folded.shape == (100, 100)
    np.testing.assert_array_equal(np.diag(folded), -2.0)
    assert np.count_nonzero(folded) == 100


@pytest.mark.parametrize("n", [8, 15])
def test_a_smooth_ring_goes_through_its_points(n: int, rng: np.random.Generator) -> None:
    values = rng.normal(size=n)
    np.testing.assert_allclose(smooth_ring(values)[::8], values, atol=1e-12)


# -- what may be missing or broken -----------------------------------------------------------------


def test_the_model_alone_is_enough(tmp_path: Path) -> None:
    make_run(tmp_path, "image")
    for name in ("run.json", "estimator.json", "samples.npz"):
        (tmp_path / name).unlink()
    page = page_of(tmp_path)
    for words in (
        "No diagnosis was run",
        "estimator.json is missing",
        "No gallery",
        "No trace was kept",
        "0 samples were kept",
    ):
        assert words in page.text
    data = json.loads(page.data)
    assert data["samples"] == ["one point"]
    assert data["observation"] is None
    y, _ = lift_as_the_page_does(data, 0, [0.0, 0.0])
    assert np.argmax(y) == np.ravel_multi_index((3, 3), (7, 6))  # the point stands in the middle
    np.testing.assert_allclose(y.max(), 1.0, atol=1e-5)


BROKEN = [
    "",
    "[1, 2]",
    "{",
    "null",
    '{"trace": 3, "input": [], "settings": "x", "diagnosis": 7}',
    '{"version": Infinity}',
    '{"format": "symlift-run", "version": Infinity}',
    '{"format": "symlift-run", "version": 9}',
    '{"format": "symlift-run", "version": 1, "diagnosis": {"verdict": [], "figures": [1]}}',
    '{"timings": {"fit": NaN}, "score": Infinity, "seconds": 1e999, "versions": []}',
    "[" * 100_000,
]


@pytest.mark.parametrize("name", ["run.json", "estimator.json"])
@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_record_is_tolerated(tmp_path: Path, name: str, text: str) -> None:
    make_run(tmp_path, samples=8)
    (tmp_path / name).write_text(text)
    page = page_of(tmp_path)
    assert ("No diagnosis was run" in page.text) == (name == "run.json")
    assert not re.search(r"\b(nan|inf)\b", page.text)
    # an object without a version is an estimator of 0.1, of which nothing has to be there
    if name == "run.json" or '"timings"' not in text:
        assert name in page.text


def test_bytes_that_are_no_text_are_tolerated(tmp_path: Path) -> None:
    make_run(tmp_path, samples=8)
    for name in ("run.json", "estimator.json"):
        (tmp_path / name).write_bytes(b"\xff\xfe{")
    text = page_of(tmp_path).text
    assert "run.json is damaged" in text
    assert "estimator.json is damaged" in text


def test_numbers_that_are_none_are_not_shown(tmp_path: Path) -> None:
    make_run(tmp_path, samples=8)
    told = json.loads((tmp_path / "run.json").read_text())
    told |= {"score": np.nan, "grid_confidence": np.inf, "timings": {"fit": np.nan, "read": np.inf}}
    told["diagnosis"]["confidence"] = np.nan
    told["diagnosis"]["tests"] = [
        {"name": "a", "value": np.nan, "threshold": np.inf},
        {"name": "b", "value": -np.inf},
    ]
    (tmp_path / "run.json").write_text(json.dumps(told))
    text = page_of(tmp_path).text
    assert "A – needs at least ∞" in text
    assert not re.search(r"\b(nan|inf)\b", text)


@pytest.mark.parametrize(
    "damage", ["text", "empty", "key", "shape", "object", "nan", "huge", "truncated"]
)
def test_broken_samples_are_tolerated(tmp_path: Path, damage: str) -> None:
    make_run(tmp_path, samples=8)
    path = tmp_path / "samples.npz"
    rows = np.ones((4, 31), dtype=np.float32)
    if damage == "text":
        path.write_text("no archive")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "object":
        np.savez(path, observed=np.array([{"a": 1}], dtype=object))
    else:
        saved = {
            "key": {"other": rows},
            "shape": {"observed": rows[:, :5]},
            "nan": {"observed": rows * np.nan},
            "huge": {"observed": rows.astype(np.float64) * 1e200},
        }[damage]
        np.savez(path, **saved)  # type: ignore[arg-type]
    assert "No gallery" in page_of(tmp_path).text


@pytest.mark.portable
def test_constant_samples_are_drawn(tmp_path: Path) -> None:
    for kind in KINDS:
        model = make_run(tmp_path / kind, kind)
        for level in (0.0, model.mean):
            keep_samples(tmp_path / kind, observed=np.zeros((50, model.n_features)) + level)
            page = page_of(tmp_path / kind)
            assert sum(a.get("class") == "pair" for a in page.all("figure")) == 8


def test_samples_are_drawn_from_all_rows_and_round_the_whole_ring(rng: np.random.Generator) -> None:
    X = rng.normal(size=(20_000, 15))
    samples = Samples.draw(X)
    assert len(samples.row) == 4096
    np.testing.assert_array_equal(samples.observed, X[samples.row])
    counts = np.histogram(samples.row, 10, (0, 20_000))[0]
    assert counts.min() > 300  # of about 410 in each tenth
    # nearly all samples look one way: the pictures still go all round
    phase = np.concatenate([rng.normal(0, 0.05, size=900), rng.uniform(-np.pi, np.pi, size=60)])
    chosen = stratified(phase, 8)
    assert len(set(chosen.tolist())) == 8
    assert sorted(np.floor(np.mod(phase[chosen], 2 * np.pi) / (2 * np.pi) * 8)) == list(range(8))
    assert len(stratified(np.zeros(5), 8)) == 5


def test_random_rows_are_the_same_ones_again(tmp_path: Path) -> None:
    make_run(tmp_path, "image")
    first, second = (shown_samples(read_run(tmp_path)).tolist() for _ in range(2))
    assert first == second == sorted(set(first))
    assert len(first) == 8


@pytest.mark.parametrize(
    ("test", "length", "tick", "beyond"),
    [
        (Test("a", 0.5, 0.2, True), 150.0, 60.0, False),  # shares from 0 to 1
        (Test("a", 0.015, 0.03, True), 75.0, 150.0, False),  # others up to twice the threshold
        (Test("a", 253.0, 18.0, True), 300.0, 150.0, True),
        (Test("a", -0.3, 0.2, False), 0.0, 150.0, False),
    ],
)
def test_bars_are_as_long_as_their_numbers(
    test: Test, length: float, tick: float, beyond: bool
) -> None:
    bar = str(evidence_bar(test))
    assert f'class="amount" x="0" y="3" width="{length}"' in bar
    assert f'd="M{tick},0V16"' in bar
    assert ("beyond" in bar) == beyond


def test_grids_that_were_compared_are_shown(tmp_path: Path) -> None:
    make_run(tmp_path, samples=8, record=None)
    tried = (
        GridCandidate((31,), (False,), 0.875),
        GridCandidate((31,), (True,), 0.5),
        GridCandidate((4, 8), (False, True), -0.1),
    )
    change_estimator(tmp_path, trace=replace(TRACE, candidates=tried))
    page = page_of(tmp_path)
    words = "Line of 31 points 0.875 taken Ring of 31 points 0.5 4 × 8 grid, axis 2 closed −0.1"
    assert words in page.text
    bars = [a["width"] for a in page.all("rect") if a.get("class") == "amount"]
    assert bars == ["262.5", "150.0", "0.0"]


def test_a_number_has_one_value_under_one_name(tmp_path: Path) -> None:
    make_run(tmp_path, samples=8)
    tests = (Test("stationarity", 0.0011, 0.03, True), Test("distortion", -0.0))
    Run(tmp_path, changed(diagnosis=Diagnosis(Verdict.PRESENT, 0.9, tests))).write()
    change_estimator(tmp_path, evidence=Evidence(stationarity=0.5, distortion=0.25, explained=0.75))
    text = page_of(tmp_path).text
    assert "Distortion 0 " in text
    assert "−0 " not in text
    assert "0.75" in text
    assert "stationarity 0.5" not in text
    assert "distortion 0.25" not in text
    assert "score, higher is better: for fits of the same rows on the same grid −0.25" in text
    assert "Darker" not in text


def test_tables_can_be_taken_along(runs: dict[str, Path]) -> None:
    import csv

    page = Page((runs["image"] / "report.html").read_text(encoding="utf-8"))
    links = {a["download"]: a["href"] or "" for a in page.all("a")}
    assert set(links) == {"placement.csv", "signals-shown.csv", "evidence.csv"}
    tables = {
        name: list(csv.reader(base64.b64decode(uri.partition(",")[2]).decode().splitlines()))
        for name, uri in links.items()
    }
    placement = fitted("image")[0].placement_
    assert placement is not None
    assert [int(line[4]) for line in tables["placement.csv"][1:]] == placement.point.tolist()
    run = read_run(runs["image"])
    row = int(tables["signals-shown.csv"][1][0])
    signal = run.model.lift(run.observed[run.rows == row])[0]  # type: ignore[index]
    np.testing.assert_allclose(
        [float(v) for v in tables["signals-shown.csv"][1][1:]], signal, rtol=1e-4, atol=1e-6
    )
    assert tables["evidence.csv"][1][:4] == ["locality_beyond_control", "8.25", "0.2", "True"]


def test_what_was_left_out_when_the_file_was_read_is_said(tmp_path: Path) -> None:
    given = RECORD.input.model_copy(update={"notes": ["column 'time' (dates) is left out"]})
    make_run(tmp_path, record=changed(input=given), samples=8)
    assert "As the file was read: column 'time' (dates) is left out." in page_of(tmp_path).text


def test_a_run_that_has_not_ended_says_so(tmp_path: Path) -> None:
    make_run(tmp_path, record=changed(status=Status.RUNNING), samples=8)
    assert "its status is “running”" in page_of(tmp_path).text


def test_stages_that_repeat_are_drawn(tmp_path: Path) -> None:
    make_run(tmp_path, record=None, samples=8)
    stages = tuple(
        Stage("train", float(i), {"step": i, "loss": 1 / (i + 1), "name": "x"}) for i in range(10)
    )
    training = TrainingSummary(
        "small", "budget", 10, 9, 33.3, 0.125, ({"steps": 10}, {"steps": 7}), {"rate": 0.5}
    )
    change_estimator(tmp_path, trace=Trace("neural", stages=stages, training=training))
    text = page_of(tmp_path).text
    for words in (
        "loss 1 → 0.1 10 values",
        "train 9 10",
        "33.3 s",
        "training, held out 0.125",
        "Restarts",
        "rate 0.5",
    ):
        assert words in text


def test_long_traces_stay_short() -> None:
    deep: Any = 1
    for name in "fedcba":
        deep = {name: deep}
    stages = [Stage(f"s{i}", 0.0, {f"k{j}": j for j in range(30)} | deep) for i in range(500)]
    curves = [Stage("curves", 0.0, {f"curve {i}": list(range(10)) for i in range(20)})]
    settings = {f"fact {i}": i for i in range(100)}
    blocks = of_trace(Trace("fast", stages=tuple(stages + curves), settings=settings))
    blocks.add_facts((f"fact {i}", "1") for i in range(100))
    assert len(blocks.tables[0]["rows"]) <= 24
    assert len(blocks.tables[0]["columns"]) <= 9
    assert max(len(cell) for row in blocks.tables[0]["rows"] for cell in row) <= 240
    assert len(blocks.facts) <= 24
    assert len(blocks.series) <= 6
    assert len(blocks.settings) <= 80
    assert blocks.left_out > 500


def test_few_entries_become_words_not_empty_columns() -> None:
    table = of_trace(Trace(stages=tuple(Stage(s, 1.5, {s: 1.5}) for s in "abc"))).tables[0]
    assert table["columns"] == ["stage", "seconds", "details"]
    assert table["rows"][1] == ["b", "1.5", "b 1.5"]


def test_what_is_not_a_run_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError) as caught:
            write_report(folder)
        assert "\n" not in str(caught.value)
        assert str(folder) in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path, samples=8)
    (tmp_path / "report.html").write_text("before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(SymliftError, match=r"report\.html cannot be written"):
            write_report(tmp_path)
    assert (tmp_path / "report.html").read_text() == "before"
    write_report(tmp_path)
    write_report(tmp_path)
    assert "symlift report" in (tmp_path / "report.html").read_text()


def test_names_that_utf8_cannot_hold(tmp_path: Path) -> None:
    make_run(tmp_path, samples=8)
    text = (tmp_path / "run.json").read_text().replace("data.npy", "bad \\ud800 name")
    (tmp_path / "run.json").write_text(text)
    assert "bad ? name" in page_of(tmp_path).text


def test_a_large_grid_stays_small(tmp_path: Path, rng: np.random.Generator) -> None:
    grid = Grid((24, 24))
    W = rng.normal(size=(grid.size, grid.size))
    model = LiftedModel.from_lifting_map(np.linalg.qr(W)[0], grid)
    save_model(model, tmp_path)
    keep_samples(tmp_path, observed=rng.normal(size=(64, grid.size)).astype(np.float32))
    path = write_report(tmp_path)
    assert path.stat().st_size < 3_000_000
    data = json.loads(Page(path.read_text(encoding="utf-8")).data)
    assert data["observation"] is None  # too large for a page; the page says so


def test_more_columns_than_points(tmp_path: Path, rng: np.random.Generator) -> None:
    grid = Grid((4, 3), periodic=True)
    W = rng.normal(size=(12, 30))
    W[5] = 0.0  # and one point that nothing is known of
    save_model(LiftedModel.from_lifting_map(W, grid), tmp_path)
    keep_samples(tmp_path, observed=rng.integers(0, 2, size=(64, 30)))
    text = page_of(tmp_path).text
    assert "as far as the model keeps it" in text
    assert "condition infinite and rank 11 of 12" in text


# -- large models, several channels, places --------------------------------------------------------


def make_large(folder: Path, grid: Grid, rng: np.random.Generator, samples: int = 64) -> None:
    save_model(LiftedModel.from_lifting_map(eye_array(grid.size).tocsr(), grid), folder)
    keep_samples(folder, observed=rng.normal(size=(samples, grid.size)).astype(np.float32))


@pytest.mark.parametrize(
    "grid",
    [Grid((72, 70)), Grid((5000,), periodic=True), Grid((5000,))],
    ids=["image", "ring", "line"],
)
def test_a_large_model_goes_without_matrices(
    tmp_path: Path, grid: Grid, rng: np.random.Generator
) -> None:
    make_large(tmp_path, grid, rng)
    started = time.process_time()
    page = page_of(tmp_path)
    assert time.process_time() - started < 10
    assert {a.get("id") for a in page.all("section")} == {
        "verdict",
        "signals",
        "convergence",
        "take",
        "reading",
    }
    assert "This model is large" in page.text
    assert "generators, frequencies and correlations need matrices" in page.text
    assert len(page.all("script")) == 1  # nothing can be moved, pictures can be saved
    assert sum(a.get("class") == "pair" for a in page.all("figure")) == 8
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def test_very_large_pictures_are_thinned(tmp_path: Path, rng: np.random.Generator) -> None:
    make_large(tmp_path, Grid((700, 600)), rng, samples=3)
    page = page_of(tmp_path)
    assert sum(a.get("class") == "pair" for a in page.all("figure")) == 1
    assert (tmp_path / "report.html").stat().st_size < 1_000_000


def test_of_several_channels_the_first_is_shown(tmp_path: Path, rng: np.random.Generator) -> None:
    grid = Grid((9,), periodic=True)
    model = LiftedModel.from_lifting_map(rng.normal(size=(18, 20)), grid, channels=2)
    save_model(model, tmp_path)
    X = rng.normal(size=(64, 20))
    keep_samples(tmp_path, observed=X)
    page = page_of(tmp_path)
    assert {a.get("id") for a in page.all("section")} == PANELS
    for words in (
        "Channels 2",
        "Of 2 channels, the first",
        "one of several channels does not determine it",
    ):
        assert words in page.text
    data = json.loads(page.data)
    row = int(data["samples"][1].split()[1])
    np.testing.assert_allclose(
        lift_as_the_page_does(data, 1, [0.0])[0], model.lift(X)[row, ::2], atol=1e-4
    )


def test_places_are_drawn_on_the_grid(tmp_path: Path) -> None:
    estimator, _ = fitted("image")
    make_run(tmp_path, "image")
    names = [f"c{i}<u>" for i in range(42)]
    change_estimator(tmp_path, feature_names=names)
    page = page_of(tmp_path)
    assert estimator.placement_ is not None
    order = np.argsort(estimator.placement_.point)
    assert " ".join(["1", *(names[i] for i in order[6:12]), "2", names[order[12]]]) in page.text
    assert page.all("u") == []
    assert sum(a.get("class") == "places" for a in page.all("table")) == 1


def test_columns_without_a_place_are_counted(tmp_path: Path) -> None:
    make_run(tmp_path)
    grid = Grid((31,))
    point = np.arange(31)
    point[[3, 4, 5]], point[7], point[8] = -1, 6, 6
    reason = np.full(31, "", dtype="U9")
    reason[[3, 4]], reason[5], reason[7] = "dead", "noise", "duplicate"
    placement = Placement.at_points(
        grid, point, confidence=np.where(np.arange(31) == 9, 0.2, 1.0), reason=reason
    )
    change_estimator(tmp_path, placement=PlacementRecord.of(placement))
    page = page_of(tmp_path)
    for words in (
        "28 of 31 columns have a place; 3 are left out. No column sits at 5 of the points.",
        "2 constant x3, x4",
        "1 noise that is correlated with no other column x5",
        "1 at the place of the column that they repeat x7",
        "5 6 x6 +2 7 8 9 x9",
        "in italics",
    ):
        assert words in page.text
    classes = [a.get("class") for a in page.all("li")]
    assert (classes.count("empty"), classes.count("unsure")) == (5, 1)


@pytest.mark.parametrize("shape", [(21, 20), (4, 3, 2)])
def test_a_map_without_room_for_names_shows_how_sure_it_is(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    grid = Grid(shape)
    save_model(LiftedModel.from_lifting_map(eye_array(grid.size).tocsr(), grid), tmp_path)
    placement = Placement.at_points(
        grid, np.arange(grid.size), confidence=np.linspace(0, 1, grid.size)
    )
    write_estimator(EstimatorRecord(placement=PlacementRecord.of(placement)), tmp_path)
    page = page_of(tmp_path)
    assert "there is no room for their names here" in page.text
    assert (
        sum(
            (a.get("alt") or "").startswith("Confidence of the columns' places")
            for a in page.all("img")
        )
        == 1
    )


@pytest.mark.parametrize("kind", ["line", "image"])
def test_columns_between_points_are_drawn_where_they_are(tmp_path: Path, kind: str) -> None:
    model = make_run(tmp_path, kind)
    placed = Placement.at_points(model.grid, np.arange(model.grid.size))
    change_estimator(tmp_path, placement=PlacementRecord.of(placed))
    assert "between the points" not in page_of(tmp_path).text
    off = replace(placed, coordinates=placed.coordinates + 0.25)
    change_estimator(
        tmp_path,
        placement=PlacementRecord.of(off),
        feature_names=[f"<{i}>" for i in range(model.grid.size)],
    )
    page = page_of(tmp_path)
    assert "Columns sit between the points of the grid" in page.text
    across = [float(a["cx"] or 0) for a in page.all("circle") if a.get("class") == "place"]
    np.testing.assert_allclose(across, 26 * (off.coordinates[:, -1] + 1), atol=0.06)


def test_names_stand_around_a_ring(runs: dict[str, Path]) -> None:
    text = (runs["ring"] / "report.html").read_text(encoding="utf-8")
    drawn = text[text.index('<svg class="ring-map"') :].partition("</svg>")[0]
    placement = fitted("ring")[0].placement_
    assert placement is not None
    assert re.findall(r">(x\d+)</text>", drawn) == [f"x{i}" for i in np.argsort(placement.point)]


@pytest.mark.parametrize("damage", ["point", "length", "reason", "ragged", "huge"])
def test_places_that_do_not_fit_are_left_out(tmp_path: Path, damage: str) -> None:
    make_run(tmp_path, samples=8)
    kept = read_estimator(tmp_path).placement
    assert kept is not None
    changes: dict[str, Any] = {
        "point": {"point": [31, *kept.point[1:]]},
        "length": {"twin": kept.twin[1:]},
        "reason": {"reason": ["<b>", *kept.reason[1:]]},
        "ragged": {"coordinates": [[1.0, 2.0], *kept.coordinates[1:]]},
        "huge": {"point": [10**30, *kept.point[1:]]},
    }
    change_estimator(tmp_path, placement=kept.model_copy(update=changes[damage]))
    page = page_of(tmp_path)
    assert "the places of the columns in estimator.json do not fit the model" in page.text
    assert "Where the columns are" not in page.text


# -- in a browser ----------------------------------------------------------------------------------


CHECKSUM = "document.getElementById('lifted').dataset.checksum"
PIXELS = "document.getElementById('lifted').toDataURL()"


def checksum(values: np.ndarray) -> list[float]:
    return [float(np.sum(values**2)), float(np.sum(values * (np.arange(len(values)) + 1)))]


@pytest.mark.parametrize("kind", KINDS)
def test_moves_in_a_browser(browser: Browser, runs: dict[str, Path], kind: str) -> None:
    path = runs[kind] / "report.html"
    data = json.loads(Page(path.read_text(encoding="utf-8")).data)
    axes = len(data["shape"])
    browser.open(path.as_uri())
    before, picture = browser.run(CHECKSUM), browser.run(PIXELS)
    assert browser.run("document.getElementById('mover').hidden") is False
    expected = checksum(lift_as_the_page_does(data, 0, [0.0] * axes)[0])
    np.testing.assert_allclose([float(v) for v in before.split()], expected, rtol=1e-4, atol=1e-4)
    # the keyboard moves the slider, the slider moves the picture
    browser.run("document.querySelector('input.shift').focus()")
    for _ in range(5):
        browser.key("ArrowRight")
    assert browser.run("document.querySelector('input.shift').value") == "0.5"
    assert (
        browser.run("document.querySelector('input.shift').getAttribute('aria-valuetext')")
        == "0.5 steps"
    )
    assert browser.run(CHECKSUM) != before
    assert browser.run(PIXELS) != picture
    # from a script, with another sample; and back
    t = [2.0, 0.5, -1.0][:axes]
    browser.run(f"symlift.setSample(3); symlift.setShift({json.dumps(t)})")
    y, _ = lift_as_the_page_does(data, 3, t)
    np.testing.assert_allclose(
        [float(v) for v in browser.run(CHECKSUM).split()], checksum(y), rtol=1e-4, atol=1e-4
    )
    browser.run("symlift.setSample(0); document.getElementById('rest').click()")
    assert browser.run(CHECKSUM) == before
    assert browser.run(PIXELS) == picture
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [path.as_uri()]
    assert browser.run("document.querySelectorAll('iframe, object, embed').length") == 0
    assert browser.run(
        "[...document.links].every((a) => a.href.startsWith('data:text/csv;base64,') && a.download)"
    )


@pytest.mark.parametrize("width", [420, 1200])
def test_fits_the_screen(browser: Browser, runs: dict[str, Path], width: int) -> None:
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    for kind in KINDS:
        browser.open((runs[kind] / "report.html").as_uri())
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("[...document.images].every((i) => i.complete && i.naturalWidth > 0)")
    browser.call("Emulation.clearDeviceMetricsOverride")


def test_dark_and_print_differ_from_light(browser: Browser, runs: dict[str, Path]) -> None:
    browser.open((runs["line"] / "report.html").as_uri())
    seen = []
    for media, scheme in (("screen", "light"), ("screen", "dark"), ("print", "dark")):
        browser.call(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        seen.append(browser.run("getComputedStyle(document.documentElement).backgroundColor"))
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    assert len(set(seen)) == 3
    assert seen[2] == "rgb(255, 255, 255)"  # paper is white whatever the screen was


def test_the_fragment_sets_sample_and_shift(browser: Browser, runs: dict[str, Path]) -> None:
    browser.open((runs["ring"] / "report.html").as_uri() + "#t=2.5&s=1")
    assert browser.run("[symlift.state.sample, symlift.state.t[0]]") == [1, 2.5]
    assert browser.run("document.querySelector('output').textContent") == "+2.5 steps"


def test_nothing_in_a_name_runs(browser: Browser, tmp_path: Path) -> None:
    evil = (
        "</title></script><script>document.title='owned'</script><img src=x"
        " onerror=\"document.title='owned'\">"
    )
    diagnosis = replace(
        DIAGNOSIS, tests=(Test(evil, 1.0, 0.0, True, evil),), next_steps=(NextStep(evil, {}, evil),)
    )
    make_run(
        tmp_path,
        record=changed(
            input=InputRecord(name=evil, sha256=evil, shape=(1, 1)), diagnosis=diagnosis
        ),
    )
    change_estimator(tmp_path, feature_names=[evil] * 31)
    browser.open(write_report(tmp_path).as_uri())
    assert "symlift report" in browser.run("document.title")
    assert browser.complaints() == []


def test_the_model_alone_renders(browser: Browser, tmp_path: Path) -> None:
    make_run(tmp_path, "volume")
    (tmp_path / "samples.npz").unlink()
    browser.open(write_report(tmp_path).as_uri())
    before = browser.run(CHECKSUM)
    browser.run("symlift.setShift(1)")
    assert browser.run(CHECKSUM) != before
    assert browser.complaints() == []


def test_a_large_model_renders(browser: Browser, tmp_path: Path, rng: np.random.Generator) -> None:
    make_large(tmp_path, Grid((72, 70)), rng)
    browser.open(write_report(tmp_path).as_uri())
    assert "symlift report" in browser.run("document.title")
    assert browser.complaints() == []


def test_a_fit_in_memory_has_a_page_with_and_without_rows(tmp_path):
    X = np.random.default_rng(0).laplace(size=(300, 12))
    est = LatentDomain(grid=(3, 4), solver="random", random_state=0).fit(X)
    own = est.report(tmp_path / "own.html").read_text()
    assert "300 rows × 12 columns" in own
    page = est.report(tmp_path / "page.html", X[:50]).read_text()
    assert (
        max(int(row) for row in re.findall(r"[Rr]ow (\d+)", page)) < 50
    )  # of the rows that were given
    assert (
        max(int(row) for row in re.findall(r"[Rr]ow (\d+)", own)) > 64
    )  # samples are spread over all rows
    del est.samples_
    assert "no rows were kept with this fit" in est.report(tmp_path / "page.html").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["own.html", "page.html"]


def test_looking_at_the_pages_fails_without_a_browser(tmp_path: Path) -> None:
    look = Path(__file__).parent / "pages" / "look.py"
    command = [sys.executable, str(look), "--sheet", str(tmp_path / "sheet.png")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: no Chromium is installed")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
