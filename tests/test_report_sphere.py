"""The page, the run and the plots of a sphere."""

from __future__ import annotations

import base64
import json
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

from symlift import LatentDomain, load
from symlift.cli import app
from symlift.core.rotations import RotationGroup
from symlift.core.sphere import Sphere, spread_points
from symlift.datasets import sphere_noise
from symlift.plotting import plot_generators, plot_placement, plot_signals
from symlift.report.gather import read_run
from symlift.report.globe import both_halves, looking_from
from symlift.runs.record import open_run

mpl.use("Agg")


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> tuple[LatentDomain, np.ndarray, Path]:
    """A field behind a rotation, recovered by the command line."""
    folder = tmp_path_factory.mktemp("dense")
    X = sphere_noise(2000, degree=3, random_state=0).X
    np.save(folder / "fields.npy", X)
    asked = ["recover", str(folder / "fields.npy"), "--grid", "sphere", "--mixing", "orthogonal"]
    answer = CliRunner().invoke(app, [*asked, "--out", str(folder / "run"), "--signals"])
    assert answer.exit_code == 0, answer.output
    assert "grid: sphere of degree 3" in answer.output
    assert "16 columns carry signals on a sphere of degree 3" in answer.output
    return load(folder / "run"), X, folder / "run"


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> tuple[LatentDomain, np.ndarray, Path]:
    """Columns at points of a sphere, with names that no page may take for markup."""
    folder = tmp_path_factory.mktemp("placed")
    places = spread_points(40)[np.random.default_rng(0).permutation(40)]
    X = sphere_noise(2000, 5, sensors=places, noise=0.2, random_state=0, width=0.4).X
    names = ["</script><b>x", *(f"E{i}" for i in range(1, 40))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        est = LatentDomain(grid="sphere", mixing="shuffled", random_state=0).fit(X, names=names)
    return est, X, est.report(folder / "page.html")


def payload_of(page: Path) -> dict:
    text = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    assert text is not None
    found: dict = json.loads(text[1])
    return found


def test_a_run_on_a_sphere_is_kept_as_one(dense):
    _, X, folder = dense
    record = open_run(folder).record
    assert record.domain == Sphere(3)
    assert record.grid == (32,)
    assert np.load(folder / "signals.npy").shape == (len(X), 32)
    assert read_run(folder).domain == Sphere(3)


def test_the_page_of_a_sphere_speaks_of_rotations(dense):
    page = (dense[2] / "report.html").read_text(encoding="utf-8")
    assert "An identifiable rotation symmetry is present and stable" in page
    assert "translation" not in page.partition("<script")[0]
    assert "LatentDomain(grid=&#39;sphere3&#39;, mixing=&#39;orthogonal&#39;" in page
    assert page.count("recovered, on both halves of the sphere") == 8
    # nothing is fetched
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_the_page_holds_the_fields_and_the_way_back(dense):
    est, _, folder = dense
    data = payload_of(folder / "report.html")
    row = int(data["samples"][2].removeprefix("row "))
    samples = read_run(folder).samples
    x = samples.observed[list(samples.row).index(row)][None]
    c = np.frombuffer(base64.b64decode(data["coefficients"]), "<f4").reshape(-1, 16)[2]
    Y = est.model_.group.evaluate(np.eye(16), Sphere(3), est.model_.r, 1)
    field = est.transform(x)[0]
    assert np.allclose(Y @ c / np.linalg.norm(Y @ c), field / np.linalg.norm(field), atol=1e-4)
    seen = data["observation"]
    back = np.frombuffer(base64.b64decode(seen["matrix"]), "<i2").reshape(32, 16) * seen["unit"]
    assert np.allclose(est.model_.mean + field @ back, x[0], atol=2e-3 * np.abs(x).max())


def test_columns_are_on_the_page_at_their_places(placed):
    est, _, page = placed
    text = page.read_text(encoding="utf-8")
    assert "<b>x" not in text
    columns = payload_of(page)["columns"]
    assert len(columns) == 40
    assert np.allclose([one["at"] for one in columns], est.placement_.coordinates, atol=1e-5)
    assert text.count('<circle class="place"') == 40


def test_the_camera_looks_at_a_cap_and_keeps_north_up():
    camera = looking_from(None)
    assert np.allclose(camera @ camera.T, np.eye(3))
    assert np.isclose(np.linalg.det(camera), 1)
    assert camera[1] @ [0, 0, 1] == 1
    where, points = both_halves(camera)
    assert np.allclose(np.linalg.norm(points, axis=1), 1)
    assert where.max() == len(points) - 1
    # the middle of the left half faces the viewer, that of the right one is behind
    left, right = where[48, 48], where[48, -48]
    assert points[left] @ camera[2] > 0.99
    assert points[right] @ camera[2] < -0.99


def test_plots_of_a_sphere(dense, placed):
    ax = plot_signals(dense[0], dense[1][:3])
    picture = ax.images[0].get_array()
    # the two halves of three globes, and paper in their corners
    assert picture.shape == (2 * 96, 3 * 96)
    assert picture.mask[0, 0]
    assert not picture.mask[48, 48]
    for axis, L in enumerate(RotationGroup(3).generators()):
        assert np.allclose(plot_generators(dense[0], axis).images[0].get_array(), L)
    drawn = plot_placement(placed[0])
    assert len(drawn.texts) == 40
    # inside of two circles
    x, y = drawn.collections[0].get_offsets().T
    assert (np.minimum(np.hypot(x, y), np.hypot(x - 2.2, y)) < 1.0001).all()


# -- in a browser ----------------------------------------------------------------------------------


PIXELS = "document.getElementById('lifted').toDataURL()"


def test_the_globe_turns_as_the_model_does(browser, dense):
    est, _, folder = dense
    page = folder / "report.html"
    browser.open(page.as_uri())
    row = int(payload_of(page)["samples"][1].removeprefix("row "))
    samples = read_run(folder).samples
    x = samples.observed[list(samples.row).index(row)][None].astype(np.float64)
    t = [0.7, -0.4, 1.9]
    moved = est.shift(x, t)
    field = np.array(browser.run(f"symlift.lifted(1, {t})"))
    assert np.allclose(field, est.transform(moved)[0], atol=1e-3 * np.abs(field).max())
    seen = np.array(browser.run(f"Array.from(symlift.observation(1, {t}))"))
    assert np.allclose(seen, moved[0], atol=3e-3 * np.abs(moved).max())
    # a slider, the camera and the way back
    before = browser.run(PIXELS)
    browser.run("document.querySelector('input.shift').focus()")
    browser.key("ArrowRight")
    assert browser.run("symlift.state.t") == [0.02, 0, 0]
    assert browser.run(PIXELS) != before
    browser.run(
        "document.getElementById('rest').click(); document.getElementById('lifted').focus()"
    )
    assert browser.run(PIXELS) == before
    browser.key("ArrowRight")
    assert browser.run("symlift.state.t") == [0, 0, 0]
    assert browser.run(PIXELS) != before
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["dense", "placed"])
def test_pages_of_spheres_fit_the_screen(browser, request, kind, width):
    page = request.getfixturevalue(kind)[2]
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=900, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    browser.open((page / "report.html" if page.is_dir() else page).as_uri())
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("[...document.images].every((i) => i.complete && i.naturalWidth > 0)")
    assert browser.run("document.getElementById('mover').hidden") is False
    assert browser.complaints() == []
    browser.call("Emulation.clearDeviceMetricsOverride")
