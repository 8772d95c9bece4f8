"""A fit that is saved over another one: whatever fails, or is killed, one of the two is there."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import everything
from kills import DONE, KILLED, run_killed, temporaries

from symlift import LatentDomain, LatentDomains, load
from symlift.datasets import gsn
from symlift.errors import FitWarning, InputError

X = gsn(300, (6,), transform="permutation", random_state=0).X
KINDS = ["one", pytest.param("several", marks=pytest.mark.slow)]
TABLE = np.hstack([X, gsn(300, (6,), transform="permutation", random_state=1).X])


@functools.cache
def fits(kind: str) -> tuple[Any, Any, np.ndarray]:
    """An earlier fit, a later one, and rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        if kind == "one":
            return (
                LatentDomain((6,), mixing="shuffled", random_state=0).fit(X),
                LatentDomain((6,), mixing="linear", random_state=1).fit(X[:, ::-1]),
                X,
            )
        return (
            LatentDomains([0] * 6 + [1] * 6, random_state=0).fit(TABLE),
            LatentDomains([0] * 12, grid=12, random_state=0).fit(TABLE),
            TABLE,
        )


def which(folder: Path, kind: str) -> str:
    """Which of the two fits a folder holds."""
    earlier, later, rows = fits(kind)
    found = load(folder).transform(rows)
    for name, one in (("earlier", earlier), ("later", later)):
        expected = one.transform(rows)
        if expected.shape == found.shape and np.array_equal(expected, found):
            return name
    raise AssertionError("a mixture")


def saved(tmp_path: Path, kind: str) -> Path:
    folder = tmp_path / "fit"
    shutil.rmtree(folder, ignore_errors=True)
    fits(kind)[0].save(folder)
    (folder / "notes.txt").write_text("mine")
    return folder


@pytest.mark.parametrize("call", ["fsync", "replace", "mkdir"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_save_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, call: str
) -> None:
    place: Any = os if call == "fsync" else Path
    really, failures = getattr(place, call), 0
    for k in range(1, 100):
        folder, count = saved(tmp_path, kind), 0

        def failing(*arguments: Any, k: int = k, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == k:
                raise OSError(errno.ENOSPC, "No space left on device")
            return really(*arguments, **more)

        with monkeypatch.context() as patch:
            patch.setattr(place, call, failing)
            try:
                fits(kind)[1].save(folder, overwrite=True)
            except OSError:
                failures += 1
        there = which(folder, kind)
        # what fails while whole files are moved into place is tried again
        assert there == ("later" if count < k else "earlier") or call != "fsync"
        assert temporaries(folder) == []
        assert (folder / "notes.txt").read_text() == "mine"
        if count < k:
            break
    assert failures >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_save_that_is_killed_is_finished_or_undone_by_the_next(tmp_path: Path, kind: str) -> None:
    seen = set()
    for before in range(1, 100):
        folder = saved(tmp_path, kind)
        ended = run_killed(
            lambda: fits(kind)[1].save(tmp_path / "fit", overwrite=True), tmp_path, before
        )
        assert ended in (KILLED, DONE)
        try:
            seen.add(which(folder, kind))
        except InputError as error:
            assert "missing" in str(error)  # noqa: PT017 - half-way, and nothing is mixed
            seen.add("half-way")
        with pytest.raises(InputError, match="overwrite=True"):
            fits(kind)[0].save(folder)  # puts in order what was left, and refuses
        assert which(folder, kind) in ("earlier", "later")
        assert temporaries(folder) == []
        if ended == DONE:
            break
    assert seen == {"earlier", "half-way", "later"}


def test_nothing_of_an_earlier_fit_stays(tmp_path: Path) -> None:
    """Else rows that were not to be kept are drawn, and gaps are filled as in other data."""
    folder = saved(tmp_path, "one")
    assert {"samples.npz", "gaps.safetensors"} <= set(everything(folder))
    fits("one")[1].save(folder, overwrite=True, samples=False)
    assert set(everything(folder)) == {
        "model.json", "model.safetensors", "estimator.json", "notes.txt",
    }  # fmt: skip
    fits("several")[0].save(tmp_path / "parts")
    fits("several")[1].save(tmp_path / "parts", overwrite=True)
    assert [p.name for p in (tmp_path / "parts" / "parts").iterdir()] == ["000"]


def test_one_and_several_do_not_share_a_folder(tmp_path: Path) -> None:
    for first, second in (("one", "several"), ("several", "one")):
        fits(first)[0].save(tmp_path / first)
        before = everything(tmp_path / first)
        with pytest.raises(InputError, match="choose another folder"):
            fits(second)[0].save(tmp_path / first, overwrite=True)
        assert everything(tmp_path / first) == before


def test_a_first_save_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for kind in ("one", "several"):
        with pytest.raises(OSError, match="No space"):
            fits(kind)[0].save(tmp_path / kind)
        assert everything(tmp_path / kind) == {}


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
@pytest.mark.parametrize("several", [False, True])
def test_links_in_a_folder_to_save_in_lead_nowhere(
    tmp_path: Path, several: bool, kind: str
) -> None:
    outside = tmp_path / "outside"
    (outside / "000").mkdir(parents=True)
    (outside / "file").write_text("mine")
    (outside / "000" / "model.json").write_text("mine")
    files = ("model.json", "model.safetensors", "estimator.json", "gaps.safetensors", "samples.npz")
    names = ("parts", "parts/000", "parts/000/model.json", "parts.json", "maps.safetensors")
    which_fits = "several" if several else "one"
    for name in names if several else files:
        folder = saved(tmp_path, which_fits)
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if kind == "hard":
            os.link(outside / "file", path)
        else:
            target = (
                outside if name == "parts" else outside / ("000" if name[-3:] == "000" else "file")
            )
            path.symlink_to(target if kind == "symbolic" else outside / "nowhere")
        before = everything(outside)
        try:
            fits(which_fits)[1].save(folder, overwrite=True)
        except (InputError, OSError) as error:
            assert name in str(error)  # noqa: PT017
            assert kind != "hard" or path.name in ("parts", "000")
        assert everything(outside) == before
        assert temporaries(folder) == []
