"""Columns that see the same signal one after the other: correlations over delays.

A wave that runs along a fibre reaches neighbours with a delay, so that columns hardly correlate in
the same row (a surface wave on 101 channels: 0.09 between neighbours, 0.86 five rows later), and an
order by plain correlations is one of half wavelengths. The largest correlation over delays falls
with the distance again, as the longer a delay, the less of a window is left to overlap. Whether
columns are delayed at all, rows decide from which the delays were not estimated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

__all__ = ["are_delayed", "over_delays"]

# rows of a window, which are more than any delay; the fewest of a window, and of windows
_WINDOW, _SHORTEST, _FEWEST_WINDOWS = 100, 8, 9
# disjoint parts of the windows, each judged by delays from the others
_FOLDS = 3
# columns that each column is compared with
_PARTNERS = 4
# standard errors, over windows, and correlation by which columns must go along with their partners
# better with delays than without: a surface wave 4 and 0.3; electrodes of a muscle, along which
# potentials run, too, 7 and 0.01; weather, video, brains none
_SIGNIFICANT, _LEAST = 3.0, 0.05
# columns whose cross-correlations are computed at once
_BATCH = 32


def over_delays(z: NDArray[np.float32], number: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest correlation of each two columns of scores z (n, d) over delays, (d, d).

    ``number`` (n,) are row numbers, increasing: windows do not reach across missing rows.
    """
    best, _, _ = _strongest(_windows(z, number))
    return best


def are_delayed(z: NDArray[np.float32], number: NDArray[np.int64]) -> bool:
    """Whether columns go along with others better some rows later than in the same row.

    Delays and partners are chosen in some windows, and looked at in others.
    """
    if len(z) < _SHORTEST * _FEWEST_WINDOWS or z.shape[1] < 2:
        return False
    windows = _windows(z, number)
    fold = np.arange(len(windows)) % _FOLDS
    gain = np.zeros(len(windows))
    for one in range(_FOLDS):
        gain[fold == one] = _gain(windows[fold != one], windows[fold == one])
    error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
    return bool(gain.mean() > max(_SIGNIFICANT * error, _LEAST))


def _windows(z: NDArray[np.float32], number: NDArray[np.int64]) -> NDArray[np.float32]:
    """Windows (count, rows, d) of consecutive rows."""
    starts = np.append(0, np.flatnonzero(np.diff(number) != 1) + 1)
    runs = np.diff(np.append(starts, len(z)))
    # as long as most runs and the number of windows allow
    size = min(_WINDOW, int(np.median(runs)), len(z) // _FEWEST_WINDOWS)
    size = max(size, 1)
    first = np.concatenate(
        [np.arange(a, a + n - size + 1, size) for a, n in zip(starts, runs, strict=True)]
    )
    return z[first[:, None] + np.arange(size)]


def _gain(fitted: NDArray[np.float32], held: NDArray[np.float32]) -> NDArray[np.float64]:
    """By how much columns go along with their partners better with delays, in each window of
    ``held``; partners and delays are those of ``fitted``.
    """
    best, delay, plain = _strongest(fitted)
    count, rows, d = held.shape
    few = min(_PARTNERS, d - 1)
    np.fill_diagonal(best, -1.0)
    np.fill_diagonal(plain, 0.0)
    late = np.argsort(-best, axis=1, kind="stable")[:, :few]
    same = np.argsort(-np.abs(plain), axis=1, kind="stable")[:, :few]
    padded = np.zeros((count, 3 * rows, d), dtype=np.float32)
    padded[:, rows : 2 * rows] = held
    mine, total = np.arange(d), np.zeros(count)
    for j, k in zip(late.T, same.T, strict=True):
        at = rows + np.arange(rows)[:, None] + delay[mine, j]
        total += np.einsum("wti,wti->w", held, padded[:, at, j], dtype=np.float64)
        alike = held[:, :, k] * np.sign(plain[mine, k]).astype(np.float32)
        total -= np.einsum("wti,wti->w", held, alike, dtype=np.float64)
    return np.asarray(total / (rows * d * few))


def _strongest(
    windows: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """The largest cross-correlation of each two columns over delays, the delay of the second after
    the first, and their correlation without delay; all (d, d).
    """
    _, rows, d = windows.shape
    # frequencies first, so that all windows are summed in one product
    F = np.ascontiguousarray(rfft(windows, 2 * rows, axis=1).transpose(1, 2, 0))
    size = np.sqrt(np.maximum(np.einsum("wti,wti->i", windows, windows), 1e-12))
    best, plain = np.empty((d, d)), np.empty((d, d))
    delay = np.empty((d, d), dtype=np.int64)
    for first in range(0, d, _BATCH):
        part = slice(first, min(first + _BATCH, d))
        c = irfft(F[:, part].conj() @ F.transpose(0, 2, 1), axis=0)
        c /= size[part, None] * size[None]
        which = c.argmax(axis=0)
        best[part] = np.take_along_axis(c, which[None], axis=0)[0]
        delay[part], plain[part] = which, c[0]
    delay[delay >= rows] -= 2 * rows
    # the same for both orders of two columns, to the last digit
    best = np.clip((best + best.T) / 2, -1, 1)
    np.fill_diagonal(best, 1.0)
    return best, delay, plain
