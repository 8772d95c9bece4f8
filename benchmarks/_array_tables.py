"""What a real array is, and how closely its columns follow their layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Table:
    """Columns in their true order (NaN: gaps), where they belong, and where they came from.

    ``kind`` is line, ring, lines, grid, irregular, or none: a table without a layout, of which any
    positive verdict is false. ``either``: a ring whose ends are so weakly linked that a line is
    right, too. Tables of one ``group`` come from one source, of which a calibration leaves all out.
    """

    kind: str
    group: str
    source: str
    X: NDArray[np.float64]
    coords: NDArray[np.float64]
    guess: tuple[int, ...]
    periodic: bool = False
    either: bool = False


def table(
    kind: str,
    group: str,
    source: str,
    X: ArrayLike,
    coords: ArrayLike | None = None,
    guess: tuple[int, ...] | None = None,
    either: bool = False,
) -> Table:
    """A table whose guess follows from its kind: a line, a ring, or a square with room for it."""
    rows = np.asarray(X, dtype=float)
    d = rows.shape[1]
    places = np.arange(d, dtype=float)[:, None] if coords is None else np.asarray(coords, float)
    if kind == "none":
        places = np.zeros((d, 1))
    side = int(np.ceil(np.sqrt(d))) + 1
    fits = (side, side) if kind == "irregular" else (d,)
    return Table(kind, group, source, rows, places, guess or fits, kind == "ring", either)


def lattice(*shape: int) -> NDArray[np.float64]:
    """The points of a grid, the last axis fastest."""
    return np.stack([c.ravel() for c in np.indices(shape)], axis=1).astype(float)


def windows(picture: NDArray, side: int) -> NDArray[np.float64]:
    """The windows of a picture, side by side, one in each row, without those of one value."""
    high, wide = (n // side for n in picture.shape)
    cut = picture[: high * side, : wide * side].reshape(high, side, wide, side)
    rows = cut.transpose(0, 2, 1, 3).reshape(high * wide, side * side).astype(float)
    return rows[rows.std(axis=1) > 0]


def correlations(X: NDArray) -> NDArray[np.float64]:
    """Absolute correlations over the rows that two columns share, 0 on the diagonal."""
    seen = np.isfinite(X).astype(float)
    Z = np.nan_to_num(X - np.nanmean(X, axis=0))
    shared = np.maximum(seen.T @ seen, 1)
    mean = Z.T @ seen / shared
    variance = (Z**2).T @ seen / shared - mean**2
    covariance = Z.T @ Z / shared - mean * mean.T
    R = np.abs(covariance) / np.sqrt(np.maximum(variance * variance.T, 1e-300))
    np.fill_diagonal(R, 0.0)
    return R


def layout_in_data(one: Table) -> tuple[float, float, float]:
    """Median |correlation| of true neighbours and of all pairs, and how often the two agree.

    That is the share of columns whose most correlated column is among the four that are nearest in
    truth (six of two axes and more).
    """
    R, places, d = correlations(one.X), one.coords, one.X.shape[1]
    if one.kind == "lines":
        places = one.coords * np.array([1e6, 1.0])
    D = np.linalg.norm(places[:, None] - places[None], axis=-1)
    if one.kind == "ring":
        D = np.minimum(D, d - D)
    np.fill_diagonal(D, np.inf)
    nearest = np.argsort(D, axis=1, kind="stable")[:, : 4 if one.coords.shape[1] == 1 else 6]
    partner = R.argmax(axis=1)
    agree = float(np.mean((nearest == partner[:, None]).any(axis=1)))
    off = ~np.eye(d, dtype=bool)
    return float(np.median(R[np.arange(d), D.argmin(axis=1)])), float(np.median(R[off])), agree


def save(folder: Path, name: str, one: Table) -> None:
    """Write NAME.npz, without columns that never vary."""
    vary = np.nanstd(one.X, axis=0) > 0
    if not vary.all() and one.kind == "grid":
        raise ValueError(f"{name}: {np.sum(~vary)} points of the grid never vary")
    np.savez_compressed(
        folder / f"{name}.npz",
        X=one.X[:, vary],
        coords=one.coords[vary],
        kind=one.kind,
        group=one.group,
        guess=np.array(one.guess if vary.all() or len(one.guess) > 1 else (int(vary.sum()),)),
        guess_periodic=one.periodic,
        source=one.source,
        either=one.either,
    )
