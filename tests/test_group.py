from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.stats import ortho_group

from symlift import Grid, InputError
from symlift.group import Rotation, TranslationGroup, cayley, plane_basis, regular_frequencies, rotate_planes


def random_group(dimension: int, axes: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> TranslationGroup:
    rng = np.random.default_rng(seed)
    Q = ortho_group.rvs(dimension, random_state=rng)
    theta = rng.uniform(-3, 3, (axes, dimension // 2))
    return TranslationGroup(torch.tensor(Q, dtype=dtype), torch.tensor(theta, dtype=dtype))


def torus_shifts(shape: tuple[int, ...]) -> np.ndarray:
    """One-step cyclic shifts along each axis as permutation matrices: (S f)(n) = f(n - 1)."""
    index = np.arange(np.prod(shape)).reshape(shape)
    return np.stack([np.eye(index.size)[np.roll(index, 1, axis).ravel()] for axis in range(len(shape))])


@pytest.mark.parametrize("dimension", [2, 3, 8, 15])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_group_law_orthogonality_commutation(dimension, axes, dtype, tolerance, rng):
    group = random_group(dimension, axes, dtype=dtype)
    s, t = torch.tensor(rng.normal(size=(2, axes)), dtype=dtype)
    eye = torch.eye(dimension, dtype=dtype)
    assert (group.matrix(s) @ group.matrix(t) - group.matrix(s + t)).abs().max() < tolerance
    assert (group.matrix(t).T @ group.matrix(t) - eye).abs().max() < tolerance
    L = group.generators()
    assert (L + L.transpose(1, 2)).abs().max() < tolerance
    assert (L[:, None] @ L[None] - L[None] @ L[:, None]).abs().max() < 10 * tolerance


def test_action_is_the_exponential_of_the_generators(rng):
    group = random_group(9, 2)
    t = rng.normal(size=2)
    assert np.allclose(group.matrix(t).numpy(), expm(np.tensordot(t, group.generators().numpy(), 1)))
    Z = torch.tensor(rng.normal(size=(5, 9)))
    assert torch.allclose(group.act(Z, t), Z @ group.matrix(t).T)


def test_action_takes_one_translation_for_each_row(rng):
    group = random_group(7, 2)
    Z, t = torch.tensor(rng.normal(size=(4, 7))), torch.tensor(rng.normal(size=(4, 2)))
    together = group.act(Z, t)
    for z, step, moved in zip(Z, t, together, strict=True):
        assert torch.allclose(group.act(z[None], step)[0], moved)


@pytest.mark.parametrize("dimension", [4, 7, 12])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_planes_are_recovered_from_generators_up_to_their_gauge(dimension, axes, dtype, tolerance):
    group = random_group(dimension, axes, seed=3, dtype=dtype)
    found = TranslationGroup.from_generators(group.generators())
    assert (found.generators() - group.generators()).abs().max() < 10 * tolerance

    # the gauge: order of planes, orientation of a plane (all its frequencies change sign), angle inside it
    def canonical(theta: np.ndarray) -> np.ndarray:
        theta = theta * np.sign(theta[0])
        return theta[:, np.argsort(theta[0])]

    assert np.allclose(canonical(found.theta.numpy()), canonical(group.theta.numpy()), atol=20 * tolerance)


def test_repeated_and_zero_frequencies():
    Q = ortho_group.rvs(9, random_state=0)
    theta = np.array([[1.0, 1.0, 0.0, 0.0], [0.5, -0.5, 0.0, 2.0]])
    group = TranslationGroup(torch.from_numpy(Q), torch.from_numpy(theta))
    found = TranslationGroup.from_generators(group.generators())
    assert torch.allclose(found.generators(), group.generators(), atol=1e-12)
    still = TranslationGroup.from_generators(np.zeros((1, 5, 5)))
    assert torch.allclose(still.matrix([3.0]), torch.eye(5, dtype=torch.float64))


def test_nearly_commuting_generators_are_block_diagonalised(rng):
    group = random_group(10, 2, seed=5)
    noise = rng.normal(size=(2, 10, 10)) * 1e-3
    noisy = group.generators().numpy() + noise - noise.transpose(0, 2, 1)
    found = TranslationGroup.from_generators(noisy)
    assert np.abs(found.generators().numpy() - noisy).max() < 0.02


@pytest.mark.parametrize("shape", [(15,), (14,), (2,), (3, 5), (4, 6), (4, 3, 2), (2, 2, 2)])
def test_logarithm_of_shifts_on_odd_and_even_rings(shape):
    N = int(np.prod(shape))
    A = ortho_group.rvs(N, random_state=1)
    S = A @ torus_shifts(shape) @ A.T
    group = TranslationGroup.from_shifts(S)
    lone = 2 ** sum(n % 2 == 0 for n in shape) - 1  # self-conjugate modes other than the constant
    assert group.dimension == N + lone
    assert torch.allclose(group.Q.T @ group.Q, torch.eye(group.dimension, dtype=torch.float64), atol=1e-12)
    for axis in range(len(shape)):
        one = np.eye(len(shape))[axis]
        matrix = group.matrix(one).numpy()
        assert np.allclose(matrix[:N, :N], S[axis], atol=1e-10)
        assert np.allclose(group.matrix(one / 2).numpy() @ group.matrix(one / 2).numpy(), matrix, atol=1e-10)


def test_logarithm_keeps_paired_half_turns_without_augmenting():
    group = TranslationGroup.from_shifts(np.diag([-1.0, -1.0, 1.0]))
    assert group.dimension == 3
    assert torch.allclose(
        group.matrix([1.0]), torch.diag(torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)), atol=1e-12
    )


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple))
def test_regular_representation_resolves_every_point(shape):
    grid = Grid(shape, periodic=True)
    theta, r = regular_frequencies(shape)
    dimension = 2 * theta.shape[1] + 1
    T = plane_basis(torch.from_numpy(theta), torch.from_numpy(grid.coordinates()), dimension).numpy()
    weights = np.append(np.repeat(r[:-1], 2), r[-1])
    assert np.allclose((T * weights**2) @ T.T, np.eye(grid.size), atol=1e-12)
    assert np.isclose(np.sum(r**2), 1)


def test_change_of_coordinates_conjugates_the_representation(rng):
    """ρ̃ = A ρ A⁻¹ acts on z̃ = A z as ρ acts on z (paper, transformation of the point-source response)."""
    group = random_group(6, 1)
    A = rng.normal(size=(6, 6))
    z = rng.normal(size=6)
    rho = group.matrix([0.7]).numpy()
    assert np.allclose(A @ rho @ np.linalg.inv(A) @ (A @ z), A @ (rho @ z))


def test_cayley_is_orthogonal_and_its_gradient_is_right():
    skew = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    Q = cayley(skew)
    assert torch.allclose(Q.T @ Q, torch.eye(6, dtype=torch.float64), atol=1e-12)
    assert torch.autograd.gradcheck(cayley, (skew,))


def test_rotate_planes_gradient():
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(3, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    angles = torch.randn(3, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(rotate_planes, (Z, angles))


def test_rotation_stays_orthogonal_over_ten_thousand_adam_steps():
    """In float32, to 1e-5, while it really moves: it follows a target that turns all the time."""
    torch.manual_seed(0)
    dimension = 12
    start = torch.linalg.qr(torch.randn(dimension, dimension))[0]
    rotation = Rotation(start)
    optimiser = torch.optim.Adam(rotation.parameters(), lr=0.02)
    turning = cayley(torch.randn(dimension, dimension) * 0.01)
    target, folds = start.clone(), 0
    for _ in range(10_000):
        target = turning @ target
        optimiser.zero_grad()
        loss = ((rotation() - target) ** 2).sum()
        loss.backward()
        optimiser.step()
        folds += rotation.fold()
    Q = rotation().detach()
    assert (Q.T @ Q - torch.eye(dimension)).abs().max() < 1e-5
    assert folds > 10
    assert (Q - start).norm() > 1


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: TranslationGroup(torch.eye(3)[:2], torch.ones(1, 1)), "square"),
        (lambda: TranslationGroup(torch.eye(4), torch.ones(1, 3)), "one frequency a plane"),
        (lambda: TranslationGroup.from_generators(np.ones((3, 3))), "skew"),
        (lambda: TranslationGroup.from_generators(np.full((1, 3, 3), np.nan)), "NaN"),
        (lambda: TranslationGroup.from_shifts(np.ones((2, 3))), "axes, D, D"),
        (lambda: random_group(4, 2).act(torch.ones(1, 4, dtype=torch.float64), [1.0]), "2 numbers"),
    ],
)
def test_bad_input_is_named(make, word):
    with pytest.raises(InputError, match=word) as caught:
        make()
    assert "\n" not in str(caught.value)
