"""What the two spectral baselines share: standardised observations, their covariance, and the reference graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.baselines.protocol import BaselineResult
from symlift.grid import Grid

__all__ = ["adjacency", "aligned", "eigenbasis", "loaded_covariance", "scales"]

EPSILON = 1e-8  # a constant column is divided by this, and stays 0


def scales(X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation + ε of each column."""
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


def eigenbasis(A: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues, largest first, and eigenvectors in columns, each with its first entry (that is not 0) positive.

    The text pairs two eigenbases column by column and says nothing of their signs, which no eigensolver defines and on
    which the product of the two depends.  This rule is the best case for columns that are already in order: every
    eigenvector of a path is positive at its end.
    """
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    first = (np.abs(vectors) > 1e-9).argmax(axis=0)
    return values, vectors * np.sign(vectors[first, np.arange(len(values))])


def aligned(X: NDArray, W: NDArray) -> BaselineResult:
    """``F̂ = X̃ W`` as a lifting map of X itself."""
    mean, deviation = scales(X)
    return BaselineResult(mean=mean, lifting_map=W.T / deviation)
