"""Columns at arbitrary places: real coordinates, and the field on the grid predicted from them.

Where correlations depend on distance alone, they give the distance between two columns up to a
monotone function. Shortest paths over near columns, stress majorisation and isotonic regression
estimate both the places and the function. Example: 300 sensors at random places that observe smooth
bumps give coordinates with R² = 0.9997 in a third of a second.

How many near columns serve best differs from field to field. Few of them follow a field that is
uneven, but their paths are noisy; many average noise, and bend what is uneven. Two parts of the
rows show only the noise, so that places are the mean of those for all numbers on which the parts
agree (stations of dust: R² 0.82, where the number of largest agreement has 0.74; 36 made arrays:
0.985 in the median, and 0.98). The agreement also distinguishes places from a plane that is only
drawn through the data: stations of temperature 0.92 and 0.97, electrodes 1.00, roads, which have no
plane, 0.6 to 0.76.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial import cKDTree
from sklearn.isotonic import IsotonicRegression

from symlift.core.domain import along_principal_axes
from symlift.core.grid import Grid
from symlift.search.criterion import distance_classes
from symlift.search.judge import Judge
from symlift.search.problem import Halves
from symlift.search.score import BothScores, both_scores
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.arrange import independent_axes
from symlift.solvers.starts.graph import classical_scaling, connected, stress_majorisation
from symlift.statistics.kriging import FieldPredictor, falling_with_distance

__all__ = [
    "FEWEST",
    "FreePlaces",
    "InBox",
    "agreement_of",
    "best_partners",
    "free_places",
    "in_box",
    "in_own_box",
    "monotone_scaling",
    "own_dimension",
    "scatter",
    "scattered_map",
]

# agreement from which places for a number of near columns count: that from which any are believed
_AGREED = Judge.same_places
# near columns whose distances are estimated, and rounds of distances and their monotone function
_NEAR, _ROUNDS = (5, 8, 12, 20), 2
#: fewer columns could be anywhere
FEWEST = 6
# smaller correlations carry little information on distance, and may join the ends of a line by
# chance
_LEAST = 0.15
# halfway between the dimensions of a curve and of a plane
_CURVE = 1.5
# angles that are tried for the axes
_ANGLES = 91


@dataclass(frozen=True)
class FreePlaces:
    """Places (d, P) in units in which correlations depend on distance alone; ``agreement``: the
    squared correlation of the places that two parts of the rows give; ``scores``: what
    distances explain on held-out rows.
    """

    y: NDArray[np.float64]
    agreement: float
    scores: BothScores

    @property
    def thickness(self) -> float:
        """Standard deviation along the least principal axis, in units of the median distance to
        the nearest column: what is thinner than that is a bent plane, or a line.
        """
        return float(along_principal_axes(self.y)[0].std(axis=0).min())

    @property
    def is_curve(self) -> bool:
        """Whether columns lie along a curve in a plane or in space: then a line is their domain,
        however it has to be bent for correlations to depend on distance (bands of a spectrum).
        """
        return self.y.shape[1] > 1 and own_dimension(self.y) < _CURVE

    def believed(self, settings: PlaceSettings) -> bool:
        """Whether two parts of the rows give the same places, and distances explain enough of what
        is real: mixtures have places, too, which are the same in all rows and explain little.
        """
        judge = settings.judge
        return judge.finds_again(self.agreement) and judge.explains_enough(self.scores.all.share)


@dataclass(frozen=True)
class InBox:
    """Coordinates (d, P) of columns in steps of the grid, the length of a step on each axis, and
    the places that they are made of.
    """

    coordinates: NDArray[np.float64]
    step: NDArray[np.float64]
    places: FreePlaces


def own_dimension(y: NDArray, near: int = 5) -> float:
    """The dimension of what points y (d, P) lie on, from the distances to their ``near`` nearest:
    the maximum of the likelihood of points that are uniform nearby (Levina and Bickel 2004; all
    points together, MacKay and Ghahramani 2005).

    >>> t = np.random.default_rng(0).uniform(size=(400, 1))
    >>> round(own_dimension(np.c_[np.cos(5 * t), np.sin(5 * t)]))
    1
    >>> round(own_dimension(np.c_[t, t[::-1]]))
    2
    """
    near = min(near, len(y) - 1)
    apart = np.maximum(np.asarray(cKDTree(y).query(y, k=near + 1)[0])[:, 1:], 1e-12)
    return len(y) * (near - 1) / max(float(np.log(apart[:, -1:] / apart[:, :-1]).sum()), 1e-12)


def free_places(halves: Halves, dimension: int) -> FreePlaces | None:
    """Places of columns, or None for so few columns that any places would do."""
    c, c_held = halves.correlations
    if len(c) < FEWEST:
        return None
    tried = _agreements(c, c_held, dimension)
    if not tried:
        return None
    best = max(tried, key=lambda one: one[0])
    # few near columns follow the field, and many average noise: of those that two parts of the
    # rows agree on, all count
    both = [one for one in tried if one[0] > _AGREED] or [best]
    share = len(halves.held) / max(len(halves.fit) + len(halves.held), 1)
    all_rows = (1 - share) * c + share * c_held
    whole = [y for _, near, _ in both if (y := _places(all_rows, near, dimension)) is not None]
    if not whole:
        return None
    agreed, first, y = best[0], _mean_places([one[2] for one in both]), _mean_places(whole)
    # places can be bent to any rows: what they explain is that of places from other rows alone
    scores = both_scores(halves, np.arange(len(c)), distance_classes(first))
    return FreePlaces(y, agreed, scores)


def scatter(halves: Halves, grid: Grid, rng: np.random.Generator) -> InBox | None:
    """Places of columns inside the box of ``grid``, or None where there can be none."""
    places = None if any(grid.periodic) else free_places(halves, grid.ndim)
    return None if places is None else InBox(*in_box(places.y, grid, rng), places)


def in_own_box(places: FreePlaces, rng: np.random.Generator) -> tuple[Grid, InBox]:
    """A grid of about as many points as there are columns over the box that places fill, and the
    places in its steps, which have the same length along all axes.
    """
    y = places.y
    turned, sides = in_box(y, Grid((2,) * y.shape[1]), rng)
    step = max((float(np.prod(sides)) / len(y)) ** (1 / len(sides)), 1e-12)
    shape = np.maximum(np.ceil(sides / step), 2)
    step = max(float((sides / (shape - 1)).max()), 1e-12)
    middle = (shape - 1 - sides / step) / 2
    coordinates = turned * sides / step + middle
    return Grid(tuple(int(n) for n in shape)), InBox(coordinates, np.full(len(shape), step), places)


def agreement_of(c: NDArray, other: NDArray, dimension: int) -> float:
    """How well places from two correlation matrices (d, d) agree, for the number of near columns
    for which they agree most.
    """
    return max((agreed for agreed, _, _ in _agreements(c, other, dimension)), default=0.0)


def _agreements(
    c: NDArray, other: NDArray, dimension: int
) -> list[tuple[float, int, NDArray[np.float64]]]:
    """How well the places agree, for each number of near columns that gives places, and those of
    c.
    """
    agreed = []
    for near in (k for k in _NEAR if k < len(c) or k == _NEAR[0]):
        y, also = (_places(one, near, dimension) for one in (c, other))
        if y is not None:
            agreed.append((0.0 if also is None else agreement(y, also), near, y))
    return agreed


def _mean_places(several: Sequence[NDArray]) -> NDArray[np.float64]:
    """The mean of several sets of places (d, P), turned, mirrored and scaled to fit the first."""
    first = several[0] - several[0].mean(axis=0)
    total = first.copy()
    for y in several[1:]:
        centred = y - y.mean(axis=0)
        left, size, right = np.linalg.svd(centred.T @ first)
        total += centred @ (left @ right) * float(size.sum() / max(np.sum(centred**2), 1e-300))
    return total / len(several)


def agreement(y: NDArray, other: NDArray) -> float:
    """Squared correlation of two sets of places (d, P), turned, mirrored and scaled to fit."""
    a, b = (x - x.mean(axis=0) for x in (y, other))
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float((np.linalg.svd(a.T @ b, compute_uv=False).sum() / max(size, 1e-300)) ** 2)


def _places(c: NDArray, near: int, dimension: int) -> NDArray[np.float64] | None:
    """Coordinates whose distances are a decreasing function of correlations."""
    edges = best_partners(c, min(near, len(c) - 1))
    edges = connected((edges | edges.T) & (c > _LEAST), c)
    length = np.sqrt(-np.log(np.clip(c, 1e-6, 1 - 1e-9)))
    return monotone_scaling(c, edges, length, dimension)


def best_partners(s: NDArray, count: int) -> NDArray[np.bool_]:
    """(d, d): the ``count`` columns that each column is most similar to."""
    near = np.argpartition(-(s - 2 * np.eye(len(s))), count - 1, axis=1)[:, :count]
    best = np.zeros(s.shape, dtype=bool)
    best[np.arange(len(s))[:, None], near] = True
    return best


def monotone_scaling(
    s: NDArray, edges: NDArray[np.bool_], length: NDArray, dimension: int
) -> NDArray[np.float64] | None:
    """Coordinates whose distances along ``edges`` are a decreasing function of the similarity s.

    The function starts as ``length`` (d, d); the median edge has length 1. None where the graph is
    not connected, or distances have no direction.
    """
    if connected_components(csr_matrix(edges, dtype=np.int8), directed=False)[0] > 1:
        return None
    y: NDArray[np.float64] | None = None
    for _ in range(_ROUNDS):
        paths = shortest_path(csr_matrix(np.where(edges, length, 0.0)), directed=False)
        paths = np.maximum(paths / max(float(np.median(paths[edges])), 1e-12), 1e-3)
        if y is None:
            values, vectors = classical_scaling(paths, dimension)
            if vectors.shape[1] < dimension:  # equal distances, up to the last digit
                return None
            y = vectors * np.sqrt(np.maximum(values, 1e-9))
        y = stress_majorisation(paths, y)
        function = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(
            s[edges], _distances(y)[edges]
        )
        length = np.maximum(function.predict(s.ravel()).reshape(s.shape), 0.02)
    return y


def _distances(y: NDArray) -> NDArray[np.float64]:
    square = np.sum(y * y, axis=1)
    return np.sqrt(np.maximum(square[:, None] + square[None] - 2 * y @ y.T, 0.0))


def in_box(
    y: NDArray, grid: Grid, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """y rotated to its smallest bounding box and scaled to steps of the grid; and the steps.

    The longest side is along the longest axis. Correlations determine neither the unit of length
    nor the direction: the box that the columns fill, which is the grid, gives both.
    """
    centred = y - y.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    white = left * np.sqrt(len(y))
    turn = np.linalg.lstsq(white, independent_axes(white, rng), rcond=None)[0]
    # the rotation of the whitened points, with lengths restored: axes of a box are axes of its
    # covariance as well
    turned = white @ turn * (np.sqrt((turn**2 * size[:, None] ** 2).sum(axis=0)) / np.sqrt(len(y)))
    turned = _smallest_box(turned)
    order = np.empty(grid.ndim, dtype=np.int64)
    order[np.argsort(-np.array(grid.shape), kind="stable")] = np.argsort(
        -np.ptp(turned, axis=0), kind="stable"
    )
    turned = turned[:, order]
    step = np.maximum(np.ptp(turned, axis=0), 1e-12) / np.maximum(np.array(grid.shape) - 1, 1)
    return (turned - turned.min(axis=0)) / step, step


def _smallest_box(y: NDArray) -> NDArray[np.float64]:
    """y rotated in each plane of two axes by the angle of least bounding box area."""
    y = y.copy()
    angles = np.linspace(-np.pi / 4, np.pi / 4, _ANGLES)
    # of equal boxes, the smallest rotation
    angles = angles[np.argsort(np.abs(angles), kind="stable")]
    for a in range(y.shape[1]):
        for b in range(a + 1, y.shape[1]):
            u = np.outer(np.cos(angles), y[:, a]) + np.outer(np.sin(angles), y[:, b])
            v = np.outer(np.cos(angles), y[:, b]) - np.outer(np.sin(angles), y[:, a])
            best = int(np.argmin(np.ptp(u, axis=1) * np.ptp(v, axis=1)))
            y[:, a], y[:, b] = u[best], v[best]
    return y


def scattered_map(
    c: NDArray, columns: NDArray, places: InBox, scale: NDArray, grid: Grid, d: int
) -> csr_matrix:
    """W (points, d), acting on X - mean: the field on the grid as the best linear prediction from
    ``columns`` (k,).

    c (k, k): their correlations; scale (d,): the standard deviations of all columns.
    """
    at = places.coordinates * places.step
    predictor = FieldPredictor(
        at, scale[columns], np.zeros(grid.ndim), falling_with_distance(c, _distances(at))
    )
    weights = predictor.weights(grid.indices() * places.step)
    row = np.repeat(np.arange(grid.size), weights.near.shape[1])
    entries = (weights.weight.ravel(), (row, columns[weights.near].ravel()))
    return coo_matrix(entries, shape=(grid.size, d)).tocsr()
