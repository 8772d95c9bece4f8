"""Progress of a fit: a bar on a terminal, lines where they are asked for, numbers of each stage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from symlift.diagnosis import Diagnosis
    from symlift.solvers.contract import Progress, Trace

__all__ = ["Watch", "diagnosis_lines", "printable", "refit_words", "trace_lines", "watching"]


def printable(line: str) -> str:
    """Return a line in which what would steer a terminal is written out.

    >>> printable("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


class Watch:
    """Progress callback that shows a bar (stage, time left) and prints lines.

    Without ``bar`` and ``lines`` it prints nothing, which is right for a pipe.
    """

    def __init__(self, console: Console, bar: bool = True, lines: bool = False) -> None:
        self.console, self.lines, self.stage, self.start = console, lines, "", time.monotonic()
        self.left = _TimeLeft()
        self.bar: Bar | None = None
        if bar:
            self.bar = _bar(console, self.left)
            self.task = self.bar.add_task("", total=None)

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, stage: str, share: float | None) -> None:
        """Report a stage, or the share of it that is done."""
        name = stage.split(" (")[0]  # what follows in brackets are numbers that keep changing
        if self.lines and name != self.stage:
            self.say(f"{time.monotonic() - self.start:7.1f} s  {name}")
        self.stage = name
        share = self.left.note(name, share)
        if self.bar is not None:
            self.bar.update(
                self.task,
                description=stage,
                total=None if share is None else 1.0,
                completed=share or 0,
            )

    def say(self, line: str) -> None:
        """Print one line above the bar."""
        self.console.print(printable(line), highlight=False, markup=False, soft_wrap=True)


class _TimeLeft:
    """Time left in the running part, from the share that is done; each part goes from 0 to 1."""

    def __init__(self) -> None:
        self.stage, self.share, self.began = "", 0.0, time.monotonic()
        self.ends: float | None = None

    def note(self, stage: str, share: float | None) -> float | None:
        """Share of a stage; a step of the last stage that had a share continues with it."""
        if share is None:
            if self.stage and stage.startswith(f"{self.stage}:"):
                return self.share
            self.stage, self.ends = "", None
            return None
        now = time.monotonic()
        if not self.stage or share < self.share:
            self.began, self.ends = now, None
        elif share > 0:
            self.ends = self.began + (now - self.began) / share
        self.stage, self.share = stage, share
        return share

    def words(self) -> str:
        """Time left in words; empty where it is not known."""
        if self.ends is None:
            return ""
        seconds = max(0.0, self.ends - time.monotonic())
        return (
            f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"
        )


def _bar(console: Console, left: _TimeLeft) -> Bar:
    from rich import progress as parts
    from rich.text import Text

    class Left(parts.ProgressColumn):
        def render(self, task: parts.Task) -> Text:  # noqa: ARG002 - the time is known without it
            return Text(left.words(), style="dim")

    return parts.Progress(
        parts.SpinnerColumn(),
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(bar_width=24),
        parts.TimeElapsedColumn(),
        Left(),
        console=console,
        transient=True,
    )


@contextmanager
def watching(verbose: int, progress: Progress | None = None) -> Iterator[Progress]:
    """Context with the progress callback of a fit.

    It is the given callback; else one that does nothing (``verbose`` 0), a bar (on a terminal and
    in notebooks) or lines on the standard error stream; from ``verbose`` 2 on, always lines.
    """
    if progress is not None or not verbose:
        yield progress or _nothing
        return
    from rich.console import Console

    console = Console(stderr=True)
    # a notebook shows bars where it has widgets
    show_bar = find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal
    with Watch(console, bar=show_bar, lines=not show_bar or verbose > 1) as watch:
        yield watch


def _nothing(stage: str, share: float | None = None) -> None:
    """Callback that ignores progress."""


def refit_words(seed: int) -> str:
    """Describe a refit of a diagnosis by its seed: halves, quarters, and controls from 10 on.

    >>> refit_words(0), refit_words(3), refit_words(10)
    ('first half of the rows', 'second quarter of the rows', 'control 1')
    """
    if seed >= 10:
        return f"control {seed - 9}"
    return f"{('first', 'second')[seed % 2]} {'half' if seed < 2 else 'quarter'} of the rows"


def trace_lines(trace: Trace) -> Iterator[str]:
    """Describe each stage of a solver in one line; of repeated stages the last.

    >>> from symlift.solvers.contract import Stage, Trace
    >>> stage = Stage("place", 1.25, {"explained": 0.98761, "rows": 4000})
    >>> list(trace_lines(Trace("fast", "", (stage,))))
    ['place: 1.2 s, explained 0.9876, rows 4000']
    """
    last = {stage.name: stage for stage in trace.stages}
    for stage in last.values():
        yield f"{stage.name}: {', '.join([f'{stage.seconds:.1f} s', *_numbers(stage.values)])}"
    if trace.chosen:
        yield f"chosen: {trace.chosen}"


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Describe the tests behind a verdict, one line each."""
    for test in diagnosis.tests:
        limit = "" if test.threshold is None else f", threshold {test.threshold:.4g}"
        outcome = {True: ", passed", False: ", not passed", None: ""}[test.passed]
        value = "none" if test.value is None else f"{test.value:.4g}"
        yield f"{test.name}: {value}{limit}{outcome}"


def _numbers(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, float):
            yield f"{name} {value:.4g}"
        elif isinstance(value, bool | int | str):
            yield f"{name} {value}"
        elif isinstance(value, Mapping):
            yield from _numbers(value)
