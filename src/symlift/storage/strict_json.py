"""JSON as the standard has it: no NaN, no infinity, nothing of numpy."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

__all__ = ["dumps", "plain"]


def plain(value: Any) -> Any:
    """``value`` as strict JSON can hold it: arrays as lists, NaN and infinity as null, the unknown as text.

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
    """Strict JSON text of anything that :func:`plain` takes."""
    return json.dumps(plain(value), indent=indent, allow_nan=False)
