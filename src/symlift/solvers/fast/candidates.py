"""Candidates for a dense mixing: lifting maps that start from independent components.

Each attempt builds frames from components and polishes the best one. Where that is not convincing,
the process that drives the components, the eigenbasis of the covariance, and general invertible
maps are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.components import independent_components, nongaussianity
from symlift.solvers.fast.dense import confirmed, dense_frame, mostly_mean, unseen
from symlift.solvers.fast.frames import linked_frame, points_frame, position_frames
from symlift.solvers.fast.increments import increments_frame
from symlift.solvers.fast.innovations import process_frame
from symlift.solvers.fast.polish import Polish
from symlift.solvers.fast.resolve import least_distortion_filter, resolve, unit_determinant
from symlift.solvers.fast.steps import steps_frame
from symlift.solvers.fast.whitened import whitened_frames
from symlift.solvers.fast.work import SplitRows, Work
from symlift.statistics.selection import HeldOut, held_out

__all__ = ["component_candidates"]


def component_candidates(
    rows: SplitRows,
    grid: Grid,
    lags: LagClasses,
    rng: np.random.Generator,
    work: Work,
    thorough: bool,
    invertible: bool,
) -> dict[str, NDArray[np.float64]]:
    """Candidates that start from independent components: cheap ones first, the general ones if
    those are not convincing.
    """
    settings = work.settings
    candidates: dict[str, NDArray[np.float64]] = {}
    polish = Polish(rows, grid, lags, work)
    unmixings: list[tuple[float, NDArray]] = []
    edges_first = thorough and mostly_mean(rows.fit, grid, settings)
    from_eigenbasis = partial(
        _from_eigenbasis, rows, grid, rng, work, candidates, edges_first, polish.noisy
    )
    for attempt in range(settings.few_rows_attempts if thorough else 1):
        # more attempts only to confirm what few rows have found
        if attempt == settings.attempts and not polish.arrived:
            break
        with work.stage("localise") as values:
            U, quality = independent_components(
                rows.fit[rng.permutation(len(rows.fit))[: settings.component_rows]], rng, settings
            )
            if settings.component_rows < settings.rows_per_component * grid.size:
                U, quality = independent_components(rows.fit, rng, settings, start=U)
            quality["nongaussianity"] = nongaussianity(rows.fit @ U.T, rows.held @ U.T)
            values |= quality
        unmixings.append((quality["contrast"], U))
        with work.stage("frames") as values:
            points, quality = points_frame(rows.fit, rows.held, U, grid, rng)
            values |= quality
            frames = {"points": points}
            if grid.ndim == 1 and not grid.periodic[0]:
                frames |= position_frames(rows.fit, U)
            if polish.noisy:
                frames["linked"] = linked_frame(rows.fit, U, grid, rng)
                if grid.size >= settings.fewest_innovations:
                    frames["process"] = process_frame(U, grid, rng, True, settings).W
        if _from_steps(rows, U, grid, rng, work, candidates):
            return candidates
        if quality["locality"] < settings.local and _from_innovations(
            rows, U, grid, rng, work, candidates, invertible
        ):
            return candidates
        if attempt == 0 and edges_first and from_eigenbasis():
            return candidates
        name, W, convincing = polish(frames)
        candidates[f"{name} {attempt}"] = W
        sure = convincing and not edges_first
        if not thorough or (sure and confirmed(W, rows.fit, grid, settings)):
            return candidates
        # the gap cannot confirm a phase of a ring, nor anything with few rows, but two attempts
        # can: the eigenbasis comes after them
        late = all(grid.periodic) or polish.noisy
        turn = 1 if grid.is_ring else settings.attempts - 1 if late else 0
        if attempt == turn and not (edges_first or polish.arrived) and from_eigenbasis():
            return candidates
        if convincing:
            return candidates
    work.confirmed = not polish.noisy
    _, U = max(unmixings, key=lambda pair: pair[0])
    if invertible and grid.size <= settings.max_resolve:
        candidates |= _general(rows, U, grid, lags, rng, work, candidates)
    return candidates


def _from_innovations(
    rows: SplitRows, U: NDArray, grid: Grid, rng: np.random.Generator, work: Work,
    candidates: dict[str, NDArray[np.float64]], invertible: bool,
) -> bool:  # fmt: skip
    """If the mixing columns of the components have a domain, but the components do not: the process
    that they drive becomes the only candidate.
    """
    settings = work.settings
    if any(grid.periodic) or grid.size < settings.fewest_innovations:
        return False
    with work.stage("process") as values:
        U, _ = independent_components(rows.fit, rng, settings, start=U)
        process = process_frame(U, grid, rng, not invertible, settings)
        values |= process.quality
        if process.explained < settings.overlap:
            return False
        answers = {"process": process.W, "innovations": process.innovations}
        values["answers"] = _held_out_numbers(answers, rows, grid)
        if values["answers"]["process"]["stationarity"] > settings.still(len(rows.held)):
            # domain walls of spins overlap like innovations, too, but drive no stationary process
            return False
        values["locality"] = process.explained
        # both are stationary, and resolution prefers innovations: least distortion decides, or the
        # user
        chosen = "innovations" if work.sharpest else "process"
        candidates.clear()
        candidates[chosen] = answers[chosen]
    return True


def _from_steps(
    rows: SplitRows, U: NDArray, grid: Grid, rng: np.random.Generator, work: Work,
    candidates: dict[str, NDArray[np.float64]],
) -> bool:  # fmt: skip
    """If the components are differences of neighbours on a line: the field that they sum up to
    becomes the only candidate.

    Innovations of a process form a chain, too, but what they sum up to is rough and not stationary.
    """
    if grid.ndim > 1 or any(grid.periodic) or grid.size < work.settings.fewest_steps:
        return False
    with work.stage("steps") as values:
        summed = steps_frame(U, rows.fit, rows.held, grid, rng, work.settings)
        if summed is None:
            return False
        W, rough = summed
        left, explained = unseen(W, rows.fit, rows.held, grid, work.settings)
        values |= {"stationarity": left, "explained": explained, "roughness": rough}
        if (
            left > work.settings.still(len(rows.held))
            or rough > work.settings.rough_steps
            or explained < work.settings.dense_explained
        ):
            return False
        values["locality"] = explained
        answers = {"steps": W, "increments": unit_determinant(U)}
        values["answers"] = _held_out_numbers(answers, rows, grid)
        chosen = "increments" if work.sharpest else "steps"
        candidates.clear()
        candidates[chosen] = answers[chosen]
    return True


def _held_out_numbers(
    answers: dict[str, NDArray[np.float64]], rows: SplitRows, grid: Grid
) -> dict[str, dict[str, float]]:
    return {name: asdict(held_out(W, rows.held, LagClasses(grid))) for name, W in answers.items()}


def _from_eigenbasis(
    rows: SplitRows,
    grid: Grid,
    rng: np.random.Generator,
    work: Work,
    candidates: dict[str, NDArray[np.float64]],
    edges_first: bool,
    skewed: bool,
) -> bool:
    """Add the frame that starts from the covariance's eigenbasis; if it has converged, it becomes
    the only candidate.
    """
    with work.stage("eigenbasis") as values:
        frame = dense_frame(rows.fit, rows.held, grid, rng, edges_first, skewed, work.settings)
        if frame is None:
            return False
        values |= frame.quality | {"arrived": frame.arrived}
        if frame.arrived:
            values["locality"] = frame.explained
            answers = candidates | {"eigenbasis": frame.W}
            values["answers"] = _held_out_numbers(answers, rows, grid)
            # resolution must not overrule least distortion: among maps that are all-pass copies it
            # prefers innovations
            if not work.sharpest:
                candidates.clear()
        candidates["eigenbasis"] = frame.W
    return frame.arrived and not work.sharpest


def _general(
    rows: SplitRows,
    U: NDArray,
    grid: Grid,
    lags: LagClasses,
    rng: np.random.Generator,
    work: Work,
    rotations: dict[str, NDArray[np.float64]],
) -> dict[str, NDArray[np.float64]]:
    """Maps that need not be orthogonal: from points, from the best rotation, and on a line from
    increments.
    """
    settings = work.settings
    fewest, most = settings.resolve_rows
    some = rows.fit[: min(most, max(fewest, settings.resolve_numbers // grid.size))]
    best = min(rotations, key=lambda name: held_out(rotations[name], rows.held, lags).value())
    starts: dict[str, Callable[[], tuple[NDArray, dict[str, float]]]] = {
        "points, resolved": lambda: points_frame(some, rows.held, U, grid, rng),
        f"{best}, resolved": partial(_as_it_is, rotations[best]),
    }
    if grid.ndim == 1 and not grid.periodic[0] and grid.size > 3:
        starts["increments, resolved"] = lambda: increments_frame(some, rows.held, U, rng)
    single = some.astype(np.float32)
    maps = {name: _resolved(name, start, single, lags, work) for name, start in starts.items()}
    still = min((held_out(W, rows.held, lags) for W in maps.values()), key=HeldOut.value)
    on_a_line = grid.ndim == 1 and not grid.periodic[0] and grid.size <= settings.max_third_order
    # wrong maps of Legendre pulses leave as little as 0.0046 (r 0.83), right ones of Gaussian
    # pulses up to 0.0035
    if on_a_line and still.stationarity > settings.stationary:
        maps |= _whitened(rows, U, grid, lags, work, single)
    return maps


def _resolved(
    name: str,
    start: Callable[[], tuple[NDArray, dict[str, float]]],
    rows: NDArray,
    lags: LagClasses,
    work: Work,
    fine: bool = False,
) -> NDArray[np.float64]:
    """A start, resolved (by a ``fine`` density only) and then of least distortion."""
    settings = work.settings
    if fine:
        settings = replace(
            settings, bandwidths=settings.fine_bandwidths, resolve_steps=settings.fine_steps
        )
    with work.stage("resolve") as values:
        W, quality = start()
        W = resolve(W, rows, lags, settings=settings)
        W = unit_determinant(least_distortion_filter(W, lags, work.settings.filter_taps))
        values |= {"start": name, **quality}
    return W


def _as_it_is(W: NDArray) -> tuple[NDArray, dict[str, float]]:
    return W, {}


def _whitened(
    rows: SplitRows, U: NDArray, grid: Grid, lags: LagClasses, work: Work, single: NDArray
) -> dict[str, NDArray[np.float64]]:
    """Frames of whitened rows, resolved; the best of them goes on with a finer density."""
    with work.stage("whitened"):
        starts = whitened_frames(rows.fit, U, grid, work.settings)
    maps = {
        f"{name}, resolved": _resolved(name, partial(_as_it_is, W), single, lags, work)
        for name, W in starts.items()
    }
    if maps:
        best = min(maps, key=lambda name: held_out(maps[name], rows.held, lags).value())
        maps[best] = _resolved(best, partial(_as_it_is, maps[best]), single, lags, work, fine=True)
    return maps
