"""How the authors' scripts score a baseline, where that differs from the paper's text.

Waveforms: each sample by its best cyclic shift, reflection and sign, where a window without any
signal counts 0.  Images: each sample by its best symmetry of the square.  Topographic ICA: one
alignment for each batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift.metrics import signal_recovery

__all__ = ["batch_score", "sample_score", "shift_correlations"]

#: rows that are scored, for each number of axes
SCORED_ROWS = {1: 500, 2: 100}
BATCH = 250
#: windows whose deviation is below this share of the largest hold no signal
EMPTY = 1e-6


def shift_correlations(latent: NDArray, recovered: NDArray) -> NDArray[np.float64]:
    """Pearson correlations (2, n, N) of waveforms with all cyclic shifts of recovered ones.

    The second half of the first axis is for mirror images; constant waveforms have 0.

    >>> f = np.array([[1.0, 0.0, 0.0, 0.0]])
    >>> shift_correlations(f, np.roll(f, -1)).round(6).argmax(axis=-1).ravel()
    array([1, 0])
    """
    f, y = (v - v.mean(axis=1, keepdims=True) for v in (latent.astype(np.float64), recovered))
    spectrum, points = np.fft.rfft(f), f.shape[1]
    lags = np.stack(
        [np.fft.irfft(spectrum * np.fft.rfft(v).conj(), n=points) for v in (y, y[:, ::-1])]
    )
    size = np.linalg.norm(f, axis=1) * np.linalg.norm(y, axis=1)
    return np.asarray(lags / np.where(size > 0, size, np.inf)[:, None])


def sample_score(latent: NDArray, recovered: NDArray, grid: Grid) -> float:
    """Mean best |Pearson| of single samples, with 0 for waveforms without signal."""
    rows = slice(0, SCORED_ROWS.get(grid.ndim))
    f, y = latent[rows], recovered[rows]
    if grid.ndim != 1:
        return signal_recovery(f, y, grid, protocol="paper").r
    deviation = f.std(axis=1)
    best = np.abs(shift_correlations(f, y)).max(axis=(0, 2))
    return float(np.where(deviation > EMPTY * deviation.max(), best, 0.0).mean())


def batch_score(latent: NDArray, recovered: NDArray, grid: Grid) -> float:
    """Mean over batches of 250 of the best mean *signed* Pearson under one alignment of a batch."""
    if grid.ndim != 1:
        raise InputError(f"batches are scored by shifts of a line: a {grid} grid has more axes")
    scores = []
    for start in range(0, len(latent) - BATCH + 1, BATCH):
        rows = slice(start, start + BATCH)
        mean = shift_correlations(latent[rows], recovered[rows]).mean(axis=1)
        scores.append(float(np.abs(mean).max()))
    if not scores:
        raise InputError(f"{len(latent)} rows hold no batch of {BATCH}: give more")
    return float(np.mean(scores))
