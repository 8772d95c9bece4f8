"""What all starts of a dense mixing look at: rows, components and moments, each computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.metrics.recovery import signal_recovery
from symlift.solvers.contract import no_progress
from symlift.solvers.fast.arrange import explained_held_out, similarities
from symlift.solvers.fast.components import independent_components, nongaussianity
from symlift.solvers.fast.fourth_moments import FourthModes, fourth_modes
from symlift.solvers.fast.frames import linked_frame, points_frame, position_frames
from symlift.solvers.fast.innovations import process_frame
from symlift.solvers.fast.mode_moments import ModeMoments, mode_moments
from symlift.solvers.fast.stationary import Moments, moments
from symlift.solvers.fast.work import SplitRows, Work
from symlift.statistics.moments import stationarity
from symlift.statistics.selection import held_out

__all__ = ["Components", "Problem", "same_signals"]

# rows by which signals are compared
_COMPARED = 2_000


@dataclass(frozen=True, eq=False)
class Components:
    """Independent components of one turn, the frames that they make, and how much of held-out
    energies their order explains.
    """

    U: NDArray[np.float64]
    contrast: float
    nongaussianity: float
    frames: dict[str, NDArray[np.float64]]
    locality: float


class Problem:
    """Rows behind a dense mixing on a grid; what is known of them is computed on demand, once."""

    def __init__(
        self,
        rows: SplitRows,
        grid: Grid,
        rng: np.random.Generator,
        work: Work,
        invertible: bool = True,
    ) -> None:
        self.rows, self.grid, self.rng, self.work = rows, grid, rng, work
        self.invertible, self.settings = invertible, work.settings
        self.lags = LagClasses(grid)
        self._components: dict[int, Components] = {}

    def again(self) -> Problem:
        """The same with other draws, and with other rows to fit to.

        A half of them, or three quarters where there are few for each column. Where there are so
        few that moments are mostly noise, all: frames that were sharpened from other components
        differ enough.
        """
        fit, settings = self.rows.fit, self.settings
        share = 0.5 if len(fit) >= settings.many_rows * self.grid.size else 0.75
        some = fit if self.noisy else fit[self.rng.permutation(len(fit))[: int(share * len(fit))]]
        quiet = Work(settings, no_progress, self.work.sharpest)
        rows = SplitRows(some, self.rows.held)
        return Problem(rows, self.grid, self.rng.spawn(1)[0], quiet, self.invertible)

    # -- the grid ----------------------------------------------------------------------------------

    @property
    def is_open_line(self) -> bool:
        return self.grid.ndim == 1 and not self.grid.periodic[0]

    @property
    def is_image(self) -> bool:
        """Whether it is a window of two axes, of no more points than third moments are kept of."""
        few = self.grid.size <= self.settings.max_eigenbasis[0]
        return self.grid.ndim == 2 and not any(self.grid.periodic) and few

    # -- moments -----------------------------------------------------------------------------------

    @cached_property
    def moments(self) -> Moments | None:
        """Second and third moments; None on grids of more points than steps of them take."""
        if self.grid.size > self.settings.max_third_order:
            return None
        with self.work.stage("moments") as values:
            whole = moments(self.rows.fit)
            values |= {"noise": whole.noise, "third_order_noise": whole.third_noise}
        return whole

    @property
    def has_third_moment(self) -> bool:
        return self.moments is not None and (
            self.moments.third_noise <= self.settings.no_third_moment
        )

    @property
    def noisy(self) -> bool:
        """Whether there are too few rows for a gap to decide alone; phases of rings are chosen in
        another way.
        """
        return (
            self.moments is not None
            and self.has_third_moment
            and not all(self.grid.periodic)
            and self.settings.noisy_moments < self.moments.noise
        )

    @property
    def needed_agreement(self) -> float:
        """Correlation from which on the signals of two attempts are the same.

        Where moments are mostly noise, attempts share their rows, and a part of their errors.
        """
        return self.settings.same_signals if self.noisy else self.settings.agreed

    @cached_property
    def modes(self) -> ModeMoments | None:
        """Third moments of the covariance's eigenvectors; None where they do not fit into memory,
        or where half whitened they are sampling noise.
        """
        if self.grid.size > self.settings.max_eigenbasis[0]:
            return None
        modes = mode_moments(self.rows.fit, single=self.grid.size > self.settings.max_third_order)
        noise = modes.noise_share(self.settings.ranked_at)
        return modes if noise < self.settings.eigenbasis_noise else None

    @cached_property
    def fourth(self) -> FourthModes | None:
        """The same of fourth cumulants."""
        if self.grid.size > self.settings.max_eigenbasis[1]:
            return None
        modes = fourth_modes(self.rows.fit)
        noise = modes.noise_share(self.settings.ranked_at)
        return modes if noise <= self.settings.fourth_noise else None

    @cached_property
    def mostly_mean(self) -> bool:
        """Whether one mode has nearly all the variance of an image, as the mean of photographs has.

        Third moments are then those of the mean alone, and frames with the detail wrong (r 0.94 to
        0.98, detail 0.3 to 0.8) convince by them.
        """
        if not self.is_image:
            return False
        spectrum = np.linalg.eigvalsh(self.rows.fit.T @ self.rows.fit)
        return bool(spectrum[-1] > self.settings.mostly_mean * spectrum.sum())

    # -- components --------------------------------------------------------------------------------

    def components(self, turn: int) -> Components:
        """Those of one turn: from other rows and another start each time."""
        if turn not in self._components:
            self._components[turn] = self._found_components()
        return self._components[turn]

    @property
    def nongaussianity(self) -> float:
        """The largest standard score of all components that were found."""
        return max((one.nongaussianity for one in self._components.values()), default=0.0)

    @property
    def sharpest_components(self) -> Components:
        """Those of the largest contrast."""
        self.components(0)
        return max(self._components.values(), key=lambda one: one.contrast)

    def _found_components(self) -> Components:
        rows, grid, rng, settings = self.rows, self.grid, self.rng, self.settings
        with self.work.stage("localise") as values:
            some = rows.fit[rng.permutation(len(rows.fit))[: settings.component_rows]]
            U, quality = independent_components(some, rng, settings)
            if settings.component_rows < settings.rows_per_component * grid.size:
                U, quality = independent_components(rows.fit, rng, settings, start=U)
            quality["nongaussianity"] = nongaussianity(rows.fit @ U.T, rows.held @ U.T)
            values |= quality
        with self.work.stage("frames") as values:
            points, numbers = points_frame(rows.fit, rows.held, U, grid, rng)
            values |= numbers
            frames = {"points": points}
            if self.is_open_line:
                frames |= position_frames(rows.fit, U)
            if self.noisy:
                frames["linked"] = linked_frame(rows.fit, U, grid, rng)
                if grid.size >= settings.fewest_innovations:
                    frames["process"] = process_frame(U, grid, rng, True, settings).W
        return Components(
            U, quality["contrast"], quality["nongaussianity"], frames, numbers["locality"]
        )

    # -- what held-out rows say --------------------------------------------------------------------

    def unseen(self, W: NDArray) -> tuple[float, float]:
        """How far held-out rows are from stationary ones, and what displacements explain of their
        similarities.
        """
        some = self.rows.fit[: self.settings.place.rows]
        fitted, unseen = (similarities(part @ W.T) for part in (some, self.rows.held))
        explained = explained_held_out(fitted, unseen, np.arange(self.grid.size), self.lags)
        return float(stationarity(self.rows.held @ W.T, self.lags).mean()), explained

    def numbers(self, answers: Mapping[str, NDArray]) -> dict[str, dict[str, float]]:
        """Held-out numbers of several answers, for the trace."""
        return {name: asdict(held_out(W, self.rows.held, self.lags)) for name, W in answers.items()}


def same_signals(W: NDArray, V: NDArray, rows: NDArray, grid: Grid) -> float:
    """Correlation of the signals of two maps, up to the grid's symmetries; of images without the
    mean of each, which any map finds where it has most of the variance.
    """
    some = rows[:_COMPARED]
    recovery = signal_recovery(some @ W.T, some @ V.T, grid)
    return recovery.r if grid.ndim == 1 else min(recovery.r, recovery.r_detail)
