"""Shared by the two spectral baselines: standardisation, covariance, and the reference graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift_paper.baselines.protocol import BaselineResult

__all__ = ["SIGNS", "adjacency", "aligned", "eigenbasis", "loaded_covariance", "scales"]

SIGNS = ("first", "solver")
EPSILON = 1e-8  # a constant column is divided by this, and stays 0
EQUAL = 1e-10  # eigenvalues closer than this, relative to the largest, count as equal
# norm of a unit vector's residual below which it lies in the span of the previous ones
NOTHING = 1e-7


def scales(X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation + ε of each column."""
    return X.mean(axis=0), X.std(axis=0) + EPSILON


def loaded_covariance(X: NDArray, loading: float = 1e-3) -> NDArray[np.float64]:
    """``S = Cov(X̃) + λ I`` of standardised columns X̃."""
    mean, deviation = scales(X)
    Z = (X - mean) / deviation
    return Z.T @ Z / len(Z) + loading * np.eye(X.shape[1])


def adjacency(grid: Grid) -> NDArray[np.float64]:
    """The graph of nearest neighbours: a path, a ring, or a grid with four neighbours.

    >>> adjacency(Grid((3,)))
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    i, j = grid.neighbours().T
    A = np.zeros((grid.size, grid.size))
    A[i, j] = A[j, i] = 1.0
    return A


def eigenbasis(A: NDArray, signs: str = "first") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues, largest first, and eigenvectors in columns with a positive first nonzero entry.

    The paper pairs two eigenbases column by column and does not specify their signs, which no
    eigensolver defines and on which the product of the two depends. This rule is the best case for
    columns that are already in order: every eigenvector of a path is positive at its end. The paper
    does not specify the basis of repeated eigenvalues either, which all but one or two of a ring's
    are: `_by_last_entries` fixes it, independently of rounding.  ``signs="solver"`` leaves both as
    the eigensolver returns them, which differs between processors.
    """
    if signs not in SIGNS:
        raise InputError(f"signs {signs!r} are unknown: choose one of {', '.join(SIGNS)}")
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    if signs == "solver":
        return values, vectors
    apart = np.flatnonzero(-np.diff(values) > EQUAL * np.abs(values).max()) + 1
    vectors = np.concatenate(
        [_by_last_entries(V) for V in np.split(vectors, apart, axis=1)], axis=1
    )
    first = (np.abs(vectors) > 1e-9).argmax(axis=0)
    return values, vectors * np.sign(vectors[first, np.arange(len(values))])


def _by_last_entries(V: NDArray) -> NDArray[np.float64]:
    """A basis of the span of V's columns: projections of the unit vectors, from the last to the
    first.

    Each is made orthogonal to the previous ones, and left out where nothing remains of it. For a
    ring these are cosines and then sines about its last point; for a graph without edges the unit
    vectors from the last to the first, which carry no information on the order.
    """
    span, basis = V.shape[1], np.empty((0, V.shape[1]))
    for row in V[::-1] if span > 1 else ():
        rest = row - basis.T @ (basis @ row)
        rest -= basis.T @ (basis @ rest)  # twice, to remove the rounding error of the first time
        size = float(np.linalg.norm(rest))
        if size > NOTHING and len(basis) < span:
            basis = np.concatenate([basis, rest[None] / size])
    return V @ basis.T if span > 1 else V


def aligned(X: NDArray, W: NDArray) -> BaselineResult:
    """``F̂ = X̃ W`` as a lifting map of X itself."""
    mean, deviation = scales(X)
    return BaselineResult(mean=mean, lifting_map=W.T / deviation)
