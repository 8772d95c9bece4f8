"""Rows for training: drawn at random from memory or from a memmap, centred, scaled, mixed and
noised.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from symlift.solvers.neural.objective.batch import Workers

__all__ = ["TrainingRows", "covariance_of", "input_statistics", "split_held_out", "strongest_modes"]

# arrays up to this many numbers are kept on the device as they will be used; larger ones are read
# row by row
_IN_MEMORY = 250_000_000
_STATISTICS = 20_000_000
#: numbers from which on single precision has to do
_SINGLE = 150_000_000
#: columns from which on it is faster to find the strongest modes alone
_MANY_COLUMNS = 2_000


def input_statistics(X: NDArray) -> tuple[float, float]:
    """One mean and one deviation for all columns together: all columns are treated equally, so no
    symmetry is broken.
    """
    step = max(1, X.size // _STATISTICS)
    rows = np.asarray(X[::step], dtype=np.float64)
    mean = float(rows.mean())
    return mean, max(float(np.sqrt(np.mean((rows - mean) ** 2))), 1e-300)


def centred(X: NDArray) -> tuple[NDArray, NDArray[np.float64]]:
    """Rows minus their mean, and the mean; in single precision where the rows take gigabytes."""
    Z = np.array(X, dtype=np.float32 if X.size > _SINGLE else np.float64)
    mean = Z.mean(axis=0, dtype=np.float64)
    np.subtract(Z, mean, out=Z, casting="same_kind")
    return Z, mean


def covariance_of(X: NDArray) -> NDArray[np.float64]:
    """Covariance (d, d) of the columns of X, of as many rows as its statistics are taken of."""
    rows = np.asarray(X[:: max(1, X.size // _STATISTICS)], dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    return np.asarray(rows.T @ rows / len(rows), dtype=np.float64)


def strongest_modes(covariance: NDArray, count: int) -> NDArray:
    """The ``count`` eigenvectors of largest variance, as rows (count, d), strongest first, in the
    precision of the covariance.
    """
    if len(covariance) > _MANY_COLUMNS:
        which = (len(covariance) - count, len(covariance) - 1)
        vectors = scipy.linalg.eigh(covariance, subset_by_index=which)[1]
    else:
        vectors = np.linalg.eigh(covariance)[1]
    return np.ascontiguousarray(vectors[:, ::-1][:, :count].T)


def split_held_out(
    n: int, rng: np.random.Generator, most: int = 5_000
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices (training, held out) of ``n`` rows: a fifth is held out, at most ``most``, both in
    ascending order.
    """
    count = min(most, n // 5)
    order = rng.permutation(n)
    return np.sort(order[count:]), np.sort(order[:count])


class TrainingRows:
    """Training rows (x - mean)/scale of ``X[index]``; small arrays live on the device, large ones
    stay where they are.
    """

    def __init__(
        self,
        X: NDArray,
        index: NDArray[np.int64],
        mean: Tensor,
        scale: float,
        mixing: int | None = None,
        noise: float = 0.0,
    ) -> None:
        self.mean, self.scale, self.mixing, self.noise = mean, scale, mixing, noise
        self.X, self.index = X, torch.from_numpy(index).to(mean.device)
        self.prepared: Tensor | None = None
        if len(index) * X.shape[1] <= _IN_MEMORY:
            self.prepared = self._prepare(X[index])

    def _prepare(self, rows: NDArray) -> Tensor:
        return (
            torch.from_numpy(np.ascontiguousarray(rows)).to(self.mean.device, self.mean.dtype)
            - self.mean
        ) / self.scale

    def first(self, most: int) -> NDArray[np.float64]:
        """The first ``most`` rows, in order and as they are, in double precision."""
        rows = (
            self.prepared[:most]
            if self.prepared is not None
            else self._prepare(self.X[self.index[:most].cpu().numpy()])
        )
        return rows.double().cpu().numpy()

    def draw(self, count: int, workers: Workers) -> Tensor:
        """``count`` random rows of this process, (count, d), out of ``count`` · processes that all
        draw alike.

        With ``mixing`` = k, each is a sum of k random rows, each kept with probability ½
        (superpositions of stationary fields are stationary); with ``noise``, white noise of that
        deviation is added.
        """
        width = self.mixing or 1
        place = workers.integers(len(self.index), count * width, self.index.device)
        rows = (
            self.prepared[place]
            if self.prepared is not None
            else self._prepare(self.X[self.index[place].cpu().numpy()])
        )
        if self.mixing:
            chosen = workers.uniform(1, count, width, rows)[0] < 0.5
            rows = (rows.view(count, width, -1) * chosen[..., None]).sum(dim=1)
        if self.noise:
            rows = rows + self.noise * workers.normal(count, rows.shape[1], rows)
        return rows
