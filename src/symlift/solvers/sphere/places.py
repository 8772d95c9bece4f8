"""Columns at points of a sphere: places by angles, and the field between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.core.harmonics import degrees_of, real_harmonics
from symlift.core.linalg import polar
from symlift.core.model import LiftedModel
from symlift.core.sphere import MAX_DEGREE, Sphere
from symlift.errors import InputError
from symlift.search.criterion import DistanceClasses, distance_classes
from symlift.search.problem import Halves, split_halves
from symlift.search.rows import score_rows
from symlift.search.score import BothScores, ahead, both_scores, predicted_by
from symlift.search.settings import PlaceSettings
from symlift.search.triage import Triage, triage
from symlift.solvers.contract import Evidence, Placement, Progress, Solution, Stage, Trace
from symlift.solvers.sphere.angles import (
    NEAR,
    by_kernel,
    by_paths,
    great_circles,
    kernel_of,
    legendre_values,
    paths_between,
    profiles_of,
    same_axes,
    same_places,
    spherical_scaling,
    without_first_component,
)
from symlift.solvers.sphere.axes import axes_by_kernel
from symlift.solvers.sphere.moments import MOST, FieldMoments, by_moments, clipped, moments_of
from symlift.statistics.correlations import correlations

__all__ = [
    "SpherePlaces",
    "agreement_of_ways",
    "along_paths",
    "angle_classes",
    "axes_places",
    "beyond_circles",
    "field_degree",
    "leaves_out_sources",
    "places_of",
    "solve_places",
    "sphere_places",
]

#: degrees of the function of the angle
KERNEL = 10
#: fewest columns that are placed: with fewer, any places would do
FEWEST = 8
# starts that are refined by all correlations; before that, of so many pairs, more for few columns,
# a short descent shows the best three: from most, a noisy cap ends folded
_STARTS, _PAIRS, _SHORT = 3, 60_000, 40
_BY_MOMENTS = "moments"
# ways to see who is near under far sources, which reach all columns
_UNDER_SOURCES = {"profiles over": profiles_of, "rest over": without_first_component}
_AND = " and "
# agreement of two ways that is enough: 157 magnetometers 0.91, ten factors 0.58 at most
_WAYS = 0.8
# columns next to a column where places are spread over a surface: the mean of any triangulation
_NEXT = 6

Pair = tuple[FieldMoments, FieldMoments]


@dataclass(frozen=True, eq=False)
class SpherePlaces:
    """Unit vectors u (d, 3) of columns; ``agreement`` with those that other rows give; what their
    angles explain on held-out rows; whether a great circle explains as much; ``by``: the descent;
    ``ways``: the agreement of two ways under far sources.
    """

    u: NDArray[np.float64]
    agreement: float
    scores: BothScores
    circle: bool
    by: str
    ways: float = 0.0

    def believed(self, settings: PlaceSettings) -> bool:
        """Whether two parts of the rows give the same places, angles explain enough of what is
        real, and columns fill more than a circle.

        Far sources are no function of angles: where places leave them out, it is also enough that
        two ways to do so agree.
        """
        judge = settings.judge
        enough = judge.explains_enough(self.scores.all.share)
        enough = enough or (leaves_out_sources(self.by) and self.ways > _WAYS)
        return judge.finds_again(self.agreement) and enough and not self.circle


def places_of(c: NDArray) -> dict[str, NDArray[np.float64]]:
    """Candidates for places from correlations (d, d): one for each number of near columns that
    paths go over, where columns are near by their correlation, by their profile or by what is left
    of the correlation without a common mode; and the best by all correlations.
    """
    out: dict[str, NDArray[np.float64]] = {}
    starts: list[tuple[float, NDArray[np.float64]]] = []
    for near in (k for k in NEAR if k < len(c) or k == NEAR[0]):
        paths = paths_between(c, near)
        if paths is None:
            continue
        scaled = list(spherical_scaling(paths))
        out[f"paths over {near}"] = u = along_paths(scaled, paths)
        starts += [(_residual(one, c), one) for one in (u, *scaled)]
    starts.sort(key=lambda one: one[0])
    some = max(_STARTS, _PAIRS * 2 // len(c) ** 2)
    short = sorted(
        (by_kernel(u, c, KERNEL, iterations=_SHORT)[::-1] for _, u in starts[:some]),
        key=lambda one: one[0],
    )
    refined = [by_kernel(u, c, KERNEL) for _, u in short[:_STARTS]]
    if refined:
        out["angles"] = min(refined, key=lambda one: one[1])[0]
    for kind, similarity in _UNDER_SOURCES.items():
        alike = similarity(c)
        for near in NEAR:
            paths = paths_between(alike, near) if near < len(c) else None
            if paths is not None:
                out[f"{kind} {near}"] = along_paths(list(spherical_scaling(paths)), paths)
    return out


def along_paths(scaled: list[NDArray[np.float64]], paths: NDArray) -> NDArray[np.float64]:
    """Places that follow paths: nearly all radii end at the same ones, a cap and a whole sphere
    are enough.
    """
    return min((by_paths(scaled[k], paths) for k in (1, -1)), key=lambda one: one[1])[0]


def _residual(u: NDArray, c: NDArray) -> float:
    i, j = np.triu_indices(len(u), 1)
    P = legendre_values(np.sum(u[i] * u[j], axis=1), KERNEL)[0]
    return float(np.mean((kernel_of(u, c, KERNEL) @ P - c[i, j]) ** 2))


def sphere_places(
    halves: Halves, settings: PlaceSettings, moments: Pair | None = None
) -> SpherePlaces | None:
    """The best places of the columns of ``halves``, or None if too few columns are joined.

    Those by all correlations, unless places that follow paths (of them, those on which both parts
    of the rows agree most) explain more on held-out rows; and neither, where columns predict their
    neighbours on held-out rows better at places that leave out what reaches all of them. With
    ``moments`` of both parts, those by all correlations go on by them, unless that explains less.
    """
    c, c_held = halves.correlations
    if len(c) < FEWEST:
        return None
    here, other = places_of(c), places_of(c_held)
    if moments is not None and "angles" in here and "angles" in other:
        here[_BY_MOMENTS] = by_moments(here["angles"], moments[0], KERNEL)
        other[_BY_MOMENTS] = by_moments(other["angles"], moments[1], KERNEL)
    both = {name: same_places(u, other[name]) for name, u in here.items() if name in other}
    local = max((n for n in both if n.startswith("paths")), key=lambda n: both[n], default=None)
    rivals = [name for name in (local, "angles", _BY_MOMENTS) if name in both]
    under = [name for name in both if name.startswith(tuple(_UNDER_SOURCES))]
    if not rivals and not under:
        return None
    own = np.arange(len(c))
    scored = {
        name: both_scores(halves, own, distance_classes(here[name]))
        for name in rivals or [max(under, key=lambda n: both[n])]
    }
    # all pairs say more than near ones where angles explain them, and moments of two orders more
    # than those of one, unless rows object
    best = list(scored)[-1]
    for name in reversed(rivals[:-1]):
        if ahead(scored[name].all, scored[best].all, over_columns=True) >= settings.judge.errors:
            best = name
    # places that nothing confirms may predict by chance
    agreed = [name for name in under if settings.judge.finds_again(both[name])]
    # where angles explain correlations, that has to be clear; where rows object to them anyway, the
    # best prediction is taken unless it is within one error
    errors = 1.0 if best == local else settings.judge.errors
    if _predict_more(halves, [here[name] for name in agreed], here[best], errors):
        best = _AND.join(agreed)
        here[best], other[best] = (_mean([u[name] for name in agreed]) for u in (here, other))
        both[best] = same_places(here[best], other[best])
        scored[best] = both_scores(halves, own, distance_classes(here[best]))
    u = here[best]
    circle = beyond_circles(halves, u) < settings.judge.errors
    ways = agreement_of_ways(here, other)
    return SpherePlaces(u, both[best], scored[best], circle, best, ways)


def _predict_more(
    halves: Halves, several: list[NDArray[np.float64]], u: NDArray, errors: float
) -> bool:
    """Whether near columns predict each other on held-out rows better at the best of ``several``
    places than at u, by more than so many standard errors over columns.

    Where a few far sources reach all columns, their correlations are alike on any smooth surface
    through them, and what angles explain does not distinguish surfaces (157 magnetometers: 0.49 at
    wrong places, 0.44 at right ones); what a column owes to its neighbours does (2.41 and 2.52).
    Without such sources, places that leave the common mode out are 2.7 to 5 errors behind; with
    them, 1.0 to 2.7 ahead.
    """
    c, c_held = halves.correlations
    k = min(_NEXT, len(c) - 1)

    def left(v: NDArray) -> NDArray[np.float64]:
        near = np.argpartition(-(v @ v.T - 4 * np.eye(len(v))), k - 1, 1)[:, :k]
        return predicted_by(c, c_held, near)

    if not several:
        return False
    lead = left(u) - min((left(v) for v in several), key=lambda one: float(one.mean()))
    return bool(lead.mean() > errors * lead.std(ddof=1) / math.sqrt(len(lead)))


def _mean(several: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The mean of sets of unit vectors (d, 3), turned or mirrored to fit the first.

    Parts of the rows show only the noise of each way, and each bends places in its own manner
    (dipoles under far sources: 0.91 and 0.83 at the worst, single ways 0.83 and 0.82).
    """
    total = sum((u @ polar(u.T @ several[0]) for u in several[1:]), several[0])
    return np.asarray(total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-300))


def leaves_out_sources(by: str) -> bool:
    """Whether places were found from what far sources leave, by the name of the way."""
    return any(kind in by for kind in _UNDER_SOURCES)


def agreement_of_ways(
    here: dict[str, NDArray[np.float64]], other: dict[str, NDArray[np.float64]]
) -> float:
    """How well the two ways that leave far sources out agree at best, over numbers of near columns,
    each with one part of the rows, of two (`places_of`); 0 if either gives no places.

    Where columns lie on no surface, each way puts them elsewhere.
    """
    one, two = (
        [name for name in here if name.startswith(kind) and name in other]
        for kind in _UNDER_SOURCES
    )
    pairs = (
        (same_places(here[a], other[b]) + same_places(here[b], other[a])) / 2
        for a in one
        for b in two
    )
    return max(pairs, default=0.0)


def axes_places(halves: Halves, settings: PlaceSettings) -> SpherePlaces | None:
    """The same for axes, by all correlations."""
    c, c_held = halves.correlations
    if len(c) < FEWEST:
        return None
    u, other = (axes_by_kernel(one, KERNEL) for one in (c, c_held))
    scores = both_scores(halves, np.arange(len(u)), angle_classes(u, True))
    circle = beyond_circles(halves, u, True) < settings.judge.errors
    return SpherePlaces(u, same_axes(u, other), scores, circle, "axes")


def angle_classes(u: NDArray, axes: bool = False) -> DistanceClasses:
    """Classes of the angles between unit vectors u (d, 3), or between axes."""
    return distance_classes((u[:, :, None] * u[:, None]).reshape(len(u), 9) if axes else u)


def beyond_circles(halves: Halves, u: NDArray, axes: bool = False) -> float:
    """Standard errors by which places u explain more on held-out rows than the best circle does."""
    own = np.arange(len(u))
    whole = both_scores(halves, own, angle_classes(u, axes)).all
    circles = great_circles(u, halves.correlations[0])
    flat = [both_scores(halves, own, angle_classes(one, axes)).all for one in circles]
    return min(ahead(whole, one, over_columns=True) for one in flat)


def solve_places(
    X: NDArray, grid: Sphere, rng: np.random.Generator, progress: Progress
) -> Solution | None:
    """Columns of X (n, d) at places on a sphere; None if too few of them belong together."""
    settings = PlaceSettings()
    progress("rows", 0.0)
    rows = score_rows(X, rng, settings)
    c = correlations(rows.scores, rows.present)
    out = triage(rows, c, rows.independent_rows(), settings)
    column = out.to_place
    if len(column) < FEWEST:
        return None
    if len(column) > settings.dense:
        raise InputError(
            f"{len(column):,} columns are more than the {settings.dense:,} that are placed on a"
            " sphere: give a part of them"
        )
    progress("place", 0.3)
    halves = split_halves(rows, column, settings)
    x = None if grid.axes or len(column) > MOST else clipped(X, halves, settings)
    worth = rows.independent_rows() / len(rows.scores)
    if grid.axes:
        best = axes_places(halves, settings)
    else:
        parts = None if x is None else _both_moments(x, halves, worth)
        best = sphere_places(halves, settings, parts)
    if best is None:
        return None
    progress("finish", 0.8)
    own = c[np.ix_(column, column)]
    every = None if x is None or best.by != _BY_MOMENTS else moments_of(x, worth * len(x))
    u = framed_places(_on_all_rows(best, own, every))
    if grid.axes:  # of the two ends, the northern one
        u = np.where(u[:, 2:] < 0, -u, u)
    if not np.allclose(np.linalg.norm(u, axis=1), 1):  # columns that are all alike, or never met
        return None
    degree = field_degree(grid, len(column))
    sphere = Sphere(degree, axes=grid.axes)
    E, mean = _predicted(np.asarray(X), u, own, column, sphere)
    score = best.scores.all
    several = len(score.noise)
    evidence = Evidence(
        found=best.believed(settings),
        reach="coordinates",
        explained=round(score.explained / several, 4),
        ceiling=round(score.ceiling / several, 4),
        carried_by="angles on a sphere",
        replicated=round(best.agreement, 4),
    )
    values = {
        "share": round(score.share, 4),
        "agreement": round(best.agreement, 4),
        "circle": best.circle,
    }
    trace = Trace("fast", f"sphere by {best.by}", (Stage("place", 0.0, values),))
    model = LiftedModel.from_harmonics(E, sphere, mean)
    return Solution(model, evidence, trace, _placement(sphere, u, best.agreement, out))


def _both_moments(x: NDArray, halves: Halves, worth: float) -> Pair:
    """Moments of both parts of the rows, each row ``worth`` so many independent ones."""
    one, other = (moments_of(x[part], worth * len(part)) for part in (halves.fit, halves.held))
    return one, other


def _on_all_rows(
    best: SpherePlaces, c: NDArray, moments: FieldMoments | None
) -> NDArray[np.float64]:
    """The same places by the correlations, or by the moments, of all rows."""
    if moments is not None:
        return by_moments(best.u, moments, KERNEL)
    if best.by == "axes":
        return by_kernel(best.u, c, KERNEL, True)[0]
    if best.by == "angles":
        return by_kernel(best.u, c, KERNEL)[0]
    several = []
    for name in best.by.split(_AND):
        kind, _, near = name.rpartition(" ")
        paths = paths_between(_UNDER_SOURCES[kind](c) if kind in _UNDER_SOURCES else c, int(near))
        if paths is not None:
            several.append(by_paths(best.u, paths)[0])
    return _mean(several) if several else best.u


def framed_places(u: NDArray) -> NDArray[np.float64]:
    """Places in a frame by rule: the first column north, the next apart from it on the meridian of
    x, and the next apart from that meridian at a positive y.  R and -R cannot be distinguished.
    """
    north = u[0]
    rest = u - np.outer(u @ north, north)
    along = rest[int(np.argmax(np.linalg.norm(rest, axis=1) > 0.1))]
    along = along / max(float(np.linalg.norm(along)), 1e-300)
    across = np.cross(north, along)
    side = u @ across
    apart = side[int(np.argmax(np.abs(side) > 0.1))]
    return np.stack([u @ along, side * (1.0 if apart >= 0 else -1.0), u @ north], axis=1)


def field_degree(grid: Sphere, columns: int) -> int:
    """The degree of the field between the columns: the one given, or as many as columns allow."""
    most = max(math.isqrt(columns) - 1, 1)
    degree = min(most, KERNEL, MAX_DEGREE) if grid.degree is None else grid.degree
    # fields on a projective plane have no odd degrees
    return max(degree - degree % 2, 1) if grid.axes else degree


def _predicted(
    X: NDArray, u: NDArray, c: NDArray, column: NDArray, sphere: Sphere
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """E ((L + 1)², d), which predicts coefficients of the field from columns, and their means.

    The field has the covariance that the angles show, Σ a_l P_l; what it leaves of a column's
    variance is noise of its own.
    """
    rows = np.asarray(X, dtype=np.float64)
    mean = np.nan_to_num(np.nanmean(rows, axis=0))
    spread = np.nanstd(rows[:, column], axis=0)
    a, degree = kernel_of(u, c, KERNEL, sphere.axes), sphere.known_degree
    ell, every = degrees_of(KERNEL), real_harmonics(u, KERNEL)
    # P_l(cos θ) = 4π/(2l + 1) Σ_m Y_lm Y_lm
    variance = (4 * math.pi * a / (2 * np.arange(KERNEL + 1) + 1))[ell]
    noise = max(1 - float(a.sum()), 1e-3)
    shown = (every * variance) @ every.T + noise * np.eye(len(u))
    low = ell <= degree
    weights = (every[:, low] * variance[low]).T @ np.linalg.inv(shown)
    E = np.zeros((int(low.sum()), X.shape[1]))
    # in the units of the data: the usual deviation of a column
    E[:, column] = weights * (float(np.median(spread)) / np.maximum(spread, 1e-300))
    # degrees of which the angles show nothing keep a trace of their columns, so that no row is zero
    blank = np.linalg.norm(E, axis=1) == 0
    E[np.ix_(blank, column)] = 1e-9 * every[:, low][:, blank].T
    return E, mean


def _placement(sphere: Sphere, u: NDArray, agreement: float, out: Triage) -> Placement:
    """Places of all columns: those left out by triage have none, duplicates that of their twins."""
    d, column = len(out.reason), out.to_place
    coordinates, sure = np.full((d, 3), np.nan), np.zeros(d)
    coordinates[column], sure[column] = u, 0.98 * agreement
    reason, twin = out.reason.copy(), out.twin.copy()
    copies = np.flatnonzero(twin >= 0)
    coordinates[copies], sure[copies] = coordinates[twin[copies]], sure[twin[copies]]
    placed = np.isfinite(coordinates[:, 0])
    nearest = np.argmax(np.nan_to_num(coordinates) @ sphere.points.T, axis=1)
    sure[~placed] = np.where(reason[~placed] == "dead", 1.0, 0.99)
    return Placement(
        sphere,
        coordinates,
        np.where(placed, nearest, -1),
        np.where(placed, 0, -1),
        np.clip(sure, 0, 1),
        reason,
        twin,
    )
