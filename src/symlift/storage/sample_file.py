"""Sample rows of a fit, drawn at random and written next to its model, for the report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.storage.atomic import write_atomically
from symlift.storage.numpy_files import UNREADABLE, read_arrays
from symlift.storage.plain_files import is_plain_file, open_plain

__all__ = ["SAMPLES_FILE", "Samples", "SamplesError", "read_samples", "write_samples"]

SAMPLES_FILE = "samples.npz"
# enough for correlations of columns and for the phases of a ring; at most 4 MB
_MOST_ROWS, _FEWEST_ROWS, _MOST_NUMBERS = 4_096, 64, 1_000_000
_MOST_BYTES = 256 * 2**20


class SamplesError(ValueError):
    """Why samples cannot be used, in words for a reader."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of the data, in their order.

    Parameters
    ----------
    observed : (k, d) the rows.
    row : (k,) where in the data they stood.
    total : how many rows the data had; 0 where that is not known.
    label : (k,) angles in radians, where the samples of a ring have any.

    >>> samples = Samples.draw(np.arange(20_000.0).reshape(10_000, 2))
    >>> len(samples.row), bool((np.diff(samples.row) > 0).all()), samples.total
    (4096, True, 10000)
    """

    observed: NDArray
    row: NDArray[np.int64]
    total: int = 0
    label: NDArray[np.float64] | None = None

    @classmethod
    def draw(cls, X: NDArray, seed: int = 0) -> Samples:
        """Draw rows of X (n, d) at random; the same seed gives the same rows."""
        n, d = X.shape
        count = min(n, max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_NUMBERS // d)))
        row = (
            np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
            if count < n
            else np.arange(n)
        )
        return cls(np.asarray(X[row]), row, n)


def write_samples(samples: Samples, folder: str | os.PathLike[str]) -> None:
    """Write ``samples.npz`` into ``folder``, whole or not at all, in single precision."""
    arrays = {
        "observed": samples.observed.astype(np.float32),
        "row": samples.row,
        "total": np.array(samples.total),
    }
    if samples.label is not None:
        arrays["label"] = samples.label
    with write_atomically(Path(folder) / SAMPLES_FILE) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_samples(folder: str | os.PathLike[str], d: int) -> Samples:
    """The finite rows of what `write_samples` wrote, for d columns; SamplesError says why there are
    none.

    The file may come from anywhere: nothing in it is trusted, and nothing in it runs.
    """
    path = Path(folder) / SAMPLES_FILE
    if not is_plain_file(path) or path.stat().st_size > _MOST_BYTES:
        raise SamplesError(f"no samples were kept with this run ({path.name} is missing)")
    try:
        known = read_arrays(path, ("observed", "row", "total", "label"), _MOST_BYTES, open_plain)
        values = known["observed"]
        numbers = known["row"] if "row" in known else np.arange(len(values))
        total, labels = known.get("total", np.array(0)), known.get("label")
        if numbers.shape != values.shape[:1] or numbers.dtype.kind not in "iu":
            numbers = np.arange(len(values))
    except (*UNREADABLE, TypeError, KeyError):
        raise SamplesError(f"the kept samples cannot be read ({path.name} is damaged)") from None
    if values.ndim != 2 or values.shape[1] != d or values.dtype.kind not in "fiub":
        raise SamplesError(
            f"the kept samples do not fit the model: shape {values.shape} where (k, {d}) is needed"
        )
    values = values[:_MOST_ROWS].astype(np.float64)
    # what is shown in single precision has to be finite there
    sound = np.all(np.abs(values) < 1e30, axis=1)
    if not sound.any():
        raise SamplesError(f"{path.name} holds no finite sample")
    usable = labels is not None and labels.shape == numbers.shape and labels.dtype.kind in "fiu"
    label = labels[:_MOST_ROWS][sound].astype(np.float64) if labels is not None and usable else None
    if label is not None and not np.isfinite(label).all():
        label = None
    count = int(total) if total.shape == () and total.dtype.kind in "iu" else 0
    return Samples(values[sound], numbers[:_MOST_ROWS][sound].astype(np.int64), count, label)
