"""Whatever bytes a loader is given, it returns something sound or says one line. ``make fuzz`` runs
this for ten minutes.

A loader is one entry of ``LOADERS``: a name, the files that it reads (with what a sound one holds),
and a function of a folder that reads them. To add one, add an entry; nothing else knows of them.
Each is fed with sound files of which a few bytes were changed, cut, repeated or replaced by pieces
that are known to hurt, and with such JSON and YAML as only a program would write.

In ``make test`` there are a few dozen examples of each; with ``-m fuzz`` they go on until
SYMLIFT_FUZZ_SECONDS (600 unless set, for all loaders together) are over.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded import bounded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symlift import load
from symlift._parts_file import read_maps, write_maps
from symlift.datasets import gsn
from symlift.ephys import read_kilosort
from symlift.errors import FitWarning, InputError
from symlift.estimator import LatentDomain
from symlift.runs.record import open_run
from symlift.runs.recover import recover
from symlift.several import LatentDomains
from symlift.storage.atomic import sha256_of
from symlift.storage.model_check import digest_of
from symlift.storage.sample_file import Samples, SamplesError, read_samples, write_samples
from symlift.storage.strict_json import loads
from symlift_paper.jobs import Job
from symlift_paper.registry import read_experiments
from symlift_paper.store import Archive, Cache

X = gsn(60, (9,), random_state=0).X
ROWS = "- {name: mine, title: t, source: gsn, shape: [9], n: 60, seeds: [0], solver: random}\n"


@dataclass(frozen=True)
class Loader:
    """``make(folder)`` writes sound files, ``files`` are those that are spoiled, ``read(folder)``
    uses them.
    """

    make: Callable[[Path], object]
    files: tuple[str, ...]
    read: Callable[[Path], object]


def _model(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # so few rows show nothing, and need not
        LatentDomain((9,), mixing="shuffled", random_state=0).fit(X).save(folder)


def _use_model(folder: Path) -> None:
    found = load(folder)
    assert np.isfinite(found.transform(X)).all()
    norm = np.linalg.norm(found.lifting_map_ * found.model_.scale)
    assert 0 < norm < 1e6


def _seal_and_use(folder: Path) -> None:
    """As somebody would who makes the hashes right again."""
    header = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    header = header if isinstance(header, dict) else {}
    header["sha256"] = sha256_of(folder / "model.safetensors")
    header.pop("digest", None)
    (folder / "model.json").write_text(
        json.dumps(header | {"digest": digest_of(header)}), encoding="utf-8"
    )
    _use_model(folder)


def _run(folder: Path) -> None:
    np.save(folder / "x.npy", X)
    recover(folder / "x.npy", folder / "run", grid="9", solver="random", check=False)


def _entry(folder: Path) -> Job:
    job = Job(experiment=read_experiments(ROWS, "rows")["mine"], kind="solver", method="random")
    Cache(folder).run(job)
    shutil.move(Cache(folder).path(job), folder / "entry.json")
    return job


def _archive(folder: Path) -> None:
    job = _entry(folder)
    entry = json.loads((folder / "entry.json").read_text())
    (folder / "entry.json").unlink()
    (folder / "mine.json").write_text(json.dumps({job.key: entry}))


def _use_archive(folder: Path) -> None:
    from symlift_paper.results import results_page

    results_page([read_experiments(ROWS, "rows")["mine"]], Archive(folder).entries())


def _training(folder: Path) -> None:
    from symlift.solvers.neural.trainer import CHECK

    options = {"steps": CHECK, "settings": {"batch": 16}, "folder": folder}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # so few steps do not converge
        LatentDomain(
            (9,), periodic=True, solver="neural", random_state=0, solver_options=options
        ).fit(X)


def _yaml(folder: Path) -> None:
    (folder / "rows.yaml").write_text(ROWS.replace("mine", "first") + ROWS)


def _use_yaml(folder: Path) -> None:
    for experiment in read_experiments(
        (folder / "rows.yaml").read_text(encoding="utf-8"), "rows.yaml"
    ).values():
        if experiment.n * len(experiment.shape) < 1000:
            json.dumps(Job(experiment=experiment, kind="solver", method="random").key)


def _parts(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        LatentDomains([0] * 5 + [1] * 4, random_state=0, solver="random", grid="4").fit(X).save(
            folder
        )


def _use_parts(folder: Path) -> None:
    found = load(folder)
    assert np.isfinite(found.transform(X)).all()
    assert len(found.get_feature_names_out()) == found.n_outputs_


def _maps(folder: Path) -> None:
    write_maps(X.mean(axis=0), [np.eye(9)[:, :5], np.eye(9)[:, 5:]], folder)


def _samples(folder: Path) -> None:
    write_samples(Samples.draw(X), folder)


def _use_samples(folder: Path) -> None:
    try:
        assert np.isfinite(read_samples(folder, 9).observed).all()
    except SamplesError as error:
        raise InputError(str(error)) from None


def _sorted(folder: Path) -> None:
    np.save(folder / "channel_map.npy", np.arange(4, dtype=np.int32))
    np.save(folder / "channel_positions.npy", np.arange(8.0).reshape(4, 2))
    np.random.default_rng(0).integers(1, 255, 8_000).astype("u1").tofile(folder / "raw.dat")
    (folder / "params.py").write_text(
        "dat_path = 'raw.dat'\nn_channels_dat = 4\ndtype = 'int16'\noffset = 0\n"
        "sample_rate = 30000.\nhp_filtered = False\n"
    )


def _use_sorted(folder: Path) -> None:
    recording = read_kilosort(folder)
    assert recording.get_traces(0, 0, 10).dtype.kind in "iuf"
    assert np.isfinite(recording.positions).all()


LOADERS = {
    "parts": Loader(_parts, ("parts.json",), _use_parts),
    "maps": Loader(_maps, ("maps.safetensors",), lambda folder: read_maps(folder, 9, [5, 4])),
    "samples": Loader(_samples, ("samples.npz",), _use_samples),
    "Kilosort": Loader(
        _sorted, ("params.py", "channel_map.npy", "channel_positions.npy"), _use_sorted
    ),
    "model header": Loader(_model, ("model.json",), _use_model),
    "model tensors": Loader(_model, ("model.safetensors",), _use_model),
    "model, sealed": Loader(_model, ("model.json", "model.safetensors"), _seal_and_use),
    "estimator": Loader(_model, ("estimator.json",), _use_model),
    "gaps": Loader(_model, ("gaps.safetensors",), _use_model),
    "record": Loader(_run, ("run/run.json",), lambda folder: open_run(folder / "run")),
    "archive": Loader(_archive, ("mine.json",), _use_archive),
    "experiments": Loader(_yaml, ("rows.yaml",), _use_yaml),
    "checkpoint": Loader(_training, ("checkpoint.safetensors", "spent.json"), _training),
}  # fmt: skip

# pieces that are known to hurt
PIECES = [
    b"null",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1",
    b"0",
    b"9" * 500,
    b"[" * 100,
    b"{" * 100,
    b'{"a":' * 80,
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"1e-320",
    b'"\\ud800"',
    b"\xff\xfe",
    b"\x00",
    b"&a [*a]",
    b"*a",
    b"<<: *a",
    b"!!python/name:os.system",
    b"!!binary aa",
    b"? [a]",
    b"2026-02-31",
    b".nan",
    b".inf",
    b"0x" + b"f" * 40,
    b"\xe2\x80\xa8",
    b'"F64"',
    b'"BF16"',
    b'"data_offsets"',
    b"[0,99999999999]",
    b"- ",
    b"\n",
    b": ",
    b",",
    b'"',
    b"1:60:60",
    b"~",
    b"2.5",
    b"[1,1]",
    b"[[1]]",
    b"[999999999]",
]

edit = st.tuples(
    st.sampled_from(["flip", "cut", "insert", "replace", "repeat", "value"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 255),
    st.sampled_from(PIECES),
)


def spoiled(raw: bytes, edits: list[tuple[str, float, int, bytes]]) -> bytes:
    """``raw`` with some edits made."""
    for kind, where, number, piece in edits:
        at = int(where * max(len(raw), 1))
        if kind == "flip" and raw:
            raw = raw[:at] + bytes([raw[at] ^ (number or 1)]) + raw[at + 1 :]
        elif kind == "cut":
            raw = raw[:at]
        elif kind == "insert":
            raw = raw[:at] + piece + raw[at:]
        elif kind == "replace":
            raw = raw[:at] + piece + raw[at + len(piece) :]
        elif kind == "repeat":
            raw = raw[:at] + raw[at : at + number] * 3 + raw[at + number :]
        elif kind == "value" and b":" in raw:
            # what stands between a colon and the next comma is a value
            colon = raw.find(b":", at) if raw.find(b":", at) >= 0 else raw.find(b":")
            ends = [e for e in (raw.find(mark, colon) for mark in (b",", b"}", b"\n")) if e >= 0]
            raw = raw[: colon + 1] + b" " + piece + raw[min(ends, default=len(raw)) :]
    return raw


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("sound")
            LOADERS[name].make(made[name])
        return made[name]

    return get


def check(loader: Loader, template: Path, edits: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        folder = Path(name) / "f"
        shutil.copytree(template, folder)
        warnings.simplefilter("ignore", RuntimeWarning)
        for number, file in enumerate(loader.files):
            path = folder / file
            if path.exists():
                path.write_bytes(spoiled(path.read_bytes(), edits[number :: len(loader.files)]))
        before = set(folder.rglob("*"))
        try:
            with bounded():
                loader.read(folder)
        except InputError as error:
            said = str(error)
            assert "\n" not in said
            assert len(said) < 1500
        except (UnicodeError, json.JSONDecodeError, RecursionError):
            assert loader.read in (_use_yaml, _seal_and_use)  # the test's own reading of the file
        if loader.read is not _training:
            assert set(folder.rglob("*")) == before


def explore(name: str, template: Path, examples: int, derandomize: bool) -> None:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        database=None,
        suppress_health_check=quiet,
    )
    @given(st.lists(edit, min_size=1, max_size=6))
    def run(edits: list[Any]) -> None:
        check(LOADERS[name], template, edits)

    run()


@pytest.mark.parametrize("name", [n for n in LOADERS if n != "checkpoint"])
def test_a_few_spoiled_files(sound: Callable[[str], Path], name: str) -> None:
    explore(name, sound(name), 30, derandomize=True)


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("name", LOADERS)
def test_spoiled_files_until_the_time_is_over(sound: Callable[[str], Path], name: str) -> None:
    end = time.monotonic() + float(os.environ.get("SYMLIFT_FUZZ_SECONDS", "600")) / len(LOADERS)
    while time.monotonic() < end:
        explore(name, sound(name), 20 if name == "checkpoint" else 200, derandomize=False)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(plain)
def test_json_that_a_program_writes_is_read(value: Any) -> None:
    text = json.dumps(value)
    assert json.dumps(loads(text)) == text


@given(st.text(alphabet='[]{}",:\\ 1e-.naNtrue', max_size=60))
def test_any_text_is_json_or_a_value_error(text: str) -> None:
    try:
        loads(text)
    except ValueError:
        return
