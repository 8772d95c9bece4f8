from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symlift import Grid, InputError

shapes = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple)


@st.composite
def grids(draw):
    shape = draw(shapes)
    return Grid(shape, tuple(draw(st.booleans()) for _ in shape))


@given(grids())
def test_flat_inverts_indices(grid):
    assert np.array_equal(grid.flat(grid.indices()), np.arange(grid.size))


@given(grids())
def test_coordinates_are_centred_and_one_step_apart(grid):
    t = grid.coordinates()
    assert np.allclose(t.mean(axis=0), 0)
    for axis, length in enumerate(grid.shape):
        assert np.allclose(np.unique(t[:, axis]), np.arange(length) - (length - 1) / 2)


@given(grids())
def test_lag_classes_are_displacements(grid):
    lags, index = grid.lags(), grid.indices()
    seen: dict[int, tuple[int, ...]] = {}
    for i, j in itertools.product(range(min(grid.size, 12)), repeat=2):
        step = tuple(
            int(b - a) % n if wraps else int(b - a)
            for a, b, n, wraps in zip(index[i], index[j], grid.shape, grid.periodic, strict=True)
        )
        assert seen.setdefault(int(lags[i, j]), step) == step
    assert len(seen) == len(set(seen.values()))


@given(grids())
def test_neighbours_are_one_step_apart_and_named_once(grid):
    edges, index = grid.neighbours(), grid.indices()
    assert len({frozenset(e) for e in edges.tolist()}) == len(edges)
    expected = 0
    for length, wraps in zip(grid.shape, grid.periodic, strict=True):
        expected += grid.size // length * (length if wraps and length > 2 else length - 1)
    assert len(edges) == expected
    delta = np.abs(index[edges[:, 0]] - index[edges[:, 1]])
    wrapped = np.minimum(delta, np.where(grid.periodic, np.array(grid.shape) - delta, delta))
    assert np.array_equal(np.sort(wrapped, axis=1)[:, -1], np.ones(len(edges)))
    assert np.array_equal(wrapped.sum(axis=1), np.ones(len(edges)))


def test_orientations_count_and_preserve_shape():
    assert len(list(Grid((4, 4)).orientations())) == 8
    assert len(list(Grid((4, 5)).orientations())) == 4
    assert (
        len(list(Grid((4, 4), (True, False)).orientations())) == 4
    )  # equal in length but not in kind
    assert len(list(Grid((3, 3, 3)).orientations())) == 48
    grid = Grid((3, 3))
    fields = np.arange(9.0).reshape(1, 3, 3)
    images = {a.reorient(fields).tobytes() for a in grid.orientations()}
    assert len(images) == 8
    first = next(iter(grid.orientations()))
    assert np.array_equal(first.reorient(fields), fields)


@given(grids(), st.integers(-1, 1))
def test_overlap_slices_agree_in_shape_and_content(grid, by):
    shift = (by,) * grid.ndim
    source, target = grid.overlap(shift)
    field = np.arange(grid.size).reshape(grid.shape)
    index = grid.indices().reshape(*grid.shape, grid.ndim)
    assert field[source].shape == field[target].shape
    for axis, wraps in enumerate(grid.periodic):
        if not wraps:
            assert np.all(index[target][..., axis] - index[source][..., axis] == by)


@pytest.mark.parametrize(
    ("shape", "periodic", "word"),
    [
        ((1,), False, "at least 2"),
        ((3, 3, 3, 3), False, "1 to 3 axes"),
        ((), False, "1 to 3 axes"),
        ("abc", False, "whole numbers"),
        ((3.5,), False, "at least 2"),
        ((3, 3), (True,), "periodic"),
        ((None,), False, "whole numbers"),
    ],
)
def test_bad_grids_are_named(shape, periodic, word):
    with pytest.raises(InputError, match=word) as caught:
        Grid(shape, periodic)
    assert "\n" not in str(caught.value)


def test_parse():
    assert Grid.parse("15x15") == Grid((15, 15))
    assert Grid.parse(" 6X6x6 ", periodic=True).periodic == (True, True, True)
    assert Grid.parse("9", [True]) == Grid(9, True)
    for text in ("", "x", "15x", "-3", "1e9", "١٥"):
        with pytest.raises(InputError):
            Grid.parse(text)


def test_flat_refuses_points_outside_of_an_open_axis():
    with pytest.raises(InputError, match="outside"):
        Grid((4,)).flat(np.array([[4]]))
    assert Grid((4,), True).flat(np.array([[4]])) == 0


def test_confidence_does_not_make_grids_different_and_periodic_is_always_a_tuple():
    assert Grid((4,), True, confidence=0.3) == Grid((4,), (True,))
    assert hash(Grid((4,), True, confidence=0.3)) == hash(Grid(4, True))
    assert Grid((4, 5), False).periodic == (False, False)
    assert Grid((4, 5), np.True_).periodic == (True, True)
    assert Grid((4,), True) != Grid((4,))
