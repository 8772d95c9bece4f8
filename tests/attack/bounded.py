"""Bounds of what reading one small file may take: memory and time, measured around each of them."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

#: what no file under 10 MB may take
MEMORY, SECONDS = 1 << 30, 20.0

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _resident(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None  # not Linux
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name)), None)


@contextlib.contextmanager
def bounded(memory: int = MEMORY, seconds: float = SECONDS) -> Iterator[None]:
    """Fail if the block takes more memory or more processor time; one that goes on and on is ended
    as soon as Python runs again.
    """

    def end(*_: object) -> None:
        raise AssertionError(f"took more than {seconds} s")

    timed = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGPROF")
    before = _resident("VmRSS")
    with contextlib.suppress(OSError):
        _RESET.write_text("5")  # the peak so far is forgotten
    if timed:
        handler = signal.signal(signal.SIGPROF, end)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    start = time.process_time()
    try:
        yield
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, handler)
    spent, peak = time.process_time() - start, _resident("VmHWM")
    assert spent < seconds, f"took {spent:.1f} s"
    if before is not None and peak is not None:
        assert peak - before < memory, f"took {(peak - before) >> 20} MB"
