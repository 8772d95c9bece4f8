"""Correlation of two sets of angles."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.errors import InputError

__all__ = ["circular_correlation", "torus_correlation"]


def circular_correlation(a: ArrayLike, b: ArrayLike, method: str = "fisher-lee") -> float:
    """Correlation of paired angles: 1 for rotations of each other, -1 for mirror images.

    Fisher and Lee, over all pairs, computed from eight sums:

        ρ = Σ_{i<j} sin(a_i - a_j) sin(b_i - b_j)
            / sqrt(Σ_{i<j} sin²(a_i - a_j) · Σ_{i<j} sin²(b_i - b_j))

    Blind recovery cannot know the sense of rotation: take the absolute value where a reflection is
    no error.  If all angles of a set are equal modulo π, the correlation is 0.

    Parameters
    ----------
    a : array-like of shape (n,)
        Angles in radians, at least two.
    b : array-like of shape (n,)
        The angles that they are paired with.
    method : {"fisher-lee", "jammalamadaka"}, default="fisher-lee"
        ``"jammalamadaka"`` centres by the mean direction, which balanced angles do not have; for
        comparison only.

    Returns
    -------
    float
        The correlation, from -1 to 1.

    Raises
    ------
    InputError
        If the angles are not finite vectors of equal length, or if the method is unknown.

    References
    ----------
    N. I. Fisher and A. J. Lee, "A correlation coefficient for circular data", Biometrika 70 (1983).

    Examples
    --------
    >>> a = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    >>> round(circular_correlation(a, a + 1), 6), round(circular_correlation(a, 1 - a), 6)
    (1.0, -1.0)
    """
    methods = {"fisher-lee": _fisher_lee, "jammalamadaka": _jammalamadaka}
    if method not in methods:
        raise InputError(f"method {method!r} is unknown: choose one of {', '.join(methods)}")
    x, y = _angles("a", a), _angles("b", b)
    if len(x) != len(y):
        raise InputError(f"a has {len(x)} angles and b {len(y)}: give pairs")
    return max(-1.0, min(1.0, methods[method](x, y)))


def torus_correlation(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Correlate two pairs of angles on a torus, up to a change of its axes.

    A torus has no preferred pair of axes: the angles φ and Mφ, with M an integer matrix of
    determinant ±1, describe the same positions. All M with entries -1, 0, 1 are tried on b, and the
    one whose worse correlation is the largest is taken.

    Parameters
    ----------
    a : array-like of shape (n, 2)
        Angles in radians.
    b : array-like of shape (n, 2)
        Angles in radians.

    Returns
    -------
    tuple of float
        The circular correlation of each of the two angles.

    Examples
    --------
    >>> import numpy as np
    >>> from symlift.metrics import torus_correlation
    >>> a = np.random.default_rng(0).uniform(0, 2 * np.pi, (200, 2))
    >>> torus_correlation(a, np.stack([a[:, 0] + a[:, 1] - 1, -a[:, 0]], axis=1))
    (1.0, 1.0)
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape or x.shape[1] != 2:
        raise InputError(
            f"a has shape {x.shape} and b {y.shape}: give pairs of angles in radians, (n, 2) each"
        )
    rows = [(i, j) for i, j in product((-1, 0, 1), repeat=2) if (i, j) != (0, 0)]
    values = {
        (axis, row): circular_correlation(x[:, axis], y @ np.array(row))
        for axis in (0, 1)
        for row in rows
    }
    changes = [(r, s) for r in rows for s in rows if abs(r[0] * s[1] - r[1] * s[0]) == 1]
    first, second = max(((values[0, r], values[1, s]) for r, s in changes), key=min)
    return round(first, 12), round(second, 12)


def _angles(name: str, values: ArrayLike) -> NDArray[np.float64]:
    angles = np.asarray(values, dtype=np.float64)
    if angles.ndim != 1 or len(angles) < 2:
        raise InputError(
            f"{name} has shape {angles.shape}: give a vector of at least two angles in radians"
        )
    if not np.isfinite(angles).all():
        index = int(np.flatnonzero(~np.isfinite(angles))[0])
        raise InputError(f"{name} has NaN or infinity at position {index}: drop that pair")
    return angles


def _fisher_lee(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """4(AB - CD) / sqrt((n² - E² - F²)(n² - G² - H²))."""
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    numerator = 4 * float((ca @ cb) * (sa @ sb) - (ca @ sb) * (sa @ cb))
    return _quotient(numerator, _spread(a), _spread(b), len(a) ** 2)


def _spread(a: NDArray[np.float64]) -> float:
    """n² - (Σ cos 2a)² - (Σ sin 2a)² = 4 Σ_{i<j} sin²(a_i - a_j)."""
    return float(len(a) ** 2 - np.cos(2 * a).sum() ** 2 - np.sin(2 * a).sum() ** 2)


def _jammalamadaka(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Σ sin(a - ā) sin(b - b̄) / sqrt(Σ sin²(a - ā) · Σ sin²(b - b̄)), ā, b̄ mean directions."""
    x, y = (np.sin(v - np.angle(np.exp(1j * v).sum())) for v in (a, b))
    return _quotient(float(x @ y), float(x @ x), float(y @ y), len(a))


def _quotient(numerator: float, first: float, second: float, scale: float) -> float:
    """``numerator / sqrt(first · second)``; 0 where one is rounding relative to ``scale``."""
    return numerator / math.sqrt(first * second) if min(first, second) > 1e-13 * scale else 0.0
