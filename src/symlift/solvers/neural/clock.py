"""The clock of a training run: how far the rank of the joint entropy is open, and the decay of the
learning rates.

The paper opens the rank in learning-rate time. A squeezed clock then opens it faster than the fit
can follow, and the run is lost: each newly opened plane has to find its frequency before the next
one may come. So the rank waits. Planes are pairs of dimensions, in addition to the constant one, so
a field can be stationary at ranks 1, 3, 5, …; the clock stops half a rank short of the next pair's
end (2.5, 4.5, …), where the pair is opened far enough to be pressed into place, until the smoothed
stationarity term falls below a bound. Stopping at the odd ranks themselves presses too little (a
new plane must pass frequencies that are not stationary, pushing the others up), and growing in
proportion to the fit presses two planes in at once. When all of the rank is open (up to a limit:
the last planes are weak and hard to place) the run settles: learning rates decay, and it ends.

The first harmonics decide. If the second one comes first, all later ones are wrong, and the
stationarity term never falls at a low stop. A run that stalls there cannot recover, and another
draw of the start is cheaper than continuing.

A run may also close before the end: at a given rank, it goes over to the nearest exact model, and
its rest is that of a near start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from symlift.solvers.neural.presets import Settings

__all__ = ["Clock"]

# the smoothed stationarity keeps this much of itself from one check to the next
_MEMORY = 0.8


@dataclass(frozen=True)
class Clock:
    """Rank, the next stop, share of the learning rates, smoothed stationarity, and the step at
    which settling began.

    ``draws`` counts the starts, the last of which was taken at step ``began`` (``near``: from a
    model that is known to be near). ``lost`` and ``closing`` ask for another start: a new draw, or
    the nearest exact model; ``closing_on_all`` asks for an attempt to end on all rows, and
    ``closed`` is the least gap after such attempts (``tries``: how many have not arrived since one
    did).

    >>> settings = Settings(rank_speed=0.01, patience=0.1, dwell=50, settle=100)
    >>> clock = Clock.start(settings, points=5)
    >>> clock.rank, clock.stop
    (1.5, 2.5)
    >>> for step in range(50, 600, 50):  # not stationary: it waits at the stop
    ...     clock = clock.advance(settings, step, every=50, stationarity=0.3)
    >>> clock.rank, clock.stop
    (2.5, 2.5)
    """

    rank: float
    full: float
    stop: float
    factor: float = 1.0
    fit: float | None = None
    arrived: int | None = None
    settled: int | None = None
    finished: bool = False
    draws: int = 1
    began: int = 0
    lost: bool = False
    near: bool = False
    closing: bool = False
    closing_on_all: bool = False
    closed: float | None = None
    tries: int = 0

    @classmethod
    def start(
        cls, settings: Settings, points: int, opened: bool = False, draws: int = 1, began: int = 0
    ) -> Clock:
        """At the first rank, or with the spectrum ``opened`` at once (a start that is known to be
        near).
        """
        if settings.clock == "paper" and not opened:
            return cls(
                rank=1.0, full=settings.rank_limit or points, stop=1.0, draws=draws, began=began
            )
        # half a rank beyond the last index: the soft window is then nearly 1 there
        full = settings.rank_limit if settings.rank_limit is not None else points + 0.5
        if opened:
            return cls(
                rank=full, full=full, stop=full, settled=began, draws=draws, began=began, near=True
            )
        return cls(rank=min(1.5, full), full=full, stop=min(2.5, full), draws=draws, began=began)

    def after_closing(self, settings: Settings, gap: float, arrived: bool) -> Clock:
        """The clock goes on: a closing ended at ``gap``, which no other has confirmed yet; or it is
        lost, where so many have not ``arrived``.
        """
        tries, most = 0 if arrived else self.tries + 1, settings.full_batch_tries
        return replace(
            self,
            closing_on_all=False,
            closed=min(gap, self.closed or math.inf),
            tries=tries,
            lost=most is not None and tries >= most and self.draws <= settings.retries,
        )

    @property
    def opened(self) -> float:
        """The share of the rank that is open, 0 to 1."""
        return min(1.0, self.rank / self.full)

    def _left(self, settings: Settings, rank: float) -> float:
        """The paper's own relation: where the rank is a share s of the summed rate, the rate has
        fallen to 1 - (1 - decay) s.
        """
        return 1 - (1 - settings.decay) * min(1.0, rank / self.full)

    def share(self, settings: Settings, step: int) -> float:
        """About how much of the run is done, for a progress bar."""
        if settings.clock == "paper":
            return min(1.0, step / settings.steps)
        if self.settled is None:
            return max(0.7 * self.opened, step / settings.steps)
        settling = min(1.0, (step - self.settled) / settings.settle)
        return settling if self.settled == 0 else max(0.7 + 0.3 * settling, step / settings.steps)

    def advance(self, settings: Settings, step: int, every: int, stationarity: float) -> Clock:
        """The clock after ``step`` steps, of which the last ``every`` had this mean
        ``stationarity``.
        """
        after = self._advance(settings, step, every, stationarity)
        first = settings.full_batch_at
        if first is None or settings.clock == "paper" or after.lost or after.closing:
            return after
        due = after.rank >= first and step % settings.full_batch_every == 0
        return replace(after, closing_on_all=due)

    def _advance(self, settings: Settings, step: int, every: int, stationarity: float) -> Clock:
        out_of_time = step >= settings.steps
        if settings.clock == "paper":
            done = min(1.0, step / settings.steps)
            share = (
                (1 - settings.decay**done) / (1 - settings.decay) if settings.decay < 1 else done
            )
            # rounding must not open a rank before its time; the released code's is no whole number
            rank = self.full * share
            if settings.window == "index":
                rank = max(1.0, float(math.ceil(rank - 1e-9)))
            return replace(self, factor=settings.decay**done, rank=rank, finished=out_of_time)
        if self.settled is not None:
            done = min(1.0, (step - self.settled) / settings.settle)
            first = 1.0 if self.near else self._left(settings, self.rank)
            factor = first * (settings.decay**2 / first) ** done
            return replace(self, factor=factor, finished=done >= 1 or out_of_time)
        if self.rank < self.stop:
            rank = min(self.stop, self.rank + every * settings.rank_speed)
            arrived = step if rank >= self.stop else None
            factor = self._left(settings, rank)
            return replace(
                self, rank=rank, factor=factor, arrived=arrived, fit=None, finished=out_of_time
            )
        # measurements before the stop carry no information on it
        fit = (
            stationarity if self.fit is None else _MEMORY * self.fit + (1 - _MEMORY) * stationarity
        )
        waited = step - (self.arrived or 0)
        fits = waited >= settings.dwell and fit <= settings.patience
        if not fits and waited < settings.stall:
            return replace(self, fit=fit, finished=out_of_time)
        if not fits and self.opened < settings.must_fit and self.draws <= settings.retries:
            return replace(self, fit=fit, lost=not out_of_time, finished=out_of_time)
        if settings.close_at is not None and self.rank >= min(settings.close_at, self.full):
            return replace(self, fit=fit, closing=not out_of_time, finished=out_of_time)
        if self.rank >= self.full:
            return replace(self, fit=fit, settled=step, finished=out_of_time)
        return replace(self, fit=fit, stop=min(self.stop + 2, self.full), finished=out_of_time)
