"""The placement engine on small synthetic fields, one test for each kind of damage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.special import ndtri
from scipy.stats import rankdata

from symlift.core.grid import Grid
from symlift.datasets import gsn, image_crops, load_mnist, random_orthogonal
from symlift.errors import InputError
from symlift.search.criterion import fit_lags, make_slots
from symlift.search.moves.descent import changes, costs, refine
from symlift.search.problem import Halves, split_halves
from symlift.search.rows import _normal_scores, score_rows
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.place.contract import Placed
from symlift.solvers.fast.place.engine import place_columns
from symlift.solvers.fast.place.single import _look_mixed
from symlift.solvers.starts.graph import along_edges

pytestmark = pytest.mark.portable

GRID = Grid((7, 7))


def field(n: int, grid: Grid, seed: int, width: float = 1.0) -> np.ndarray:
    """A smooth stationary field, (n, points), cut out of a larger one where axes are open."""
    rng = np.random.default_rng(seed)
    shape = [s if wraps else s + 8 for s, wraps in zip(grid.shape, grid.periodic, strict=True)]
    modes = ["wrap" if wraps else "reflect" for wraps in grid.periodic]
    z = gaussian_filter(
        rng.normal(size=(n, *shape)), (0, *[width] * grid.ndim), mode=["nearest", *modes]
    )
    inside = tuple(
        slice(None) if wraps else slice(4, 4 + s)
        for s, wraps in zip(grid.shape, grid.periodic, strict=True)
    )
    return (z[(slice(None), *inside)] / z.std()).reshape(n, -1)


def shuffled(n: int = 2_000, grid: Grid = GRID, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns in random order, and the true point of each."""
    point = np.random.default_rng(seed + 100).permutation(grid.size)
    return field(n, grid, seed)[:, point], point


def share_right(true: np.ndarray, found: Placed) -> float:
    """Share of the columns with a true point that are there, up to the grid's symmetries (and
    translations of periodic axes).
    """
    grid, living = found.placement.grid, true >= 0
    at = grid.indices()[true[living]]
    best = 0.0
    for orientation in grid.orientations():
        target = np.argsort(
            orientation.reorient(np.arange(grid.size).reshape(1, *grid.shape)).ravel()
        )
        now = grid.indices()[target[np.maximum(found.placement.point[living], 0)]]
        by = np.where(grid.periodic, (now - at) % grid.shape, now - at)
        by = by[found.placement.point[living] >= 0]
        fits = np.asarray(grid.periodic) | (by == 0)
        _, counts = np.unique(by[fits.all(axis=1)], axis=0, return_counts=True)
        best = max(best, counts.max(initial=0) / living.sum())
    return best


def put(X: np.ndarray, grid: Grid = GRID, **options: object) -> Placed:
    return place_columns(X, grid, np.random.default_rng(0), **options)  # type: ignore[arg-type]


def test_shuffled_field_is_put_in_order_and_believed() -> None:
    X, point = shuffled()
    found = put(X)
    assert share_right(point, found) == 1
    assert found.statistics.accepted
    assert found.placement.confidence.min() > 0.5
    Y = (X - found.mean) @ np.asarray(found.W).T
    assert np.allclose(Y[:, found.placement.point], X - X.mean(axis=0))


@pytest.mark.parametrize(
    "grid",
    [
        Grid((40,)),
        Grid((24,), True),
        Grid((5, 11)),
        Grid((8, 8), True),
        Grid((6, 9), (False, True)),
        Grid((4, 4, 4)),
    ],
)
def test_lines_rings_tori_cylinders_and_boxes(grid: Grid) -> None:
    X, point = shuffled(4_000, grid, 3)
    assert share_right(point, put(X, grid)) == 1


def test_dead_columns_leave_holes_that_neighbours_fill() -> None:
    X, point = shuffled(seed=1)
    truth = X.copy()
    X[:, :4] = 7.0
    found = put(X)
    assert list(found.placement.reason[:4]) == ["dead"] * 4
    assert (found.placement.point[:4] == -1).all()
    assert share_right(np.where(np.arange(49) < 4, -1, point), found) == 1
    holes = np.flatnonzero(found.placement.coverage().ravel() == 0)
    Y = (X - found.mean) @ np.asarray(found.W).T
    r = np.abs(np.corrcoef(Y[:, holes].T, truth[:, :4].T)[:4, 4:])
    assert r.max(axis=1).min() > 0.8


def test_duplicates_share_a_point_and_its_weight() -> None:
    X, point = shuffled(seed=2)
    found = put(np.c_[X, -3 * X[:, 5] + 1])
    assert found.placement.reason[49] == "duplicate"
    assert found.placement.twin[49] == 5
    assert found.placement.point[49] == found.placement.point[5]
    assert found.placement.coverage().sum() == 50
    assert share_right(np.r_[point, point[5]], found) == 1


def test_noise_and_row_numbers_are_named() -> None:
    X, point = shuffled(seed=3)
    rng = np.random.default_rng(9)
    found = put(np.c_[X, rng.normal(size=(len(X), 5)), np.arange(len(X))])
    assert list(found.placement.reason[49:]) == ["noise"] * 5 + ["index"]
    assert share_right(np.r_[point, np.full(6, -1)], found) == 1


@pytest.mark.parametrize("damage", ["gains", "entries", "rows", "nan", "noise"])
def test_wild_values_decide_nothing(damage: str) -> None:
    X, point = shuffled(4_000, seed=4)
    rng = np.random.default_rng(5)
    if damage == "gains":
        X = X * rng.lognormal(sigma=2, size=49) + 100 * rng.normal(size=49)
    elif damage == "entries":
        X[rng.random(X.shape) < 0.001] *= 1_000
    elif damage == "rows":
        X[rng.permutation(len(X))[:40]] *= 100
    elif damage == "nan":
        X[rng.random(X.shape) < 0.05] = np.nan
    else:
        X = X + rng.normal(size=X.shape)
    found = put(X)
    assert share_right(point, found) == 1
    assert found.statistics.accepted


def test_fewer_rows_than_columns() -> None:
    X, point = shuffled(40, seed=6)
    assert share_right(point, put(X)) > 0.9


def test_channels_are_told_apart() -> None:
    grid = Grid((6, 6))
    base, other = field(4_000, grid, 7), field(4_000, grid, 8)
    pair = np.stack([base + 0.5 * other, base - 0.5 * other], axis=-1).reshape(4_000, -1)
    order = np.random.default_rng(1).permutation(72)
    found = put(pair[:, order], grid)
    assert found.n_channels == 2
    assert share_right(order // 2, found) == 1
    agree = np.mean(found.placement.channel == order % 2)
    assert max(agree, 1 - agree) == 1
    assert np.asarray(found.W).shape == (72, 72)


def test_bits_write_their_number() -> None:
    grid = Grid((6, 6))
    z = field(6_000, grid, 11)
    number = np.clip(np.rint(127.5 + 50 * z), 0, 255).astype(np.uint8)
    planes = (
        ((number[:, :, None] >> np.arange(8, dtype=np.uint8)) & 1).reshape(len(z), -1).astype(float)
    )
    order = np.random.default_rng(2).permutation(planes.shape[1])
    found = put(planes[:, order], grid)
    assert found.n_channels == 1
    top = found.placement.channel == found.placement.channel.max()
    assert set(order[top] % 8) == {7}
    assert share_right(np.where(order % 8 >= 5, order // 8, -1), found) > 0.95


def test_white_noise_is_not_believed() -> None:
    found = put(np.random.default_rng(0).normal(size=(500, 49)), settings=PlaceSettings(restarts=5))
    assert not found.statistics.accepted
    assert found.placement.confidence.max() < 0.5


def test_exchange_costs_are_exact() -> None:
    """The change that `costs` promises for an exchange is the change of Σ (s - K)²/2v."""
    rng = np.random.default_rng(0)
    S = rng.normal(size=(2, 10, 10))
    S = S + S.transpose(0, 2, 1)
    S[:, np.arange(10), np.arange(10)] = 0
    for slots in (
        make_slots(Grid((3, 4))),
        make_slots(Grid((3, 2)), 2),
        make_slots(Grid((3, 2)), 2, matched=True),
    ):
        slot = rng.permutation(slots.size)[:10]
        model = fit_lags(S, slot, slots)

        def loss(at: np.ndarray, slots=slots, model=model) -> float:  # type: ignore[no-untyped-def]
            off = ~np.eye(10, dtype=bool)
            index = slots.index[np.ix_(at, at)]
            return sum(
                float(np.sum((s - k[index])[off] ** 2)) / (4 * v * len(S))
                for s, k, v in zip(S, model.K, model.v, strict=True)
            )

        change = changes(costs(S, slot, slots, model), slot)
        for i, g in ((0, slot[3]), (2, slot[7]), (4, np.setdiff1d(np.arange(slots.size), slot)[0])):
            new = slot.copy()
            new[slot == g] = slot[i]
            new[i] = g
            assert np.isclose(change[i, g], loss(new) - loss(slot))
        before, after = fit_lags(S, slot, slots).misfit, refine(S, slot, slots, (0.0,))[0]
        assert after <= before


def test_bad_input_is_refused_in_one_line() -> None:
    X, _ = shuffled(50)
    with pytest.raises(InputError, match="infinity"):
        put(np.where(np.arange(X.size).reshape(X.shape) == 7, np.inf, X))
    with pytest.raises(InputError, match="at least 2 rows"):
        put(X[:1])


def test_same_seed_same_answer_and_single_precision() -> None:
    X, point = shuffled(seed=12)
    a, b = put(X), put(X)
    assert np.array_equal(a.placement.point, b.placement.point)
    assert share_right(point, put(X.astype(np.float32))) == 1


@pytest.mark.parametrize("kind", ["rotated digits", "sine transform", "rotated pulses"])
def test_mixtures_are_not_taken_for_places(kind):
    """Columns that are mixtures of all points correlate, and behind a sine transform even have an
    order, that of frequencies.
    """
    if kind == "rotated digits":
        crops = image_crops(load_mnist().images, (8, 8), 8_000, random_state=0)
        X, grid = crops.latent @ random_orthogonal(64, random_state=1), crops.grid
    else:
        data = gsn(
            20_000,
            63,
            transform="dst1" if kind == "sine transform" else "orthogonal",
            random_state=0,
        )
        X, grid = data.X, data.grid
    assert not place_columns(X, grid, np.random.default_rng(0)).statistics.accepted


def halves_of(X: np.ndarray) -> Halves:
    settings = PlaceSettings()
    rows = score_rows(X, np.random.default_rng(0), settings)
    return split_halves(rows, np.arange(X.shape[1]), settings)


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_columns_behind_a_rotation_are_not_searched_again(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their partial correlations are normal, and no annealed restart is made."""

    def restart(*_: object) -> None:
        raise AssertionError("a restart for columns that have no places")

    monkeypatch.setattr("symlift.search.schedule.anneal", restart)
    ring = gsn(20_000, 15, periodic=True, transform="orthogonal", random_state=seed)
    assert _look_mixed(halves_of(ring.X), PlaceSettings())
    assert not put(ring.X, ring.grid).statistics.accepted


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
def test_points_below_their_noise_do_not_look_mixed(noise: float) -> None:
    """Noise makes partial correlations normal, too, but they are not reproducible then."""
    for grid in (GRID, Grid((16,), True), Grid((24,))):
        X, _ = shuffled(8_000, grid, seed=20)
        X = X + noise * np.random.default_rng(21).normal(size=X.shape)
        assert not _look_mixed(halves_of(X), PlaceSettings())


@pytest.mark.parametrize("gaps", [False, True])
def test_scores_are_normal_quantiles_of_mean_ranks(gaps: bool) -> None:
    rng = np.random.default_rng(0)
    x = np.c_[rng.normal(size=300), np.round(rng.normal(size=(300, 2)), 1), rng.random(300) > 0.9]
    x = x.astype(np.float32)
    if gaps:
        x[rng.random(x.shape) < 0.1] = np.nan
    present = ~np.isnan(x)
    found = _normal_scores(x, present if gaps else None)
    for column, there, score in zip(x.T, present.T, found.T, strict=True):
        share = (rankdata(column[there]) - 0.5) / there.sum()
        np.testing.assert_allclose(score[there], ndtri(share), rtol=1e-4, atol=1e-5)


def test_edges_of_a_turned_lattice_run_along_the_axes() -> None:
    angle = 0.6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points, (i, j) = GRID.indices(), GRID.neighbours().T
    edges = np.zeros((GRID.size, GRID.size), dtype=bool)
    edges[i, j] = edges[j, i] = True
    y = along_edges(3 * points @ turn, edges, np.random.default_rng(0))
    steps = np.sort(np.abs(y[j] - y[i]), axis=1)
    np.testing.assert_allclose(steps, np.broadcast_to([0.0, 1.0], steps.shape), atol=1e-9)
