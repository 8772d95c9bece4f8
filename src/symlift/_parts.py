"""The parts of a table: which were asked for, which columns belong to each, and their names."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import CostWarning, FitWarning, InputError
from symlift.solvers.contract import Progress
from symlift.solvers.plan import plan_parts, say_cost

if TYPE_CHECKING:
    from symlift.estimator import LatentDomain

__all__ = ["checked_parts", "naming_part", "part_labels", "progress_of_part", "surer_fit"]


def checked_parts(parts: Any, columns: int, in_columns: bool) -> Any:
    """``parts`` as None, a number or labels; an InputError where it is none of them."""
    if isinstance(parts, str) and parts == "auto":
        return None
    remedy = 'give "auto", a number of parts, or one label for each column'
    if isinstance(parts, str | bool) or parts is None:
        raise InputError(f"parts={parts!r} is not understood: {remedy}")
    values = np.asarray(parts)
    if values.dtype.kind not in "iu":
        raise InputError(f"parts holds values of type {values.dtype}: {remedy}, as whole numbers")
    if values.ndim == 0:
        if values < 1:
            raise InputError(f"parts={parts!r} is not positive: {remedy}")
        return int(values)
    if not in_columns:
        raise InputError(
            'labels name the parts of columns, and mixtures belong to none: give mixing="shuffled",'
            ' or parts="auto"'
        )
    if values.shape != (columns,):
        raise InputError(f"parts has the shape {values.shape}, and X {columns} columns: {remedy}")
    used = np.unique(values[values >= 0])
    if len(used) == 0 or (used != np.arange(len(used))).any():
        raise InputError(
            "labels of parts must be 0, 1, 2 and so on, without a gap, and -1 for none: number"
            " them so"
        )
    few = next((k for k in used.tolist() if (values == k).sum() < 2), None)
    if few is not None:
        raise InputError(f"part {few} has one column only: a domain needs at least two")
    return values.astype(np.int64)


def part_labels(rows: NDArray, parts: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """The part of each column of ``rows``."""
    if isinstance(parts, np.ndarray):
        return parts
    say_cost(plan_parts(len(rows), rows.shape[1]), 5)
    from symlift.search.links import column_links
    from symlift.search.parts import column_parts, parts_of_number
    from symlift.search.rows import score_rows
    from symlift.search.settings import PlaceSettings

    settings = PlaceSettings()
    links = column_links(score_rows(rows, rng, settings))
    return (
        column_parts(links, settings) if parts is None else parts_of_number(links, parts, settings)
    )


def progress_of_part(watch: Progress, part: int, count: int) -> Progress:
    def progress(stage: str, share: float | None) -> None:
        watch(f"part {part + 1} of {count}: {stage}", share)

    return progress


@contextmanager
def naming_part(name: str) -> Iterator[None]:
    """Put a name in front of what is warned and refused inside."""
    caught: list[tuple[Warning | str, type[Warning], str, int]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", FitWarning)
        shown = warnings.showwarning

        def keep(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            *_: Any,
            **__: Any,
        ) -> None:
            if issubclass(category, CostWarning):  # before the work, not after it
                shown(category(f"{name}: {message}"), category, filename, lineno)
            else:
                caught.append((message, category, filename, lineno))

        warnings.showwarning = keep
        try:
            yield
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    for message, category, file, line in caught:
        if issubclass(category, FitWarning):
            warnings.warn(f"{name}: {message}", FitWarning, stacklevel=4)
        else:
            warnings.warn_explicit(message, category, file, line)


def surer_fit(one: LatentDomain, other: LatentDomain) -> LatentDomain:
    """The fit whose tests on held-out rows make it more probable; the first of equals."""
    first, second = (domain.evidence_.confidence or 0.0 for domain in (one, other))
    return other if second > first else one
