"""A sphere behind a dense mixing: what is found, what is said of it, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symlift import InputError, LatentDomain, Sphere, Verdict, load
from symlift.core.harmonics import degrees_of, real_harmonics, rotation_matrix
from symlift.core.rotations import RotationGroup
from symlift.datasets import gsn, random_linear, sphere_noise
from symlift.errors import FitWarning
from symlift.metrics import Turn, equivariance_error, generator_similarity, signal_recovery
from symlift.runs.record import RunSettings
from symlift.solvers.fast.triples import pack
from symlift.solvers.sphere.finish import framed, skewest_signs
from symlift.solvers.sphere.invariants import invariants, moment_with, rotated, third_moment
from symlift.solvers.sphere.judge import multiplicities
from symlift.solvers.sphere.orient import oriented
from symlift.solvers.sphere.pipeline import solve
from symlift.solvers.sphere.runs import best_runs


@pytest.fixture(scope="module")
def data():
    return sphere_noise(6000, degree=4, random_state=1)


@pytest.fixture(scope="module")
def est(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fit that is right is silent
        return LatentDomain(grid="sphere", random_state=0).fit(data.X)


def random_rotation(d: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


# -- the pieces ------------------------------------------------------------------------------------


def test_third_moments_are_those_of_the_definition():
    Z = np.random.default_rng(0).exponential(size=(50, 4))
    assert np.allclose(third_moment(Z), np.einsum("ni,nj,nk->ijk", Z, Z, Z) / 50)
    V = random_rotation(4, 1)[:3]
    assert np.allclose(rotated(V, third_moment(Z)), third_moment(Z @ V.T))


def test_fourth_moments_with_a_direction_are_those_of_the_definition_less_what_is_gaussian():
    rng = np.random.default_rng(0)
    Z, u = rng.normal(size=(50, 4)), rng.normal(size=4)
    C = Z.T @ Z / 50
    whole = np.einsum("ni,nj,nk,nl->ijkl", Z, Z, Z, Z) / 50
    for pairs in ("ij,kl->ijkl", "ik,jl->ijkl", "il,jk->ijkl"):
        whole -= np.einsum(pairs, C, C)
    assert np.allclose(moment_with(Z, u), np.tensordot(u, whole, 1))


def test_the_projection_keeps_what_rotations_keep():
    part = invariants(3)
    T = third_moment(np.random.default_rng(0).exponential(size=(60, 16)))
    P = part.project(T)
    R = RotationGroup(3).act(np.eye(16), [0.4, 1.0, -0.3]).T
    assert np.abs(rotated(R, P) - P).max() < 1e-12
    assert np.allclose(part.project(P), P)
    assert np.isclose(np.vdot(T - P, P), 0)
    # it is the average over all rotations, of which every tensor has the same projection
    assert np.allclose(part.bispectrum(rotated(R, T)), part.bispectrum(T))


def test_the_gradient_of_the_invariant_energy_is_right():
    part, rng = invariants(2), np.random.default_rng(0)
    packed = pack(third_moment(rng.exponential(size=(40, 10))))
    V, step = rng.normal(size=(9, 10)), 1e-6 * rng.normal(size=(9, 10))
    slope = 6 * float(np.vdot(part.energy(V, packed)[1], step))
    change = part.energy(V + step, packed)[0] - part.energy(V - step, packed)[0]
    assert np.isclose(change / 2, slope, rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 3), st.integers(0, 99))
def test_runs_are_found_in_any_order(order, left, seed):
    values = np.repeat(1.5 ** np.arange(5, dtype=float)[::-1], [2 * ell + 1 for ell in order])
    matrix = np.diag(np.concatenate([values, np.full(left, 0.01)]))
    Q = random_rotation(len(matrix), seed)
    runs = best_runs(Q @ matrix @ Q.T, 4, 1)[0]
    assert runs.order[:5] == tuple(order)
    assert runs.misfit < 1e-8
    first = runs.basis[degrees_of(4).searchsorted(2) :][:5]  # degree 2
    at = [2 * ell + 1 for ell in order]
    begin = sum(at[: list(order).index(2)])
    assert np.allclose(np.abs(first @ Q[:, begin : begin + 5]).max() <= 1 + 1e-9, True)
    assert np.isclose(np.linalg.norm(first @ Q[:, begin : begin + 5]) ** 2, 5)


def test_degrees_are_oriented_by_their_third_moments():
    # an exact bispectrum behind a rotation of each degree of its own
    part, rng = invariants(4), np.random.default_rng(3)
    T = np.zeros(25**3)
    T[part.place] = rng.uniform(0.5, 1.5, len(part.size))[part.which] * part.value
    T = T.reshape(25, 25, 25)
    Q = np.zeros((25, 25))
    for ell in range(5):
        block = slice(ell * ell, (ell + 1) ** 2)
        Q[block, block] = random_rotation(2 * ell + 1, ell)
    mixed = rotated(Q, T)
    V = oriented(mixed, part)
    again = rotated(V, mixed)
    assert np.linalg.norm(part.project(again) - again) < 1e-3 * np.linalg.norm(T)


def test_the_skewest_signs_are_those_of_positive_pulses():
    part = invariants(4)
    h = np.exp(-0.1 * np.arange(5.0))
    beta = h[part.triples].prod(axis=1)
    for flipped in ([0, 2], [3], [2, 4]):
        signs = np.ones(5)
        signs[flipped] = -1
        assert np.array_equal(
            skewest_signs(beta * signs[part.triples].prod(axis=1), part),
            # all odd degrees together are a reflection, which keeps degree 1 as it is
            signs,
        )


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=3, max_size=3), st.booleans())
def test_the_frame_follows_a_rule(t, mirrored):
    E = np.random.default_rng(0).normal(size=(16, 20))
    turned = RotationGroup(3).act(E.T, t).T
    if mirrored:
        turned = np.where((degrees_of(3) % 2 == 1)[:, None], -turned, turned)
    assert np.abs(framed(turned, 3) - framed(E, 3)).max() < 1e-8
    y, z, x = framed(E, 3)[1:4, :3]
    assert z[0] > 0
    assert abs(x[0]) + abs(y[0]) + abs(y[1]) < 1e-8
    assert x[1] > 0
    assert y[2] > 0


def test_runs_of_variance_are_those_of_a_sphere_or_not():
    rng = np.random.default_rng(0)
    on_sphere = sphere_noise(20_000, 4, pulses="normal").X
    assert multiplicities(np.cov(on_sphere.T), len(on_sphere), 4)
    assert not multiplicities(np.cov(rng.normal(size=(25, 20_000))), 20_000, 4)
    ring = gsn(20_000, 25, periodic=True, transform="orthogonal").X
    assert not multiplicities(np.cov(ring.T), len(ring), 4)


# -- the whole -------------------------------------------------------------------------------------


def test_the_field_comes_back(est, data):
    Y = est.transform(data.X)
    assert est.grid_ == Sphere(4)
    assert Y.shape == (6000, 50) == est.to_grid(Y).shape
    assert est.get_feature_names_out()[3] == "p3"
    found = signal_recovery(data.latent, Y, data.grid)
    assert found.r > 0.995
    assert found.r_detail > 0.99
    assert found.r_per_sample > 0.99
    assert est.evidence_.found
    assert est.placement_ is None


def test_its_generators_are_those_of_rotations(est, data):
    L = est.generators_
    assert generator_similarity(L, data.transform, data.grid).min() > 0.99
    assert np.abs(L[0] @ L[1] - L[1] @ L[0] - L[2]).max() < 1e-10


def test_shifting_turns_the_field(est, data):
    X, t = data.X[:20].astype(np.float64), [0.3, -1.0, 0.5]
    assert equivariance_error(est, X, t) < 1e-10
    assert equivariance_error(est.model_, X, t) < 1e-10
    coefficients = (X - est.mean_) @ est.model_.E.T
    at = real_harmonics(est.grid_.points @ rotation_matrix(t), 4)
    assert np.abs(est.transform(est.shift(X, t)) - coefficients @ at.T).max() < 1e-10
    assert np.abs(est.inverse_transform(est.transform(X)) - X).max() < 1e-10


def test_the_verdict_is_that_of_held_out_rows(est, data):
    fresh = sphere_noise(4000, degree=4, random_state=np.random.default_rng(5))
    same = fresh.latent @ data.transform + 0.0
    diagnosis = est.diagnose(same)
    assert diagnosis.verdict is Verdict.PRESENT
    assert "rotation symmetry" in str(diagnosis)
    assert diagnosis.value("degrees") == 4
    assert est.score(same) > 0.95
    # another mixing of the same fields is another matter
    wrong = est.diagnose(fresh.X)
    assert wrong.verdict is Verdict.ABSENT
    assert est.score(fresh.X) < 0.7


def test_halves_agree(est, data):
    diagnosis = est.diagnose(data.X, level="full")
    assert diagnosis.value("agreement_of_halves") > 0.98
    assert diagnosis.verdict is Verdict.PRESENT


def test_it_is_saved_and_loaded(est, data, tmp_path):
    est.save(tmp_path)
    again = load(tmp_path)
    assert again.grid_ == est.grid_ == again.grid
    assert np.array_equal(again.transform(data.X[:50]), est.transform(data.X[:50]))
    assert np.allclose(again.generators_, est.generators_)
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace('"sphere": 4', '"sphere": 5'))
    with pytest.raises(InputError, match="changed after it was written"):
        load(tmp_path)


def test_the_same_data_give_the_same_result(est, data):
    again = LatentDomain(grid=Sphere(), random_state=7).fit(data.X)
    assert np.array_equal(again.lifting_map_, est.lifting_map_)


@pytest.mark.parametrize("pulses", ["band", "two"])
def test_other_pulses(pulses):
    data = sphere_noise(6000, degree=4, pulses=pulses, random_state=2)
    est = LatentDomain(grid=Sphere(4), mixing="orthogonal").fit(data.X)
    assert signal_recovery(data.latent, est.transform(data.X), data.grid).r > 0.99


def test_pulses_of_both_signs_by_fourth_moments():
    data = sphere_noise(12_000, degree=4, pulses="signed", random_state=2)
    est = LatentDomain(grid="sphere", mixing="orthogonal").fit(data.X)
    assert est.grid_ == Sphere(4)
    assert signal_recovery(data.latent, est.transform(data.X), data.grid).r > 0.98
    assert "fourth" in est.trace_.stages[2].name
    fresh = sphere_noise(12_000, degree=4, pulses="signed", random_state=2, noise=0.1).X
    for X in (data.X, fresh):  # of the fit, and of other rows
        assert est.diagnose(X).verdict is Verdict.PRESENT


@pytest.mark.parametrize("mixing", ["linear", "auto"])
def test_a_linear_mixing(mixing):
    matrix = random_linear(25, 3**-0.5, 3**0.5, random_state=0)
    data = sphere_noise(12_000, degree=4, transform=matrix, random_state=3)
    est = LatentDomain(grid="sphere", mixing=mixing).fit(data.X)
    assert signal_recovery(data.latent, est.transform(data.X), data.grid).r > 0.98
    assert "third" in est.trace_.chosen


def test_columns_of_noise_and_constant_columns_are_left_out():
    data = sphere_noise(6000, degree=3, noise=0.0, random_state=4)
    rng = np.random.default_rng(0)
    wide = np.concatenate([data.X, np.zeros((6000, 4))], axis=1) @ random_rotation(20, 3)
    X = np.insert(wide + 0.02 * rng.normal(size=wide.shape), 7, 1.0, axis=1)
    with pytest.warns(FitWarning, match="1 constant column"):
        est = LatentDomain(grid="sphere").fit(X)
    assert est.grid_ == Sphere(3)
    assert est.lifting_map_.shape == (32, 21)
    assert np.all(est.lifting_map_[:, 7] == 0)
    assert signal_recovery(data.latent, est.transform(X), data.grid).r > 0.99


# -- what is no sphere, or cannot be known ---------------------------------------------------------


def no_spheres() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    white = rng.normal(size=(6000, 25))
    return {
        "normal": sphere_noise(6000, 4, pulses="normal", random_state=5).X,
        "white": white,
        "ring": gsn(6000, 25, periodic=True, transform="orthogonal", random_state=3).X,
        "torus": gsn(6000, (5, 5), periodic=True, transform="orthogonal", random_state=3).X,
        "grid": gsn(6000, (5, 5), transform="orthogonal", random_state=3).X,
        "independent": rng.exponential(size=(6000, 25)) @ random_rotation(25, 0),
        "symmetric independent": rng.laplace(size=(6000, 25)) @ random_rotation(25, 0),
        "one skewed direction": np.insert(white[:, 1:], 3, rng.exponential(size=6000), axis=1),
    }


@pytest.mark.parametrize("name", sorted(no_spheres()))
def test_what_is_no_sphere_is_never_called_one(name):
    X = no_spheres()[name]
    with pytest.warns(FitWarning, match="no identifiable sphere"):
        est = LatentDomain(grid="sphere", mixing="orthogonal", random_state=0).fit(X)
    assert not est.evidence_.found
    diagnosis = est.diagnose(X)
    expected = Verdict.UNIDENTIFIABLE if name == "normal" else Verdict.ABSENT
    assert diagnosis.verdict is expected
    assert diagnosis.confidence < 0.5
    assert diagnosis.next_steps


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda X: LatentDomain(grid=Sphere(9), mixing="linear").fit(X), "needs 100 columns"),
        (lambda X: LatentDomain(grid="sphere").fit(X[:, :7]), "needs 9 columns"),
        (lambda X: LatentDomain(grid="sphere", mixing="linear").fit(X[:90]), "at least 100"),
        (lambda X: LatentDomain(grid="sphere", channels=2).fit(X), "one signal at each point"),
        (lambda X: LatentDomain(grid="sphere", solver="ring").fit(X), "knows no spheres"),
        (lambda X: LatentDomain(grid="sphere", periodic=True).fit(X), "no periodic axes"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(fit, words, data):
    with pytest.raises(InputError, match=words) as error:
        fit(data.X)
    assert "\n" not in str(error.value)


def test_a_fixed_module_lifts_and_a_trainable_one_is_refused(est, data):
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="planes"):
        est.model_.to_torch()
    fixed = est.model_.to_torch(trainable=False)(torch.from_numpy(data.X[:5]))
    assert np.allclose(fixed.reshape(5, -1).numpy(), est.transform(data.X[:5]), atol=1e-4)


def test_what_is_made_for_grids_says_so(est, data):
    with pytest.raises(InputError, match="ring or a torus"):
        est.phase(data.X)
    with pytest.raises(InputError, match="evaluates it"):
        est.field(data.X[:2], [[0.0, 0.0, 1.0]])
    RunSettings(grid="sphere").refuse_nonsense()
    with pytest.raises(InputError, match="no periodic axes"):
        RunSettings(grid="sphere", periodic=True).refuse_nonsense()
    with pytest.raises(InputError, match="finite numbers"):
        est.shift(data.X[:1], 1.0)
    X = data.X.copy()
    X[0, 0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        LatentDomain(grid="sphere", mixing="orthogonal").fit(X)


# -- metrics and data ------------------------------------------------------------------------------


def test_recovery_is_up_to_a_turn_of_the_whole(data):
    rng = np.random.default_rng(0)
    c = rng.normal(size=(40, 25))
    Y = real_harmonics(data.grid.points, 4)
    turn = Turn((0.5, 1.2, -0.4), mirrored=True, sign=-1)
    found = signal_recovery(c @ Y.T, turn.apply(c) @ Y.T, data.grid)
    assert np.isclose(found.r, 1)
    assert found.alignment.mirrored
    assert found.alignment.sign == -1
    noise = signal_recovery(c @ Y.T, rng.normal(size=(40, 50)), data.grid)
    assert noise.r < 0.3


def test_the_alignment_is_one_for_all_samples(data):
    rng = np.random.default_rng(0)
    c = rng.normal(size=(60, 25))
    Y = real_harmonics(data.grid.points, 4)
    each = RotationGroup(4).act(c, rng.normal(size=(60, 3)))
    assert signal_recovery(c @ Y.T, each @ Y.T, data.grid).r < 0.6


def test_similarity_of_generators_has_a_frame_of_its_own():
    group, rng = RotationGroup(4), np.random.default_rng(0)
    L = group.generators()
    R = rotation_matrix([0.3, 1.0, 2.0])
    assert np.allclose(generator_similarity(np.einsum("jk,kab->jab", R, L), None, Sphere(4)), 1)
    # a mixing that is not symmetric, so that a transposition would show
    A = random_linear(25, random_state=1)
    Y = real_harmonics(Sphere(4).points, 4)
    observed = np.stack([A.T @ one @ np.linalg.inv(A.T) for one in L])
    transform = np.linalg.pinv(Y).T @ A
    assert np.allclose(generator_similarity(observed, transform, Sphere(4)), 1)
    assert generator_similarity(rng.normal(size=(3, 25, 25)), None, Sphere(4)).max() < 0.4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: signal_recovery(np.ones((3, 7)), np.ones((3, 50)), Sphere(4)), "do not fit"),
        (lambda: signal_recovery(np.ones((3, 50)), np.ones((2, 50)), Sphere(4)), "same samples"),
        (lambda: generator_similarity(np.ones((2, 25, 25)), None, Sphere(4)), "3, d, d"),
        (lambda: generator_similarity(np.ones((3, 25, 25)), np.ones((5, 5)), Sphere(4)), "50, 25"),
        (lambda: sphere_noise(10, 3, pulses="square"), "unknown"),
        (lambda: sphere_noise(10, 3, sensors=[1.0, 2.0]), "unit vectors"),
    ],
)
def test_metrics_and_data_refuse_what_does_not_fit(wrong, words):
    with pytest.raises(InputError, match=words):
        wrong()


def test_data_are_what_they_say():
    places = np.eye(3)
    data = sphere_noise(300, 3, noise=0.0, sensors=places)
    assert data.X.shape == (300, 3)
    assert np.allclose(data.X, data.latent @ data.transform, atol=1e-5)
    skewness = (data.latent**3).mean()
    assert skewness > 0
    both = sphere_noise(20_000, 3, pulses="signed").latent
    assert abs((both**3).mean()) < 0.2 * skewness


def test_the_solver_sees_rows_only():
    data = sphere_noise(3000, 3, random_state=8)
    solution = solve(data.X, Sphere(), np.random.default_rng(0))
    assert solution.evidence.found
    assert solution.trace.stages[0].name == "moments"
