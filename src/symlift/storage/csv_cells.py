"""Texts in cells of a CSV file: a spreadsheet must not take them for formulas.

A cell that begins with ``=``, ``+``, ``-`` or ``@`` is computed when the file is opened, and may
run a command or send data elsewhere.  An apostrophe before it makes it a text, as in spreadsheets.
"""

from __future__ import annotations

import re
from typing import TypeVar

__all__ = ["plain_cell", "safe_cell"]

_Value = TypeVar("_Value")
# apostrophes of the text itself count as well, so that one more or less is undone exactly
_FORMULA = re.compile(r"'*\s*[=+\-@＝＋－＠\t\r]")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def safe_cell(value: _Value) -> _Value | str:
    """Return what to write for a value: texts that would be formulas get an apostrophe.

    >>> safe_cell("=1+1"), safe_cell("T1"), safe_cell("-1.5"), safe_cell(-1.5)
    ("'=1+1", 'T1', '-1.5', -1.5)
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def plain_cell(text: str) -> str:
    """Return the text that `safe_cell` has made safe.

    >>> plain_cell("'=1+1"), plain_cell("'quoted'")
    ('=1+1', "'quoted'")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
