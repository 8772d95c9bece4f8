"""The fast solver: closed-form statistics instead of training.

Two-valued columns that outnumber the grid's points are the *bits* of numbers. Stages for all
others: *arrange* the coordinates themselves (shuffled pixels); if they do not explain the data,
*localise* by independent components, build *frames* from them, make a frame *stationary* by its
moment tensors, *sharpen* its phase by the shared marginal; if that is not convincing, start from
the covariance's *eigenbasis* instead; and if the mixing is not orthogonal or components are
increments, *resolve* over all invertible maps. Candidates compete by stationarity, resolution and
distortion on held-out rows; the winner is factored into a lifted model.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from threadpoolctl import threadpool_limits

from symlift.core.domain import Domain, Scattered, lattice_of
from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import of_one_direction
from symlift.core.model import LiftedModel
from symlift.core.rows import has_gaps, varying
from symlift.errors import InputError
from symlift.search.rows import FEWEST_BIT_ROWS
from symlift.solvers.contract import Evidence, Placement, Progress, Reach, Solution, no_progress
from symlift.solvers.fast.bits import read_bits, two_valued
from symlift.solvers.fast.contract import ProposedMap
from symlift.solvers.fast.place.anywhere import place_anywhere
from symlift.solvers.fast.place.contract import Placed
from symlift.solvers.fast.place.engine import place_columns
from symlift.solvers.fast.problem import Problem
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.solvers.fast.unmix import unmixed_by_pool
from symlift.solvers.fast.work import SplitRows, Work
from symlift.statistics.selection import held_out, held_out_in_window

__all__ = ["solve"]

# how far to go at most, where the mixing is known
_REACH: dict[str, Reach] = {"shuffled": "coordinates"}
# points of the window in which placements are described, and rows, at equal distances
_WINDOW, _LOOKED_AT = 256, 4_000


def solve(
    X: NDArray,
    grid: Domain,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    *,
    mixing: str = "auto",
    channels: int | str = "auto",
    reach: Reach | None = None,
    sharpest: bool = False,
    settings: FastSettings = DEFAULT,
) -> Solution:
    """Lifting model of X (n, d) on the domain ``grid``, from nothing else.

    Memory: d² matrices (d³ up to d = 256) and a sample of rows.

    ``mixing`` is what is known: with "shuffled" components are never tried, with "orthogonal" only
    orthogonal maps are. ``reach`` is how far to go at most, by default as far as the mixing allows:
    "coordinates" only puts columns in order, "components" makes one attempt with independent
    components, "general" does all. Without it, a map that undoes a dense mixing is only believed if
    another attempt, from other rows and another start, ends at the same signals. Of a process and
    its innovations, or of a field and its increments, the one of least distortion is taken, or the
    other one with ``sharpest``.
    ``progress`` is called at the start of each stage, with the share of the longest possible
    sequence of stages that is done.
    """
    if isinstance(grid, Scattered):
        return _anywhere(X, grid, rng, Work(settings, progress, sharpest))
    grid = lattice_of(grid)
    # products of small matrices gain nothing from a second thread, and become much slower if
    # threads wait for each other
    with threadpool_limits(limits=1 if grid.size <= settings.max_third_order else None):
        work = Work(settings, progress, sharpest)
        # who asks for a reach compares fits by himself
        far, confirm = reach or _REACH.get(mixing, "general"), reach is None
        return _solve(X, grid, rng, far, confirm, mixing, channels, work)


def _solve(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    reach: Reach,
    confirm: bool,
    mixing: str,
    channels: int | str,
    work: Work,
) -> Solution:
    # no gap is one of two values
    many_bits = X.shape[1] > grid.size and len(X) >= FEWEST_BIT_ROWS and two_valued(X)
    if many_bits:
        # fields that saturate, such as digits, take a tenth of the time this way; held-out rows and
        # the decay of the weights show whether it applies
        bits = _from_bits(X, grid, rng, work)
        if bits is not None:
            return bits
    if channels == "auto" and (reach == "coordinates" or mixing == "auto"):
        _check_points(X, grid, work.settings, mixing)
    with work.stage("place") as values:
        # a separate generator: the number of draws here must not change the start of the components
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
    unmixed = _unmixed(X, placed, grid, rng, reach, confirm, mixing, work)
    # an unmixing that did not convince must not hide where the columns may be; one that no other
    # attempt has reached is the best that there is
    likely = unmixed.evidence.found or unmixed.evidence.repeated is not None
    if likely or reach != "general" or mixing != "auto" or work.sharpest:
        return unmixed
    return _from_places(X, placed, work, "coordinates")


def _anywhere(X: NDArray, domain: Scattered, rng: np.random.Generator, work: Work) -> Solution:
    """Columns at places of their own."""
    with work.stage("place") as values, threadpool_limits(limits=1):
        placed = place_anywhere(
            X, domain.dimension, rng.spawn(1)[0], settings=work.settings.place,
            progress=lambda stage, _: work.progress(f"place: {stage}", None),
        )  # fmt: skip
        values |= {**asdict(placed.statistics), **placed.trace}
    box = Grid(placed.placement.lattice.shape, confidence=domain.confidence)
    placed = replace(placed, placement=replace(placed.placement, grid=box))
    return _from_places(X, placed, work, "coordinates")


def _check_points(X: NDArray, grid: Grid, settings: FastSettings, mixing: str) -> None:
    """Refuse very many columns that are many at each point, before anything is computed.

    Those of a few channels would be placed, and all others set aside, next to a confidence of 1.
    """
    d, most = X.shape[1], settings.place.dense
    many = (settings.place.wide_channels + 0.5) * grid.size
    if d > most and d >= many and varying(X).sum() >= max(most, many):
        mixed = ", or say mixing='linear' if they are mixtures of points"
        raise InputError(
            f"{d:,} columns are about {d / grid.size:.0f} for each point of the grid {grid}, and at"
            f" most {settings.place.wide_channels} can be placed above {most:,} columns: fit the"
            " columns of some channels alone"
            f"{mixed if mixing == 'auto' else ''}"
        )


def _can_be_unmixed(X: NDArray, placed: Placed, grid: Grid) -> bool:
    """Whether a dense mixing could be undone: no gaps, more rows than varying columns, as many of
    those as points, and rows of more than one direction.

    A fifth of the rows is held out; components of fewer rows than columns would not give an
    invertible map.
    """
    living = int((placed.placement.reason != "dead").sum())
    held = len(X) // 5
    if held < 2 or not len(X) - held >= living >= grid.size or has_gaps(X):
        return False
    return not of_one_direction(X)


def _from_places(X: NDArray, placed: Placed, work: Work, chosen: str) -> Solution:
    """A placement as a solution; columns that were left out have weight zero."""
    grid, statistics = placed.placement.lattice, placed.statistics
    with work.stage("choose") as values:
        some = X[:: max(1, len(X) // _LOOKED_AT)]
        terms = held_out_in_window(placed.W, some, grid, placed.n_channels, _WINDOW, placed.mean)
        parts = asdict(terms)
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
        replicated=statistics.agreement,
        **parts,
    )
    return Solution(model, evidence, work.trace(chosen), placed.placement, placed.scattered)


def _unmixed(
    X: NDArray,
    placed: Placed,
    grid: Grid,
    rng: np.random.Generator,
    reach: Reach,
    confirm: bool,
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
    rows = sample if basis is None else SplitRows(sample.fit @ basis.T, sample.held @ basis.T)
    given = []
    if basis is None and placed.n_channels == 1 and (placed.placement.coverage() == 1).all():
        W = placed.W.toarray() if issparse(placed.W) else np.asarray(placed.W)
        given = [ProposedMap("coordinates", W[:, living])]
    problem = Problem(rows, grid, rng, work, invertible=mixing != "orthogonal")
    unmixed = unmixed_by_pool(problem, given, thorough=reach == "general", confirm=confirm)
    proposal, score = unmixed.proposal, unmixed.score
    W = proposal.W if basis is None else proposal.W @ basis
    model = LiftedModel.from_lifting_map(W, grid, mean=mean)
    evidence = Evidence(
        found=unmixed.believed,
        # halves that a diagnosis refits need the same reach: one attempt with components does not
        # include the eigenbasis
        reach=proposal.reach,
        explained=round(proposal.explained, 4),
        carried_by="energies",
        nongaussianity=round(problem.nongaussianity, 2),
        repeated=None if unmixed.agreement is None else round(unmixed.agreement, 4),
        **asdict(score),
    )
    if not living.all():
        model = model.with_columns(living, placed.mean)
    in_places = proposal.name == "coordinates"
    return Solution(
        model, evidence, work.trace(proposal.name), placed.placement if in_places else None
    )


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
    # the map takes 0 and 1, so the two values of each column are converted
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
