from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.stats import ortho_group

from symlift import Grid, InputError
from symlift.core import differentiable
from symlift.core.fourier import regular_frequencies
from symlift.core.group import TranslationGroup, plane_basis, rotate_planes, spread_filter
from symlift.core.linalg import cayley as numpy_cayley
from symlift.core.linalg import null_space, polar
from symlift.core.torus import TorusGroup, torus_around, torus_frame
from symlift.solvers.neural.network import Rotation, cayley_rotation

pytestmark = pytest.mark.portable


def random_group(
    dimension: int, axes: int, seed: int = 0, dtype: type = np.float64
) -> TranslationGroup:
    rng = np.random.default_rng(seed)
    Q = ortho_group.rvs(dimension, random_state=rng)
    theta = rng.uniform(-3, 3, (axes, dimension // 2))
    return TranslationGroup(Q.astype(dtype), theta.astype(dtype))


@pytest.mark.parametrize("dimension", [2, 3, 8, 15])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_group_law_orthogonality_commutation(dimension, axes, precision, roundings, rng):
    group = random_group(dimension, axes, dtype=precision)
    s, t = rng.normal(size=(2, axes)).astype(precision)
    eye = np.eye(dimension)
    assert group.matrix(t).dtype == group.generators().dtype == precision
    assert np.abs(group.matrix(s) @ group.matrix(t) - group.matrix(s + t)).max() < roundings
    assert np.abs(group.matrix(t).T @ group.matrix(t) - eye).max() < roundings
    L = group.generators()
    assert np.abs(L + L.transpose(0, 2, 1)).max() < roundings
    assert np.abs(L[:, None] @ L[None] - L[None] @ L[:, None]).max() < 10 * roundings


def test_action_is_the_exponential_of_the_generators(rng):
    group = random_group(9, 2)
    t = rng.normal(size=2)
    assert np.allclose(group.matrix(t), expm(np.tensordot(t, group.generators(), 1)))
    Z = rng.normal(size=(5, 9))
    assert np.allclose(group.act(Z, t), Z @ group.matrix(t).T)


def test_action_takes_one_translation_for_each_row(rng):
    group = random_group(7, 2)
    Z, t = rng.normal(size=(4, 7)), rng.normal(size=(4, 2))
    together = group.act(Z, t)
    for z, step, moved in zip(Z, t, together, strict=True):
        assert np.allclose(group.act(z[None], step)[0], moved)


@pytest.mark.parametrize("dimension", [4, 7, 12])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_planes_are_recovered_from_generators_up_to_their_gauge(
    dimension, axes, precision, roundings
):
    group = random_group(dimension, axes, seed=3, dtype=precision)
    refactored = TranslationGroup.from_generators(group.generators())
    assert np.abs(refactored.generators() - group.generators()).max() < 10 * roundings

    # the gauge: order of planes, orientation of a plane (all its frequencies change sign), angle
    # inside it
    def canonical(theta: np.ndarray) -> np.ndarray:
        theta = theta * np.sign(theta[0])
        return theta[:, np.argsort(theta[0])]

    assert np.allclose(canonical(refactored.theta), canonical(group.theta), atol=20 * roundings)


def test_repeated_and_zero_frequencies():
    Q = ortho_group.rvs(9, random_state=0)
    theta = np.array([[1.0, 1.0, 0.0, 0.0], [0.5, -0.5, 0.0, 2.0]])
    group = TranslationGroup(Q, theta)
    refactored = TranslationGroup.from_generators(group.generators())
    assert np.allclose(refactored.generators(), group.generators(), atol=1e-12)
    still = TranslationGroup.from_generators(np.zeros((1, 5, 5)))
    assert np.allclose(still.matrix([3.0]), np.eye(5))


def test_nearly_commuting_generators_are_block_diagonalised(rng):
    group = random_group(10, 2, seed=5)
    noise = rng.normal(size=(2, 10, 10)) * 1e-3
    noisy = group.generators() + noise - noise.transpose(0, 2, 1)
    refactored = TranslationGroup.from_generators(noisy)
    assert np.abs(refactored.generators() - noisy).max() < 0.02


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple))
def test_regular_representation_resolves_every_point(shape):
    grid = Grid(shape, periodic=True)
    theta, r = regular_frequencies(shape)
    dimension = 2 * theta.shape[1] + 1
    T = plane_basis(theta, grid.coordinates(), dimension)
    weights = np.append(np.repeat(r[:-1], 2), r[-1])
    assert np.allclose((T * weights**2) @ T.T, np.eye(grid.size), atol=1e-12)
    assert np.isclose(np.sum(r**2), 1)


def test_change_of_coordinates_conjugates_the_representation(rng):
    """ρ̃ = A ρ A⁻¹ acts on z̃ = A z as ρ acts on z (paper, transformation of the point-source
    response).
    """
    group = random_group(6, 1)
    A = rng.normal(size=(6, 6))
    z = rng.normal(size=6)
    rho = group.matrix([0.7])
    assert np.allclose(A @ rho @ np.linalg.inv(A) @ (A @ z), A @ (rho @ z))


def test_cayley_is_orthogonal_and_its_gradient_is_right():
    skew = torch.randn(
        6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True
    )
    Q = cayley_rotation(skew)
    assert torch.allclose(Q.T @ Q, torch.eye(6, dtype=torch.float64), atol=1e-12)
    assert torch.autograd.gradcheck(cayley_rotation, (skew,))


def test_rotate_planes_gradient():
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(3, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    angles = torch.randn(3, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(differentiable.rotate_planes, (Z, angles))


def test_rotation_stays_orthogonal_over_ten_thousand_adam_steps():
    """In float32, to 1e-5, while it really moves: it follows a target that turns all the time."""
    torch.manual_seed(0)
    dimension = 12
    start = torch.linalg.qr(torch.randn(dimension, dimension))[0]
    rotation = Rotation(start)
    optimiser = torch.optim.Adam(rotation.parameters(), lr=0.02)
    turning = cayley_rotation(torch.randn(dimension, dimension) * 0.01)
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


# -- numpy and torch say the same ------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [4, 7])
def test_differentiable_formulas_are_those_of_numpy(dimension, dtype, tolerance, rng):
    exact = {torch.float32: np.float32, torch.float64: np.float64}[dtype]
    planes = dimension // 2
    theta, points, Z, r = (
        rng.normal(size=size).astype(exact)
        for size in ((2, planes), (6, 2), (5, dimension), (planes + dimension % 2,))
    )
    angles = rng.normal(size=(5, planes)).astype(exact)
    tensors = [torch.from_numpy(a) for a in (theta, points, Z, r, angles)]
    for numpy, pytorch in (
        (
            plane_basis(theta, points, dimension),
            differentiable.plane_basis(*tensors[:2], dimension),
        ),
        (rotate_planes(Z, angles), differentiable.rotate_planes(tensors[2], tensors[4])),
        (spread_filter(r, dimension), differentiable.spread_filter(tensors[3], dimension)),
    ):
        assert numpy.dtype == exact
        assert pytorch.dtype == dtype
        assert np.abs(numpy - pytorch.numpy()).max() < tolerance


@pytest.mark.parametrize("shape", [(6, 6), (4, 7), (7, 4), (3, 5, 5)])
def test_polar_does_without_the_singular_values_where_lapack_gives_none(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    M = rng.normal(size=shape)
    nearest = polar(M)

    def none(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "svd", none)
    np.testing.assert_allclose(polar(M), nearest, atol=1e-9)


def test_cayley_of_numpy_and_torch_agree_and_polar_is_the_nearest_orthogonal_matrix(rng):
    A = rng.normal(size=(6, 6))
    Q = numpy_cayley((A - A.T) / 2)
    assert np.allclose(Q, cayley_rotation(torch.from_numpy(A)).numpy(), atol=1e-12)
    assert np.allclose(Q.T @ Q, np.eye(6), atol=1e-12)
    P = polar(A)
    assert np.allclose(P.T @ P, np.eye(6), atol=1e-12)
    assert np.linalg.norm(A - P) <= min(
        np.linalg.norm(A - M) for M in ortho_group.rvs(6, size=50, random_state=0)
    )
    assert np.allclose(polar(np.stack([A, A.T]))[1], P.T, atol=1e-12)
    N = null_space(A[:4])
    assert N.shape == (6, 2)
    assert np.abs(A[:4] @ N).max() < 1e-12
    assert np.allclose(N.T @ N, np.eye(2), atol=1e-12)


# -- tori ------------------------------------------------------------------------------------------

ODD_TORI = [(3,), (9,), (3, 5), (3, 5, 3)]


def explicit(shape: tuple[int, ...]) -> TranslationGroup:
    """The same torus in 2-plane form, acting on the values at its points."""
    grid = Grid(shape, periodic=True)
    theta, _, F, window = torus_frame(grid, grid)
    assert np.array_equal(window, np.arange(grid.size))
    return TranslationGroup(F.T, theta)


@pytest.mark.parametrize("shape", ODD_TORI)
def test_odd_tori_act_as_their_planes_do(shape, rng):
    torus, planes = TorusGroup(shape), explicit(shape)
    assert (torus.dimension, torus.axes) == (planes.dimension, planes.axes)
    Z = rng.normal(size=(4, torus.dimension))
    for t in rng.normal(scale=3, size=(3, len(shape))):
        assert np.abs(torus.act(Z, t) - planes.act(Z, t)).max() < 1e-10
    for axis, L in enumerate(planes.generators()):
        assert np.abs(torus.derivative(Z, axis) - Z @ L.T).max() < 1e-10


@pytest.mark.parametrize("shape", [*ODD_TORI, (8,), (4, 3), (2, 6)])
def test_the_derivative_of_a_torus_is_that_of_its_action(shape, rng):
    torus, h = TorusGroup(shape), 1e-5
    Z = rng.normal(size=(3, torus.dimension))
    for axis in range(torus.axes):
        step = h * np.eye(torus.axes)[axis]
        slope = (torus.act(Z, step) - torus.act(Z, -step)) / (2 * h)
        assert np.allclose(torus.derivative(Z, axis), slope, atol=1e-7)


@pytest.mark.parametrize("shape", ODD_TORI)
def test_group_law_on_odd_tori(shape, rng):
    torus = TorusGroup(shape)
    Z = rng.normal(size=(3, torus.dimension))
    s, t = rng.normal(scale=2, size=(2, len(shape)))
    assert np.abs(torus.act(torus.act(Z, s), t) - torus.act(Z, s + t)).max() < 1e-10
    assert np.abs(torus.act(torus.act(Z, t), -t) - Z).max() < 1e-10
    assert np.allclose(np.linalg.norm(torus.act(Z, t), axis=1), np.linalg.norm(Z, axis=1))


@pytest.mark.parametrize("shape", [*ODD_TORI, (8,), (4, 3), (2, 6)])
def test_whole_steps_on_a_torus_roll_its_points(shape, rng):
    torus = TorusGroup(shape)
    fields = rng.normal(size=(3, *shape))
    axes = tuple(range(1, 1 + len(shape)))
    steps = (2, -1, 3)[: len(shape)]
    assert np.allclose(
        torus.act(fields.reshape(3, -1), steps), np.roll(fields, steps, axes).reshape(3, -1)
    )


def test_many_fields_are_transformed_in_blocks(rng, monkeypatch):
    torus = TorusGroup((3, 5))
    Z = rng.normal(size=(7, 15))
    whole = torus.act(Z, [0.3, 1.2])
    monkeypatch.setattr("symlift.core.torus._BLOCK", 31)
    assert np.array_equal(torus.act(Z, [0.3, 1.2]), whole)


def test_the_torus_around_a_grid_keeps_rings_and_makes_windows_odd():
    assert torus_around(Grid((8,), True), 0.5) == Grid((8,), True)
    assert torus_around(Grid((6, 5), (False, True)), 0.5) == Grid((9, 5), True)
    assert torus_around(Grid((64, 64)), 0.5) == Grid((97, 97), True)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: TranslationGroup(np.eye(3)[:2], np.ones((1, 1))), "square"),
        (lambda: TranslationGroup(np.eye(4), np.ones((1, 3))), "one frequency per plane"),
        (lambda: TranslationGroup.from_generators(np.ones((3, 3))), "skew"),
        (lambda: TranslationGroup.from_generators(np.full((1, 3, 3), np.nan)), "NaN"),
        (lambda: TranslationGroup.from_generators(np.ones((2, 3))), "axes, D, D"),
        (lambda: random_group(4, 2).act(np.ones((1, 4)), [1.0]), "2 numbers"),
        (lambda: TorusGroup((3, 5)).act(np.ones((1, 15)), [1.0]), "torus of 2 axes"),
    ],
)
def test_bad_input_is_named(make, word):
    with pytest.raises(InputError, match=word) as caught:
        make()
    assert "\n" not in str(caught.value)
