from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import expm
from scipy.stats import ortho_group

from symlift import Grid, InputError, LatentDomain, LiftedModel
from symlift.core.differentiable import lifting_map
from symlift.core.embedding import embedding_matrix
from symlift.core.fourier import regular_frequencies
from symlift.core.group import TranslationGroup
from symlift.core.model import MAX_DENSE
from symlift.core.torus import TorusGroup
from symlift.storage.atomic import write_atomically
from symlift.storage.model_file import load_model, save_model

OLD = Path(__file__).parent / "fixtures" / "v0.1.0"
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
    assert np.allclose(Q.T @ Q, np.eye(len(Q)), atol=1e-10)
    assert np.isclose(np.linalg.norm(model.r), 1)


@given(maps())
def test_unlift_is_the_pseudo_inverse(case):
    grid, W = case
    model = LiftedModel.from_lifting_map(W, grid, mean=np.arange(W.shape[1]))
    Y = np.random.default_rng(0).normal(size=(4, grid.size))
    assert np.allclose(model.lift(model.unlift(Y)), Y, atol=1e-6)
    assert np.allclose(model.unlift(Y) - model.mean, Y @ np.linalg.pinv(W).T, atol=1e-6)


@pytest.mark.parametrize("shape", RINGS)
def test_lift_after_act_is_translate_after_lift(shape, precision, roundings, rng):
    """On a ring, moving by whole steps rolls the lifted signal, forwards, axis by axis."""
    grid = Grid(shape, periodic=True)
    for W in (
        ortho_group.rvs(grid.size, random_state=0),
        np.eye(grid.size) + 0.2 * rng.normal(size=(grid.size,) * 2),
    ):
        model = LiftedModel.from_lifting_map(W, grid, mean=rng.normal(size=grid.size)).to(precision)
        X = rng.normal(size=(6, grid.size)).astype(precision)
        for t in ((1,) * grid.ndim, (2,) + (0,) * (grid.ndim - 1)):
            moved = model.lift(model.act(X, t)).reshape(-1, *shape)
            rolled = np.roll(
                model.lift(X).reshape(-1, *shape), t, axis=tuple(range(1, grid.ndim + 1))
            )
            assert moved.dtype == precision
            assert np.abs(moved - rolled).max() < 100 * roundings


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

    def new(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator, requires_grad=True)

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
    group = TranslationGroup(np.eye(8), theta)
    with pytest.raises(InputError, match="even number of points"):
        LiftedModel(
            Grid((8,), True),
            np.zeros(8),
            1.0,
            embedding_matrix("identity", 8, 8),
            group,
            np.ones(4),
            "identity",
        )
    model = LiftedModel.from_lifting_map(np.eye(8), Grid((8,), True))
    assert (model.kind, model.group.dimension) == ("zero-pad", 9)


def test_arrays_keep_their_precision_and_tensors_their_gradient(rng):
    model = LiftedModel.from_lifting_map(rng.normal(size=(6, 6)), Grid((6,)))
    X = rng.normal(size=(3, 6))
    assert model.lift(X).dtype == np.float64
    assert model.lift(X.astype(np.float32)).dtype == np.float32
    assert model.lift((10 * X).astype(np.int32)).dtype == np.float64
    module = model.to_torch().float()
    tensor = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    lifted = module(tensor)
    lifted.sum().backward()
    assert lifted.dtype == torch.float32
    assert torch.allclose(
        tensor.grad[0].double(), torch.from_numpy(model.lifting_map().sum(axis=0)), atol=1e-5
    )
    assert np.allclose(lifted.detach().numpy(), model.lift(X), atol=1e-5)


def test_a_memmap_streams_in_bounded_memory(tmp_path):
    """A million rows of 225 (a sparse file) go through in slices: peak numpy memory stays far below
    their 900 MB.
    """
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
    save_model(model, tmp_path / "run")
    again = load_model(tmp_path / "run")
    X = rng.normal(size=(5, 23))
    assert np.array_equal(again.lift(X), model.lift(X))
    assert again.grid == grid
    assert again.grid.confidence == 0.75
    assert again.kind == model.kind
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "model.json",
        "model.safetensors",
    ]


def test_damaged_files_are_named(tmp_path, rng):
    model = LiftedModel.from_lifting_map(rng.normal(size=(4, 4)), Grid((4,)))

    def fails(change, word):
        save_model(model, tmp_path)
        change(tmp_path / "model.json", tmp_path / "model.safetensors")
        with pytest.raises(InputError, match=word) as caught:
            load_model(tmp_path)
        assert "\n" not in str(caught.value)

    def edit(key, value):
        return lambda header, _: header.write_text(
            json.dumps(json.loads(header.read_text()) | {key: value})
        )

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


# -- sparse and large ------------------------------------------------------------------------------


def sparse_map(grid: Grid, d: int, rng: np.random.Generator, channels: int = 1) -> np.ndarray:
    """A map of full row rank with few entries: a permutation of columns, and a little of their
    neighbours.
    """
    rows = grid.size * channels
    W = np.eye(rows, d)[:, rng.permutation(d)]
    return W + 0.3 * np.roll(W, 1, axis=1) * (rng.random(W.shape) < 0.5)


@pytest.mark.parametrize(
    "grid", [Grid((9,), True), Grid((3, 5), True), Grid((6,)), Grid((4, 5), (False, True))], ids=str
)
@pytest.mark.parametrize("channels", [1, 2])
def test_sparse_and_dense_models_of_one_map_agree(grid, channels, rng):
    d = grid.size * channels
    W, mean = sparse_map(grid, d, rng, channels), rng.normal(size=d)
    dense = LiftedModel.from_lifting_map(W, grid, mean, channels=channels)
    light = LiftedModel.from_lifting_map(sparse.csr_array(W), grid, mean, channels=channels)
    assert light.is_sparse
    assert not dense.is_sparse
    assert isinstance(light.group, TorusGroup)
    assert isinstance(dense.group, TranslationGroup)
    X, Y = rng.normal(size=(5, d)), rng.normal(size=(5, d))
    assert np.allclose(light.lifting_map(), W, atol=1e-12)
    assert np.allclose(light.lift(X), dense.lift(X), atol=1e-10)
    assert np.allclose(light.unlift(Y), dense.unlift(Y), atol=1e-6)
    for t in rng.normal(scale=2, size=(3, grid.ndim)):
        assert np.allclose(light.act(X, t), dense.act(X, t), atol=1e-6)
    assert np.allclose(light.generators(), dense.generators(), atol=1e-6)
    assert (
        light.lift(X.astype(np.float32)).dtype
        == light.act(X.astype(np.float32), [0.5] * grid.ndim).dtype
        == np.float32
    )


@pytest.mark.parametrize("shape", [(8,), (4, 3)])
def test_whole_steps_of_sparse_models_on_even_rings(shape, rng):
    grid = Grid(shape, True)
    model = LiftedModel.from_lifting_map(sparse.csr_array(sparse_map(grid, grid.size, rng)), grid)
    X = rng.normal(size=(4, grid.size))
    rolled = np.roll(model.lift(X).reshape(-1, *shape), 1, axis=1).reshape(4, -1)
    assert np.allclose(model.lift(model.act(X, [1.0] + [0.0] * (grid.ndim - 1))), rolled, atol=1e-6)


def test_a_large_model_keeps_no_matrix_and_refuses_to_make_one(rng):
    """An image of 80x80 points: lift, unlift and act go by sparse maps and Fourier transforms."""
    grid = Grid((80, 80))
    order = rng.permutation(grid.size)
    W = sparse.csr_array(
        (np.ones(grid.size), (np.arange(grid.size), order)), shape=(grid.size, grid.size)
    )
    model = LiftedModel.from_lifting_map(W, grid)
    assert grid.size > MAX_DENSE
    assert model.is_sparse
    assert "\n" not in repr(model)
    assert len(repr(model)) < 120
    images = rng.normal(size=(3, 80, 80))
    X = np.empty((3, grid.size))
    X[:, order] = images.reshape(3, -1)
    assert np.allclose(model.lift(X).reshape(3, 80, 80), images)
    assert np.allclose(model.unlift(model.lift(X)), X, atol=1e-6)
    moved = model.lift(model.act(X, [2.0, -3.0])).reshape(3, 80, 80)
    assert np.allclose(moved[:, 2:, :-3], images[:, :-2, 3:], atol=1e-6)
    assert np.allclose(moved[:, :2], 0, atol=1e-6)
    for make, what in (
        (model.lifting_map, "the lifting map"),
        (model.generators, "the generators"),
    ):
        with pytest.raises(
            InputError, match=f"{what} would have 6400 columns, more than {MAX_DENSE}"
        ) as caught:
            make()
        assert "\n" not in str(caught.value)
        assert "use lift, unlift and act" in str(caught.value)


# -- channels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("light", [False, True], ids=["dense", "sparse"])
def test_channels_are_fastest_and_move_alike(light, rng):
    grid, C = Grid((3, 5), True), 3
    W = sparse_map(grid, grid.size * C, rng, C)
    model = LiftedModel.from_lifting_map(sparse.csr_array(W) if light else W, grid, channels=C)
    assert (model.n_outputs, model.channels) == (45, 3)
    X = rng.normal(size=(4, 45))
    Y = model.lift(X).reshape(4, 3, 5, C)
    assert np.allclose(Y[:, 1, 2, 2], X @ W[(1 * 5 + 2) * C + 2], atol=1e-10)
    moved = model.lift(model.act(X, [1.0, 2.0])).reshape(4, 3, 5, C)
    assert np.allclose(moved, np.roll(Y, (1, 2), axis=(1, 2)), atol=1e-6)
    # each channel moves as it would alone, by any number of steps
    t = [0.4, -1.3]
    together = model.lift(model.act(X, t)).reshape(4, 15, C)
    alone = LiftedModel.from_lifting_map(np.eye(15), grid)
    for channel in range(C):
        expected = alone.lift(alone.act(Y.reshape(4, 15, C)[:, :, channel], t))
        assert np.allclose(together[:, :, channel], expected, atol=1e-6)


# -- columns that the model does not look at -------------------------------------------------------


@pytest.mark.parametrize("light", [False, True], ids=["dense", "sparse"])
def test_unseen_columns_pass_through_act_and_get_their_mean(light, rng):
    grid = Grid((7,), True)
    W = sparse_map(grid, 7, rng)
    inner = LiftedModel.from_lifting_map(
        sparse.csr_array(W) if light else W, grid, mean=rng.normal(size=7)
    )
    seen = np.ones(10, dtype=bool)
    seen[[0, 4, 9]] = False
    mean = rng.normal(size=10)
    model = inner.with_columns(seen, mean)
    X = rng.normal(size=(5, 10))
    assert np.array_equal(model.unseen, ~seen)
    assert np.array_equal(model.mean[~seen], mean[~seen])
    assert np.allclose(model.lift(X), inner.lift(X[:, seen]), atol=1e-12)
    moved = model.act(X, [1.7])
    assert np.array_equal(moved[:, ~seen], X[:, ~seen])
    assert np.allclose(moved[:, seen], inner.act(X[:, seen], [1.7]), atol=1e-6)
    back = model.unlift(model.lift(X))
    assert np.allclose(back[:, ~seen], mean[~seen], atol=1e-12)
    assert np.allclose(back[:, seen], X[:, seen], atol=1e-6)


def test_a_shift_by_nothing_is_the_identity_for_the_ring_solver(rng):
    angle = rng.uniform(0, 2 * np.pi, 3_000)
    clean = np.exp(2 * np.cos(angle[:, None] - np.linspace(0, 2 * np.pi, 12, endpoint=False)))
    X = clean[:, rng.permutation(12)] + 0.1 * rng.normal(size=clean.shape)
    X[:, 3] = 5.0  # dead
    with pytest.warns(match="1 constant columns"):
        est = LatentDomain(grid=(9,), periodic=True, solver="ring", random_state=0).fit(X)
    assert est.model_.unseen[3]
    assert np.allclose(est.shift(X, 0), X, atol=1e-8)
    assert np.array_equal(est.shift(X, 2.5)[:, 3], X[:, 3])
    assert np.allclose(est.inverse_transform(est.transform(X))[:, 3], 5.0)


# -- with gradients --------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("grid", [Grid((5,), True), Grid((2, 3))], ids=str)
def test_the_module_starts_as_the_model(grid, channels, dtype, tolerance, rng):
    d = grid.size * channels + 1
    model = LiftedModel.from_lifting_map(
        rng.normal(size=(grid.size * channels, d)), grid, rng.normal(size=d), channels=channels
    )
    module = model.to_torch().to(dtype)
    X = rng.normal(size=(4, d))
    lifted = module(torch.from_numpy(X).to(dtype))
    assert lifted.dtype == dtype
    assert {name for name, _ in module.named_parameters()} == {"E", "theta", "r"}
    assert np.abs(lifted.detach().numpy() - model.lift(X)).max() < 100 * tolerance
    # it is a copy: training it leaves the model alone
    before = model.lifting_map()
    with torch.no_grad():
        for p in module.parameters():
            p.add_(1.0)
    assert np.array_equal(model.lifting_map(), before)


@pytest.mark.parametrize("channels", [1, 2])
def test_gradients_of_the_module_match_finite_differences(channels, rng):
    grid = Grid((2, 3))
    d = grid.size * channels
    module = LiftedModel.from_lifting_map(
        rng.normal(size=(d, d)), grid, channels=channels
    ).to_torch()
    x = torch.from_numpy(rng.normal(size=(2, d)))
    names = ("E", "theta", "r")

    def lifted(*values):
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (x,))

    values = tuple(getattr(module, name).detach().clone().requires_grad_() for name in names)
    assert torch.autograd.gradcheck(lifted, values)


def test_a_model_with_implicit_planes_has_no_module(rng):
    grid = Grid((5,), True)
    light = LiftedModel.from_lifting_map(sparse.csr_array(sparse_map(grid, 5, rng)), grid)
    with pytest.raises(InputError, match="no module") as caught:
        light.to_torch()
    assert "\n" not in str(caught.value)


# -- files and words -------------------------------------------------------------------------------


def test_a_model_is_told_in_one_short_line(rng):
    model = LiftedModel.from_lifting_map(rng.normal(size=(24, 30)), Grid((3, 4)), channels=2)
    assert repr(model) == "LiftedModel(grid 3x4 x 2 channels, 30 columns, linear in 35 dimensions)"
    for text in (repr(model), repr(model.group), repr(TorusGroup((3, 4)))):
        assert "\n" not in text
        assert len(text) < 120


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("light", [False, True], ids=["dense", "sparse"])
def test_sparse_and_channel_models_come_back_equal(light, channels, precision, tmp_path, rng):
    grid = Grid((4, 3), (True, False))
    d = grid.size * channels
    W = sparse_map(grid, d, rng, channels)
    model = LiftedModel.from_lifting_map(
        sparse.csr_array(W) if light else W, grid, rng.normal(size=d), channels=channels
    ).to(precision)
    save_model(model, tmp_path)
    again = load_model(tmp_path)
    X = rng.normal(size=(5, d))
    assert (again.is_sparse, again.channels, again.kind) == (light, channels, model.kind)
    assert again.E.dtype == again.mean.dtype == precision
    assert type(again.group) is type(model.group)
    assert np.array_equal(again.lifting_map(), model.lifting_map())
    assert np.array_equal(again.lift(X), model.lift(X))
    assert np.array_equal(again.act(X, [0.5, 1.0]), model.act(X, [0.5, 1.0]))
    assert np.array_equal(again.unlift(model.lift(X)), model.unlift(model.lift(X)))


def test_models_of_version_0_1_give_what_they_gave():
    model = load_model(OLD / "ring")
    assert (model.grid, model.kind, model.channels) == (Grid((9,), True), "identity", 1)
    with np.load(OLD / "ring-expected.npz") as archive:
        expected = dict(archive)
    assert np.abs(model.lifting_map() - expected["W"]).max() < 1e-10
    assert np.abs(model.generators() - expected["L"]).max() < 1e-10
    # signals were kept in single precision: they can agree to one rounding of it
    X, rounding = expected["X"], float(np.finfo(np.float32).eps)
    assert X.dtype == expected["Y"].dtype == expected["shifted"].dtype == np.float32
    assert np.abs(model.lift(X) - expected["Y"]).max() < rounding
    assert np.abs(model.act(X, [1.0]) - expected["shifted"]).max() < rounding
    # in double precision, against the map and the generator that were kept
    exact = (X.astype(np.float64) - model.mean) @ expected["W"].T
    moved = model.mean + (X.astype(np.float64) - model.mean) @ expm(expected["L"][0]).T
    assert np.abs(model.lift(X.astype(np.float64)) - exact).max() < 1e-10
    assert np.abs(model.act(X.astype(np.float64), [1.0]) - moved).max() < 1e-10
    assert (
        np.abs(model.lift(model.act(X.astype(np.float64), [1.0])) - np.roll(exact, 1, axis=1)).max()
        < 1e-10
    )


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda m: m.lift(np.ones((2, 3))), r"\(n, 4\)"),
        (lambda m: m.lift(np.ones(4)), r"\(n, 4\)"),
        (lambda m: m.lift(np.array([[1.0, np.nan, 0, 0]])), "row 1 holds NaN"),
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


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("permuted", [True, False])
def test_a_fixed_first_layer_gives_fields(permuted, channels, rng):
    """The module for convolutions is `lift`, with channels first; columns that are only moved are
    picked, not multiplied.
    """
    torch = pytest.importorskip("torch")
    grid, X = Grid((3, 4)), rng.normal(size=(5, 12 * channels))
    d = X.shape[1]
    W = np.eye(d)[rng.permutation(d)] if permuted else rng.normal(size=(d, d))
    model = LiftedModel.from_lifting_map(W, grid, mean=rng.normal(size=d), channels=channels)
    layer = model.to_torch(trainable=False)
    assert layer(torch.from_numpy(X).float()).shape == (5, channels, 3, 4)
    expected = np.moveaxis(model.lift(X).reshape(5, 3, 4, channels), -1, 1)
    assert np.allclose(layer(torch.from_numpy(X).float()).numpy(), expected, atol=1e-4)
    assert not list(layer.parameters())
    assert layer.picks == permuted


def test_a_sparse_model_has_a_fixed_layer(rng):
    torch = pytest.importorskip("torch")
    from scipy.sparse import csr_array

    model = LiftedModel.from_lifting_map(csr_array(np.eye(12)[rng.permutation(12)]), Grid((3, 4)))
    X = rng.normal(size=(4, 12))
    found = model.to_torch(trainable=False)(torch.from_numpy(X).float())
    assert np.allclose(found.numpy().reshape(4, 12), model.lift(X), atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # newer versions call TorchScript deprecated
def test_layers_go_through_torchscript_and_export(rng):
    """The block that is printed for TorchScript, and `torch.export` of both modules."""
    X = rng.normal(size=(40, 12)).astype(np.float32)
    model = LiftedModel.from_lifting_map(np.eye(12)[rng.permutation(12)], Grid((3, 4))).to(
        np.float32
    )
    page = Path(__file__).parents[1] / "docs" / "image-data.md"
    (block,) = re.findall(r"^```py\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    few, batch = torch.from_numpy(X[:4]), torch.from_numpy(X)
    for undo in (model.to_torch(trainable=False), model.to_torch().eval()):
        exec(block, {"torch": torch, "undo": undo, "few": few, "batch": batch})  # noqa: S102
        shapes = ({0: torch.export.Dim("n")},)
        program = torch.export.export(undo, (few,), dynamic_shapes=shapes)
        assert torch.allclose(program.module()(batch), undo(batch), atol=1e-6)
