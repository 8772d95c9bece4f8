"""The fast solver: closed-form statistics instead of training.

Two-valued columns that outnumber the grid's points are the *bits* of numbers. Stages for all
others: *arrange* the coordinates themselves (shuffled pixels); if they do not explain the data,
*localise* by independent components, build *frames* from them, make a frame *stationary* by its
moment tensors, *sharpen* its phase by the shared marginal; where that does not convince, start from
the covariance's *eigenbasis* instead; and where the mixing is not orthogonal or components are
increments, *resolve* over all invertible maps. Candidates compete by stationarity, resolution and
distortion on held-out rows; the winner is factored into a lifted model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.model import LiftedModel, has_gaps
from symlift.solvers.contract import Evidence, Placement, Progress, Reach, Solution, no_progress
from symlift.solvers.fast.bits import read_bits, two_valued
from symlift.solvers.fast.components import independent_components, nongaussianity
from symlift.solvers.fast.dense import confirmed, dense_frame
from symlift.solvers.fast.frames import (
    nearest_in_turn,
    points_frame,
    position_frames,
    stationary_frame,
)
from symlift.solvers.fast.increments import increments_frame
from symlift.solvers.fast.innovations import process_frame
from symlift.solvers.fast.phases import sharpest_phase
from symlift.solvers.fast.place.contract import Placed
from symlift.solvers.fast.place.engine import place_columns
from symlift.solvers.fast.place.rows import FEWEST_BIT_ROWS
from symlift.solvers.fast.resolve import least_distortion_filter, resolve, unit_determinant
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.solvers.fast.sharpen import pooled_entropy, sharpen, sharpest_start
from symlift.solvers.fast.stationary import (
    Moments,
    invariance_gap,
    minimise_over_rotations,
    moments,
)
from symlift.solvers.fast.work import SplitRows, Work
from symlift.statistics.moments import stationarity
from symlift.statistics.selection import HeldOut, held_out, held_out_in_window

__all__ = ["solve"]

# how far to go at most, where the mixing is known
_REACH: dict[str, Reach] = {"shuffled": "coordinates"}


def solve(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    *,
    mixing: str = "auto",
    channels: int | str = "auto",
    reach: Reach | None = None,
    sharpest: bool = False,
    settings: FastSettings = DEFAULT,
) -> Solution:
    """Lifting model of X (n, d) on ``grid``; sees nothing else. Memory: d² matrices (d³ up to d =
    256) and a sample of rows.

    ``mixing`` says what is known: "shuffled" never goes on to components, "orthogonal" never to
    maps that are not. ``reach`` is how far to go at most, by default as far as the mixing allows:
    "coordinates" only puts columns in order, "components" makes one attempt with independent
    components, "general" does all. Of a process and its innovations, of a field and its increments,
    the one of least distortion is taken, with ``sharpest`` the other. ``progress`` is called with
    each stage as it starts, and the share of the longest way that is done.
    """
    # products of small matrices gain nothing from a second thread, and lose much where threads wait
    # for each other
    with threadpool_limits(limits=1 if grid.size <= settings.max_third_order else None):
        work = Work(settings, progress, sharpest)
        return _solve(X, grid, rng, reach or _REACH.get(mixing, "general"), mixing, channels, work)


def _solve(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    reach: Reach,
    mixing: str,
    channels: int | str,
    work: Work,
) -> Solution:
    many_bits = (
        X.shape[1] > grid.size and len(X) >= FEWEST_BIT_ROWS and not has_gaps(X) and two_valued(X)
    )
    if many_bits:
        # fields that saturate, as digits do: in a tenth of the time; held-out rows and the weights'
        # decay say whether it is so
        bits = _from_bits(X, grid, rng, work)
        if bits is not None:
            return bits
    with work.stage("place") as values:
        # a generator of its own: how much is drawn here must not change what components start from
        placed = place_columns(
            X, grid, rng.spawn(1)[0], channels=channels, settings=work.settings.place,
            progress=lambda stage, _: work.progress(f"place: {stage}", None),
        )  # fmt: skip
        values |= {**asdict(placed.statistics), **placed.trace}
    if placed.statistics.accepted or reach == "coordinates" or not _can_be_unmixed(X, placed, grid):
        return _from_places(
            X, placed, work, "bits" if many_bits and placed.statistics.accepted else "coordinates"
        )
    work.progress(
        "the columns are not points of the grid: going on to independent components", None
    )
    return _unmixed(X, placed, grid, rng, reach, mixing, work)


def _can_be_unmixed(X: NDArray, placed: Placed, grid: Grid) -> bool:
    """Whether a dense mixing could be undone: no gaps, more rows than columns that vary, and as
    many of those as points.

    A fifth of the rows is held out; components of fewer rows than columns would not be an
    invertible map.
    """
    living = int((placed.placement.reason != "dead").sum())
    return len(X) > living and len(X) - len(X) // 5 >= living >= grid.size and not has_gaps(X)


def _from_places(X: NDArray, placed: Placed, work: Work, chosen: str) -> Solution:
    """The solution that a placement is; columns that were left out have weight zero."""
    grid, statistics = placed.placement.grid, placed.statistics
    with work.stage("choose") as values:
        some = np.asarray(X[: work.settings.held_rows], dtype=np.float64)
        some = np.where(np.isnan(some), placed.mean, some)
        parts = asdict(held_out_in_window(placed.W, some, grid, placed.n_channels))
        values |= parts
    model = LiftedModel.from_lifting_map(
        placed.W, grid, mean=placed.mean, channels=placed.n_channels
    )
    evidence = Evidence(
        found=statistics.accepted,
        reach="coordinates",
        explained=round(statistics.explained, 4),
        ceiling=round(statistics.ceiling, 4),
        carried_by=statistics.carried,
        **parts,
    )
    return Solution(model, evidence, work.trace(chosen), placed.placement)


def _unmixed(
    X: NDArray,
    placed: Placed,
    grid: Grid,
    rng: np.random.Generator,
    reach: Reach,
    mixing: str,
    work: Work,
) -> Solution:
    """The best of maps that start from independent components, and of the columns as they were
    placed.
    """
    living = placed.placement.reason != "dead"
    rows_of_living, mean = (X if living.all() else X[:, living]), placed.mean[living]
    sample = _sample(rows_of_living, mean, rng, work.settings)
    basis = _principal_basis(sample.fit, grid.size)
    lags = LagClasses(grid)
    rows = sample if basis is None else SplitRows(sample.fit @ basis.T, sample.held @ basis.T)
    candidates = {}
    if basis is None and placed.n_channels == 1 and (placed.placement.coverage() == 1).all():
        candidates["coordinates"] = np.asarray(placed.W, dtype=np.float64)[:, living]
    thorough = reach == "general"
    candidates |= _from_components(
        rows, grid, lags, rng, work, thorough, invertible=mixing != "orthogonal"
    )
    with work.stage("choose") as values:
        scores = {name: held_out(W, rows.held, lags) for name, W in candidates.items()}
        chosen = min(scores, key=lambda name: scores[name].value())
        values |= {
            "scores": {name: round(score.value(), 4) for name, score in scores.items()},
            **asdict(scores[chosen]),
        }
        if grid.is_ring and chosen != "coordinates":
            candidates[chosen] = nearest_in_turn(candidates[chosen], rows.held)
        if grid.is_ring and "resolved" in chosen:
            candidates[chosen], values["phase"] = sharpest_phase(
                candidates[chosen],
                rows.fit,
                rows.held,
                work.settings.phase_rows,
                work.settings.sharper_phase,
            )
    W = candidates[chosen] if basis is None else candidates[chosen] @ basis
    model = LiftedModel.from_lifting_map(W, grid, mean=mean)
    local = work.best("locality", "frames", "process", "resolve", "eigenbasis")
    z = work.best("nongaussianity", "localise")
    still = _still(scores[chosen], len(rows.held), work.settings)
    # on a ring whose frames did not arrive, a map that need not be orthogonal has every phase to be
    # sharp with
    enough = (
        work.settings.ring_local if grid.is_ring and "resolved" in chosen else work.settings.local
    )
    evidence = Evidence(
        found=bool(local > enough and z > work.settings.nongaussian and still),
        # halves that a diagnosis refits must go as far: one attempt with components does not reach
        # the eigenbasis
        reach="general" if "resolved" in chosen or chosen == "eigenbasis" else "components",
        explained=round(local, 4),
        carried_by="energies",
        nongaussianity=round(z, 2),
        **asdict(scores[chosen]),
    )
    if not living.all():
        model = model.with_columns(living, placed.mean)
    return Solution(
        model, evidence, work.trace(chosen), placed.placement if chosen == "coordinates" else None
    )


def _still(score: HeldOut, held: int, settings: FastSettings) -> bool:
    """Whether held-out rows are as stationary as right fits leave them: 0.003 or less, and more
    where they are few.
    """
    return score.stationarity < settings.stationary + settings.few_rows / held


def _sample(
    X: NDArray, mean: NDArray, rng: np.random.Generator, settings: FastSettings
) -> SplitRows:
    """A random sample of rows, centred, divided by one deviation, split into fit and held-out
    parts.
    """
    held = min(settings.held_rows, len(X) // 5)
    count = min(settings.fit_rows, len(X) - held) + held
    # sorted, so that a memory map is read in one direction; then shuffled, so that the split is
    # random
    index = (
        np.sort(rng.choice(len(X), size=count, replace=False))
        if count < len(X)
        else np.arange(len(X))
    )
    rows = np.asarray(X[index], dtype=np.float64) - mean
    rows /= max(float(rows.std()), 1e-300)
    rows = rows[rng.permutation(len(rows))]
    return SplitRows(rows[held:], rows[:held])


def _principal_basis(rows: NDArray, points: int) -> NDArray | None:
    """Orthonormal rows spanning the ``points`` strongest principal directions, or None where there
    are no others.
    """
    if rows.shape[1] == points:
        return None
    return np.linalg.eigh(rows.T @ rows)[1][:, -points:].T


def _from_bits(X: NDArray, grid: Grid, rng: np.random.Generator, work: Work) -> Solution | None:
    """Two-valued columns, more than points: the bits of numbers; None where held-out rows do not
    agree.
    """
    settings = work.settings
    mean = np.asarray(np.mean(X, axis=0, dtype=np.float64))
    low, high = X.min(axis=0), X.max(axis=0)
    with work.stage("bits") as values:
        held = min(settings.held_rows, len(X) // 5)
        index = rng.permutation(len(X))[: settings.fit_rows + held]
        planes = np.empty((X.shape[1], len(index)), dtype=np.uint8)
        for part in np.array_split(np.arange(len(index)), 1 + planes.size // 10_000_000):
            planes[:, part] = (X[index[part]] == high).T
        bits = read_bits(planes, grid, rng, held, settings)
        values |= bits.quality
    if not bits.W.any():
        return None
    # whatever the two values are, the map sees 0 and 1
    model = LiftedModel.from_lifting_map(
        bits.W / np.where(high > low, high - low, 1), grid, mean=mean
    )
    parts = held_out(bits.W, planes[:, :held].T.astype(np.float32), LagClasses(grid))
    evidence = Evidence(
        found=True,
        reach="coordinates",
        explained=round(bits.quality["locality"], 4),
        carried_by="lags",
        bit_slopes=tuple(bits.quality["slopes"]),
        **asdict(parts),
    )
    placed = Placement.at_points(grid, bits.point, channel=bits.significance)
    return Solution(model, evidence, work.trace("bits"), placed)


def _from_components(
    rows: SplitRows,
    grid: Grid,
    lags: LagClasses,
    rng: np.random.Generator,
    work: Work,
    thorough: bool,
    invertible: bool,
) -> dict[str, NDArray[np.float64]]:
    """Candidates that start from independent components; cheap ones first, the general ones where
    those do not convince.
    """
    settings = work.settings
    candidates: dict[str, NDArray[np.float64]] = {}
    polish = _Polish(rows, grid, lags, work)
    unmixings: list[tuple[float, NDArray]] = []
    for attempt in range(settings.attempts if thorough else 1):
        with work.stage("localise") as values:
            U, quality = independent_components(
                rows.fit[rng.permutation(len(rows.fit))[: settings.component_rows]], rng, settings
            )
            quality["nongaussianity"] = nongaussianity(rows.fit @ U.T, rows.held @ U.T)
            values |= quality
        unmixings.append((quality["contrast"], U))
        with work.stage("frames") as values:
            points, quality = points_frame(rows.fit, rows.held, U, grid, rng)
            values |= quality
            frames = {"points": points}
            if grid.ndim == 1 and not grid.periodic[0]:
                frames |= position_frames(rows.fit, U)
            if polish.noisy and grid.size >= settings.fewest_innovations:
                # how mixing columns overlap is less noisy than how energies go together
                frames["process"] = process_frame(U, grid, rng, True, settings).W
        if quality["locality"] < settings.local and _from_innovations(
            rows, U, grid, rng, work, candidates, invertible
        ):
            return candidates
        name, W, convincing = polish(frames)
        candidates[f"{name} {attempt}"] = W
        if convincing and (not thorough or confirmed(W, rows.fit, grid, settings)):
            return candidates
        # on a ring the gap cannot confirm a phase, nor can it with few rows, but two attempts can:
        # the eigenbasis comes after them
        turn = (
            1
            if grid.is_ring
            else settings.attempts - 1
            if all(grid.periodic) or polish.noisy
            else 0
        )
        if attempt == turn and thorough and _from_eigenbasis(rows, grid, rng, work, candidates):
            return candidates
        if convincing:
            return candidates
    _, U = max(unmixings, key=lambda pair: pair[0])
    if thorough and invertible and grid.size <= settings.max_resolve:
        candidates |= _general(rows, U, grid, lags, rng, work, candidates)
    return candidates


def _from_innovations(
    rows: SplitRows, U: NDArray, grid: Grid, rng: np.random.Generator, work: Work,
    candidates: dict[str, NDArray[np.float64]], invertible: bool,
) -> bool:  # fmt: skip
    """Where components have no domain of their own but their mixing columns have: the process that
    they drive, alone.
    """
    settings = work.settings
    if any(grid.periodic) or grid.size < settings.fewest_innovations:
        return False
    with work.stage("process") as values:
        U, _ = independent_components(rows.fit, rng, settings, start=U)
        process = process_frame(U, grid, rng, not invertible, settings)
        values |= process.quality
        if process.explained < settings.overlap:
            return False
        values["locality"] = process.explained
        answers = {"process": process.W, "innovations": process.innovations}
        values["answers"] = {
            name: asdict(held_out(W, rows.held, LagClasses(grid))) for name, W in answers.items()
        }
        # both are stationary, and resolution likes innovations better: least distortion decides, or
        # the user
        chosen = "innovations" if work.sharpest else "process"
        candidates.clear()
        candidates[chosen] = answers[chosen]
    return True


def _from_eigenbasis(
    rows: SplitRows,
    grid: Grid,
    rng: np.random.Generator,
    work: Work,
    candidates: dict[str, NDArray[np.float64]],
) -> bool:
    """Add the frame that starts from the covariance's eigenbasis; where it has arrived, it stays
    the only candidate.
    """
    with work.stage("eigenbasis") as values:
        frame = dense_frame(rows.fit, rows.held, grid, rng, work.settings)
        if frame is None:
            return False
        values |= frame.quality | {"arrived": frame.arrived}
        if frame.arrived:
            values["locality"] = frame.explained
            answers = candidates | {"eigenbasis": frame.W}
            values["answers"] = {
                name: asdict(held_out(W, rows.held, LagClasses(grid)))
                for name, W in answers.items()
            }
            # resolution must not overrule least distortion: among maps that are all-pass copies it
            # likes innovations better
            if not work.sharpest:
                candidates.clear()
        candidates["eigenbasis"] = frame.W
    return frame.arrived and not work.sharpest


class _Polish:
    """Make the best of several frames stationary, then sharp. Says whether its gap is down at the
    sampling noise.
    """

    def __init__(self, rows: SplitRows, grid: Grid, lags: LagClasses, work: Work) -> None:
        self.rows, self.grid, self.lags, self.work = rows, grid, lags, work
        self.settings = work.settings
        self.ring = all(grid.periodic)
        self.sharp: list[float] = []
        self.same_phase = 0.0
        self.moments: Moments | None = None
        if grid.size <= self.settings.max_third_order:
            with work.stage("moments") as values:
                self.moments = moments(rows.fit)
                self.gap = invariance_gap(self.moments, lags)
                values |= {
                    "noise": self.moments.noise,
                    "third_order_noise": self.moments.third_noise,
                }

    def __call__(self, frames: dict[str, NDArray]) -> tuple[str, NDArray[np.float64], bool]:
        if self.moments is None:
            return self._by_second_order(frames)
        if self.moments.third_noise > self.settings.no_third_moment:
            # symmetric in sign: second order cannot recognise an all-pass copy, so it never
            # convinces
            return (*self._by_second_order(frames)[:2], False)
        return self._by_third_order(frames, self.moments)

    def _by_second_order(self, frames: dict[str, NDArray]) -> tuple[str, NDArray[np.float64], bool]:
        with self.work.stage("stationary") as values:
            C, C_held = (rows.T @ rows / len(rows) for rows in (self.rows.fit, self.rows.held))
            polished = {
                name: stationary_frame(W, C, C_held, self.lags) for name, W in frames.items()
            }
            name = min(polished, key=lambda key: polished[key][1])
            W, misfit = polished[name]
            left = float(stationarity(self.rows.held @ W.T, self.lags).mean())
            values |= {"start": name, "misfit": misfit, "stationarity": left}
        return name, W, left < self.settings.stationary

    def _by_third_order(
        self, frames: dict[str, NDArray], m: Moments
    ) -> tuple[str, NDArray[np.float64], bool]:
        with self.work.stage("stationary") as values:
            first = {name: minimise_over_rotations(self.gap, W, 100) for name, W in frames.items()}
            ahead = sorted(first, key=lambda key: first[key][1])[:2]
            first |= {
                name: minimise_over_rotations(self.gap, first[name][0], 200) for name in ahead
            }
            name = min(ahead, key=lambda key: first[key][1])
            W, gap = first[name]
            near = (
                gap < self.settings.near_gap * m.noise
            )  # what is further off after 300 steps has gone to a wrong minimum
            if near:
                W, gap = minimise_over_rotations(self.gap, W, 1000, tolerance=1e-7)
            if near and gap > m.noise:
                # the optimiser cannot leave its component of O(N): try the other
                other, value = minimise_over_rotations(
                    self.gap, _reflect_weakest(W, m.second), 300, tolerance=1e-7
                )
                W, gap = (other, value) if value < gap else (W, gap)
            values |= {
                "start": name,
                "gaps": {key: value for key, (_, value) in first.items()},
                "gap": gap,
            }
        if gap > self.settings.sharpen_gap * m.noise and not self.noisy:
            return name, W, False
        with self.work.stage("sharpen") as values:
            if self.noisy:
                as_they_are = {key: frames[key] for key in ("points", "process") if key in frames}
                name, W, gap, entropy = self._sharpest(
                    {name: W} | {f"{key}, as it is": V for key, V in as_they_are.items()}, m.noise
                )
            else:
                W, gap, entropy = self._sharpen(W, gap, m.noise)
            values |= {"start": name, "gap": gap, "entropy": entropy}
        stationary = gap < self.settings.arrived_gap * m.noise
        if stationary:
            self.sharp.append(entropy)
        # on a ring every phase is stationary: entropy and third moment have to agree, or two
        # attempts on the sharpest
        same = self.settings.same_noisy_sharpness if self.noisy else self.settings.same_sharpness
        agreed = (
            not (self.ring or self.noisy)
            or self.same_phase > self.settings.same_phase
            or sum(value < min(self.sharp, default=0.0) + same for value in self.sharp) >= 2
        )
        return name, W, stationary and agreed

    @property
    def noisy(self) -> bool:
        """Whether there are too few rows for the gap to decide alone; phases of rings have their
        own ways.
        """
        return (
            self.moments is not None
            and not self.ring
            and self.settings.noisy_moments < self.moments.noise
            and self.moments.third_noise <= self.settings.no_third_moment
        )

    def _sharpest(
        self, frames: dict[str, NDArray], noise: float
    ) -> tuple[str, NDArray[np.float64], float, float]:
        name, W = sharpest_start(
            frames,
            self.rows.fit[: self.settings.sharpen_rows],
            self.gap,
            self.settings.sharpen_strength * noise,
        )
        return name, W, self.gap(W)[0], pooled_entropy(self.rows.held @ W.T)[0]

    def _sharpen(
        self, W: NDArray, gap: float, noise: float
    ) -> tuple[NDArray[np.float64], float, float]:
        """The sharper frame, if held-out rows say that it is and it is no less stationary."""
        some, held = (
            part[: self.settings.sharpen_rows] for part in (self.rows.fit, self.rows.held)
        )
        if self.grid.is_ring:
            W, numbers = sharpest_phase(W, some, held, self.settings.phase_rows, 0.0)
            self.same_phase = numbers["agreement"]
        sharp = sharpen(W, some, self.gap, self.settings.sharpen_strength * noise)
        before, after = (pooled_entropy(held @ V.T)[0] for V in (W, sharp))
        value = self.gap(sharp)[0]
        if after < before and value < 1.2 * max(noise, gap):
            return sharp, value, after
        return W, gap, before


def _reflect_weakest(W: NDArray, second: NDArray) -> NDArray:
    """W (1 - 2 v vᵀ), v the direction of least variance: the other component of O(N), at the least
    cost.
    """
    v = np.linalg.eigh(second)[1][:, :1]
    return W - 2 * (W @ v) @ v.T


def _general(
    rows: SplitRows,
    U: NDArray,
    grid: Grid,
    lags: LagClasses,
    rng: np.random.Generator,
    work: Work,
    rotations: dict[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """Maps that need not be orthogonal: from points, from the best rotation, and on a line from
    increments.
    """
    settings = work.settings
    fewest, most = settings.resolve_rows
    some = rows.fit[: min(most, max(fewest, settings.resolve_numbers // grid.size))]
    best = min(rotations, key=lambda name: held_out(rotations[name], rows.held, lags).value())
    starts: dict[str, Callable[[], tuple[NDArray, dict[str, float]]]] = {
        "points, resolved": lambda: points_frame(some, rows.held, U, grid, rng),
        f"{best}, resolved": lambda: (rotations[best], {}),
    }
    if grid.ndim == 1 and not grid.periodic[0] and grid.size > 3:
        starts["increments, resolved"] = lambda: increments_frame(some, rows.held, U, rng)
    single = some.astype(np.float32)
    maps = {}
    for name, start in starts.items():
        with work.stage("resolve") as values:
            W, quality = start()
            maps[name] = unit_determinant(
                least_distortion_filter(
                    resolve(W, single, lags, settings=settings), lags, settings.filter_taps
                )
            )
            values |= {"start": name, **quality}
    return maps
