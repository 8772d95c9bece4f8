"""How docstrings become pages: doctests get a heading of their own, and roles of Sphinx become plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([^`]+)`")
_UNDERLINE = re.compile(r"^-{3,}$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """numpydoc wants "Examples" above doctests that follow a section; the docstrings leave it out."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = tidy(obj.docstring.value)


def tidy(text: str) -> str:
    """The docstring with a heading for its doctest, formulas as blocks of their own, and no roles.

    >>> tidy("Parameters\\n---\\nx : see :class:`~a.b.C`.\\n\\n>>> 1").splitlines()[-3:]
    ['Examples', '--------', '>>> 1']
    """
    text = _ROLE.sub(lambda found: f"`{found[1].split('.')[-1]}`", text)
    if _UNDERLINE.search(text) and "\n\n>>> " in text and "Examples\n---" not in text:
        text = text.replace("\n\n>>> ", "\n\nExamples\n--------\n>>> ", 1)
    return text
