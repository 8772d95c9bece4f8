"""Each baseline on one problem that it must solve and one that it must fail, and the mathematics
behind it.
"""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from symlift.core.grid import Grid
from symlift.datasets import Observations, gsn, random_orthogonal
from symlift.errors import InputError
from symlift_paper.baselines import get_baseline, score, tune
from symlift_paper.baselines.covariance import smooth_spectrum
from symlift_paper.baselines.embedding import isomap_plane
from symlift_paper.baselines.glasso import _precision, precision_graph
from symlift_paper.baselines.liegan import _discriminate, _layers, exponentials
from symlift_paper.baselines.spectra import adjacency, eigenbasis, loaded_covariance
from symlift_paper.baselines.tica import pooled_energy, pooling
from symlift_paper.baselines.topology import (
    embed_columns,
    grid_weights,
    on_grid,
    read_columns,
    upright,
)

pytestmark = pytest.mark.portable


def run(name, data, seed=0, **settings):
    return get_baseline(name).run(data.X, data.grid, settings, np.random.default_rng(seed))


def best_matches(recovered, sources):
    """For each recovered column the source it resembles most, and how much."""
    C = np.abs(np.corrcoef(recovered.T, sources.T)[: recovered.shape[1], recovered.shape[1] :])
    return C.argmax(axis=1), C.max(axis=1)


# -- spectra ---------------------------------------------------------------------------------------


def test_glasso_finds_columns_in_order_and_fails_behind_sines():
    ordered = gsn(4000, 31, basis="legendre", random_state=0)
    mixed = gsn(4000, 31, basis="legendre", transform="dst1", random_state=0)
    assert score(run("glasso", ordered, alpha=0.1), ordered, "global") > 0.9
    assert (
        tune(get_baseline("glasso"), mixed, protocol="global", rng=np.random.default_rng(0)).score
        < 0.3
    )


def test_covariance_finds_a_field_of_path_modes_and_fails_behind_a_rotation(rng):
    grid = Grid((21,))
    _, modes = eigenbasis(adjacency(grid))
    latent = (rng.normal(size=(20_000, 21)) * np.linspace(3, 0.5, 21)) @ modes.T
    latent = (latent / latent.std(axis=0)).astype(np.float32)
    data = Observations(latent, latent, np.eye(21), grid, (False,), "modes")
    assert score(run("covariance", data), data, "global") > 0.9
    Q = random_orthogonal(21, 0)
    mixed = Observations((latent @ Q).astype(np.float32), latent, Q, grid, (False,), "mixed")
    assert tune(get_baseline("covariance"), mixed, protocol="global", rng=rng).score < 0.5


@pytest.mark.parametrize(
    "grid", [Grid((15,), True), Grid((16,), True), Grid((6, 6)), Grid((3, 4, 4), True)], ids=str
)
def test_equal_eigenvalues_have_one_basis_however_the_solver_rounds(grid, rng):
    """A change by some roundings turns what a solver returns for an eigenvalue that comes twice by
    any angle; not this basis.
    """
    A = adjacency(grid)
    values, basis = eigenbasis(A)
    np.testing.assert_allclose(basis.T @ basis, np.eye(grid.size), atol=1e-12)
    np.testing.assert_allclose(A @ basis, basis * values, atol=1e-12)
    noise = 1e-14 * rng.normal(size=A.shape)
    np.testing.assert_allclose(eigenbasis(A + noise + noise.T)[1], basis, atol=1e-9)


def test_a_graph_without_edges_says_nothing_of_the_order():
    np.testing.assert_array_equal(eigenbasis(np.zeros((5, 5)))[1], np.eye(5)[::-1])


def test_whitened_and_recoloured_outputs_have_the_covariance_they_claim(rng):
    data = gsn(2000, 15, transform="orthogonal", random_state=1)
    wanted, modes = eigenbasis(adjacency(data.grid))
    for variant, spectrum in (
        ("whiten", np.ones(15)),
        ("recolor", smooth_spectrum(wanted, 10.0, 2.0)),
    ):
        Y = run("covariance", data, variant=variant, gamma=10.0, p=2.0, loading=0.0).transform(
            data.X
        )
        np.testing.assert_allclose(np.cov(Y.T, ddof=0), modes * spectrum @ modes.T, atol=1e-5)


def test_orthogonal_forms_turn_standardised_rows(rng):
    data = gsn(500, 15, random_state=1)
    for name in ("glasso", "covariance"):
        W = run(name, data).lifting_map * (data.X.astype(np.float64).std(axis=0) + 1e-8)
        np.testing.assert_allclose(W @ W.T, np.eye(15), atol=1e-9)


def test_both_forms_of_one_alpha_share_a_graph():
    data = gsn(300, 15, random_state=1)
    _precision.cache_clear()
    tune(get_baseline("glasso"), data, rng=np.random.default_rng(0))
    assert (_precision.cache_info().misses, _precision.cache_info().hits) == (5, 5)
    S = loaded_covariance(data.X.astype(np.float64))
    once, again = precision_graph(S, 0.1), precision_graph(S, 0.1)
    np.testing.assert_array_equal(once, again)
    assert np.diag(once).max() == 0
    assert not np.array_equal(once, precision_graph(S, 0.3))


def test_scaled_form_differs_and_is_finite():
    data = gsn(500, 15, random_state=1)
    found = [run("glasso", data, form=form).lifting_map for form in ("orthogonal", "scaled")]
    assert np.isfinite(found[1]).all()
    assert not np.allclose(*found)


def test_a_constant_column_does_no_harm(rng):
    X = rng.normal(size=(100, 6))
    X[:, 2] = 5.0
    for name in ("glasso", "covariance", "ica", "random"):
        found = get_baseline(name).run(X, Grid((6,)), {}, np.random.default_rng(0))
        assert np.isfinite(found.transform(X)).all()
    assert loaded_covariance(X)[2, 2] == pytest.approx(1e-3)


# -- images ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shuffled() -> Observations:
    return gsn(4000, (8, 8), transform="permutation", random_state=0)


@pytest.fixture(scope="module")
def rotated() -> Observations:
    return gsn(4000, (8, 8), transform="orthogonal", random_state=0)


def test_isomap_lays_out_shuffled_pixels_and_fails_behind_a_rotation(shuffled, rotated):
    found, lost = (
        tune(get_baseline("isomap"), d, rng=np.random.default_rng(0)) for d in (shuffled, rotated)
    )
    assert found.score > 0.8
    assert lost.score < 0.5


def test_one_embedding_serves_all_readings(shuffled):
    placed = embed_columns(
        shuffled.X.astype(np.float64), lambda D: isomap_plane(D, 7, "precomputed"), 0.1
    )
    for options in ({"axes": "own"}, {}, {"reading": "assign"}, {"smoothing": 0.5}):
        expected = run("isomap", shuffled, neighbours=7, threshold=0.1, **options).lifting_map
        np.testing.assert_array_equal(
            read_columns(*placed, shuffled.grid, **options).lifting_map, expected
        )
    assigned = read_columns(*placed, shuffled.grid, reading="assign").lifting_map
    np.testing.assert_array_equal(assigned @ assigned.T, np.eye(64))
    with pytest.raises(InputError, match="assign"):
        read_columns(*placed, shuffled.grid, reading="guess")


def test_own_axes_and_interpolation_are_what_isomap_loses_by(shuffled):
    scores = [
        score(run("isomap", shuffled, neighbours=7, **options), shuffled)
        for options in ({"axes": "own"}, {}, {"reading": "assign"})
    ]
    assert scores[2] >= scores[1] > scores[0] - 1e-12


@pytest.mark.skipif(
    importlib.util.find_spec("umap") is None, reason="the extra paper is not installed"
)
def test_umap_lays_out_shuffled_pixels_and_finds_a_ring(shuffled, rotated, ring):
    threads = torch.get_num_threads()
    assert score(run("umap", shuffled, neighbours=7), shuffled) > 0.7
    assert score(run("umap", rotated, neighbours=7), rotated) < 0.5
    assert score(run("umap-phase", ring, neighbours=15), ring) > 0.8
    assert torch.get_num_threads() == threads  # whoever trains afterwards does so as before


@pytest.mark.parametrize("name", ["umap", "umap-phase"])
def test_umap_says_how_to_get_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "umap", None)
    data = gsn(50, (3, 3), random_state=0)
    grid = data.grid if name == "umap" else Grid((9,), periodic=True)
    with pytest.raises(InputError, match=r"symlift\[paper\]"):
        get_baseline(name).run(data.X, grid, {}, np.random.default_rng(0))


@given(st.floats(0, 89.9), st.integers(3, 6), st.integers(3, 6))
def test_a_turned_rectangle_is_set_upright(degrees, height, width):
    grid = Grid((height, width))
    a = np.deg2rad(degrees)
    turned = grid.indices() @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    spans = np.sort(np.ptp(upright(turned), axis=0))
    np.testing.assert_allclose(spans, sorted([height - 1, width - 1]), atol=0.1)


@given(st.integers(2, 5), st.integers(2, 5), st.integers(1, 30), st.floats(0.1, 50))
def test_weights_are_averages_of_pixels(height, width, pixels, smoothing):
    grid = Grid((height, width))
    places = on_grid(np.random.default_rng(pixels).normal(size=(pixels, 2)), grid)
    weights = grid_weights(places, grid, smoothing)
    assert weights.shape == (grid.size, pixels)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()


def test_pixels_that_hardly_vary_are_not_read(rng):
    X = rng.normal(size=(200, 9))
    X[:, [1, 4]] *= 0.01
    found = get_baseline("isomap").run(X, Grid((3, 3)), {"neighbours": 3}, rng)
    np.testing.assert_array_equal(found.lifting_map[:, [1, 4]], 0)
    with pytest.raises(InputError, match="lower it"):
        get_baseline("isomap").run(np.zeros((5, 9)), Grid((3, 3)), {}, rng)


# -- phases ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ring() -> Observations:
    """Cosine tuning to an angle, beneath two larger directions that have nothing to do with it."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 500)
    X = np.cos(angle[:, None] - 2 * np.pi * np.arange(12) / 12) + 0.05 * rng.normal(size=(500, 12))
    return Observations(
        X.astype(np.float32), angle.astype(np.float32), None, Grid((12,), True), (True,), "ring"
    )


def test_phases_of_a_ring_are_found_and_noise_has_none(ring, rng):
    noise = Observations(
        rng.normal(size=(500, 12)).astype(np.float32),
        ring.latent,
        None,
        ring.grid,
        ring.periodic,
        "noise",
    )
    for name in ("pca-phase", "isomap-phase"):
        assert tune(get_baseline(name), ring, rng=rng).score > 0.95
        assert tune(get_baseline(name), noise, rng=rng).score < 0.3


def test_a_search_with_the_truth_finds_the_plane_below_louder_ones(ring, rng):
    louder = np.zeros((500, 4))
    louder[:, :2] = 100 * rng.normal(size=(500, 2))
    X = np.hstack([ring.X, louder]).astype(np.float32)
    data = Observations(X, ring.latent, None, Grid((16,), True), (True,), "louder")
    found = tune(get_baseline("pca-phase"), data, rng=rng)
    told = {(s.settings["plane"], s.settings["scale"]): s.score for s in found.scores}
    assert told[(0, 1), "none"] < 0.3
    assert told[(2, 3), "none"] > 0.95
    # at unit variance, twelve quiet columns outweigh two loud ones
    assert told[(0, 1), "unit"] > 0.95
    assert found.score == max(told.values())
    with pytest.raises(InputError, match="components"):
        get_baseline("pca-phase").run(X[:, :2], Grid((2,), True), {"plane": (0, 2)}, rng)


def test_unit_scale_ignores_how_loud_a_neuron_is(ring, rng):
    loudness = rng.uniform(0.1, 10, size=12)
    for name in ("isomap-phase", "pca-phase"):
        plain, loud = (
            get_baseline(name).run(X, ring.grid, {"scale": "unit"}, rng).phases
            for X in (ring.X, ring.X * loudness)
        )
        np.testing.assert_allclose(np.exp(1j * plain), np.exp(1j * loud), atol=1e-3)
    constant = ring.X.copy()
    constant[:, 3] = 7
    assert np.isfinite(
        get_baseline("pca-phase").run(constant, ring.grid, {"scale": "unit"}, rng).phases
    ).all()
    with pytest.raises(InputError, match="unit"):
        get_baseline("isomap-phase").run(ring.X, ring.grid, {"scale": "loud"}, rng)


# -- components ------------------------------------------------------------------------------------


def test_ica_unmixes_and_knows_no_order(rng):
    sources = rng.laplace(size=(5000, 12))
    data = Observations(
        (sources @ random_orthogonal(12, 0)).astype(np.float32),
        sources.astype(np.float32),
        None,
        Grid((12,)),
        (False,),
        "s",
    )
    found = run("ica", data)
    place, likeness = best_matches(found.transform(data.X), sources)
    assert sorted(place) == list(range(12))
    assert likeness.min() > 0.98
    assert score(found, data, "global") < 0.5


def test_random_map_is_a_rotation_and_recovers_nothing():
    data = gsn(2000, 31, transform="orthogonal", random_state=0)
    found = run("random", data)
    np.testing.assert_allclose(found.lifting_map @ found.lifting_map.T, np.eye(31), atol=1e-10)
    assert score(found, data, "global") < 0.2
    assert not np.allclose(found.lifting_map, run("random", data, seed=1).lifting_map)


def test_gradient_of_the_pooled_energy(rng):
    W, Z, H = rng.normal(size=(5, 5)), rng.normal(size=(7, 5)), pooling(Grid((5,)), 3)
    gradient = pooled_energy(W, Z, H)[1]
    for i, j in ((0, 0), (2, 4), (4, 1)):
        step = np.zeros((5, 5))
        step[i, j] = 1e-6
        slope = (pooled_energy(W + step, Z, H)[0] - pooled_energy(W - step, Z, H)[0]) / 2e-6
        assert gradient[i, j] == pytest.approx(slope, rel=1e-5)


@given(st.integers(2, 6), st.integers(2, 6), st.booleans())
def test_pools_wrap_on_rings_only(height, width, wraps):
    H = pooling(Grid((height, width), periodic=wraps), 3)
    np.testing.assert_array_equal(H, H.T)
    assert H.shape == (height * width,) * 2
    assert H.sum(axis=1).max() == min(3, height) * min(3, width)
    assert (H.sum(axis=1).min() == min(3, height) * min(3, width)) == (
        wraps or max(height, width) == 2
    )


def test_tica_puts_dependent_sources_side_by_side_and_fails_on_shot_noise():
    rng = np.random.default_rng(1)
    sources = rng.laplace(size=(8000, 6)) * np.repeat(
        np.exp(1.2 * rng.normal(size=(8000, 2))), 3, axis=1
    )
    X = sources @ random_orthogonal(6, 1)
    found = get_baseline("tica").run(X, Grid((6,)), {"pool": 3, "steps": 1500}, rng)
    place, likeness = best_matches(found.transform(X), sources)
    assert likeness.min() > 0.9
    neighbours = sum(place[i] // 3 == place[i + 1] // 3 for i in range(5))
    assert neighbours >= 3  # 4 is perfect, 2 is what chance gives
    data = gsn(4000, 31, transform="permutation", random_state=0)
    lost = run("tica", data, steps=1500)
    assert score(lost, data, "global") < 0.3
    # orthogonal on whitened rows: unit variances, no correlations
    np.testing.assert_allclose(np.cov(lost.transform(data.X).T), np.eye(31), atol=0.1)


# -- generators ------------------------------------------------------------------------------------


def test_exponentials_share_powers_of_one_matrix():
    random = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(20, generator=random, dtype=torch.float64)
    L = torch.randn(6, 6, generator=random, dtype=torch.float64)
    expected = torch.linalg.matrix_exp(z[:, None, None] * L)
    torch.testing.assert_close(
        exponentials(z, L), expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max())
    )
    torch.testing.assert_close(
        exponentials(z, 0 * L), torch.eye(6, dtype=torch.float64).expand(20, 6, 6)
    )


def test_exponentials_have_the_gradient_of_their_series():
    random = torch.Generator().manual_seed(1)
    z = torch.randn(5, generator=random, dtype=torch.float64)
    for size in (0.1, 2.0):
        L = (size * torch.randn(4, 4, generator=random, dtype=torch.float64)).requires_grad_()
        assert torch.autograd.gradcheck(lambda L: exponentials(z, L), [L])


def test_one_pass_gives_a_discriminator_both_of_its_gradients():
    random = torch.Generator().manual_seed(0)
    parameters = _layers((3, 8, 8, 1), random)
    x = torch.randn(6, 3, generator=random).requires_grad_()
    rows = torch.randn(6, 1, generator=random)
    out = x
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        out = torch.nn.functional.leaky_relu(out @ weight.T + bias, 0.2)
    expected = out @ parameters[-2].T + parameters[-1]
    logit, by_input, gradients = _discriminate(x.detach(), parameters)
    torch.testing.assert_close(logit, expected)
    torch.testing.assert_close(
        by_input, torch.autograd.grad(expected.sum(), x, retain_graph=True)[0]
    )
    for found, wanted in zip(
        gradients(rows), torch.autograd.grad((rows * expected).sum(), parameters), strict=True
    ):
        torch.testing.assert_close(found, wanted)


def test_liegan_finds_a_rotation_and_fails_where_every_rotation_is_a_symmetry(rng):
    angle = rng.uniform(0, 2 * np.pi, 4000)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1) * rng.choice([1, 2], size=(4000, 1))
    settings = {"steps": 500, "hidden": 32, "rate": 1e-2, "discriminator_rate": 2e-3}
    found = get_baseline("liegan").run(X, Grid((2,)), settings, np.random.default_rng(0))
    (L,) = found.generators
    assert abs(L[0, 1] - L[1, 0]) / np.sqrt(2) / np.linalg.norm(L) > 0.98
    assert len(found.trace["losses"]) == 15
    assert found.trace["losses"][found.trace["checkpoint"]] == min(found.trace["losses"])
    latent = rng.normal(size=(2000, 7)).astype(np.float32)
    white = Observations(latent, latent, np.eye(7), Grid((7,), True), (True,), "white")
    assert score(run("liegan", white, **settings), white) < 0.7


def test_liegan_refuses_a_budget_without_checkpoints():
    with pytest.raises(InputError, match="more steps"):
        get_baseline("liegan").run(np.eye(3), Grid((3,)), {"steps": 3}, np.random.default_rng(0))
