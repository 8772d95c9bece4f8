"""Columns that are axes: a point of the sphere and its antipode are one."""

from __future__ import annotations

import numpy as np
import pytest

from symlift import InputError, LatentDomain, Sphere, Verdict, load
from symlift.core.sphere import spread_points
from symlift.datasets import sphere_noise
from symlift.errors import FitWarning
from symlift.solvers.sphere.angles import by_kernel, kernel_of, same_axes
from symlift.solvers.sphere.axes import axes_by_kernel, axes_of_degree_two


@pytest.fixture(scope="module")
def axes() -> np.ndarray:
    """Forty axes, either end of each."""
    rng = np.random.default_rng(0)
    u = spread_points(80)[:40][rng.permutation(40)]
    return u * rng.choice([-1.0, 1.0], 40)[:, None]


@pytest.fixture(scope="module")
def rows(axes) -> np.ndarray:
    """What both ends of each axis see together."""
    both = sphere_noise(3000, 6, sensors=np.concatenate([axes, -axes]), noise=0.1, width=0.45).X
    return both[:, :40] + both[:, 40:]


@pytest.fixture(scope="module")
def est(rows) -> LatentDomain:
    return LatentDomain(grid="projective", random_state=0).fit(rows)


def test_axes_are_placed(est, rows, axes):
    assert str(est.grid_) == "projective plane of degree 4"
    found = est.placement_.coordinates
    assert (found[:, 2] >= 0).all()
    assert same_axes(found, axes) > 0.98
    # a sphere is no answer: the two ends of an axis are apart on it
    with pytest.warns(FitWarning, match="no columns on a sphere"):
        sphere = LatentDomain(grid="sphere", mixing="shuffled", random_state=0).fit(rows)
    assert sphere.diagnose(rows).verdict not in (Verdict.PRESENT, Verdict.ORDERED)
    assert est.diagnose(rows).verdict in (Verdict.PRESENT, Verdict.ORDERED)


def test_fields_of_axes_are_the_same_at_antipodes(est, rows):
    c = est.model_.E @ (rows[:5] - est.model_.mean).T
    odd = np.r_[1:4, 9:16]
    assert np.abs(c[odd]).max() < 1e-6 * np.abs(c).max()


def test_only_even_degrees_are_fitted_to_axes(axes):
    c = 0.2 + 0.8 * (axes @ axes.T) ** 2
    a = kernel_of(axes, c, 6, axes=True)
    assert (a[1::2] == 0).all()
    assert np.allclose(a[[0, 2]], [0.2 + 0.8 / 3, 0.8 * 2 / 3], atol=1e-4)
    flipped = axes * np.where(np.arange(40) % 2, 1.0, -1.0)[:, None]
    assert by_kernel(flipped, c, 4, axes=True)[1] < 1e-6
    assert same_axes(flipped, axes) > 1 - 1e-9
    broad = np.exp(-3 * (1 - (axes @ axes.T) ** 2))
    assert same_axes(axes_by_kernel(broad, 8), axes) > 0.99


def test_degree_two_alone_shows_axes_wherever_they_are():
    u = np.random.default_rng(3).normal(size=(60, 3)) * [1.0, 0.8, 0.6]
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    c = np.exp(-2 * (1 - (u @ u.T) ** 2))
    assert max(same_axes(found, u) for found in axes_of_degree_two(c)) > 0.8
    assert same_axes(axes_by_kernel(c, 8), u) > 0.99


def test_a_projective_plane_is_saved_and_named(est, rows, tmp_path):
    est.save(tmp_path / "fit")
    again = load(tmp_path / "fit")
    assert again.grid_ == est.grid_
    assert again.grid_.axes
    assert again.grid_ != Sphere(4)
    assert np.allclose(again.transform(rows[:5]), est.transform(rows[:5]))
    page = est.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "projective plane of degree 4" in page
    assert "grid=&#39;projective&#39;" in page


def test_axes_have_no_dense_mixing():
    with pytest.raises(InputError, match="shuffled"):
        LatentDomain(grid="projective", mixing="linear").fit(np.eye(40)[:, :20] + 1.0)
