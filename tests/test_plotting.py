"""Pictures of an estimator: what the artists hold is what the estimator says."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from symlift import LatentDomain
from symlift.datasets import gsn
from symlift.diagnosis import Diagnosis, NextStep, Test, Verdict
from symlift.errors import InputError
from symlift.plotting import (
    plot_diagnosis,
    plot_generators,
    plot_placement,
    plot_ring,
    plot_signals,
)
from symlift.solvers.contract import Placement

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@functools.cache
def fit(shape: tuple[int, ...], periodic: bool = False) -> LatentDomain:
    X = gsn(600, shape, periodic=periodic, transform="permutation", random_state=1).X
    return LatentDomain(shape, periodic=periodic, random_state=0).fit(X)


def test_the_axes_that_are_given_are_used_and_returned() -> None:
    plt.close("all")  # those of other tests
    _, ax = plt.subplots()
    est = fit((4, 5))
    assert plot_placement(est, ax) is ax
    assert plot_signals(est, ax=ax) is ax
    assert plot_generators(est, ax=ax) is ax
    assert plot_diagnosis(Diagnosis(Verdict.ABSENT, 0.5), ax) is ax
    assert plot_ring(fit((9,), periodic=True), ax=ax) is ax
    assert len(plt.get_fignums()) == 1


def test_names_stand_where_the_columns_are() -> None:
    est = fit((4, 5))
    ax = plot_placement(est)
    at = {t.get_text(): (round(t.get_position()[1]), round(t.get_position()[0])) for t in ax.texts}
    assert at == {f"x{i}": divmod(int(p), 5) for i, p in enumerate(est.placement_.point)}
    confidence = np.empty(20)
    confidence[est.placement_.point] = est.placement_.confidence
    np.testing.assert_allclose(ax.images[0].get_array(), confidence.reshape(4, 5))
    assert ax.get_title() == "20 columns placed"


@pytest.mark.parametrize("periodic", [False, True])
def test_names_follow_a_line_and_go_round_a_ring(periodic: bool) -> None:
    est = fit((9,), periodic)
    ax = plot_placement(est)
    offsets = np.asarray(ax.collections[0].get_offsets())
    points = est.placement_.point
    if periodic:
        np.testing.assert_allclose(
            np.mod(np.arctan2(offsets[:, 0], offsets[:, 1]), 2 * np.pi), 2 * np.pi * points / 9
        )
    else:
        np.testing.assert_allclose(offsets[:, 0], points)
    assert [t.get_text() for t in ax.texts] == [f"x{i}" for i in range(9)]


def test_columns_left_out_and_odd_names_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    est = LatentDomain((9,), solver="random", random_state=0).fit(
        np.random.default_rng(0).laplace(size=(50, 9))
    )
    with pytest.raises(InputError, match="plot_signals"):
        plot_placement(est)
    point = np.array([0, 1, -1, 3, 4, 5, 6, 7, 8])
    placed = Placement.at_points(est.grid_, point, reason=np.where(point < 0, "dead", ""))
    est.placement_ = replace(placed, names=("$\\frac", "<b>", *("abcdefg")))
    ax = plot_placement(est)
    assert ax.get_title() == "8 columns placed, 1 left out"
    ax.get_figure().canvas.draw()  # dollars are no mathematics


def test_columns_between_points_stand_where_they_are() -> None:
    from dataclasses import replace

    est = fit((4, 5))
    shift = np.random.default_rng(0).uniform(-0.4, 0.4, size=(20, 2))
    placed = replace(est.placement_, coordinates=est.placement_.coordinates + shift)
    est.placement_ = placed
    ax = plot_placement(est)
    np.testing.assert_allclose(
        np.asarray(ax.collections[0].get_offsets())[:, ::-1], placed.coordinates
    )
    assert [t.get_text() for t in ax.texts] == [f"x{i}" for i in range(20)]
    fit.cache_clear()


def test_a_volume_is_drawn_slice_by_slice() -> None:
    est = fit((3, 3, 3))
    picture = np.ma.filled(plot_placement(est).images[0].get_array(), np.nan)
    assert picture.shape == (3, 11)
    assert np.isnan(picture[:, [3, 7]]).all()
    assert plot_signals(est, count=2).images[0].get_array().shape == (11, 7)


def test_signals_are_those_of_the_rows() -> None:
    est = fit((9,))
    X = est.samples_.observed[:3]
    ax = plot_signals(est, X)
    Y = est.transform(X)
    drawn = np.array([line.get_ydata() for line in ax.lines])
    np.testing.assert_allclose(
        drawn - drawn.mean(axis=1, keepdims=True), Y - Y.mean(axis=1, keepdims=True), atol=1e-5
    )
    assert ax.get_xlabel() == "grid step"
    assert len(plot_signals(est, count=5).lines) == 5
    ring = plot_signals(fit((9,), periodic=True), count=1)
    np.testing.assert_allclose(ring.lines[0].get_xdata(), 40 * np.arange(9))
    image = fit((4, 5))
    rows = image.samples_.observed[:2]
    picture = plot_signals(image, rows).images[0].get_array()
    np.testing.assert_allclose(np.asarray(picture)[:, 6:], image.to_grid(image.transform(rows))[1])
    del est.__dict__["samples_"]
    with pytest.raises(InputError, match="give X"):
        plot_signals(est)
    fit.cache_clear()


def test_of_several_channels_the_first_is_drawn(rng: np.random.Generator) -> None:
    from symlift.core.grid import Grid
    from symlift.core.model import LiftedModel
    from symlift.solvers.contract import Solution

    est = LatentDomain((4,))
    est._adopt(
        Solution(LiftedModel.from_lifting_map(rng.normal(size=(8, 9)), Grid((4,)), channels=2))
    )
    X = rng.normal(size=(2, 9))
    y = plot_signals(est, X).lines[0].get_ydata()
    np.testing.assert_allclose(y, est.transform(X)[0, ::2])


def test_a_generator_carried_to_the_grid_is_a_derivative() -> None:
    est = fit((9,), periodic=True)
    drawn = np.asarray(plot_generators(est).images[0].get_array())
    W = est.lifting_map_
    np.testing.assert_allclose(drawn @ W, W @ est.generators_[0], atol=1e-8)
    np.testing.assert_allclose(drawn, -drawn.T, atol=1e-6)
    own = plot_generators(est, on_grid=False)
    np.testing.assert_allclose(own.images[0].get_array(), est.generators_[0])
    assert own.get_xlabel() == "column"
    with pytest.raises(InputError, match="count from 0"):
        plot_generators(est, axis=1)


def test_a_ring_shows_phase_and_amplitude() -> None:
    est = fit((9,), periodic=True)
    X = est.samples_.observed[:40]
    ax = plot_ring(est, X, labels=np.linspace(0, 6, 40))
    offsets = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_allclose(np.hypot(*offsets.T), est.amplitude(X))
    np.testing.assert_allclose(
        np.exp(1j * np.arctan2(*offsets.T)), np.exp(1j * est.phase(X)), atol=1e-9
    )
    np.testing.assert_allclose(ax.collections[0].get_array(), np.linspace(0, 6, 40))
    with pytest.raises(InputError, match="one angle"):
        plot_ring(est, X, labels=[1.0])


FOUND = Diagnosis(
    Verdict.UNIDENTIFIABLE,
    0.625,
    (
        Test("agreement", 0.5, 0.9, False, "a <b>"),
        Test("stationarity", 0.015, 0.03, True),
        Test("rank", 4.0),
        Test("none", None, 1.0),
    ),
    (NextStep("try <i>a ring</i>", {}, "symlift recover DATA --periodic"),),
)


def test_evidence_is_drawn_with_its_thresholds() -> None:
    ax = plot_diagnosis(FOUND)
    assert [bar.get_width() for bar in ax.patches] == [0.5, 0.25]
    assert [to_hex(bar.get_facecolor()) for bar in ax.patches] == ["#c0504a", "#2e8b62"]
    assert [line.get_xdata()[0] for line in ax.lines] == [0.9, 0.5]
    assert [t.get_text() for t in ax.texts] == ["0.5 (≥ 0.9)", "0.015 (≤ 0.03)"]
    assert ax.get_title() == "unidentifiable, confidence 0.62"
    est = LatentDomain((9,), solver="random", random_state=0)
    X = np.random.default_rng(0).laplace(size=(60, 9))
    est.fit(X)
    with pytest.raises(InputError, match="diagnose"):
        plot_diagnosis(est)
    est.diagnosis_ = FOUND
    assert len(plot_diagnosis(est).patches) == 2


# -- in notebooks ----------------------------------------------------------------------------------


def test_a_diagnosis_has_a_form_for_notebooks() -> None:
    html = FOUND._repr_html_()
    assert "(confidence 0.62)" in html
    assert "width:50.0%" in html
    assert "left:90.0%" in html
    assert "at least 0.9" in html
    assert "at most 0.03" in html
    assert "try &lt;i&gt;a ring" in html
    assert "<b>a" not in html
    assert "a &lt;b&gt;" in html


def test_a_placement_has_a_form_for_notebooks() -> None:
    from dataclasses import replace

    from symlift.core.grid import Grid

    placed = Placement.at_points(
        Grid((2, 2)), [3, 0, -1, 3, 1], reason=["", "", "dead", "duplicate", ""], confidence=0.5
    )
    html = replace(placed, names=("<a>", "b", "c", "d", "e"))._repr_html_()
    assert "<b>4 of 5 columns</b> on the grid 2x2" in html
    assert html.index(">b<") < html.index(">e<") < html.index(">·<") < html.index("&lt;a&gt; +1")
    assert "1 dead" in html
    assert "rgba(66,115,171,0.20)" in html
    assert "<table>" not in Placement.at_points(Grid((2, 2, 2)), range(8))._repr_html_()
