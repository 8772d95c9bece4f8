"""The time of a training: how much of its budget is spent, over all resumptions, and when to write
a checkpoint.

A checkpoint is due at fixed intervals, and when the process is asked to stop (Ctrl-C, or SIGTERM as
batch systems send it): the current step is finished, the checkpoint is written, and the process
stops.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self

from symlift.solvers.registry import SPENT
from symlift.storage.atomic import write_atomically
from symlift.storage.strict_json import dumps, read_json

__all__ = ["SAVE_SECONDS", "Pace"]

# a run that is killed often must not begin its budget anew: the time that is spent is noted more
# often than checkpoints are written
#: seconds between checkpoints, and between notes
SAVE_SECONDS, _NOTE_SECONDS = 20.0, 1.0
_STOPS = tuple(s for s in (signal.SIGINT, getattr(signal, "SIGTERM", None)) if s is not None)


class Pace:
    """``with Pace(folder, seconds) as pace``: counts on from ``seconds``, or from what ``folder``
    notes, whichever is more.

    ``folder`` None writes nothing and leaves signals alone.  ``now`` is the clock.
    """

    def __init__(
        self, folder: Path | None, seconds: float = 0.0, now: Callable[[], float] | None = None
    ) -> None:
        self.folder, self.now = folder, now or time.perf_counter
        self.stopped_by: int | None = None
        self._before: dict[Any, Any] = {}
        self._saved = self._written = max(seconds, self._noted())
        self._began = self.now() - self._saved

    @property
    def seconds(self) -> float:
        """Seconds of training so far, over all resumptions."""
        return self.now() - self._began

    def _noted(self) -> float:
        if self.folder is None:
            return 0.0
        try:
            noted = read_json(self.folder / SPENT, most=1000)["seconds"]
            return min(max(float(noted), 0.0), 1e9)
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            return 0.0

    def due(self) -> bool:
        """Whether a checkpoint should be written now; also notes the time spent."""
        if self.folder is None:
            return False
        spent = self.seconds
        if spent - self._written >= _NOTE_SECONDS:
            self._written = spent
            # a full disk stops checkpoints, which say so; this is a note
            with contextlib.suppress(OSError), write_atomically(self.folder / SPENT) as temporary:
                temporary.write_text(dumps({"seconds": spent}) + "\n", encoding="utf-8")
        return self.stopped_by is not None or spent - self._saved >= SAVE_SECONDS

    def saved(self) -> None:
        """A checkpoint was written; stop now if the process was asked to."""
        self._saved = self.seconds
        if self.stopped_by is not None:
            self._stop(self.stopped_by)

    def __enter__(self) -> Self:
        # only the main thread may have handlers
        if self.folder is not None and threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._asked) for number in _STOPS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _asked(self, number: int, _: FrameType | None) -> None:
        if self.stopped_by is not None:  # asked again: at once
            self._stop(number)
        self.stopped_by = number

    @staticmethod
    def _stop(number: int) -> NoReturn:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)
