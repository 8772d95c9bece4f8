"""What is seen while a fit runs."""

from __future__ import annotations

import io
import types
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from symlift import LatentDomain
from symlift._watch import Watch, _TimeLeft, watching


def screen(**options: Any) -> Console:
    return Console(file=io.StringIO(), width=120, **options)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_bar_shows_what_is_being_tried_and_goes_away() -> None:
    console = screen(force_terminal=True)
    with Watch(console) as watch:
        watch("fitting: grid 12x20, candidate 4 of 17", 3 / 17)
        assert watch.bar is not None
        watch.bar.refresh()
        assert watch.bar.tasks[0].percentage == pytest.approx(300 / 17)
    assert "fitting: grid 12x20, candidate 4 of 17" in shown(console)
    assert "\x1b[2K" in shown(console).rpartition("candidate")[2]  # the line is erased


def test_a_pipe_gets_nothing_unless_lines_are_asked_for() -> None:
    console = screen()
    with Watch(console, bar=False) as watch:
        watch("fitting", None)
    assert shown(console) == ""
    with Watch(console, bar=False, lines=True) as watch:
        for step in range(3):
            watch(f"training (step {step})", step / 3)
        watch("[red]names[/red] are no markup", None)
    lines = shown(console).splitlines()
    assert [line.split(" s  ")[1] for line in lines] == [
        "training",
        "[red]names[/red] are no markup",
    ]


def test_time_left_follows_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("symlift._watch.time", types.SimpleNamespace(monotonic=lambda: now))
    left = _TimeLeft()
    assert left.note("grid 3, candidate 1 of 4", 0.0) == 0.0
    assert left.words() == ""
    now = 110.0
    assert left.note("grid 4, candidate 2 of 4", 0.25) == 0.25
    assert left.words() == "about 30 s left"
    now = 115.0
    assert left.words() == "about 25 s left"
    assert left.note("place", 0.0) == 0.0  # the next part begins
    assert left.words() == ""
    now = 215.0
    left.note("place", 0.25)
    assert left.note("place: triage", None) == 0.25  # a step of it
    assert left.words() == "about 5 min left"
    assert left.note("writing", None) is None
    assert left.words() == ""


def test_notebooks_with_widgets_have_a_bar_and_others_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for widgets, terminal, jupyter, bar in (
        (True, False, True, True),
        (False, False, True, False),
        (False, True, False, True),
    ):
        monkeypatch.setattr(
            "symlift._watch.find_spec", lambda _, installed=widgets: object() if installed else None
        )
        monkeypatch.setattr("rich.console._is_jupyter", lambda on=jupyter: on)
        monkeypatch.setattr(Console, "is_terminal", property(lambda _, on=terminal: on))
        monkeypatch.setattr(Watch, "__enter__", lambda self: self)
        monkeypatch.setattr(Watch, "__exit__", lambda *_: None)
        with watching(1) as watch:
            assert isinstance(watch, Watch)
            assert (watch.bar is not None, watch.lines) == (bar, not bar)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose_changes_no_result(verbose: int, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).laplace(size=(120, 9))
    plain = LatentDomain((9,), solver="random", random_state=0).fit(X)
    verbose_fit = LatentDomain((9,), solver="random", random_state=0, verbose=verbose).fit(X)
    np.testing.assert_array_equal(plain.transform(X), verbose_fit.transform(X))
    assert verbose_fit.get_params()["verbose"] == verbose
    assert str(plain.diagnose(X, "full")) == str(verbose_fit.diagnose(X, "full"))
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line.split(" s  ")[1] for line in err.splitlines()]
    assert lines[:4] == ["drawing", "checking", "first half of the rows", "second half of the rows"]
    assert "control 1" in lines
