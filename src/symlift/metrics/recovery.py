"""Signal recovery: Pearson's r of latent and recovered fields, up to an alignment of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, minimize

from symlift.core.grid import Alignment, Grid
from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.metrics.alignment import align, window
from symlift.metrics.correlation_sums import CorrelationSums, correlation_sums, pooled_correlations
from symlift.metrics.fields import GridLike, as_fields, as_grid, deviation, paired_batches, ratio
from symlift.metrics.sphere import recovery_on_sphere

__all__ = ["Recovery", "signal_recovery"]

PROTOCOLS = ("global", "paper")
STEPS = 10  # offsets tried in each step of a ring before refinement
TIE = 1e-12  # a gain in r below this is rounding
# samples that deviate less than this share of the rms deviation are left out of r_per_sample
LOUD = 0.1


@dataclass(frozen=True)
class Recovery:
    """Result of `signal_recovery`.

    Parameters
    ----------
    r : float
        Pooled |Pearson| of all samples and grid points, from 0 to 1.
    r_per_sample : float
        Mean of the samples' own Pearson correlations.
    r_detail : float
        Pooled Pearson after each sample's own mean is removed from both sides: a patch of a
        photograph is mostly its mean, and a map that finds only that has a large r and no detail.
    alignment : Alignment, Turn or None
        The alignment that takes ``recovered`` onto ``latent``, a `Turn` on a sphere; None under
        ``protocol="paper"``, where every sample has its own, and where all three correlations are
        the same number.

    Examples
    --------
    >>> Recovery(r=0.98, r_per_sample=0.97, r_detail=0.96, alignment=None).r
    0.98
    """

    r: float
    r_per_sample: float
    r_detail: float
    alignment: Any  # an Alignment on grids


def signal_recovery(
    latent: ArrayLike,
    recovered: ArrayLike,
    grid: GridLike | Sphere,
    periodic: bool | Sequence[bool] = False,
    protocol: str = "global",
) -> Recovery:
    """Correlation of recovered with latent signals, up to the ambiguities of blind recovery.

    ``protocol="global"``: with one alignment g for the whole data set,

        r = max_g |Pearson(latent, g·recovered)|,

    pooled over all samples and grid points of the overlap, each side centred by its own mean.  g
    runs over reflections, permutations of equal axes, sign and translation: any real offset on
    periodic axes (Fourier interpolation in tenths of a step, then refined), whole steps up to
    ±max(1, N//10) on open ones.  ``r_per_sample`` is the mean of each sample's own Pearson under
    the same g, over samples whose latent standard deviation is at least a tenth of its root mean
    square over the data set. ``r_detail`` is the pooled Pearson under the same g after each
    sample's own mean is removed.  On a sphere, g runs over rotations, the reflection through the
    centre, and sign, and correlations are integrals over the whole sphere.

    ``protocol="paper"``: the best |Pearson| of each sample by itself, averaged over all samples
    with a non-constant latent; waveforms over flips and all cyclic shifts, images over reflections
    and permutations of equal axes.

    Parameters
    ----------
    latent : array-like of shape (n, size) or (n, *grid)
        True signals.
    recovered : array-like of shape (n, size) or (n, *grid)
        Recovered signals of the same samples.
    grid : Grid, Sphere, int or sequence of int
        A grid, whose own flags count, or its sizes; or a sphere, with fields at its points.
    periodic : bool or sequence of bool, default=False
        Whether axes close on themselves, if ``grid`` is given by its sizes.
    protocol : {"global", "paper"}, default="global"
        One alignment for all samples, or one for each.

    Returns
    -------
    Recovery
        Correlations and the alignment: ``align(recovered, result.alignment, grid)`` lies on
        ``latent``.  A constant ``recovered`` scores 0.

    Raises
    ------
    InputError
        If shapes do not fit, or if ``latent`` is constant.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section "Experiments",
    evaluation protocol.

    Examples
    --------
    >>> from symlift import LatentDomain
    >>> from symlift.datasets import gsn
    >>> data = gsn(1_000, (4, 5), transform="permutation", random_state=0)
    >>> Y = LatentDomain((4, 5), random_state=0).fit(data.X).transform(data.X)
    >>> signal_recovery(data.latent, Y, (4, 5)).r > 0.95
    True
    >>> latent = np.random.default_rng(0).normal(size=(50, 4, 4))
    >>> result = signal_recovery(latent, -latent.transpose(0, 2, 1)[:, ::-1], (4, 4))
    >>> round(result.r, 6), result.alignment
    (1.0, Alignment(axes=(1, 0), flips=(False, True), shift=(0.0, 0.0), sign=-1))
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol {protocol!r} is unknown: choose one of {', '.join(PROTOCOLS)}")
    if isinstance(grid, Sphere):
        if protocol != "global":
            raise InputError("the paper has no spheres: use protocol='global'")
        r, each, detail, turn = recovery_on_sphere(latent, recovered, grid, LOUD)
        return Recovery(r, each, detail, turn)
    grid = as_grid(grid, periodic)
    f, y = as_fields("latent", latent, grid), as_fields("recovered", recovered, grid)
    if len(f) != len(y):
        raise InputError(
            f"latent has {len(f)} samples and recovered {len(y)}: give the same rows of both"
        )
    return _global(f, y, grid) if protocol == "global" else _paper(f, y, grid)


def _global(latent: NDArray[Any], recovered: NDArray[Any], grid: Grid) -> Recovery:
    sums = correlation_sums(latent, recovered, grid)
    if sums.latent.constant:
        raise InputError("latent is constant: there is no signal to recover, give data that vary")
    if sums.recovered.constant:
        return Recovery(0.0, 0.0, 0.0, next(grid.orientations()))
    r, alignment = _best_alignment(sums)
    return Recovery(r, *_per_sample(latent, recovered, alignment, grid), alignment)


def _search_offsets(grid: Grid) -> list[NDArray[np.float64]]:
    """Offsets to try on each axis: tenths of a step on a ring, whole steps on an open axis."""
    offsets = []
    for length, wraps in zip(grid.shape, grid.periodic, strict=True):
        reach = max(1, length // 10)
        tenths = np.arange(STEPS * length) - STEPS * length // 2
        offsets.append(tenths / STEPS if wraps else np.arange(-reach, reach + 1.0))
    return offsets


def _best_alignment(sums: CorrelationSums) -> tuple[float, Alignment]:
    """Largest |r| over all alignments, and that alignment.

    Of equal ones, the first orientation and the smallest shift.
    """
    grid, lags, offsets = sums.grid, sums.grid.lags(), _search_offsets(sums.grid)
    best, alignment, best_sums = -1.0, next(grid.orientations()), sums
    for orientation in grid.orientations():
        oriented = sums.reorient(orientation)
        r = np.abs(pooled_correlations(oriented, oriented.lag_sums(lags), offsets))
        if r.max() > best + TIE:
            ties = np.argwhere(r >= r.max() - TIE)
            shifts = np.stack([offsets[axis][ties[:, axis]] for axis in range(grid.ndim)], axis=1)
            nearest = shifts[np.argmin(np.abs(shifts).sum(axis=1))]
            best, best_sums = float(r.max()), oriented
            alignment = replace(orientation, shift=tuple(map(float, nearest)))
    return _refine(best_sums, best_sums.lag_sums(lags), alignment)


def _refine(
    sums: CorrelationSums, lag_sums: NDArray[np.float64], coarse: Alignment
) -> tuple[float, Alignment]:
    """Climb from the best tenth of a step on the periodic axes, at most one tenth; set the sign."""

    def signed(shift: Sequence[float]) -> float:
        return float(pooled_correlations(sums, lag_sums, [np.array([t]) for t in shift]).item())

    r, shift = signed(coarse.shift), coarse.shift
    rings = [axis for axis, wraps in enumerate(sums.grid.periodic) if wraps]

    def moved(rings_shift: NDArray[np.float64]) -> tuple[float, ...]:
        at = dict(zip(rings, rings_shift, strict=True))
        return tuple(float(at.get(axis, t)) for axis, t in enumerate(coarse.shift))

    def loss(rings_shift: NDArray[np.float64]) -> float:
        return -abs(signed(moved(rings_shift)))

    if rings:
        start = [shift[axis] for axis in rings]
        near = Bounds([t - 1 / STEPS for t in start], [t + 1 / STEPS for t in start])
        result = minimize(
            loss, start, method="L-BFGS-B", bounds=near, options={"ftol": 1e-15, "gtol": 1e-10}
        )
        # an optimum on a tenth is kept exactly: a gain as small as rounding does not change it
        if -result.fun > abs(r) + TIE:
            shift = moved(result.x)
            r = signed(shift)
    return abs(r), replace(coarse, shift=shift, sign=1 if r >= 0 else -1)


def _per_sample(
    latent: NDArray[Any], recovered: NDArray[Any], alignment: Alignment, grid: Grid
) -> tuple[float, float]:
    """Mean Pearson of samples under ``alignment``, without nearly empty ones, and r of details."""
    target = (slice(None), *window(grid, alignment.shift)[1])
    spread, r, sums = [], [], np.zeros(3)
    for f, y in paired_batches(latent, recovered):
        spread.append(deviation(f)[1])
        pair = (
            v.reshape(-1, *grid.shape)[target].reshape(len(v), -1)
            for v in (f, align(y, alignment, grid))
        )
        (a, a_norm), (b, b_norm) = (deviation(v) for v in pair)
        inner = np.einsum("np,np->n", a, b)
        r.append(ratio(inner, a_norm * b_norm))
        sums += inner.sum(), np.sum(a_norm**2), np.sum(b_norm**2)
    spreads = np.concatenate(spread)
    if not spreads.any():
        return 0.0, 0.0
    loud = spreads >= LOUD * np.sqrt(np.mean(spreads**2))
    detail = sums[0] / np.sqrt(sums[1] * sums[2]) if sums[1] * sums[2] > 0 else 0.0
    return float(np.concatenate(r)[loud & (spreads > 0)].mean()), float(detail)


def _paper(latent: NDArray[Any], recovered: NDArray[Any], grid: Grid) -> Recovery:
    best = _best_waveforms if grid.ndim == 1 else _best_images
    scores = []
    for f, y in paired_batches(latent, recovered):
        (f, f_norm), (y, y_norm) = deviation(f), deviation(y)
        varies = f_norm > 0
        scores.append(ratio(best(f, y, grid), f_norm * y_norm)[varies])
    r = np.concatenate(scores)
    if not len(r):
        raise InputError(
            "latent is constant in every sample: there is no signal to recover, give data that vary"
        )
    mean = float(np.minimum(r, 1.0).mean())
    return Recovery(mean, mean, mean, None)


def _best_waveforms(
    f: NDArray[np.float64], y: NDArray[np.float64], grid: Grid
) -> NDArray[np.float64]:
    """max |Σ_p f_p y'_p| over all cyclic shifts y' of y and of its mirror image, by FFT."""
    spectrum, other = np.fft.rfft(f), np.fft.rfft(y)
    best = np.zeros(len(f))
    for reading in (other.conj(), other):
        best = np.maximum(best, np.abs(np.fft.irfft(spectrum * reading, n=grid.size)).max(axis=1))
    return best


def _best_images(f: NDArray[np.float64], y: NDArray[np.float64], grid: Grid) -> NDArray[np.float64]:
    """max |Σ_p f_p y'_p| over reflections and permutations of equal axes."""
    best = np.zeros(len(f))
    for orientation in grid.orientations():
        turned = orientation.reorient(y.reshape(-1, *grid.shape)).reshape(len(y), -1)
        best = np.maximum(best, np.abs(np.einsum("np,np->n", f, turned)))
    return best
