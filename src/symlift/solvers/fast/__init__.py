"""The fast solver: closed-form statistics instead of training.

Two-valued columns that outnumber the grid's points are the *bits* of numbers.  Stages for all others: *arrange* the
coordinates themselves (shuffled pixels); if they do not explain the data, *localise* by independent components, build
*frames* from them, make a frame *stationary* by its moment tensors, *sharpen* its phase by the shared marginal, and where
the mixing is not orthogonal or components are increments, *resolve* over all invertible maps.  Candidates
compete by stationarity, resolution and distortion on held-out rows; the winner is factored into a lifted model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from symlift.grid import Grid
from symlift.lifting import LiftedModel
from symlift.objective import LagClasses, score, stationarity
from symlift.solvers import Progress, Solution, no_progress
from symlift.solvers.fast.arrange import arrange, explained_elsewhere, similarities
from symlift.solvers.fast.bits import read_bits, two_valued
from symlift.solvers.fast.frames import points_frame, position_frames, stationary_frame
from symlift.solvers.fast.increments import increments_frame
from symlift.solvers.fast.invariance import Moments, invariance_gap, minimise_over_rotations, moments
from symlift.solvers.fast.localise import independent_components, nongaussianity
from symlift.solvers.fast.resolve import least_distortion_filter, resolve, unit_determinant
from symlift.solvers.fast.sharpen import flip_modes, pooled_entropy, sharpen

__all__ = ["solve"]

# statistics are taken from at most this many rows: beyond, sampling noise is no longer what limits a fit
_FIT_ROWS, _HELD_ROWS, _ARRANGE_ROWS = 40_000, 10_000, 20_000
# shuffled fields explain 0.9 or more of the statistics they were fitted to, dense mixings and noise less than 0.5
_ARRANGED = 0.8
# held-out distance of moments to stationary ones: right frames leave 0.002 or less, wrong ones 0.006 or more
_STATIONARY = 0.004
# evidence: noise leaves a locality of about 0 and |z| < 3
_LOCAL, _NONGAUSSIAN = 0.2, 4.0
# d³ third moments cost 2d⁴ operations a step
_MAX_THIRD_ORDER = 100
_MAX_RESOLVE = 300
# share of the third moment that is sampling noise, beyond which it says nothing
_NO_THIRD_MOMENT = 0.5
_ATTEMPTS = 3

Reach = Literal["coordinates", "components", "general"]


# what stages cost, relative to each other, and how often they run at most: for the time estimate of a progress bar
_COSTS = {
    "bits": 6,
    "arrange": 4,
    "moments": 4,
    "localise": 6,
    "frames": 2,
    "stationary": 25,
    "sharpen": 4,
    "resolve": 18,
    "choose": 1,
}
_REPEATS = {"localise": _ATTEMPTS, "frames": _ATTEMPTS, "stationary": _ATTEMPTS, "sharpen": _ATTEMPTS, "resolve": 3}
_TOTAL = sum(cost * _REPEATS.get(name, 1) for name, cost in _COSTS.items())


@dataclass
class _Trace:
    """What each stage did, how good it was and how long it took."""

    progress: Progress
    stages: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        self.progress(name, sum(_COSTS[done["stage"]] for done in self.stages) / _TOTAL)
        record: dict[str, Any] = {"stage": name}
        start = time.perf_counter()
        yield record
        record["seconds"] = round(time.perf_counter() - start, 3)
        self.stages.append(record)


@dataclass(frozen=True)
class _Rows:
    """Centred rows of unit pooled deviation, in two disjoint parts."""

    fit: NDArray[np.float64]
    held: NDArray[np.float64]


def solve(
    X: NDArray, grid: Grid, rng: np.random.Generator, reach: Reach = "general", progress: Progress = no_progress
) -> Solution:
    """Lifting model of X (n, d) on ``grid``; sees nothing else.  Memory: d² matrices (d³ up to d = 100) and a sample of rows.

    ``reach`` is how far to go: "coordinates" only puts columns in order, "components" makes one attempt with independent
    components, "general" does all.  ``progress`` is told each stage as it starts, and the share of the longest way that is done.
    """
    # products of small matrices gain nothing from a second thread, and lose much where threads wait for each other
    with threadpool_limits(limits=1 if grid.size <= _MAX_THIRD_ORDER else None):
        return _solve(X, grid, rng, reach, progress)


def _solve(X: NDArray, grid: Grid, rng: np.random.Generator, reach: Reach, progress: Progress) -> Solution:
    trace = _Trace(progress)
    mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
    if X.shape[1] > grid.size and two_valued(X):
        solution = _from_bits(X, mean, grid, rng, trace)
        if solution is not None:
            return solution
    sample = _sample(X, mean, rng)
    basis = _principal_basis(sample.fit, grid.size)
    lags = LagClasses(grid)
    if basis is None:
        W, accepted = _from_coordinates(sample, grid, lags, rng, trace)
        candidates = {"coordinates": W}
        rows = sample
    else:
        candidates, accepted = {}, False
        rows = _Rows(sample.fit @ basis.T, sample.held @ basis.T)
    if not candidates or (not accepted and reach != "coordinates"):
        candidates |= _from_components(rows, grid, lags, rng, trace, thorough=reach == "general")
    with trace.stage("choose") as record:
        scores = {name: score(W, rows.held, lags) for name, W in candidates.items()}
        chosen = min(scores, key=lambda name: scores[name][0])
        record |= {"scores": {name: round(value, 4) for name, (value, _) in scores.items()}, **scores[chosen][1]}
    W = candidates[chosen] if basis is None else candidates[chosen] @ basis
    model = LiftedModel.from_lifting_map(W, grid, mean=mean)
    evidence = _evidence(accepted or reach == "coordinates", trace)
    went: Reach = "coordinates" if accepted else "general" if "resolved" in chosen else "components"
    figures = {"solver": "fast", "chosen": chosen, "reach": went, **scores[chosen][1], "evidence": evidence}
    return Solution(model, {**figures, "stages": trace.stages})


def _evidence(accepted: bool, trace: _Trace) -> dict[str, Any]:
    """What speaks for the result, on held-out rows.

    ``locality``: the part of pairwise statistics (of coordinates, or of the energies of independent components) that
    displacements on the grid explain; about 0 where there is no domain.  ``nongaussianity``: z score of the components; without it
    no dense mixing can be undone (None where coordinates were merely put in order, which needs second moments only).
    """
    local = max(
        (s["locality"] for s in trace.stages if "locality" in s and (s["stage"] == "arrange") == accepted), default=0.0
    )
    z = max((s["nongaussianity"] for s in trace.stages if "nongaussianity" in s), default=0.0)
    found = local > _LOCAL and (accepted or z > _NONGAUSSIAN)
    return {"locality": round(local, 4), "nongaussianity": None if accepted else round(z, 2), "found": bool(found)}


def _sample(X: NDArray, mean: NDArray, rng: np.random.Generator) -> _Rows:
    """A random sample of rows, centred, divided by one deviation, split into fit and held-out parts."""
    held = min(_HELD_ROWS, len(X) // 5)
    count = min(_FIT_ROWS, len(X) - held) + held
    # sorted, so that a memory map is read in one direction; then shuffled, so that the split is random
    index = np.sort(rng.choice(len(X), size=count, replace=False)) if count < len(X) else np.arange(len(X))
    rows = np.asarray(X[index], dtype=np.float64) - mean
    rows /= max(float(rows.std()), 1e-300)
    rows = rows[rng.permutation(len(rows))]
    return _Rows(rows[held:], rows[:held])


def _principal_basis(rows: NDArray, points: int) -> NDArray | None:
    """Orthonormal rows spanning the ``points`` strongest principal directions, or None where there are no others."""
    if rows.shape[1] == points:
        return None
    return np.linalg.eigh(rows.T @ rows)[1][:, -points:].T


def _from_coordinates(
    rows: _Rows, grid: Grid, lags: LagClasses, rng: np.random.Generator, trace: _Trace
) -> tuple[NDArray[np.float64], bool]:
    """The coordinates themselves, in the order that explains them best; and whether held-out rows agree."""
    with trace.stage("arrange") as record:
        S = similarities(rows.fit[:_ARRANGE_ROWS])
        order, quality = arrange(S, grid, rng)
        quality["locality"] = explained_elsewhere(S, similarities(rows.held), order, lags)
        record |= quality
    # few held-out rows say little: there, rows that were fitted may speak too
    convincing = quality["locality"] > _ARRANGED or (quality["locality"] > 0.5 and quality["explained"] > _ARRANGED)
    return np.eye(grid.size)[order], convincing


def _from_bits(X: NDArray, mean: NDArray, grid: Grid, rng: np.random.Generator, trace: _Trace) -> Solution | None:
    """Two-valued columns, more than points: the bits of numbers; None where held-out rows do not agree."""
    low, high = X.min(axis=0), X.max(axis=0)
    with trace.stage("bits") as record:
        held = min(_HELD_ROWS, len(X) // 5)
        index = rng.permutation(len(X))[: _FIT_ROWS + held]
        planes = np.empty((X.shape[1], len(index)), dtype=np.uint8)
        for part in np.array_split(np.arange(len(index)), 1 + planes.size // 10_000_000):
            planes[:, part] = (X[index[part]] == high).T
        W, quality = read_bits(planes, grid, rng, held)
        record |= quality
    if not W.any():
        return None
    # whatever the two values are, the map sees 0 and 1
    model = LiftedModel.from_lifting_map(W / np.where(high > low, high - low, 1), grid, mean=mean)
    _, parts = score(W, planes[:, :held].T.astype(np.float32), LagClasses(grid))
    evidence = {"locality": round(quality["locality"], 4), "nongaussianity": None, "found": True}
    figures = {"solver": "fast", "chosen": "bits", "reach": "coordinates", **parts, "evidence": evidence}
    return Solution(model, {**figures, "stages": trace.stages})


def _from_components(
    rows: _Rows, grid: Grid, lags: LagClasses, rng: np.random.Generator, trace: _Trace, thorough: bool
) -> dict[str, NDArray[np.float64]]:
    """Candidates that start from independent components; cheap ones first, the general ones where those do not convince."""
    candidates: dict[str, NDArray[np.float64]] = {}
    polish = _Polish(rows, grid, lags, trace)
    unmixings: list[tuple[float, NDArray]] = []
    for attempt in range(_ATTEMPTS if thorough else 1):
        with trace.stage("localise") as record:
            U, quality = independent_components(rows.fit[rng.permutation(len(rows.fit))[:10_000]], rng)
            quality["nongaussianity"] = nongaussianity(rows.fit @ U.T, rows.held @ U.T)
            record |= quality
        unmixings.append((quality["contrast"], U))
        with trace.stage("frames") as record:
            points, quality = points_frame(rows.fit, rows.held, U, grid, rng)
            record |= quality
            frames = {"points": points}
            if grid.ndim == 1 and not grid.axes_periodic[0]:
                frames |= position_frames(rows.fit, U)
        name, W, convincing = polish(frames)
        candidates[f"{name} {attempt}"] = W
        if convincing:
            return candidates
    _, U = max(unmixings, key=lambda pair: pair[0])
    if thorough and grid.size <= _MAX_RESOLVE:
        candidates |= _general(rows, U, grid, lags, rng, trace, candidates)
    return candidates


class _Polish:
    """Make the best of several frames stationary, then sharp.  Says whether its gap is down at the sampling noise."""

    def __init__(self, rows: _Rows, grid: Grid, lags: LagClasses, trace: _Trace) -> None:
        self.rows, self.grid, self.lags, self.trace = rows, grid, lags, trace
        self.ring = all(grid.axes_periodic)
        self.sharp: list[float] = []
        self.moments: Moments | None = None
        if grid.size <= _MAX_THIRD_ORDER:
            with trace.stage("moments") as record:
                self.moments = moments(rows.fit)
                self.gap = invariance_gap(self.moments, lags)
                record |= {"noise": self.moments.noise, "third_order_noise": self.moments.third_noise}

    def __call__(self, frames: dict[str, NDArray]) -> tuple[str, NDArray[np.float64], bool]:
        if self.moments is None:
            return self._by_second_order(frames)
        if self.moments.third_noise > _NO_THIRD_MOMENT:
            # symmetric in sign: second order cannot tell an all-pass copy, so it never convinces
            return (*self._by_second_order(frames)[:2], False)
        return self._by_third_order(frames, self.moments)

    def _by_second_order(self, frames: dict[str, NDArray]) -> tuple[str, NDArray[np.float64], bool]:
        with self.trace.stage("stationary") as record:
            C, C_held = (rows.T @ rows / len(rows) for rows in (self.rows.fit, self.rows.held))
            polished = {name: stationary_frame(W, C, C_held, self.lags) for name, W in frames.items()}
            name = min(polished, key=lambda key: polished[key][1])
            W, misfit = polished[name]
            left = float(stationarity(self.rows.held @ W.T, self.lags).mean())
            record |= {"start": name, "misfit": misfit, "stationarity": left}
        return name, W, left < _STATIONARY

    def _by_third_order(self, frames: dict[str, NDArray], m: Moments) -> tuple[str, NDArray[np.float64], bool]:
        with self.trace.stage("stationary") as record:
            first = {name: minimise_over_rotations(self.gap, W, 100) for name, W in frames.items()}
            ahead = sorted(first, key=lambda key: first[key][1])[:2]
            first |= {name: minimise_over_rotations(self.gap, first[name][0], 200) for name in ahead}
            name = min(ahead, key=lambda key: first[key][1])
            W, gap = first[name]
            near = gap < 5 * m.noise  # what is further off after 300 steps has gone to a wrong minimum
            if near:
                W, gap = minimise_over_rotations(self.gap, W, 1000, tolerance=1e-7)
            if near and gap > m.noise:
                # the optimiser cannot leave its component of O(N): try the other
                other, value = minimise_over_rotations(self.gap, _reflect_weakest(W, m.second), 300, tolerance=1e-7)
                W, gap = (other, value) if value < gap else (W, gap)
            record |= {"start": name, "gaps": {key: value for key, (_, value) in first.items()}, "gap": gap}
        if gap > 3 * m.noise:
            return name, W, False
        with self.trace.stage("sharpen") as record:
            W, gap, entropy = self._sharpen(W, gap, m.noise)
            record |= {"gap": gap, "entropy": entropy}
        stationary = gap < 1.5 * m.noise
        if stationary:
            self.sharp.append(entropy)
        # on a ring every phase is stationary: two attempts have to agree on the sharpest
        agreed = not self.ring or sum(value < min(self.sharp, default=0.0) + 0.01 for value in self.sharp) >= 2
        return name, W, stationary and agreed

    def _sharpen(self, W: NDArray, gap: float, noise: float) -> tuple[NDArray[np.float64], float, float]:
        """The sharper frame, if held-out rows say that it is and it is no less stationary."""
        some, held = self.rows.fit[:8_000], self.rows.held[:8_000]
        if self.ring and self.grid.ndim == 1:
            W = flip_modes(W, some)
        sharp = sharpen(W, some, self.gap, 20 * noise)
        before, after = (pooled_entropy(held @ V.T)[0] for V in (W, sharp))
        value = self.gap(sharp)[0]
        if after < before and value < 1.2 * max(noise, gap):
            return sharp, value, after
        return W, gap, before


def _reflect_weakest(W: NDArray, second: NDArray) -> NDArray:
    """W (1 - 2 v vᵀ), v the direction of least variance: the other component of O(N), at the least cost."""
    v = np.linalg.eigh(second)[1][:, :1]
    return W - 2 * (W @ v) @ v.T


def _general(
    rows: _Rows,
    U: NDArray,
    grid: Grid,
    lags: LagClasses,
    rng: np.random.Generator,
    trace: _Trace,
    rotations: dict[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """Maps that need not be orthogonal: from points, from the best rotation, and on a line from increments."""
    some = rows.fit[: min(15_000, max(4_000, 600_000 // grid.size))]
    best = min(rotations, key=lambda name: score(rotations[name], rows.held, lags)[0])
    starts: dict[str, Callable[[], tuple[NDArray, dict[str, float]]]] = {
        "points, resolved": lambda: points_frame(some, rows.held, U, grid, rng),
        f"{best}, resolved": lambda: (rotations[best], {}),
    }
    if grid.ndim == 1 and not grid.axes_periodic[0] and grid.size > 3:
        starts["increments, resolved"] = lambda: increments_frame(some, rows.held, U, rng)
    single = some.astype(np.float32)
    found = {}
    for name, start in starts.items():
        with trace.stage("resolve") as record:
            W, quality = start()
            found[name] = unit_determinant(least_distortion_filter(resolve(W, single, lags), lags))
            record |= {"start": name, **quality}
    return found
