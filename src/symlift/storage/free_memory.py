"""How much memory there is: of the system, of the container, under a limit of the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["available_memory", "free_swap", "size_of"]

_GROUPS = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return the bytes that are available without swapping, within all limits there are."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # pragma: no cover - not on every system
        memory = 8 << 30
    return max(0, min(memory, *_meminfo("MemAvailable"), *_container(), *_address_space()))


def free_swap() -> int:
    """Return the bytes that could be moved to the disk; 0 if the system does not report it."""
    return next(_meminfo("SwapFree"), 0)


def _meminfo(name: str) -> Iterator[int]:
    for line in _text(Path("/proc/meminfo")).splitlines():
        if line.startswith(f"{name}:"):
            yield int(line.split()[1]) << 10


def _container() -> Iterator[int]:
    """What control groups leave, of this one and of those around it; a group's cache of files is
    given up before anything else, and counts as free.
    """
    own = next(
        (line[4:] for line in _text(Path("/proc/self/cgroup")).splitlines() if line[:3] == "0::"),
        "",
    )
    group = _GROUPS / own
    for place in (group, *group.parents):
        if not place.is_relative_to(_GROUPS):
            return
        limit, used = (_text(place / f"memory.{name}") for name in ("max", "current"))
        if limit.isdigit() and used.isdigit():
            cached = [
                int(line.split()[1])
                for line in _text(place / "memory.stat").splitlines()
                if line.startswith("inactive_file ")
            ]
            yield int(limit) - int(used) + sum(cached)


def _address_space() -> Iterator[int]:
    """What a limit on the address space (``ulimit -v``) leaves."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows has no such limits
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = _text(Path("/proc/self/statm")).split()
    if limit != resource.RLIM_INFINITY and used:
        yield limit - int(used[0]) * os.sysconf("SC_PAGE_SIZE")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def size_of(count: int) -> str:
    """Format a number of bytes.

    >>> size_of(3 << 30), size_of(12)
    ('3.0 GB', '12 bytes')
    """
    for name, unit in (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count} bytes"
