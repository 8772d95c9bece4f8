"""From the covariance's eigenbasis to a converged frame: search, sharpen, and evidence on held-out
rows.

Third moments where there are any; fourth cumulants where the field is symmetric in sign; and least
variation where it is an image with edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.arrange import explained_held_out, similarities
from symlift.solvers.fast.edges import edges_frame
from symlift.solvers.fast.eigenbasis import Arrival, Gap, eigenbasis_frame
from symlift.solvers.fast.fourth_moments import fourth_modes
from symlift.solvers.fast.mode_moments import ModeMoments, mode_moments, third_sums
from symlift.solvers.fast.phases import sharpest_phase
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.solvers.fast.sharpen import pooled_entropy, sharpen
from symlift.solvers.fast.stationary import invariant_part, minimise_over_rotations
from symlift.statistics.moments import stationarity

__all__ = [
    "DenseFrame",
    "all_one_way",
    "confirmed",
    "dense_frame",
    "explained_third_moment",
    "mostly_mean",
    "unseen",
]


@dataclass(frozen=True, eq=False)
class DenseFrame:
    """A frame (points, columns), whether it has converged by its own numbers, and numbers for the
    trace.

    ``explained`` is what displacements explain of held-out statistics, about 0 where there is no
    domain.
    """

    W: NDArray[np.float64]
    arrived: bool
    explained: float
    quality: dict[str, Any]


def dense_frame(
    X: NDArray,
    held: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    edges_first: bool = False,
    skewed: bool = False,
    settings: FastSettings = DEFAULT,
) -> DenseFrame | None:
    """The best frame that starts from the covariance's eigenbasis; None where all moments are
    sampling noise.

    ``edges_first`` is for images that are mostly mean. Fields that are ``skewed`` have no use for
    fourth cumulants: where their third moment is too noisy, those are worse (63 pulses from 1,500
    rows: r 0.76 at half of the noise, after 200 s).
    """
    edges = None
    if edges_first:
        edges = _by_edges(X, held, grid, rng, settings)
        if edges is not None and edges.arrived:
            return edges
    if grid.size <= settings.max_eigenbasis[0]:
        modes = mode_moments(X, single=grid.size > settings.max_third_order)
        if modes.noise_share(settings.ranked_at) < settings.eigenbasis_noise:
            return _by_third_order(modes, X, held, grid, rng, settings)
    if _is_image(grid, settings) and not edges_first:
        edges = _by_edges(X, held, grid, rng, settings)
        if edges is not None and edges.arrived:
            return edges
    if grid.size <= settings.max_eigenbasis[1] and not skewed:
        return _by_fourth_order(X, held, grid, rng, settings) or edges
    return edges


def _is_image(grid: Grid, settings: FastSettings) -> bool:
    return grid.ndim == 2 and not any(grid.periodic) and grid.size <= settings.max_eigenbasis[0]


def mostly_mean(X: NDArray, grid: Grid, settings: FastSettings = DEFAULT) -> bool:
    """Whether one mode has nearly all the variance of an image, as the mean of photographs has.

    Third moments are then those of the mean alone, and frames with the detail wrong (r 0.94 to
    0.98, detail 0.3 to 0.8) convince by them.
    """
    if not _is_image(grid, settings):
        return False
    spectrum = np.linalg.eigvalsh(X.T @ X)
    return bool(spectrum[-1] > settings.mostly_mean * spectrum.sum())


def confirmed(W: NDArray, X: NDArray, grid: Grid, settings: FastSettings = DEFAULT) -> bool:
    """Whether a frame that is convincing by its plain moments is also convincing by half whitened
    ones.

    Plain moments are dominated by the strongest modes, so a frame whose weaker modes are wrong can
    pass. True if the test does not apply: on a torus, for grids too large for third order, and if
    the third moment is noise.
    """
    if (all(grid.periodic) and not grid.is_ring) or grid.size > settings.max_third_order:
        return True
    modes = mode_moments(X)
    if modes.noise_share(settings.ranked_at) > settings.eigenbasis_noise:
        return True
    gap, noise = modes.gap(settings.ranked_at, LagClasses(grid))
    return gap(W @ modes.basis.T)[0] < settings.confirmed_gap * noise


def _by_third_order(
    modes: ModeMoments,
    X: NDArray,
    held: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    settings: FastSettings,
) -> DenseFrame | None:
    arrival = eigenbasis_frame(modes, grid, rng, settings)
    if arrival is None:
        return None
    W, ratio, agreement = _sharper(arrival, modes, X, held, grid, settings)
    explained = explained_third_moment(W, modes, held, grid, settings.ranked_at)
    last = ratio if grid.is_ring else arrival.last
    arrived = last < settings.eigenbasis_arrived and explained > settings.dense_explained
    # on a ring every phase is stationary: the gap cannot confirm a phase, but entropy and third
    # moment can
    arrived = arrived and (not all(grid.periodic) or agreement > settings.same_phase)
    numbers = {"sharpened": round(ratio, 3)} | ({"agreement": agreement} if grid.is_ring else {})
    return DenseFrame(W, arrived, explained, {"order": 3, **_numbers(arrival), **numbers})


def _by_fourth_order(
    X: NDArray, held: NDArray, grid: Grid, rng: np.random.Generator, settings: FastSettings
) -> DenseFrame | None:
    """The frame, not sharpened: the pooled entropy prefers a wrong all-pass copy of a process."""
    modes = fourth_modes(X)
    if modes.noise_share(settings.ranked_at) > settings.fourth_noise:
        return None
    arrival = eigenbasis_frame(modes, grid, rng, settings)
    if arrival is None:
        return None
    W = arrival.W @ modes.basis
    # fourth moments are so noisy that wrong frames have gaps of 1, too: held-out slices of them
    # have to agree
    left, explained = unseen(W, X, held, grid, settings)
    arrived = (
        arrival.last < settings.fourth_arrived
        and left < settings.stationary
        and explained > settings.dense_explained
        and not all(grid.periodic)
    )
    return DenseFrame(
        W, arrived, explained, {"order": 4, **_numbers(arrival), "stationarity": left}
    )


def _by_edges(
    X: NDArray, held: NDArray, grid: Grid, rng: np.random.Generator, settings: FastSettings
) -> DenseFrame | None:
    """The frame of least variation, not sharpened: photographs have no silent parts."""
    frame = edges_frame(X, held, grid, rng, settings)
    if frame is None:
        return None
    left, explained = unseen(frame.W, X, held, grid, settings)
    arrived = (
        left < settings.edge_arrived
        and frame.roughness < settings.rough
        and explained > settings.dense_explained
    )
    numbers = {"roughness": frame.roughness, "reproduced": frame.reproduced, "stationarity": left}
    return DenseFrame(frame.W, arrived, explained, {"order": "edges", **numbers})


def unseen(
    W: NDArray, X: NDArray, held: NDArray, grid: Grid, settings: FastSettings
) -> tuple[float, float]:
    """How far held-out rows are from stationary ones, and what displacements explain of their
    similarities.
    """
    lags = LagClasses(grid)
    fitted, unseen = (similarities(part @ W.T) for part in (X[: settings.place.rows], held))
    left = float(stationarity(held @ W.T, lags).mean())
    return left, explained_held_out(fitted, unseen, np.arange(grid.size), lags)


def _numbers(arrival: Arrival) -> dict[str, Any]:
    return {"gaps": {str(a): round(r, 3) for a, r in arrival.ratios.items()}}


def _sharper(
    arrival: Arrival,
    modes: ModeMoments,
    X: NDArray,
    held: NDArray,
    grid: Grid,
    settings: FastSettings,
) -> tuple[NDArray[np.float64], float, float]:
    """The frame in the data's coordinates, sharpened if held-out rows confirm that it is sharper
    and equally stationary.

    Also returns the gap, and on a ring the agreement of its phase with that of the third moment.

    Digits 8 x 8: r 0.989 → 0.9996; garments 0.993 → 0.999; decays 0.994 → 0.9998. Without silent
    parts in the signal the entropy gains little and is misleading (moving averages: 0.998 → 0.97
    for 0.03).
    """
    some, test = (part[: settings.sharpen_rows] for part in (X, held))
    W = arrival.W @ modes.basis
    if arrival.gap is None or arrival.last > (
        settings.ring_gap if grid.is_ring else settings.sharpen_gap
    ):
        return W, arrival.last, 0.0
    last, agreement = arrival.last, 0.0
    if grid.is_ring:
        for _ in range(settings.ring_rounds):
            W, numbers = sharpest_phase(
                all_one_way(W, arrival.gap), some, test, settings.phase_rows, 0.0
            )
            W, value = minimise_over_rotations(
                arrival.gap, W, settings.path_steps[0], planes=arrival.planes
            )
            last, agreement = value / arrival.noise, numbers["agreement"]
    sharp = sharpen(
        W,
        some,
        arrival.gap,
        settings.third_sharpen_strength * arrival.noise,
        planes=arrival.planes,
    )
    before, after = (pooled_entropy(test @ V.T)[0] for V in (W, sharp))
    ratio = arrival.gap(sharp)[0] / arrival.noise
    if after < before - settings.third_sharper and ratio < settings.third_sharpened_gap * max(
        1.0, last
    ):
        return sharp, ratio, agreement
    return W, last, agreement


def all_one_way(W: NDArray, gap: Gap) -> NDArray[np.float64]:
    """Ring: turn modes that run against the others round, one at a time, while that lowers the gap.

    Eigenvectors of a ring come in planes without an orientation; steps cannot turn one over. Any
    phase of the mode will do.
    """
    n = len(W)
    best = gap(W)[0]
    for k in range(1, (n + 1) // 2):
        wave = np.sin(2 * np.pi * k * np.arange(n) / n)[:, None] * np.sqrt(2 / n)
        other = W - 2 * wave @ (wave.T @ W)
        value = gap(other)[0]
        if value < best:
            W, best = other, value
    return np.asarray(W, dtype=np.float64)


def explained_third_moment(
    W: NDArray, modes: ModeMoments, held: NDArray, grid: Grid, a: float
) -> float:
    """The part of held-out rows' third moment that the stationary part of the fitted rows'
    explains, off its diagonal.

    Both are those of W C^(-a/2) x. Without the diagonal, for independent values, which have every
    symmetry and no domain, have nothing else. The sampling noise of held-out rows is not taken out:
    about 0 where there is only that.
    """
    scale = np.maximum(modes.values, 1e-9 * modes.values[0]) ** (-a / 2)
    R = (W @ modes.basis.T) * scale
    dtype = modes.halves[0][1].dtype
    fitted = (modes.halves[0][1] + modes.halves[1][1]) / modes.rows
    V = R.astype(dtype)
    d = len(modes.values)
    model = V @ ((V @ fitted.reshape(d, -1)).reshape(-1, d, d) @ V.T)
    model = invariant_part(LagClasses(grid)).project(model)
    seen = third_sums((held @ modes.basis.T @ R.T).astype(dtype)) / len(held)
    i = np.arange(len(W))
    for tensor in (model, seen):
        tensor[i, i, i] = 0
    return float(1 - np.sum((seen - model) ** 2) / max(float(np.sum(seen**2)), 1e-300))
