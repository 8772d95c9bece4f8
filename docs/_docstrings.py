"""How docstrings become pages: doctests get a heading of their own, and roles of Sphinx become plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([^`]+)`")
_SECTION = re.compile(r"^(Parameters|Attributes)\n-{3,}\n((?:.+\n?)+)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.+)$(?!\n    )", re.MULTILINE)  # entries that no description follows
_DOCTEST = re.compile(r"\n\n(?=>>> )")


class Docstrings(griffe.Extension):
    """The docstrings are numpydoc but for two habits: no heading above doctests, and entries as ``name : what it is``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = tidy(obj.docstring.value)


def tidy(text: str) -> str:
    """The docstring as numpydoc wants it.

    >>> print(tidy("Parameters\\n---\\nx : see :class:`~a.b.C`.\\n\\n>>> 1"))
    Parameters
    ---
    x
        see `C`.
    <BLANKLINE>
    Examples
    --------
    >>> 1
    """
    text = _ROLE.sub(lambda found: f"`{found[1].split('.')[-1]}`", text)
    text = _SECTION.sub(lambda found: _ENTRY.sub(r"\1\n    \2", found[0]), text)
    if "Examples\n---" in text:
        return text
    return _DOCTEST.sub("\n\nExamples\n--------\n", text, count=1)
