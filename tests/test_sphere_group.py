"""The rotations of a sphere as mathematics: harmonics, generators, the group law, the orbit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symlift import Grid, InputError, LiftedModel, Sphere
from symlift.core.domain import domain_words, given_domain
from symlift.core.group import TranslationGroup
from symlift.core.harmonics import (
    degree_blocks,
    degrees_of,
    gaunt_tensor,
    real_harmonics,
    rotation_matrix,
    rotation_vector,
    so3_generators,
    sphere_quadrature,
)
from symlift.core.representation import Representation
from symlift.core.rotations import RotationGroup
from symlift.core.torus import TorusGroup

DEGREES = st.integers(1, 6)
VECTORS = st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array)


def unit_vectors(count: int, seed: int = 0) -> np.ndarray:
    v = np.random.default_rng(seed).normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def test_harmonics_are_orthonormal():
    points, weights = sphere_quadrature(18)
    Y = real_harmonics(points, 9)
    assert np.abs((Y * weights[:, None]).T @ Y - np.eye(100)).max() < 1e-12


def test_low_degrees_are_what_the_books_say():
    x, y, z = unit_vectors(20).T
    Y = real_harmonics(np.stack([x, y, z], axis=1), 2)
    c = np.sqrt(1 / (4 * np.pi))
    assert np.allclose(Y[:, :4], c * np.stack([1 + 0 * x, 3**0.5 * y, 3**0.5 * z, 3**0.5 * x], 1))
    second = np.sqrt(15) * np.stack([x * y, y * z], axis=1)
    assert np.allclose(Y[:, 4:6], c * second)
    assert np.allclose(Y[:, 6], c * np.sqrt(5) / 2 * (3 * z * z - 1))
    assert np.allclose(Y[:, 8], c * np.sqrt(15) / 2 * (x * x - y * y))


def test_the_addition_theorem_holds_at_the_poles_too():
    points = np.concatenate([unit_vectors(10), [[0, 0, 1.0], [0, 0, -1.0]]])
    Y = real_harmonics(points, 12)
    for ell, block in enumerate(degree_blocks(12)):
        assert np.allclose((Y[:, block] ** 2).sum(axis=1), (2 * ell + 1) / (4 * np.pi))


@pytest.mark.parametrize("degree", [1, 4, 9])
def test_generators_are_those_of_rotations(degree):
    L = so3_generators(degree)
    assert np.abs(L + L.transpose(0, 2, 1)).max() < 1e-12
    for j in range(3):
        a, b, c = L[j], L[(j + 1) % 3], L[(j + 2) % 3]
        assert np.abs(a @ b - b @ a - c).max() < 1e-11
    # the Casimir operator is l(l + 1) on degree l: irreducible blocks
    ell = degrees_of(degree)
    assert np.abs(sum(one @ one for one in L) + np.diag(ell * (ell + 1.0))).max() < 1e-10


@settings(max_examples=30, deadline=None)
@given(DEGREES, VECTORS, st.sampled_from([np.float32, np.float64]))
def test_the_exponential_turns_the_field(degree, t, dtype):
    group, points = RotationGroup(degree), unit_vectors(17)
    c = np.random.default_rng(1).normal(size=(3, group.dimension)).astype(dtype)
    turned = group.act(c, t)
    assert turned.dtype == dtype
    R = rotation_matrix(t)
    # (ρ(R) f)(p) = f(R⁻¹ p)
    expected = c @ real_harmonics(points @ R, degree).T
    error = np.abs(turned @ real_harmonics(points, degree).T - expected).max()
    assert error < (1e-4 if dtype == np.float32 else 1e-10)
    assert np.allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(c, axis=1), rtol=1e-5)


@settings(max_examples=20, deadline=None)
@given(VECTORS, VECTORS)
def test_rotations_follow_the_group_law_and_do_not_commute(s, t):
    group = RotationGroup(3)
    c = np.random.default_rng(2).normal(size=(2, 16))
    both = rotation_vector(rotation_matrix(s) @ rotation_matrix(t))
    assert np.abs(group.act(group.act(c, t), s) - group.act(c, both)).max() < 1e-10
    assert np.abs(group.act(group.act(c, t), -t) - c).max() < 1e-10


def test_every_row_may_have_its_own_rotation():
    group, rng = RotationGroup(4), np.random.default_rng(0)
    c, t = rng.normal(size=(5, 25)), rng.normal(size=(5, 3))
    each = np.concatenate([group.act(c[i : i + 1], t[i]) for i in range(5)])
    assert np.abs(group.act(c, t) - each).max() < 1e-12
    x, y = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    assert np.abs(group.act(group.act(c, x), y) - group.act(group.act(c, y), x)).max() > 0.1


@settings(max_examples=30, deadline=None)
@given(VECTORS)
def test_rotation_vectors_and_matrices_are_two_names_of_one_thing(t):
    R = rotation_matrix(t)
    assert np.allclose(R @ R.T, np.eye(3))
    assert np.isclose(np.linalg.det(R), 1)
    assert np.allclose(rotation_matrix(rotation_vector(R)), R, atol=1e-9)


def test_half_turns_have_a_rotation_vector():
    R = np.diag([-1.0, 1.0, -1.0])
    assert np.allclose(np.abs(rotation_vector(R)), [0, np.pi, 0])


def test_the_gaunt_tensor_is_invariant_and_obeys_the_selection_rules():
    G, ell = gaunt_tensor(3), degrees_of(3)
    t = [0.3, -1.1, 0.7]
    R = RotationGroup(3).act(np.eye(16), t).T
    assert np.abs(np.einsum("ai,bj,ck,ijk->abc", R, R, R, G) - G).max() < 1e-12
    a, b, c = ell[:, None, None], ell[None, :, None], ell[None, None, :]
    forbidden = (a + b < c) | (b + c < a) | (c + a < b) | ((a + b + c) % 2 == 1)
    assert np.all(G[forbidden] == 0)
    assert np.allclose(G[0], np.eye(16) / np.sqrt(4 * np.pi))


# -- the model -------------------------------------------------------------------------------------


def a_model(degree: int = 3, columns: int = 20) -> LiftedModel:
    rng = np.random.default_rng(degree)
    D = (degree + 1) ** 2
    E = np.linalg.qr(rng.normal(size=(columns, columns)))[0][:D]
    return LiftedModel.from_harmonics(E, Sphere(degree), rng.normal(size=columns))


def test_every_group_is_a_representation():
    theta = np.array([[0.5, 1.0]])
    groups: list[tuple[Representation, int]] = [
        (TranslationGroup(np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0], theta), 1),
        (TorusGroup((5,)), 1),
        (RotationGroup(2), 3),
    ]
    for group, axes in groups:
        assert group.axes == axes
        Z, h = np.random.default_rng(1).normal(size=(2, group.dimension)), 1e-5
        for axis in range(axes):
            step = h * np.eye(axes)[axis]
            slope = (group.act(Z, step) - group.act(Z, -step)) / (2 * h)
            assert np.abs(slope - group.derivative(Z, axis)).max() < 1e-8
        step = np.ones(axes)
        assert np.abs(group.to(np.float64).act(Z, step) - group.act(Z, step)).max() < 1e-14


def test_the_lifted_value_is_the_field_at_the_point():
    model, rng = a_model(), np.random.default_rng(5)
    X = model.mean + rng.normal(size=(4, 20))
    coefficients = (X - model.mean) @ model.E.T
    assert np.allclose(model.lift(X), coefficients @ real_harmonics(model.grid.points, 3).T)
    assert np.isclose(np.linalg.norm(model.r), 1)


def test_lifting_is_equivariant():
    model, rng, t = a_model(), np.random.default_rng(6), np.array([0.4, 2.0, -1.0])
    X = model.mean + rng.normal(size=(6, 20))
    moved = model.lift(model.act(X, t))
    coefficients = (X - model.mean) @ model.E.T
    expected = coefficients @ real_harmonics(model.grid.points @ rotation_matrix(t), 3).T
    assert np.abs(moved - expected).max() < 1e-10


def test_the_filter_is_left_alone_by_rotations_about_its_axis_only():
    # orbit and stabiliser: y depends on where a rotation takes the pole, so that w₀ is zonal
    model = a_model()
    group = model.group
    w0 = np.zeros((1, group.dimension))
    w0[0, [ell * ell + ell for ell in range(4)]] = model.r
    for angle in (0.3, 2.0, -1.7):
        assert np.abs(group.act(w0, [0, 0, angle]) - w0).max() < 1e-10
        assert np.abs(group.act(w0, [angle, 0, 0]) - w0).max() > 0.05
    # and turning it to each point gives the rows of the lifting map
    for point, row in zip(model.grid.points[:5], group.orbit(model.grid, model.r), strict=False):
        axis = np.cross([0, 0, 1.0], point)
        t = axis / np.linalg.norm(axis) * np.arccos(point[2])
        assert np.abs(group.act(w0, t)[0] - row).max() < 1e-10


def test_generators_in_observation_space_generate_the_action():
    model, t = a_model(3, 16), np.array([0.2, -0.5, 0.9])
    L = model.generators()
    assert L.shape == (3, 16, 16)
    assert np.abs(L[0] @ L[1] - L[1] @ L[0] - L[2]).max() < 1e-12
    from scipy.linalg import expm

    X = model.mean + np.random.default_rng(1).normal(size=(3, 16))
    expected = model.mean + (X - model.mean) @ expm(np.tensordot(t, L, 1)).T
    assert np.abs(model.act(X, t) - expected).max() < 1e-12


def test_points_determine_the_field():
    model = a_model(4, 25)
    X = model.mean + np.random.default_rng(1).normal(size=(3, 25))
    assert np.abs(model.unlift(model.lift(X)) - X).max() < 1e-10
    single = model.to(np.float32)
    assert single.lift(X.astype(np.float32)).dtype == np.float32


# -- the domain ------------------------------------------------------------------------------------


def test_a_sphere_is_asked_for_by_name_or_value():
    assert given_domain("sphere") == Sphere() == Sphere.given(Sphere())
    assert given_domain("Sphere7") == Sphere(7) != Sphere(6)
    assert given_domain((3, 4)) == Grid((3, 4))
    assert domain_words(Sphere(3)) == "sphere of degree 3"
    assert Sphere(3).point_names(2)[:3] == ["p0k0", "p0k1", "p1k0"]
    assert not Sphere(3).is_ring


def test_points_are_unit_vectors_spread_evenly():
    points = Sphere(6).points
    assert points.shape == (98, 3)
    assert np.allclose(np.linalg.norm(points, axis=1), 1)
    nearest = np.sort(np.arccos(np.clip(points @ points.T, -1, 1)), axis=1)[:, 1]
    assert nearest.min() > 0.5 * nearest.max()
    assert np.linalg.cond(real_harmonics(points, 6)) < 1.3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Sphere(0), "from 1 to 15"),
        (lambda: Sphere(2.5), "whole number"),
        (lambda: Sphere().points, "not known yet"),
        (lambda: given_domain("spheres"), "sphere5"),
        (lambda: given_domain("sphere", periodic=True), "no periodic axes"),
        (lambda: RotationGroup(-1), "negative"),
        (lambda: RotationGroup(1).act(np.eye(4), [1.0, 2.0]), "three numbers"),
        (lambda: a_model().act(np.zeros((1, 20)), [1.0]), "3 finite numbers"),
        (lambda: a_model().lattice, "made for grids"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(wrong, words):
    with pytest.raises(InputError, match=words) as error:
        wrong()
    assert "\n" not in str(error.value)
