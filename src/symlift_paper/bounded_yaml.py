"""YAML within bounds of depth, length and aliases, limited to what JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from symlift.errors import InputError

try:
    import yaml
except ImportError:
    raise InputError(
        "the paper's experiments need PyYAML, which is not installed: pip install 'symlift[paper]'"
    ) from None

__all__ = ["MAX_ALIASES", "MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "read_yaml"]

#: bounds of a file of experiments; the paper's own is 7 KB, four levels deep, and has no aliases
MAX_BYTES, MAX_DEPTH, MAX_NODES, MAX_ALIASES = 2**20, 16, 50_000, 100
_MAX_SCALAR, _MAX_WHOLE = 10_000, 2**63


def read_yaml(text: str) -> Any:
    """The content of a YAML text; a ValueError in one line if it is not YAML, or exceeds the
    bounds.

    >>> read_yaml("- {name: a, shape: [9]}")
    [{'name': 'a', 'shape': [9]}]
    >>> read_yaml("&a [*a]")
    Traceback (most recent call last):
    ValueError: the anchor 'a' holds itself
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES // 2**20} MB")
    try:
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader))
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:300]}") from None
    # dates that no calendar has, numbers of thousands of digits, mappings that merge with no
    # mapping
    except (
        TypeError,
        AttributeError,
        KeyError,
        IndexError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ValueError(f"not YAML: {type(error).__name__}") from None
    _check_plain(value)
    return value


def _check_events(events: Iterator[Any]) -> None:
    """Refuse before anything is built: ``sizes`` counts what each anchor stands for, with its own
    aliases unfolded.
    """
    sizes: dict[str, int] = {}
    nested: list[tuple[str | None, int]] = [(None, 0)]
    aliases = 0
    for event in events:
        size = 0
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
            name = str(event.anchor)
            if any(anchor == name for anchor, _ in nested):
                raise ValueError(f"the anchor {name[:40]!r} holds itself")
            size = sizes.get(name, 1)
        elif isinstance(event, yaml.ScalarEvent):
            size = 1
            if len(event.value) > _MAX_SCALAR:
                raise ValueError(
                    f"a text of {len(event.value)} characters, more than {_MAX_SCALAR}"
                )
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            nested.append((event.anchor, 1))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            anchor, size = nested.pop()
            if anchor:
                sizes[anchor] = size
        anchor, total = nested[-1]
        nested[-1] = (anchor, total + size)
        if aliases > MAX_ALIASES:
            raise ValueError(f"more than {MAX_ALIASES} aliases")
        if len(nested) > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} levels")
        if nested[-1][1] > MAX_NODES:
            raise ValueError(f"more than {MAX_NODES} entries, with its aliases unfolded")


def _check_plain(value: Any) -> None:
    """Only what JSON has: keys of text, finite numbers of ordinary size."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {str(key)[:40]!r} is no text")
            _check_plain(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_plain(inner)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number that can be used")
    elif isinstance(value, int):
        if not -_MAX_WHOLE <= value < _MAX_WHOLE:
            raise ValueError("a whole number beyond 64 bits")
    elif value is not None and not isinstance(value, str):
        raise ValueError(
            f"a value of type {type(value).__name__}, where text, numbers, lists and mappings are"
            " allowed"
        )
