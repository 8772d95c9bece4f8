"""What an entry of a text file is: a number, a date, a gap, or text; and columns of entries as
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = [
    "Kind",
    "entry_kind",
    "find_decimal",
    "is_whole",
    "number_of",
    "numbers_of",
    "seconds_of_dates",
]

Kind = str  # "number", "dates", "text" or "gap"

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {
    "inf": np.inf,
    "+inf": np.inf,
    "-inf": -np.inf,
    "infinity": np.inf,
    "+infinity": np.inf,
    "-infinity": -np.inf,
}
#: common marks of a missing value; "-" and the like only as the whole entry
_GAPS = frozenset(
    [
        "",
        "nan",
        "-nan",
        "+nan",
        "na",
        "n/a",
        "#n/a",
        "#na",
        "null",
        "none",
        "nil",
        "missing",
        "-",
        "--",
        "---",
        "?",
        ".",
        "*",
        "#value!",
        "#div/0!",
        "#null!",
        "#num!",
        "#ref!",
        "<na>",
        "nat",
    ]
)
_GROUPED = {
    ".": re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?"),
    ",": re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+(?:,\d*)?"),
}
_WITH_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
_WITH_POINT = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?")
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[AaPp]\.?[Mm]\.?)?"
_ZONE = r"(?:\s*(?:Z|UTC|GMT|[-+]\d{2}:?\d{2}))?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2}[-"
    rf" ]{_MONTH}[- ]\d{{2,4}}"
    rf"|{_MONTH} \d{{1,2}},? \d{{4}})(?:(?:[ T]|, ){_CLOCK}{_ZONE})?|{_CLOCK}{_ZONE}",
    re.IGNORECASE,
)
_FORMATS = [
    f"{day}{clock}"
    for day in (
        "%d.%m.%Y",
        "%d.%m.%y",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%m/%d/%Y",
        "%d/%m/%Y",
        "%d-%m-%Y",
        "%d %b %Y",
        "%d-%b-%Y",
    )
    for clock in (
        "",
        " %H:%M",
        " %H:%M:%S",
        " %H:%M:%S.%f",
        ", %H:%M:%S",
        " %I:%M %p",
        " %I:%M:%S %p",
    )
] + ["%H:%M:%S", "%H:%M:%S.%f", "%H:%M"]


def number_of(field: str, decimal: str = ".") -> float | None:
    """The number that an entry is (NaN for a gap), or None.

    >>> number_of("1.234,5", ","), number_of("1e-3"), number_of("oops"), number_of("n/a")
    (1234.5, 0.001, None, nan)
    """
    text = field.strip()
    if _GROUPED[decimal].fullmatch(text):
        text = text.replace("." if decimal == "," else ",", "")
    if decimal == "," and "," in text and "." not in text:
        text = text.replace(",", ".")
    if _NUMBER.fullmatch(text):
        return float(text)
    lower = text.lower()
    return np.nan if lower in _GAPS else _WORDS.get(lower)


def entry_kind(field: str, decimal: str = ".") -> Kind:
    """What an entry is.

    >>> [entry_kind(text) for text in ("-1.5", "", "Berlin")]
    ['number', 'gap', 'text']
    >>> [entry_kind(text) for text in ("2024-03-01 12:00:00", "1.2.2024", "12:30")]
    ['dates', 'dates', 'dates']
    """
    value = number_of(field, decimal)
    if value is not None:
        return "gap" if np.isnan(value) else "number"
    return "dates" if _DATE.fullmatch(field.strip()) else "text"


def is_whole(field: str) -> bool:
    """Whether an entry is written as a whole number."""
    return re.fullmatch(r"\s*[-+]?\d+\s*", field) is not None


def find_decimal(fields: Sequence[str], delimiter: str) -> str:
    """The decimal mark: a comma if entries have one and none has a point.

    >>> find_decimal(["1,5", "2"], ";"), find_decimal(["1.5", "1,234"], ";")
    (',', '.')
    >>> find_decimal(["1,234"], ",")
    '.'
    """
    stripped = [field.strip() for field in fields]
    commas = [
        field
        for field in stripped
        if _WITH_COMMA.fullmatch(field) or _GROUPED[","].fullmatch(field)
    ]
    if not any("," in field for field in commas) or any(
        _WITH_POINT.fullmatch(field) and not _GROUPED[","].fullmatch(field) for field in stripped
    ):
        return "."
    # in quotes between commas, thousands are the likelier reading
    return (
        "." if delimiter == "," and all(_GROUPED["."].fullmatch(field) for field in commas) else ","
    )


def numbers_of(fields: Sequence[str], decimal: str) -> tuple[NDArray[np.float64], list[int]]:
    """A column of entries as numbers, NaN for gaps, and where entries are neither."""
    text = "\n".join(fields)
    if "_" not in text and (decimal == "." or "." not in text):  # 1_000 is a number in Python only
        plain = fields if decimal == "." else [field.replace(",", ".") for field in fields]
        try:
            return np.fromiter(map(float, plain), np.float64, len(fields)), []
        except ValueError:
            pass  # a gap, a word, or thousands: one by one
    values = [number_of(field, decimal) for field in fields]
    return np.array([np.nan if v is None else v for v in values]), [
        i for i, v in enumerate(values) if v is None
    ]


def seconds_of_dates(fields: Sequence[str], what: str) -> NDArray[np.float64]:
    """A column of dates as seconds since the first of them, NaN for gaps.

    >>> seconds_of_dates(["2024-01-01T00:00:00", "", "2024-01-01T00:01:00"], "x")
    array([ 0., nan, 60.])
    """
    present = [i for i, field in enumerate(fields) if field.strip().lower() not in _GAPS]
    texts = [re.sub(_ZONE + "$", "", fields[i].strip()).replace(",", ".") for i in present]
    out = np.full(len(fields), np.nan)
    for parse in (datetime.fromisoformat, *(_by_format(form) for form in _FORMATS)):
        try:
            times = [parse(text) for text in texts]
        except ValueError:
            continue
        out[present] = [(time - times[0]).total_seconds() for time in times]
        return out
    raise InputError(
        f"{what}: these dates are not understood: write them as 2024-01-31 12:00:00, or leave out"
        " --keep"
    )


def _by_format(form: str) -> Callable[[str], datetime]:
    return lambda text: datetime.strptime(text, form)
