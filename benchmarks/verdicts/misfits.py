"""Families without a translation symmetry on the grid that is given: true fields on other grids,
and well-known tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.datasets import gsn, random_orthogonal
from verdicts.library import Case, negative
from verdicts.negatives import Rng, size

# -- true fields on a grid that is not theirs ------------------------------------------------------


@negative
def a_field_behind_a_rotation(rng: Rng, variant: int) -> Case:
    """Dense mixing, fitted as if columns were points."""
    _, shape, n = size(variant)
    X = gsn(n, shape, transform="orthogonal", random_state=int(rng.integers(1 << 30))).X
    return Case(X, {"grid": shape, "mixing": "shuffled"})


@negative
def a_plane_on_a_line(rng: Rng, variant: int) -> Case:
    side = 4 + variant
    X = gsn(3_600, (side, side), transform="permutation", random_state=int(rng.integers(1 << 30))).X
    return Case(X, {"grid": side * side, "mixing": "shuffled"})


@negative
def a_line_in_rows(rng: Rng, variant: int) -> Case:
    shape = ((3, 6), (4, 5), (4, 6), (5, 6))[variant]
    X = gsn(
        3_600, int(np.prod(shape)), transform="permutation", random_state=int(rng.integers(1 << 30))
    ).X
    return Case(X, {"grid": shape, "mixing": "shuffled"})


@negative
def gaussian_ring_behind_a_rotation(rng: Rng, variant: int) -> Case:
    """Second moments cannot undo it."""
    d = 9 + 2 * variant
    field = np.fft.irfft(
        np.fft.rfft(rng.normal(size=(6_000, d))) / (1 + np.arange(d // 2 + 1) ** 2), d
    )
    return Case(
        field @ random_orthogonal(d, random_state=int(rng.integers(1 << 30))),
        {"grid": d, "periodic": True},
    )


# -- tables that everybody has ---------------------------------------------------------------------


def _table(X: NDArray, shapes: tuple[Any, ...], rng: Rng, variant: int) -> Case:
    X = np.asarray(X, dtype=np.float64)
    scaled = X if variant % 2 else (X - X.mean(axis=0)) / X.std(axis=0)
    shape = shapes[variant % len(shapes)]
    return Case(
        scaled[rng.permutation(len(X))], {"grid": shape, "mixing": "shuffled"}, overlap=True
    )


@negative
def iris(rng: Rng, variant: int) -> Case:
    from sklearn.datasets import load_iris

    return _table(load_iris().data, ("auto", (4,), (2, 2)), rng, variant)


@negative
def wine(rng: Rng, variant: int) -> Case:
    from sklearn.datasets import load_wine

    return _table(load_wine().data, ((13,), "auto"), rng, variant)


@negative
def breast_cancer(rng: Rng, variant: int) -> Case:
    from sklearn.datasets import load_breast_cancer

    return _table(load_breast_cancer().data, ((30,), (5, 6), (3, 10), (2, 15)), rng, variant)


@negative
def diabetes(rng: Rng, variant: int) -> Case:
    from sklearn.datasets import load_diabetes

    return _table(load_diabetes(scaled=False).data, ((10,), (2, 5), "auto"), rng, variant)


@negative
def linnerud(rng: Rng, variant: int) -> Case:
    from sklearn.datasets import load_linnerud

    both = load_linnerud()
    return _table(np.concatenate([both.data, both.target], axis=1), ((6,), (2, 3)), rng, variant)
