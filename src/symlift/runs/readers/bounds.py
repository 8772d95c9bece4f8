"""Size limits: what a file declares is checked before anything is unpacked."""

from __future__ import annotations

import os
from pathlib import Path

from symlift.errors import InputError

__all__ = ["available_memory", "check_size", "size_of"]

#: share of the memory that one array may take, since computing with it needs more
_SHARE = 0.5
#: above this size in bytes, an array may be at most this many times larger than its stored form;
#: real data stay far below
_SMALL, _MOST_TIMES = 256 << 20, 400


def available_memory() -> int:
    """Return the bytes that are available without swapping, within a container's limit."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # pragma: no cover - not on every system
        memory = 8 << 30
    lines = _first_line("/proc/meminfo", all_of_it=True).splitlines()
    limits = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    limit = _first_line("/sys/fs/cgroup/memory.max")
    used = _first_line("/sys/fs/cgroup/memory.current")
    if limit.isdigit() and used.isdigit():
        limits.append(max(int(limit) - int(used), 0))
    return min([memory, *limits])


def _first_line(name: str, all_of_it: bool = False) -> str:
    try:
        text = Path(name).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return text if all_of_it else text.partition("\n")[0]


def check_size(path: Path, needed: int, stored: int | None = None, what: str = "it") -> None:
    """Refuse ``needed`` bytes that exceed the memory, or are implausible for ``stored`` bytes."""
    if stored is not None and needed > _SMALL and needed > _MOST_TIMES * max(stored, 1):
        raise InputError(
            f"{path} stores {size_of(stored)} that unpack to {size_of(needed)}, as no data do: save"
            f" {what} as .npy if it is meant"
        )
    memory = available_memory()
    if needed > _SHARE * memory:
        raise InputError(
            f"{path} needs {size_of(needed)} of memory, and {size_of(memory)} are free: save {what}"
            " as .npy, which is read from the disk as it is needed"
        )


def size_of(count: int) -> str:
    """Format a number of bytes.

    >>> size_of(3 << 30), size_of(12)
    ('3.0 GB', '12 bytes')
    """
    for name, unit in (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count} bytes"
