"""Docstrings of the public interface, as `docs/api.md` lists it, in numpydoc form."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from numpydoc.validate import validate

API = Path(__file__).parents[1] / "docs" / "api.md"

# What numpydoc asks for and this project does not do.
IGNORED = {
    "GL01",  # the summary starts on the line of the opening quotes (PEP 257 allows both)
    "GL02",  # a docstring of one line closes on that line
    "GL03",  # the same check, for the blank line
    "ES01",  # an extended summary: only where the summary does not say it all
    "SA01",  # "See Also": the page of the interface is one page, and names are searched for
}
# Methods and properties are shown by the example of their class; exceptions are raised by the
# library.
WITHOUT_EXAMPLE = {"EX01"}
# Fields of settings have their reasons next to them; an enumeration takes no parameters of its own.
WITHOUT_PARAMETERS = {
    "symlift.solvers.fast.settings.FastSettings",
    "symlift.Verdict",
    "symlift.ephys.MapVerdict",
}

_ENTRY = re.compile(r"^::: (\S+)\n(?:    options:\n      members: \[(.*)\])?", re.MULTILINE)


def resolve(name: str) -> Any:
    """The object of a dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


def is_documented_member(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(
        value, property | cached_property | classmethod | staticmethod
    )


def members(value: Any) -> list[str]:
    """Public members that the page shows with an object: methods and properties of a class, classes
    of a module.
    """
    if inspect.isclass(value):
        return [
            key
            for key, one in vars(value).items()
            if not key.startswith("_") and is_documented_member(one)
        ]
    if inspect.ismodule(value):
        return [
            key
            for key, one in vars(value).items()
            if getattr(one, "__module__", "") == value.__name__
        ]
    return []


def documented() -> Iterator[tuple[str, bool]]:
    """(name, whether it needs an example) of everything public."""
    for name, chosen in _ENTRY.findall(API.read_text(encoding="utf-8")):
        value = resolve(name)
        yield name, not inspect.ismodule(value)
        listed = [one.strip() for one in chosen.split(",")] if chosen else members(value)
        yield from ((f"{name}.{member}", False) for member in listed)


def test_the_page_names_things_that_exist():
    names = [name for name, _ in _ENTRY.findall(API.read_text(encoding="utf-8"))]
    assert len(names) > 50
    assert all(inspect.getdoc(resolve(name)) for name in names)


@pytest.mark.parametrize(
    ("name", "needs_example"), list(documented()), ids=lambda value: str(value)
)
def test_docstring_is_numpydoc(name, needs_example):
    ignored = IGNORED if needs_example else IGNORED | WITHOUT_EXAMPLE
    ignored = ignored | {"PR01"} if name in WITHOUT_PARAMETERS else ignored
    assert [
        f"{code}: {text}" for code, text in validate(name)["errors"] if code not in ignored
    ] == []
