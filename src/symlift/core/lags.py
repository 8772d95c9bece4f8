"""Displacements on a grid: pairs of points with equal displacement, and averages over them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid

__all__ = ["LagClasses"]


class LagClasses:
    """Pairs of grid points with equal displacement, and averages over them.

    The average over lag classes is the orthogonal projection of a (N, N) matrix on the stationary
    ones: Toeplitz on a line, circulant on a ring, block-Toeplitz on several axes.

    Parameters
    ----------
    grid : Grid
        The grid of N points.

    Examples
    --------
    >>> LagClasses(Grid((3,), periodic=True)).project(np.diag([3.0, 0.0, 0.0]))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        #: (N, N) class of each pair, and the number of pairs in each class
        self.index = grid.lags()
        self.zero = int(self.index[0, 0])
        #: lengths of the axes of displacements: classes are numbered in C order over them
        self.shape = tuple(
            n if wraps else 2 * n - 1 for n, wraps in zip(grid.shape, grid.periodic, strict=True)
        )
        self.count = np.bincount(self.index.ravel(), minlength=int(np.prod(self.shape))).astype(
            np.float64
        )

    def total(self, M: NDArray) -> NDArray[np.float64]:
        """Sum a matrix over each class.

        Parameters
        ----------
        M : ndarray of shape (N, N)
            A matrix over pairs of points.

        Returns
        -------
        ndarray of shape (classes,)
            The sums.
        """
        return np.bincount(self.index.ravel(), M.ravel(), minlength=self.count.size).astype(
            np.float64
        )

    def average(self, M: NDArray) -> NDArray[np.float64]:
        """Average a matrix over each class.

        Parameters
        ----------
        M : ndarray of shape (N, N)
            A matrix over pairs of points.

        Returns
        -------
        ndarray of shape (classes,)
            The means.
        """
        return self.total(M) / self.count

    def project(self, M: NDArray) -> NDArray[np.float64]:
        """Find the nearest stationary matrix.

        Parameters
        ----------
        M : ndarray of shape (N, N)
            A matrix over pairs of points.

        Returns
        -------
        ndarray of shape (N, N)
            The projection.
        """
        return self.average(M)[self.index]
