"""Reading options, as given on the command line and stored in the record of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from shlex import quote
from typing import Any

from symlift.errors import InputError

__all__ = [
    "DEFAULT", "ReadOptions", "as_typed", "column_given", "column_name", "column_option", "listed",
    "numbers_of_marks", "path_as_typed", "positions",
]  # fmt: skip

_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}


@dataclass(frozen=True)
class ReadOptions:
    """Options of a reader; by default everything is detected from the file.

    Parameters
    ----------
    key : str, optional
        Which array, sheet, variable or path of a file that holds several.
    columns, drop : tuple of str
        Columns to read, and to leave out: names, patterns (``T*``), numbers from 1 on, ranges
        (``2-9``).
    index_col : str, optional
        The column that labels the rows; with ``transpose`` the labels name the columns.
    transpose : bool
        Whether the file holds samples as columns.
    keep : bool
        Whether dates (as seconds) and row numbers stay with the data.
    gap : tuple of str
        Numbers that stand for gaps, such as -9999.
    delimiter, decimal : str, optional
        Separator of the entries of a text file, and their decimal mark; None: detected.
    header : bool, optional
        Whether the first line names the columns; None: detected.
    bin : float, optional
        Width of the bins that spike times are counted in, in seconds.
    """

    key: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    index_col: str | None = None
    transpose: bool = False
    keep: bool = False
    gap: tuple[str, ...] = ()
    delimiter: str | None = None
    decimal: str | None = None
    header: bool | None = None
    bin: float | None = None

    def checked(self) -> ReadOptions:
        """Return the options with named characters (tab, space) replaced; refuse invalid ones."""
        delimiter = (
            self.delimiter
            if self.delimiter is None
            else _DELIMITERS.get(self.delimiter, self.delimiter)
        )
        if delimiter is not None and (
            len(delimiter) != 1 or delimiter.isalnum() or delimiter in '"\n\r.+-'
        ):
            raise InputError(
                f"--delimiter {self.delimiter!r} cannot stand between numbers: give one character,"
                " such as ',' ';' '|', tab or space"
            )
        if self.decimal not in (None, ".", ","):
            raise InputError(f"--decimal {self.decimal!r} is neither '.' nor ',': give one of them")
        if self.decimal is not None and self.decimal == delimiter:
            raise InputError(
                f"--decimal and --delimiter are both {delimiter!r}: give two different ones"
            )
        numbers_of_marks(self.gap)
        if self.bin is not None and not 0 < self.bin < float("inf"):
            raise InputError(f"--bin {self.bin:g} is no width of a bin: give seconds, such as 0.1")
        return replace(self, delimiter=delimiter)

    def given(self) -> dict[str, Any]:
        """Return the options that differ from the defaults."""
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if getattr(self, f.name) != f.default
        }

    def over(self, other: ReadOptions) -> ReadOptions:
        """Return ``other``, overridden by the options that are given here."""
        return replace(other, **self.given())


DEFAULT = ReadOptions()


def numbers_of_marks(marks: tuple[str, ...]) -> list[float]:
    """The numbers that stand for gaps, as typed on the command line."""
    try:
        numbers = [float(mark.replace(",", ".")) for mark in marks]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise InputError(
            f"--gap {' '.join(marks)} is no number: give one such as -9999; words and empty entries"
            " are gaps anyway"
        )
    return numbers


def as_typed(given: Mapping[str, Any]) -> list[str]:
    """Return options as they are typed: bools as flags, lists as one option for each entry.

    >>> as_typed({"header": False, "keep": True, "columns": ("T*", "b"), "seed": 1, "bin": None})
    ['--no-header', '--keep', '--columns', 'T*', '--columns', 'b', '--seed', '1']
    """
    words: list[str] = []
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{name}")
        elif isinstance(value, list | tuple):
            words += [word for one in value for word in (flag, str(one))]
        elif value is not None:
            words += [flag, str(value)]
    return words


def path_as_typed(path: str) -> str:
    """A path that no program takes for an option.

    >>> path_as_typed("-log.csv"), path_as_typed("-"), path_as_typed("log.csv")
    ('./-log.csv', '-', 'log.csv')
    """
    return f"./{path}" if path.startswith("-") and path != "-" else path


def column_name(names: Sequence[str] | None, position: int) -> str:
    """A column in words: its name, or its number counted from 1 if it has none.

    >>> column_name(["T01"], 0), column_name(None, 0)
    ("'T01'", '1')
    """
    name = "" if names is None else names[position]
    return repr(name if len(name) <= 40 else name[:37] + "...") if name else str(position + 1)


def column_given(names: Sequence[str] | None, position: int) -> str:
    """A column as ``--drop`` takes it: its name, or its number where that is not enough.

    >>> column_given(["T 01", "b", "b"], 0), column_given(["T 01", "b", "b"], 2)
    ('T 01', '3')
    """
    name = "" if names is None else names[position]
    plain = name.strip() and name.isprintable() and not name.startswith("-")
    return name if plain and list(names or ()).count(name) == 1 else str(position + 1)


def column_option(names: Sequence[str] | None, position: int) -> str:
    """A column as one types it after ``--drop``.

    >>> column_option(["T 01", "b"], 0), column_option(["T 01", "b"], 1), column_option(None, 1)
    ("'T 01'", 'b', '2')
    """
    return quote(column_given(names, position))


def listed(words: Sequence[str], most: int = 12) -> str:
    """The first few of many words.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    rest = len(words) - most
    return ", ".join(words[:most]) + (f" and {rest} more" if rest > 0 else "")


def positions(
    option: str, asked: Sequence[str], names: Sequence[str] | None, width: int
) -> list[int]:
    """Positions (from 0) of the columns that ``asked`` names, in the order in which they are named.

    >>> positions("--drop", ["b", "1"], ["a", "b", "c"], 3)
    [1, 0]
    """
    chosen: dict[int, None] = {}
    for text in _parts(asked, names):
        chosen.update(dict.fromkeys(_matching(option, text, names, width)))
    return list(chosen)


def _parts(asked: Sequence[str], names: Sequence[str] | None) -> Iterator[str]:
    for text in asked:
        if names is not None and text in names:  # a name may hold commas itself
            yield text
        else:
            yield from (part.strip() for part in text.split(",") if part.strip())


def _matching(option: str, text: str, names: Sequence[str] | None, width: int) -> list[int]:
    if names is not None:
        by_name = [i for i, name in enumerate(names) if name == text] or [
            i
            for i, name in enumerate(names)
            if any(c in text for c in "*?") and fnmatchcase(name, text)
        ]
        if by_name:
            return by_name
    counted = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text)
    if counted is not None:
        first, last = int(counted[1]), int(counted[2] or counted[1])
        if 1 <= first <= last <= width:
            return list(range(first - 1, last))
        raise InputError(f"{option} {text}: there are {width} columns, counted from 1")
    if names is None:
        raise InputError(
            f"{option} {text}: the columns have no names; give their numbers, from 1 to {width}"
        )
    near = get_close_matches(text, [name for name in names if name], n=1)
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else f"there are {listed([name for name in names if name])}"
    )
    raise InputError(f"{option} {text}: there is no such column; {hint}")
