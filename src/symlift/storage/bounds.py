"""Size limits: what a file declares is checked before anything is unpacked."""

from __future__ import annotations

from pathlib import Path

from symlift.errors import InputError
from symlift.storage.free_memory import available_memory, size_of

__all__ = ["check_size"]

#: share of the memory that one array may take, since computing with it needs more
_SHARE = 0.5
#: above this size in bytes, an array may be at most this many times larger than its stored form;
#: real data stay far below
_SMALL, _MOST_TIMES = 256 << 20, 400


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
