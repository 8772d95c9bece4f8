"""Families with a translation symmetry, or at least with places: every kind of field, mixing and
damage that solvers claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, uniform_filter1d

from _array_cases import PHOTOGRAPHS, TEXTURES, patches
from symlift.core.grid import Grid
from symlift.datasets import gsn, ising, ring_population
from verdicts.library import Case, Placed, positive

Rng = np.random.Generator
LINES, PLANES = (12, 20, 31, 48), ((5, 5), (6, 8), (8, 8), (9, 10))


def _seed(rng: Rng) -> int:
    return int(rng.integers(1 << 30))


def in_random_order(
    field: NDArray, grid: Grid, rng: Rng, mixing: str = "auto", **truth: Any
) -> Placed:
    """Columns of ``field`` (n, points) in random order."""
    order = rng.permutation(field.shape[1])
    params = {"grid": grid.shape, "periodic": grid.periodic, "mixing": mixing}
    return Placed(np.asarray(field[:, order], dtype=np.float64), params, order, field, **truth)


def smooth_field(
    rng: Rng, n: int, shape: Sequence[int], width: float, wraps: bool = False, noise: Any = None
) -> NDArray:
    """White noise (or ``noise``) filtered by a Gaussian, in the middle of a larger field where it
    does not wrap, (n, points).
    """
    pad = 0 if wraps else int(np.ceil(3 * width))
    raw = (noise or rng.normal)(size=(n, *(m + 2 * pad for m in shape)))
    out = gaussian_filter(raw, [0] + [width] * len(shape), mode="wrap" if wraps else "constant")
    inside = (slice(None), *(slice(pad, pad + m) for m in shape))
    return np.asarray(out[inside].reshape(n, -1) / out[inside].std())


def _field(rng: Rng, variant: int, n: int, noise: float = 0.1) -> tuple[NDArray, Grid]:
    """A line, a ring, a plane and a larger plane: one of them for each variant, with a little
    noise.
    """
    shape, wraps = (((24,), False), ((20,), True), ((6, 7), False), ((8, 8), False))[variant]
    Y = smooth_field(rng, n, shape, 1.2, wraps)
    return Y + noise * rng.normal(size=Y.shape), Grid(shape, wraps)


# -- fields of many kinds, shuffled ----------------------------------------------------------------


@positive
def shot_noise_lines(rng: Rng, variant: int) -> Case:
    data = gsn(3_000, LINES[variant], random_state=_seed(rng))
    return in_random_order(data.X, data.grid, rng)


@positive
def shot_noise_rings(rng: Rng, variant: int) -> Case:
    data = gsn(3_000, LINES[variant], periodic=True, random_state=_seed(rng))
    return in_random_order(data.X, data.grid, rng)


@positive
def shot_noise_planes(rng: Rng, variant: int) -> Case:
    data = gsn(4_500, PLANES[variant], random_state=_seed(rng))
    return in_random_order(data.X, data.grid, rng)


@positive
def shot_noise_boxes(rng: Rng, variant: int) -> Case:
    data = gsn(
        6_000, ((4, 4, 4), (3, 4, 5), (4, 5, 5), (3, 3, 6))[variant], random_state=_seed(rng)
    )
    return in_random_order(data.X, data.grid, rng)


@positive
def wavelets(rng: Rng, variant: int) -> Case:
    data = gsn(6_000, LINES[variant] + 10, basis="legendre", random_state=_seed(rng))
    return in_random_order(data.X, data.grid, rng)


@positive
def smooth_lines(rng: Rng, variant: int) -> Case:
    d = LINES[variant]
    return in_random_order(
        smooth_field(rng, 2_400, (d,), 0.7 + 0.4 * variant) + 0.1 * rng.normal(size=(2_400, d)),
        Grid((d,)),
        rng,
    )


@positive
def smooth_rings(rng: Rng, variant: int) -> Case:
    d = LINES[variant]
    Y = smooth_field(rng, 2_400, (d,), 0.7 + 0.4 * variant, wraps=True) + 0.1 * rng.normal(
        size=(2_400, d)
    )
    return in_random_order(Y, Grid((d,), True), rng)


@positive
def smooth_planes(rng: Rng, variant: int) -> Case:
    shape = PLANES[variant]
    Y = smooth_field(rng, 3_000, shape, 0.7 + 0.3 * variant)
    return in_random_order(Y + 0.1 * rng.normal(size=Y.shape), Grid(shape), rng)


@positive
def smooth_tori(rng: Rng, variant: int) -> Case:
    shape = PLANES[variant]
    Y = smooth_field(rng, 3_000, shape, 0.8 + 0.2 * variant, wraps=True)
    return in_random_order(Y + 0.1 * rng.normal(size=Y.shape), Grid(shape, True), rng)


@positive
def autoregressive_lines(rng: Rng, variant: int) -> Case:
    from scipy.signal import lfilter

    d = LINES[variant]
    Y = lfilter(
        [1], [1, -(0.5, 0.7, 0.85, 0.95)[variant]], rng.normal(size=(2_400, d + 60)), axis=1
    )[:, 60:]
    return in_random_order(Y, Grid((d,)), rng)


@positive
def spins_on_lines(rng: Rng, variant: int) -> Case:
    data = ising(4_500, LINES[variant], random_state=_seed(rng))
    return in_random_order(data.X, data.grid, rng)


@positive
def spins_on_planes(rng: Rng, variant: int) -> Case:
    data = ising(4_500, PLANES[variant % 3], beta=(0.2, 0.5), random_state=_seed(rng))
    return in_random_order(data.X, data.grid, rng)


@positive
def textures(rng: Rng, variant: int) -> Case:
    side = 7 + variant
    return in_random_order(
        patches(4_500, (side, side), rng, TEXTURES).reshape(4_500, -1), Grid((side, side)), rng
    )


@positive
def photographs(rng: Rng, variant: int) -> Case:
    side = 6 + variant
    return in_random_order(
        patches(4_500, (side, side), rng, PHOTOGRAPHS).reshape(4_500, -1), Grid((side, side)), rng
    )


@positive
def heavy_tailed_fields(rng: Rng, variant: int) -> Case:
    shape = PLANES[variant]
    Y = smooth_field(rng, 3_000, shape, 0.9, noise=lambda size: rng.standard_t(2.5, size=size))
    return in_random_order(Y + 0.05 * rng.normal(size=Y.shape), Grid(shape), rng)


@positive
def counts_of_a_field(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 6_000)
    return in_random_order(rng.poisson(np.exp(0.8 * Y + 0.5)), grid, rng)


@positive
def two_valued_fields(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    return in_random_order((Y > 0.3).astype(float), grid, rng)


@positive
def travelling_waves(rng: Rng, variant: int) -> Case:
    """Sums of plane waves of random direction, length and phase."""
    grid = Grid(PLANES[variant])
    at = grid.indices()
    k = rng.normal(scale=0.9, size=(3_000, 4, 2))
    Y = np.cos(k @ at.T + rng.uniform(0, 2 * np.pi, size=(3_000, 4, 1))).sum(axis=1)
    return in_random_order(Y + 0.1 * rng.normal(size=Y.shape), grid, rng)


@positive
def steps_and_edges(rng: Rng, variant: int) -> Case:
    """Piecewise constant signals with jumps at random places."""
    d = LINES[variant]
    jumps = (rng.uniform(size=(3_000, d + 20)) < 0.15) * rng.normal(size=(3_000, d + 20))
    Y = uniform_filter1d(jumps, 9, axis=1)[:, 10:-10]
    return in_random_order(Y + 0.02 * rng.normal(size=Y.shape), Grid((d,)), rng)


@positive
def rotated_anisotropy(rng: Rng, variant: int) -> Case:
    """Correlations that reach three times as far along one axis."""
    shape = PLANES[variant]
    raw = rng.normal(size=(3_600, shape[0] + 16, shape[1] + 16))
    Y = gaussian_filter(raw, (0, 0.5, 1.6))[:, 8:-8, 8:-8].reshape(3_600, -1)
    return in_random_order(Y / Y.std() + 0.1 * rng.normal(size=Y.shape), Grid(shape), rng)


@positive
def long_probe(rng: Rng, variant: int) -> Case:
    """Two columns of contacts, so that a line nearly fits as well."""
    shape = ((24, 2), (16, 2), (16, 3), (12, 3))[variant]
    Y = smooth_field(rng, 4_500, shape, 1.0)
    return in_random_order(Y + 0.1 * rng.normal(size=Y.shape), Grid(shape), rng)


@positive
def a_grid_of_its_own(rng: Rng, variant: int) -> Case:
    """grid="auto" on numbers of columns with few factorisations."""
    shape, wraps = (((17,), False), ((13,), True), ((5, 5), False), ((23,), False))[variant]
    Y = smooth_field(rng, 3_000, shape, 1.0, wraps)
    case = in_random_order(Y + 0.1 * rng.normal(size=Y.shape), Grid(shape, wraps), rng, "shuffled")
    return Case(case.X, {"grid": "auto", "mixing": "shuffled"}, case.point, case.latent)


# -- damage ----------------------------------------------------------------------------------------


@positive
def heavy_noise(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 9_000)
    return in_random_order(Y + 1.2 * rng.normal(size=Y.shape), grid, rng, "shuffled")


@positive
def noise_that_drowns(rng: Rng, variant: int) -> Case:
    """Ten times the signal's power: some are found, some cannot be."""
    Y, grid = _field(rng, variant, 9_000)
    return in_random_order(
        Y + (2.0 + 0.5 * variant) * rng.normal(size=Y.shape), grid, rng, "shuffled"
    )


@positive
def few_rows(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 3 * (80, 100, 120, 120)[variant])
    return in_random_order(Y, grid, rng, "shuffled")


@positive
def too_few_rows(rng: Rng, variant: int) -> Case:
    """Some are placed, some are not."""
    Y, grid = _field(rng, variant, 3 * (15, 20, 24, 30)[variant], noise=0.4)
    return in_random_order(Y, grid, rng, "shuffled")


@positive
def missing_points(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    whole = in_random_order(Y, grid, rng, "shuffled")
    keep = np.sort(rng.permutation(grid.size)[round(0.1 * grid.size) :])
    return Case(whole.X[:, keep], whole.params, whole.point[keep])


@positive
def dead_columns(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    case = in_random_order(Y, grid, rng, "shuffled")
    dead = rng.permutation(grid.size)[: 1 + variant]
    case.X[:, dead], case.point[dead] = 3.0, -1
    return Case(case.X, case.params, case.point)


@positive
def strangers_beside(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    case = in_random_order(Y, grid, rng, "shuffled")
    others = rng.normal(size=(len(Y), 2 + variant))
    return Case(np.c_[case.X, others], case.params, np.r_[case.point, np.full(others.shape[1], -1)])


@positive
def strangers_instead(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    case = in_random_order(Y, grid, rng, "shuffled")
    which = rng.permutation(grid.size)[: 1 + variant]
    case.X[:, which], case.point[which] = rng.normal(size=(len(Y), 1 + variant)), -1
    return Case(case.X, case.params, case.point)


@positive
def row_number_beside(rng: Rng, variant: int) -> Case:
    """What DataFrame.to_csv() leaves: the row number is the first column, and the grid is to be
    proposed or is known.
    """
    Y, grid = _field(rng, variant, 3_000)
    case = in_random_order(Y, grid, rng, "shuffled")
    return Case(np.c_[np.arange(len(Y)), case.X], case.params, np.r_[-1, case.point])


@positive
def twins_beside(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    case = in_random_order(Y, grid, rng, "shuffled")
    which = rng.permutation(grid.size)[:2]
    return Case(np.c_[case.X, case.X[:, which]], case.params, np.r_[case.point, case.point[which]])


@positive
def gaps(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    case = in_random_order(Y, grid, rng, "shuffled")
    case.X[rng.uniform(size=case.X.shape) < 0.03 * (1 + variant)] = np.nan
    return Case(case.X, case.params, case.point)


@positive
def wild_entries(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    case = in_random_order(Y, grid, rng, "shuffled")
    case.X[rng.uniform(size=case.X.shape) < 0.001] *= 1_000
    return Case(case.X, case.params, case.point)


@positive
def gains_and_offsets(rng: Rng, variant: int) -> Case:
    Y, grid = _field(rng, variant, 4_500)
    return in_random_order(
        Y * rng.lognormal(size=grid.size) + 5 * rng.normal(size=grid.size), grid, rng, "shuffled"
    )


@positive
def a_common_drift(rng: Rng, variant: int) -> Case:
    """Everything goes up and down together."""
    Y, grid = _field(rng, variant, 4_500)
    return in_random_order(Y + 0.7 * rng.normal(size=(len(Y), 1)), grid, rng, "shuffled")


@positive
def rows_in_time(rng: Rng, variant: int) -> Case:
    """Fields that change slowly: neighbouring rows are alike."""
    from scipy.signal import lfilter

    Y, grid = _field(rng, variant, 6_000)
    slow = lfilter([1], [1, -0.8], Y, axis=0)[100:]
    return in_random_order(
        slow / slow.std() + 0.1 * rng.normal(size=slow.shape), grid, rng, "shuffled"
    )


# -- in places, but not stationary -----------------------------------------------------------------


@positive
def walks_along_columns(rng: Rng, variant: int) -> Case:
    """Brownian motion over the columns: variance grows along the line."""
    d = LINES[variant]
    Y = np.cumsum(rng.normal(size=(3_000, d)), axis=1)
    return in_random_order(Y, Grid((d,)), rng, "shuffled", stationary=False)


@positive
def sorted_rows(rng: Rng, variant: int) -> Case:
    """Order statistics: each row is sorted."""
    d = LINES[variant % 3]
    return in_random_order(
        np.sort(rng.exponential(size=(3_000, d)), axis=1),
        Grid((d,)),
        rng,
        "shuffled",
        stationary=False,
    )


@positive
def whole_digits(rng: Rng, variant: int) -> Case:
    from sklearn.datasets import load_digits

    Y = load_digits().images.astype(float)[:, :, 1:7]
    order = rng.permutation(len(Y))
    Y = Y[order].reshape(len(Y), -1) + 0.5 * variant * rng.normal(size=(len(Y), 48))
    return in_random_order(Y, Grid((8, 6)), rng, "shuffled", stationary=False, overlap=True)


@positive
def bright_in_the_middle(rng: Rng, variant: int) -> Case:
    """A field under an envelope, and with correlations that grow towards one side."""
    grid = Grid(PLANES[variant])
    smooth, rough = (smooth_field(rng, 3_600, grid.shape, width) for width in (1.5, 0.6))
    share = grid.indices()[:, 0] / (grid.shape[0] - 1)
    Y = np.sqrt(share) * smooth + np.sqrt(1 - share) * rough
    return in_random_order(
        Y * (0.5 + share) + 0.1 * rng.normal(size=Y.shape), grid, rng, "shuffled", stationary=False
    )


# -- several columns at a point, bits, tuned populations, dense mixings ----------------------------


@positive
def colour(rng: Rng, variant: int) -> Case:
    grid = Grid(((5, 5), (6, 6), (6, 7), (7, 7))[variant])
    common, own = (
        smooth_field(rng, 6_000, grid.shape, 1.0),
        [smooth_field(rng, 6_000, grid.shape, 1.0) for _ in range(3)],
    )
    Y = np.stack([common + 0.6 * one for one in own], axis=-1).reshape(6_000, -1)
    Y += 0.1 * rng.normal(size=Y.shape)
    order = rng.permutation(Y.shape[1])
    return Case(Y[:, order], {"grid": grid.shape, "mixing": "shuffled"}, order // 3)


@positive
def bits(rng: Rng, variant: int) -> Case:
    side, names = (5, 6, 6, 7)[variant], TEXTURES if variant % 2 else PHOTOGRAPHS
    Z = patches(9_000, (side, side), rng, names).reshape(9_000, -1)
    planes = (
        ((Z.astype(np.uint8)[:, :, None] >> np.arange(3, 8, dtype=np.uint8)) & 1)
        .reshape(9_000, -1)
        .astype(float)
    )
    order = rng.permutation(planes.shape[1])
    return Case(planes[:, order], {"grid": (side, side)}, order // 5)


@positive
def tuned_population(rng: Rng, variant: int) -> Case:
    data = ring_population(3_600, (24, 32, 48, 64)[variant], random_state=_seed(rng))
    return Case(
        data.X,
        {"grid": 15, "periodic": True, "solver": "ring"},
        angle=np.asarray(data.latent).reshape(len(data.X), -1)[:, 0],
    )


@positive
def faintly_tuned_population(rng: Rng, variant: int) -> Case:
    data = ring_population(
        3_600, 24, rate=(0.3, 0.6, 1.0, 2.0)[variant], gain=0.6, random_state=_seed(rng)
    )
    return Case(
        data.X,
        {"grid": 15, "periodic": True, "solver": "ring"},
        angle=np.asarray(data.latent).reshape(len(data.X), -1)[:, 0],
    )


def _dense(data: Any, **params: Any) -> Case:
    return Case(
        data.X,
        {"grid": data.grid.shape, "periodic": data.grid.periodic, **params},
        latent=data.latent,
    )


@positive
def rings_behind_a_rotation(rng: Rng, variant: int) -> Case:
    return _dense(
        gsn(
            18_000,
            (9, 11, 15, 13)[variant],
            periodic=True,
            transform="orthogonal",
            random_state=_seed(rng),
        )
    )


@positive
def lines_behind_a_rotation(rng: Rng, variant: int) -> Case:
    n = (18_000, 18_000, 9_000, 3_600)[variant]
    return _dense(
        gsn(n, (15, 21, 21, 15)[variant], transform="orthogonal", random_state=_seed(rng))
    )


@positive
def planes_behind_a_rotation(rng: Rng, variant: int) -> Case:
    n = (15_000, 15_000, 6_000, 3_000)[variant]
    return _dense(
        gsn(
            n,
            ((5, 5), (6, 6), (5, 6), (5, 5))[variant],
            transform="orthogonal",
            random_state=_seed(rng),
        )
    )


@positive
def wavelets_behind_a_rotation(rng: Rng, variant: int) -> Case:
    n = (18_000, 12_000, 6_000, 3_000)[variant]
    return _dense(gsn(n, 21, basis="legendre", transform="orthogonal", random_state=_seed(rng)))


@positive
def spins_behind_a_linear_map(rng: Rng, variant: int) -> Case:
    return _dense(
        ising(
            (24_000, 12_000, 6_000, 3_000)[variant], 13, transform="linear", random_state=_seed(rng)
        )
    )
