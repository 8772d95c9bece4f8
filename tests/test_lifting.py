from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from symlift import Grid, InputError, LiftedModel
from symlift.group import TranslationGroup, regular_frequencies
from symlift.lifting import embedding_matrix, lifting_map, write_atomically

RINGS = [(9,), (8,), (3, 5), (4, 3), (3, 4, 5)]


@st.composite
def maps(draw):
    """A grid and a lifting map for it: orthogonal, square, wide."""
    shape = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple))
    grid = Grid(shape, tuple(draw(st.booleans()) for _ in shape))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    extra = draw(st.sampled_from([0, 0, 3]))
    if extra == 0 and draw(st.booleans()):
        return grid, 2.5 * ortho_group.rvs(grid.size, random_state=rng)
    return grid, rng.normal(size=(grid.size, grid.size + extra))


@given(maps())
def test_factoring_a_lifting_map_loses_nothing(case):
    grid, W = case
    model = LiftedModel.from_lifting_map(W, grid)
    assert np.allclose(model.lifting_map(), W, atol=1e-10)
    Q = model.group.Q
    assert torch.allclose(Q.T @ Q, torch.eye(len(Q), dtype=Q.dtype), atol=1e-10)
    assert np.isclose(float(model.r.norm()), 1)


@given(maps())
def test_unlift_is_the_pseudo_inverse(case):
    grid, W = case
    model = LiftedModel.from_lifting_map(W, grid, mean=np.arange(W.shape[1]))
    Y = np.random.default_rng(0).normal(size=(4, grid.size))
    assert np.allclose(model.lift(model.unlift(Y)), Y, atol=1e-6)
    assert np.allclose(model.unlift(Y) - model.mean.numpy(), Y @ np.linalg.pinv(W).T, atol=1e-6)


@pytest.mark.parametrize("shape", RINGS)
def test_lift_after_act_is_translate_after_lift(shape, dtype, tolerance, rng):
    """On a ring, moving by whole steps rolls the lifted signal, forwards, axis by axis."""
    grid = Grid(shape, periodic=True)
    for W in (ortho_group.rvs(grid.size, random_state=0), np.eye(grid.size) + 0.2 * rng.normal(size=(grid.size,) * 2)):
        model = LiftedModel.from_lifting_map(W, grid, mean=rng.normal(size=grid.size)).to(dtype)
        X = rng.normal(size=(6, grid.size)).astype(str(dtype).split(".")[1])
        for t in ((1,) * grid.ndim, (2,) + (0,) * (grid.ndim - 1)):
            moved = model.lift(model.act(X, t)).reshape(-1, *shape)
            rolled = np.roll(model.lift(X).reshape(-1, *shape), t, axis=tuple(range(1, grid.ndim + 1)))
            assert np.abs(moved - rolled).max() < 100 * tolerance


def test_open_window_moves_by_whole_steps_inside(rng):
    """On an open window what leaves is lost and zeros come in, up to the padding of the torus."""
    grid = Grid((12,))
    model = LiftedModel.from_lifting_map(ortho_group.rvs(12, random_state=1), grid)
    X = rng.normal(size=(5, 12))
    Y, moved = model.lift(X), model.lift(model.act(X, [3]))
    assert np.allclose(moved[:, 3:], Y[:, :-3], atol=1e-10)
    assert np.allclose(moved[:, :3], 0, atol=1e-10)


def test_gradients_of_the_lifting_map_match_finite_differences():
    generator = torch.Generator().manual_seed(1)
    new = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator, requires_grad=True)  # noqa: E731
    points = torch.from_numpy(Grid((2, 3)).coordinates())
    assert torch.autograd.gradcheck(lifting_map, (new(7, 4), new(7, 7), new(2, 3), new(4), points))
    # equal frequencies, where eigenvectors of a complex eigendecomposition have no gradient
    equal = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lifting_map, (new(7, 4), new(7, 7), equal, new(4), points))


def test_effective_generators_generate_the_action(rng):
    grid = Grid((9,), periodic=True)
    W = rng.normal(size=(9, 9))
    model = LiftedModel.from_lifting_map(W, grid)
    X, h = rng.normal(size=(3, 9)), 1e-5
    slope = (model.act(X, [h]) - model.act(X, [-h])) / (2 * h)
    assert np.allclose(slope, X @ model.generators()[0].T, atol=1e-6)


def test_kernel_of_the_true_inverse_is_the_identity(rng):
    grid = Grid((7,))
    transform = rng.normal(size=(7, 7))  # x = f @ transform
    model = LiftedModel.from_lifting_map(np.linalg.inv(transform.T), grid)
    assert np.allclose(model.kernel(transform), np.eye(7), atol=1e-10)
    latent = rng.normal(size=(5, 7))
    assert np.allclose(model.lift(latent @ transform), latent, atol=1e-10)
    other = LiftedModel.from_lifting_map(rng.normal(size=(7, 7)), grid)
    assert np.allclose(latent @ other.kernel(transform), other.lift(latent @ transform), atol=1e-10)


def test_identity_is_refused_on_even_rings():
    theta, _ = regular_frequencies((8,))
    group = TranslationGroup(torch.eye(8, dtype=torch.float64), torch.from_numpy(theta))
    with pytest.raises(InputError, match="even number of points"):
        LiftedModel(
            Grid((8,), True), torch.zeros(8), 1.0, embedding_matrix("identity", 8, 8), group, torch.ones(4), "identity"
        )
    model = LiftedModel.from_lifting_map(np.eye(8), Grid((8,), True))
    assert (model.kind, model.group.dimension) == ("zero-pad", 9)


def test_arrays_keep_their_precision_and_tensors_their_gradient(rng):
    model = LiftedModel.from_lifting_map(rng.normal(size=(6, 6)), Grid((6,)))
    X = rng.normal(size=(3, 6))
    assert model.lift(X).dtype == np.float64
    assert model.lift(X.astype(np.float32)).dtype == np.float32
    assert model.lift((10 * X).astype(np.int32)).dtype == np.float64
    tensor = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    lifted = model.lift(tensor)
    lifted.sum().backward()
    assert lifted.dtype == torch.float32
    assert torch.allclose(tensor.grad[0].double(), torch.from_numpy(model.lifting_map().sum(axis=0)), atol=1e-5)
    assert np.allclose(lifted.detach().numpy(), model.lift(X), atol=1e-5)


def test_a_memmap_streams_in_bounded_memory(tmp_path):
    """A million rows of 225 (a sparse file) go through in slices: peak numpy memory stays far below their 900 MB."""
    n, d = 1_000_000, 225
    X = np.memmap(tmp_path / "x.dat", dtype=np.float32, mode="w+", shape=(n, d))
    out = np.memmap(tmp_path / "y.dat", dtype=np.float32, mode="w+", shape=(n, 4))
    X[-1] = 1.0
    W = np.zeros((4, d))
    W[:, :4] = np.eye(4)
    model = LiftedModel.from_lifting_map(W, Grid((4,)))
    tracemalloc.start()
    assert model.lift(X, out=out) is out
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6
    assert np.allclose(out[-1], 1)
    assert not out[:-1:100_000].any()


def test_saved_models_come_back_equal(tmp_path, rng):
    grid = Grid((4, 5), (True, False), confidence=0.75)
    model = LiftedModel.from_lifting_map(rng.normal(size=(20, 23)), grid, mean=rng.normal(size=23))
    model.save(tmp_path / "run")
    again = LiftedModel.load(tmp_path / "run")
    X = rng.normal(size=(5, 23))
    assert np.array_equal(again.lift(X), model.lift(X))
    assert again.grid == grid
    assert again.kind == model.kind
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["model.json", "model.safetensors"]


def test_damaged_files_are_named(tmp_path, rng):
    model = LiftedModel.from_lifting_map(rng.normal(size=(4, 4)), Grid((4,)))

    def fails(change, word):
        model.save(tmp_path)
        change(tmp_path / "model.json", tmp_path / "model.safetensors")
        with pytest.raises(InputError, match=word) as caught:
            LiftedModel.load(tmp_path)
        assert "\n" not in str(caught.value)

    def edit(key, value):
        return lambda header, _: header.write_text(json.dumps(json.loads(header.read_text()) | {key: value}))

    fails(edit("version", 99), "upgrade symlift")
    fails(edit("format", "other"), "not a symlift model")
    fails(edit("grid", None), "damaged")
    fails(lambda h, _: h.write_text("{"), "damaged")
    fails(lambda h, _: h.write_bytes(b"\xff\xfe"), "damaged")
    fails(lambda h, _: h.unlink(), "missing")
    fails(lambda _, t: t.unlink(), "missing")
    fails(lambda _, t: t.write_bytes(t.read_bytes()[:-10]), "truncated")


def test_a_failed_write_leaves_nothing(tmp_path):
    target = tmp_path / "kept.txt"
    target.write_text("old")

    def fail():
        with write_atomically(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda m: m.lift(np.ones((2, 3))), r"\(n, 4\)"),
        (lambda m: m.lift(np.ones(4)), r"\(n, 4\)"),
        (lambda m: m.lift(np.array([[1.0, np.nan, 0, 0]])), "row 0 holds NaN"),
        (lambda m: m.lift(np.array([["a"] * 4])), "dtype"),
        (lambda m: m.act(np.ones((2, 4)), [1.0, 2.0]), "1 finite numbers"),
        (lambda m: m.act(np.ones((2, 4)), [np.inf]), "1 finite numbers"),
        (lambda m: m.lift(np.ones((2, 4)), out=np.ones((3, 4))), "out has shape"),
        (lambda m: m.kernel(np.ones((3, 3))), "4 columns"),
        (lambda m: LiftedModel.from_lifting_map(np.ones((3, 3)), m.grid), "4 rows"),
        (lambda m: LiftedModel.from_lifting_map(np.zeros((4, 4)), m.grid), "zero"),
        (lambda m: LiftedModel.from_lifting_map(np.full((4, 4), np.nan), m.grid), "NaN"),
        (lambda m: embedding_matrix("identity", 3, 4), "zero-pad"),
        (lambda m: embedding_matrix("zero-pad", 4, 3), "matrix"),
        (lambda m: LiftedModel(m.grid, m.mean, 0.0, m.E, m.group, m.r, m.kind), "positive"),
        (lambda m: LiftedModel(m.grid, m.mean[:2], 1.0, m.E, m.group, m.r, m.kind), "mean"),
        (lambda m: LiftedModel(m.grid, m.mean, 1.0, m.E[:3], m.group, m.r, m.kind), "E has"),
        (lambda m: LiftedModel(m.grid, m.mean, 1.0, m.E, m.group, m.r[:1], m.kind), "r has"),
        (lambda m: LiftedModel(m.grid, m.mean * np.nan, 1.0, m.E, m.group, m.r, m.kind), "NaN"),
        (lambda m: LiftedModel(m.grid, m.mean, 1.0, m.E, m.group, m.r, "other"), "unknown"),
        (lambda m: LiftedModel(Grid((2, 2)), m.mean, 1.0, m.E, m.group, m.r, m.kind), "axes"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, word):
    model = LiftedModel.from_lifting_map(np.eye(4), Grid((4,)))
    with pytest.raises(InputError, match=word) as caught:
        call(model)
    assert "\n" not in str(caught.value)
