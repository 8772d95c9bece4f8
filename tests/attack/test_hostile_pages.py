"""Every text that a run folder holds, replaced by markup: none of it is markup in the report, and
none of it steers the terminal.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_command
from scipy.ndimage import gaussian_filter

from symlift._estimator_file import read_estimator
from symlift._parts_file import read_parts
from symlift.datasets import gsn, ring_population
from symlift.errors import InputError
from symlift.runs.record import open_run
from symlift.runs.recover import recover

EVIL = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[2J"
#: file → who reads it
READ = {"run.json": open_run, "estimator.json": read_estimator, "parts.json": read_parts}


def _line(rows: int = 300) -> np.ndarray:
    return gsn(rows, (12,), transform="permutation", random_state=0).X


def _sensors() -> np.ndarray:
    rng = np.random.default_rng(0)
    field = gaussian_filter(rng.normal(size=(300, 12, 12)), (0, 1.5, 1.5)).reshape(300, -1)
    return field[:, rng.choice(144, 30, replace=False)]


def _on_sphere() -> np.ndarray:
    rng = np.random.default_rng(0)
    u, bumps = (rng.normal(size=(size, 3)) for size in (30, 100))
    u, bumps = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (u, bumps))
    return rng.normal(size=(300, 100)) @ np.exp(6 * (bumps @ u.T - 1))


def _tuned() -> np.ndarray:
    return ring_population(400, 20, rate=8.0, movement=0.0, random_state=0).X


def _two() -> np.ndarray:
    seeds = (0, 1)
    return np.hstack([gsn(300, (6,), transform="permutation", random_state=s).X for s in seeds])


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "line": (_line, {"grid": "12"}),
    "ring": (_tuned, {"grid": "20", "periodic": True, "solver": "ring"}),
    "parts": (_two, {"parts": "2", "grid": "6"}),
    "scattered": (_sensors, {"grid": "scattered"}),
    "sphere": (_on_sphere, {"grid": "sphere", "mixing": "shuffled"}),
}


def texts(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is a text, or nothing, where there may be one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, (*where, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from texts(inner, (*where, i))
    elif value is None or isinstance(value, str):
        yield where


def planted(value: Any, where: tuple[Any, ...], text: str) -> Any:
    value = copy.deepcopy(value)
    inner = value
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = text
    return value


def poison(path: Path, folder: Path) -> int:
    """Plant markup wherever the file is still read with it; how often that was."""
    value, count = json.loads(path.read_text()), 0
    for number, where in enumerate(list(texts(value))):
        changed = planted(value, where, f"{number}{EVIL}")
        path.write_text(json.dumps(changed))
        try:
            READ[path.name](folder)
        except InputError:
            continue
        value, count = changed, count + 1
    path.write_text(json.dumps(value))
    return count


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "line" else pytest.mark.slow) for kind in KINDS],
)
def test_no_text_of_a_run_is_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make, options = KINDS[kind]
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", make())
    recover(Path("x.npy"), Path("run"), **options)
    assert run_command("report", "run")[0] == 0
    sound = Page(Path("run/report.html").read_text(encoding="utf-8"))
    planted_in = {
        str(path): poison(path, path.parent)
        for name in READ
        for path in sorted(Path("run").rglob(name))
    }
    assert sum(planted_in.values()) >= 10, planted_in
    code, out, err = run_command("report", "run")
    assert code == 0, err
    assert "\x1b" not in out + err
    for page in sorted(Path("run").rglob("report.html")):
        text = page.read_text(encoding="utf-8")
        shown = Page(text)
        assert not any(key.startswith("on") for _, attributes in shown.seen for key in attributes)
        for tag in ("script", "style"):
            count = [sum(one == tag for one, _ in seen.seen) for seen in (sound, shown)]
            assert page.parent.name != "run" or count[0] == count[1]
        assert not any(attributes.get("src") == "x" for _, attributes in shown.seen)
        assert "alert(1)" in text
        assert "<img src=x" not in text.replace("&lt;", "")
    for arguments in (["recover", "x.npy", "--out", "run", "--resume"], ["transform", "run",
                      "x.npy", "--out", "y.csv"]):  # fmt: skip
        code, out, err = run_command(*arguments)
        assert "\x1b" not in out + err
        assert "Traceback" not in err
