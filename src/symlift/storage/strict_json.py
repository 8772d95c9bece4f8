"""JSON as the standard has it: no NaN, no infinity, nothing of numpy; and read within bounds."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symlift.storage.plain_files import open_plain

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_DIGITS", "dumps", "loads", "plain", "read_json"]

#: what a file may hold: ours have a few levels, short numbers, and at most a few megabytes for
#: 100,000 columns
MAX_BYTES, MAX_DEPTH, MAX_DIGITS = 64 * 2**20, 64, 40

# strings as a whole, so that brackets inside of them do not count; possessive, so that no text
# takes more than one pass
_TOKEN = re.compile(r'"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)


def plain(value: Any) -> Any:
    """``value`` as strict JSON can hold it: arrays as lists, NaN and infinity as null, the unknown
    as text.

    >>> plain({"a": np.float64(1.5), "b": (np.nan, True)})
    {'a': 1.5, 'b': [None, True]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def dumps(value: Any, indent: int | None = None) -> str:
    """Strict JSON text of anything that `plain` takes."""
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def loads(text: str) -> Any:
    """What a JSON text says, within bounds: at most 64 levels, whole numbers of at most 40 digits;
    else a ValueError.

    NaN and infinity, which other writers put into JSON, are read as what they are.

    >>> loads('{"a": [1, "[["]}')
    {'a': [1, '[[']}
    >>> loads("[" * 65 + "]" * 65)
    Traceback (most recent call last):
    ValueError: more than 64 levels
    """
    depth = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        depth += (first in "[{") - (first in "]}")
        if depth > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} levels")
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)


def read_json(path: Path, most: int = MAX_BYTES) -> Any:
    """What a JSON file says; a ValueError where it is too large, not UTF-8, not JSON, beyond the
    bounds of `loads`, or no regular file.
    """
    with os.fdopen(open_plain(path), "rb") as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise ValueError(f"more than {most // 2**20} MB")
    return loads(raw.decode("utf-8"))
