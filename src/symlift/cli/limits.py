"""Limits on memory that a command is started under (``ulimit -v``, batch systems).

Under a tight limit it is not our code that fails but the libraries that it loads, each in a way of
its own: OpenBLAS prints a line and ends the process or waits for ever, and others raise errors that
name a file.  So the limit is compared with what they take before any of them is loaded.
"""

from __future__ import annotations

import os
import sys

__all__ = ["within_limits"]

#: address space in MB that the libraries take with one thread (measured: 700 with a report, where
#: 650 ended in a hang or a crash), and below which further threads would take too much of it
_LEAST, _AMPLE = 768, 4096


def _limit() -> int | None:
    """Return the limit of the address space in MB, or None without one."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows has no such limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit >> 20


def within_limits() -> None:
    """End with one line under a limit that the libraries exceed; with one thread where it is tight.

    Each thread of OpenBLAS has its own buffers, which count in full although they are hardly used.
    """
    limit = _limit()
    if limit is None or limit >= _AMPLE:
        return
    if limit < _LEAST:
        sys.stderr.write(
            f"error: the limit of {limit} MB on memory (ulimit -v) is less than the libraries take:"
            f" allow at least {_LEAST} MB, and more for large data\n"
        )
        raise SystemExit(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
