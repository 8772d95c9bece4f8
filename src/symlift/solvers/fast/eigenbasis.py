"""Starts that need no components: the covariance of any smooth stationary field on a grid has
nearly the same eigenvectors.

Pair those of a generic covariance, exp(-(distance/ℓ)^p) with ℓ, p and anisotropy fitted to the
data's own spectrum, with those of the data by rank of variance; signs are drawn at random. From
there third-order stationarity is minimised over rotations, along a path of partial whitenings.

Starts on the grid itself rarely converge if it is fine: one in two on 8 x 8 digits, one in six or
none of sixteen on a line of 63 with decays. So the search goes *coarse to fine*: the strongest 16
to 25 modes on a coarse grid, where a step takes a millisecond and forty starts are cheap; the best
few go on to the next finer grid, keep the rotation of their modes, and draw signs for the new ones.
The gap after a hundred steps ranks them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.descend import Criterion, descend
from symlift.solvers.fast.fourth_moments import FourthModes
from symlift.solvers.fast.mode_moments import ModeMoments
from symlift.solvers.fast.settings import DEFAULT, FastSettings

__all__ = [
    "Arrival",
    "coarser",
    "eigenbasis_frames",
    "finer_start",
    "fitted_modes",
    "levels",
    "same_signs",
    "smooth_modes",
]

Modes = ModeMoments | FourthModes


def smooth_modes(
    grid: Grid, length: float, power: float, aspect: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues (descending) and eigenvectors (columns) of exp(-(distance/length)^power);
    ``aspect`` stretches later axes.
    """
    index = grid.indices().astype(np.float64)
    delta = np.abs(index[:, None] - index[None])
    period = np.array(grid.shape, dtype=np.float64)
    delta = np.where(grid.periodic, np.minimum(delta, period - delta), delta)
    delta *= aspect ** np.arange(grid.ndim)
    values, vectors = np.linalg.eigh(np.exp(-((np.linalg.norm(delta, axis=-1) / length) ** power)))
    return values[::-1], vectors[:, ::-1]


def fitted_modes(grid: Grid, spectrum: NDArray) -> NDArray[np.float64]:
    """Modes of the generic covariance whose spectrum is nearest to the data's in the logarithm.

    The spectrum's last value stands for white noise. Anisotropy is looked for only where axes could
    differ.
    """
    aspects = (1.0,) if grid.ndim == 1 else (0.7, 0.85, 1.0)
    lengths = np.geomspace(0.7, max(2.0, max(grid.shape) / 1.5), 9)
    target = np.log(np.maximum(spectrum, 1e-9 * spectrum[0]))
    best, chosen = np.inf, np.eye(grid.size)
    for power, length, aspect in itertools.product((0.5, 1.0, 1.5), lengths, aspects):
        values, vectors = smooth_modes(grid, length, power, aspect)
        model = np.maximum(values, 0) * (spectrum.sum() / grid.size) + 0.9 * spectrum[-1]
        misfit = float(np.mean((np.log(np.maximum(model, 1e-12)) - target) ** 2))
        if misfit < best:
            best, chosen = misfit, vectors
    return chosen


@dataclass(frozen=True, eq=False)
class Arrival:
    """A frame (points, modes), the gap over its sampling noise at each whitening as it was left,
    and the last criterion of the path.
    """

    W: NDArray[np.float64]
    ratios: dict[float, float]
    criterion: Criterion | None = None

    @property
    def last(self) -> float:
        """The gap at the end of the path, in units of its sampling noise."""
        return self.ratios[max(self.ratios)] if self.ratios else np.inf


class _Path:
    """Criteria at every whitening of the path, on one grid, and walks along it."""

    def __init__(self, modes: Modes, grid: Grid, settings: FastSettings) -> None:
        lags = LagClasses(grid)
        # a weak signal's high frequencies are noise, and so is most of a fourth cumulant: the path
        # ends before them
        self.criteria = {
            a: modes.criterion(a, lags)
            for a in settings.whitenings
            if a <= settings.ranked_at
            or (modes.order == 3 and modes.noise_share(a) < settings.eigenbasis_noise)
        }

    def walk(
        self, W: NDArray, way: tuple[float, ...], steps: int, tolerance: float = 1e-5
    ) -> Arrival:
        path = [self.criteria[a] for a in way]
        end = descend(W, path, steps, tolerance)
        ratios = [value / one.noise for value, one in zip(end.values, path, strict=True)]
        return Arrival(end.W, dict(zip(way, ratios, strict=True)))


def random_frames(V: NDArray, count: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """A start: modes with random signs."""
    return [V * rng.choice([-1.0, 1.0], V.shape[1]) for _ in range(count)]


def coarser(grid: Grid, points: int) -> Grid:
    """The same window with at most ``points`` points, all axes shortened in proportion."""
    factor = (points / grid.size) ** (1 / grid.ndim)
    return Grid(tuple(max(2, int(np.floor(n * factor + 1e-9))) for n in grid.shape), grid.periodic)


def levels(grid: Grid, coarsest: int) -> list[Grid]:
    """Grids over the same window from at least ``coarsest`` points up to ``grid`` itself, each
    about twice the one before.
    """
    grids = [grid]
    while grids[0].size >= 1.5 * coarsest:
        grids.insert(0, coarser(grid, max(coarsest, (grids[0].size + 1) // 2)))
    return grids


def same_signs(coarse: NDArray, fine: NDArray, small: Grid, grid: Grid) -> NDArray[np.float64]:
    """Fine modes in the order and sign in which their samples at the coarse points agree best with
    the coarse modes.
    """
    places = [
        np.rint(np.linspace(0, n - 1, k)).astype(int)
        for n, k in zip(grid.shape, small.shape, strict=True)
    ]
    points = grid.flat(
        np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, grid.ndim)
    )
    overlap = coarse.T @ fine[points]
    # of modes that agree alike, those of nearly the same rank: data are paired by rank on both
    # grids
    rank = np.abs(np.arange(overlap.shape[0])[:, None] - np.arange(overlap.shape[1])) / len(overlap)
    pairs = linear_sum_assignment(np.abs(overlap) - 0.1 * rank, maximize=True)[1]
    rest = np.setdiff1d(np.arange(fine.shape[1]), pairs)
    signs = np.where(overlap[np.arange(len(pairs)), pairs] < 0, -1.0, 1.0)
    return np.concatenate([fine[:, pairs] * signs, fine[:, rest]], axis=1)


def finer_start(
    W: NDArray, coarse: NDArray, fine: NDArray, rng: np.random.Generator
) -> NDArray[np.float64]:
    """A start on the fine grid: the coarse frame's rotation of the strong modes, and random signs
    for the weak ones.

    ``coarse`` and ``fine`` are generic modes of either grid; the first of them are the same waves
    (`same_signs`).
    """
    m, N = coarse.shape[1], fine.shape[1]
    R = np.diag(rng.choice([-1.0, 1.0], N))
    R[:m, :m] = coarse.T @ W
    return fine @ R


def eigenbasis_frames(
    modes: Modes, grid: Grid, rng: np.random.Generator, settings: FastSettings = DEFAULT
) -> Iterator[Arrival]:
    """Frames (points, modes) that stationarity of third (or fourth) order reaches from the
    covariance's eigenbasis: on the way, on the grid itself, and at last the one that it ends at.

    None if the gaps of the first starts on the coarsest grid are so large that the mixing is not
    orthogonal.
    """
    # fourth cumulants at a = 0 are the first mode's alone
    rank = (settings.whitenings[modes.order - 3], settings.ranked_at)
    frames: list[NDArray] = []
    before: tuple[NDArray, Grid] | None = None
    steps = levels(grid, settings.coarse_points[modes.order - 3][min(grid.ndim, 2) - 1])
    for level, small in enumerate(steps):
        strong = modes.strongest(small.size)
        V = fitted_modes(small, strong.values)
        large = _large(small, modes, settings)
        path = _Path(strong, small, settings)
        if before is None:
            frames = random_frames(V, settings.eigenbasis_starts, rng)
            few = [
                path.walk(W, rank, settings.first_steps) for W in frames[: settings.hopeful_starts]
            ]
            if min(arrival.last for arrival in few) > settings.hopeless_gap:
                return
        else:
            V = same_signs(before[0], V, before[1], small)
            frames = [
                finer_start(W, before[0], V, rng) for W in frames for _ in range(1 if large else 2)
            ]
            few = []
        if len(frames) > 1:
            first = few + [path.walk(W, rank, settings.first_steps) for W in frames[len(few) :]]
            first.sort(key=lambda arrival: arrival.last)
            frames = [arrival.W for arrival in first[: _kept(steps[level + 1 :], modes, settings)]]
        before = V, small
    last = max(path.criteria)
    way = (
        (settings.ranked_at, last)
        if not large
        else tuple(path.criteria)
        if modes.order == 3
        else rank
    )
    ways = []
    for W in frames:
        yield Arrival(W, {})
        ways.append(
            path.walk(W, way, settings.path_steps[modes.order - 3], 1e-4 if large else 1e-5)
        )
        yield ways[-1]
    best = min(ways, key=lambda arrival: arrival.last)
    if grid.size <= settings.max_third_order:
        best = _flip_strongest(path, best, V, settings)
    yield replace(best, criterion=path.criteria[last].in_data(modes.basis))


def _kept(finer: list[Grid], modes: Modes, settings: FastSettings) -> int:
    """How many starts go on: a few to the next grid, one where that is large, two all the way on
    the last.
    """
    if not finer:
        return settings.finalists
    return 1 if _large(finer[0], modes, settings) else settings.beam


def _large(grid: Grid, modes: Modes, settings: FastSettings) -> bool:
    """Whether steps on this grid take so long that only the best start goes on."""
    return grid.size > settings.max_order[modes.order - 3]


def _flip_strongest(path: _Path, best: Arrival, V: NDArray, settings: FastSettings) -> Arrival:
    """Change the sign of one strong mode at a time, if that lowers the gap. The sign of the mean
    depends on few triples: a moving average ended with it turned round at 1.3 times the noise (r
    0.83, detail 0.96), the right one at 0.75.
    """
    last = max(path.criteria)
    for k in range(settings.flips):
        v = V[:, k : k + 1]
        other = path.walk(best.W - 2 * v @ (v.T @ best.W), (last,), settings.first_steps)
        if other.ratios[last] < best.ratios[last]:
            best = path.walk(other.W, (last,), settings.first_steps)
    return best
