"""Models that were tampered with: each is refused in one line that names what is wrong, and nothing
is written.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import refused
from safetensors.numpy import load_file, save_file
from scipy import sparse

from symlift import InputError, LatentDomain, load
from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.storage.atomic import sha256_of
from symlift.storage.model_check import digest_of
from symlift.storage.model_file import load_model, save_model

OLD = Path(__file__).parents[1] / "fixtures" / "v0.1.0" / "run"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a saved model of every kind: with planes, and sparse on a torus."""
    here = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(300, 12)), axis=1)
    np.save(here / "x.npy", X)
    LatentDomain((12,), solver="random", random_state=0).fit(X).save(here / "planes")
    est = LatentDomain((12,), solver="random", random_state=0).fit(X)
    W = sparse.csr_array(np.eye(12)[rng.permutation(12)])
    est.model_ = LiftedModel.from_lifting_map(W, Grid((12,)), mean=X.mean(axis=0))
    est.save(here / "sparse")
    LatentDomain((12,), mixing="shuffled", random_state=0).fit(X).save(here / "placed")
    return here


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    return tmp_path


def seal(model: Path) -> None:
    """Make hashes and digest right again, as somebody would who tampers on purpose."""
    path = model / "model.json"
    header = json.loads(path.read_text())
    header["sha256"] = sha256_of(model / "model.safetensors")
    header.pop("digest", None)
    path.write_text(json.dumps(header | {"digest": digest_of(header)}))


def set_header(model: Path, **changes: Any) -> None:
    path = model / "model.json"
    header = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in header.items() if v is not ...}))


def set_tensor(model: Path, name: str, change: Callable[[Any], Any]) -> None:
    path = model / "model.safetensors"
    parts = load_file(path)
    new = change(parts.get(name))
    if new is None:
        parts.pop(name)
    else:
        parts[name] = np.ascontiguousarray(new)
    path.unlink()
    save_file(parts, path)
    seal(model)


# -- the header, with a digest that is right -------------------------------------------------------

WRONG = {
    "format": ["other", "", 3, None, ["symlift-lifted-model"]],
    "version": [0, -1, 99, 2.5, "2", None, True, 10**30, [2]],
    "grid": [
        [],
        [0],
        [1],
        [-12],
        [12.5],
        ["12"],
        "12",
        12,
        None,
        [12, 12, 12, 12],
        [10**9],
        [2**31],
        [[12]],
        [True],
        {"n": 12},
    ],
    "periodic": [[], [True, False], "no", None, [0], [None], True, [[False]]],
    "confidence": [2.0, -1.0, "high", [], True, 1e308],
    "scale": [0.0, -1.0, 1e-320, 1e308, "1", None, [1.0], True, {"a": 1}, 1e-300],
    "embedding": ["bent", "", None, 1, ["linear"], "IDENTITY"],
    "columns": [0, -12, 11, 13, 12.5, "12", 2**31, 10**12, [12], True],
    "channels": [0, -1, 2, 7, 1.5, "1", 2**31, None, True],
    "torus": [[], [3], [11], [12, 12], [0], [-19], "19", 19, [2**30], [10**30]],
    "sha256": ["", "0" * 64, "g" * 64, None, 7, "0" * 63],
    "extra": ["field", None, {"deep": [[]]}],
}
HEADERS = [(key, value) for key, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("key", "value"), HEADERS, ids=[f"{k}={str(v)[:20]}" for k, v in HEADERS])
def test_a_header_that_no_model_has_is_refused(folder: Path, key: str, value: Any) -> None:
    model = folder / "planes"
    set_header(model, **{key: value})
    path = model / "model.json"
    header = json.loads(path.read_text())
    header.pop("digest")
    path.write_text(json.dumps(header | {"digest": digest_of(header)}))
    refused(folder, "planes", "transform", model, folder / "x.npy", "--out", folder / "y.npy")


@pytest.mark.parametrize(
    "key", ["format", "version", "grid", "periodic", "confidence", "scale", "embedding", "sha256"]
)
def test_a_header_that_lacks_something_is_refused(folder: Path, key: str) -> None:
    set_header(folder / "planes", **{key: ...})
    refused(
        folder,
        "model.json",
        "transform",
        folder / "planes",
        folder / "x.npy",
        "--out",
        folder / "y.npy",
    )


@pytest.mark.parametrize("key", ["scale", "columns", "confidence", "grid", "torus", "channels"])
def test_the_digest_covers_the_header(folder: Path, key: str) -> None:
    path = folder / "planes" / "model.json"
    header = json.loads(path.read_text())
    values = {
        "scale": header["scale"] * 1.0001,
        "columns": 11,
        "confidence": 0.5,
        "grid": [11],
        "torus": [19],
        "channels": 2,
    }
    path.write_text(json.dumps(header | {key: values[key]}))
    refused(
        folder,
        "its digest differs",
        "transform",
        folder / "planes",
        folder / "x.npy",
        "--out",
        folder / "y.npy",
    )


TEXTS = {
    "empty": b"",
    "cut": b'{"format": "symlift-lifted-model", ',
    "not UTF-8": b'{"format": "\xff\xfe"}',
    "no object": b"[1, 2]",
    "a word": b'"symlift-lifted-model"',
    "null": b"null",
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep and open": b"[" * 1_000_000,
    "a huge integer": b'{"format": "symlift-lifted-model", "version": ' + b"9" * 100_000 + b"}",
    "a huge exponent": b'{"format": "symlift-lifted-model", "version": 2, "scale": 1e999}',
    "NaN": b'{"format": "symlift-lifted-model", "version": 2, "scale": NaN}',
    "too large": b" " * (2**20 + 1),
    "many quotes": b'"' + b'\\"' * 200_000,
    "zero bytes": bytes(1000),
    "a tag": b"!!python/object/apply:os.system [touch owned]",
    "a pickle": b"cos\nsystem\n(S'touch owned'\ntR.",
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_header_that_is_no_header_is_refused(folder: Path, case: str) -> None:
    (folder / "planes" / "model.json").write_bytes(TEXTS[case])
    refused(
        folder,
        "model.json",
        "transform",
        folder / "planes",
        folder / "x.npy",
        "--out",
        folder / "y.npy",
    )


# -- tensors, with hashes that are right -----------------------------------------------------------

TENSORS: dict[str, tuple[str, str, Callable[[Any], Any], str]] = {
    "Q times 100": ("planes", "Q", lambda Q: 100 * Q, "Q is not orthogonal"),
    "Q times 1.01": ("planes", "Q", lambda Q: 1.01 * Q, "Q is not orthogonal"),
    "Q zero": ("planes", "Q", lambda Q: 0 * Q, "Q is not orthogonal"),
    "Q with two equal columns": (
        "planes",
        "Q",
        lambda Q: Q[:, [0, 0, *range(2, len(Q))]],
        "Q is not orthogonal",
    ),
    "Q NaN": ("planes", "Q", lambda Q: Q * np.nan, "NaN or infinity"),
    "Q of 1e200": ("planes", "Q", lambda Q: Q * 1e200, "Q is not orthogonal"),
    "Q not square": ("planes", "Q", lambda Q: Q[:, :-1], "Q has shape"),
    "Q smaller": ("planes", "Q", lambda Q: np.eye(len(Q) - 2), "theta has shape"),
    "Q of one axis": ("planes", "Q", lambda Q: Q[0], "Q has shape"),
    "Q of integers": (
        "planes",
        "Q",
        lambda Q: np.eye(len(Q), dtype=np.int64),
        "Q has the type int64",
    ),
    "Q of bits": ("planes", "Q", lambda Q: np.eye(len(Q), dtype=bool), "Q has the type bool"),
    "Q missing": ("planes", "Q", lambda Q: None, "Q or theta is missing"),
    "theta NaN": ("planes", "theta", lambda v: v * np.nan, "NaN or infinity"),
    "theta infinite": ("planes", "theta", lambda v: v + np.inf, "NaN or infinity"),
    "theta of another shape": ("planes", "theta", lambda v: v[:, 1:], "theta has shape"),
    "theta of two axes": ("planes", "theta", lambda v: np.concatenate([v, v]), "2 generators"),
    "theta empty": ("planes", "theta", lambda v: v[:0], "generators"),
    "theta missing": ("planes", "theta", lambda v: None, "Q or theta is missing"),
    "r zero": ("planes", "r", lambda r: 0 * r, "the filter r has norm 0"),
    "r times 100": ("planes", "r", lambda r: 100 * r, "the filter r has norm 100"),
    "r NaN": ("planes", "r", lambda r: r * np.nan, "NaN or infinity"),
    "r longer": ("planes", "r", lambda r: np.append(r, 0.0), "r has shape"),
    "r missing": ("planes", "r", lambda r: None, "it holds the tensors"),
    "mean infinite": ("planes", "mean", lambda v: v + np.inf, "NaN or infinity"),
    "mean longer": ("planes", "mean", lambda v: np.append(v, 0.0), "mean has shape"),
    "mean a matrix": ("planes", "mean", lambda v: v[None], "mean has shape"),
    "mean of bytes": ("planes", "mean", lambda v: v.astype(np.uint8), "mean has the type uint8"),
    "mean missing": ("planes", "mean", lambda v: None, "it holds the tensors"),
    "E zero": ("planes", "E", lambda E: 0 * E, "E is not the zero-pad embedding"),
    "E times 2": ("planes", "E", lambda E: 2 * E, "E is not the zero-pad embedding"),
    "E NaN": ("planes", "E", lambda E: E * np.nan, "NaN or infinity"),
    "E with fewer rows": ("planes", "E", lambda E: E[:-1], "E has shape"),
    "E with fewer columns": ("planes", "E", lambda E: E[:, :-1], "mean has shape"),
    "E of one axis": ("planes", "E", lambda E: E[0], "E has shape"),
    "E missing": ("planes", "E", lambda E: None, "it holds the tensors"),
    "a tensor too many": ("planes", "extra", lambda _: np.zeros(3), "it holds the tensors"),
    "both kinds of E": ("planes", "E.data", lambda _: np.zeros(3), "it holds the tensors"),
    "sparse: indices beyond": ("sparse", "E.indices", lambda v: v + 12, "E is inconsistent"),
    "sparse: indices below": ("sparse", "E.indices", lambda v: v - 12, "E is inconsistent"),
    "sparse: indices of floats": (
        "sparse",
        "E.indices",
        lambda v: v.astype(np.float64),
        "E is inconsistent",
    ),
    "sparse: fewer indices": ("sparse", "E.indices", lambda v: v[:-1], "E is inconsistent"),
    "sparse: pointers beyond": ("sparse", "E.indptr", lambda v: v * 1000, "E is inconsistent"),
    "sparse: pointers falling": ("sparse", "E.indptr", lambda v: v[::-1], "E is inconsistent"),
    "sparse: fewer pointers": ("sparse", "E.indptr", lambda v: v[:-1], "E is inconsistent"),
    "sparse: no pointers": ("sparse", "E.indptr", lambda v: v[:0], "E is inconsistent"),
    "sparse: pointers below": ("sparse", "E.indptr", lambda v: v - 5, "E is inconsistent"),
    "sparse: values NaN": ("sparse", "E.data", lambda v: v * np.nan, "NaN or infinity"),
    "sparse: values zero": ("sparse", "E.data", lambda v: v * 0, "signals are zero or overflow"),
    "sparse: values of 1e300": (
        "sparse",
        "E.data",
        lambda v: v * 1e300,
        "signals are zero or overflow",
    ),
    "sparse: a matrix of values": ("sparse", "E.data", lambda v: v[None], "E is inconsistent"),
    "sparse: planes beside a torus": ("sparse", "Q", lambda _: np.eye(3), "it holds the tensors"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_that_no_model_has_are_refused(folder: Path, case: str) -> None:
    kind, name, change, words = TENSORS[case]
    set_tensor(folder / kind, name, change)
    refused(folder, words, "transform", folder / kind, folder / "x.npy", "--out", folder / "y.npy")


def safetensors_bytes(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


FILES = {
    "empty": b"",
    "cut": b"\x10\x00\x00",
    "header length beyond": struct.pack("<Q", 2**60),
    "header no JSON": safetensors_bytes(b"{nothing"),
    "header deep": safetensors_bytes(b"[" * 5000),
    "offsets beyond": safetensors_bytes(
        {"Q": {"dtype": "F64", "shape": [99, 99], "data_offsets": [0, 78408]}}
    ),
    "offsets backwards": safetensors_bytes(
        {"Q": {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]}}, bytes(8)
    ),
    "a shape of 2^62": safetensors_bytes(
        {"Q": {"dtype": "F64", "shape": [2**62, 4], "data_offsets": [0, 0]}}
    ),
    "bfloat16": safetensors_bytes(
        {"Q": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)
    ),
    "eight bits": safetensors_bytes(
        {"Q": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, bytes(2)
    ),
    "no tensors": safetensors_bytes({}),
    "a pickle": b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
    "a zip": b"PK\x03\x04" + bytes(100),
}


@pytest.mark.parametrize("sealed", [False, True], ids=["as it is", "sealed"])
@pytest.mark.parametrize("case", FILES)
def test_a_tensor_file_that_is_none_is_refused(folder: Path, case: str, sealed: bool) -> None:
    (folder / "planes" / "model.safetensors").write_bytes(FILES[case])
    if sealed:
        seal(folder / "planes")
    refused(
        folder,
        "planes",
        "transform",
        folder / "planes",
        folder / "x.npy",
        "--out",
        folder / "y.npy",
    )


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_model_with_a_file_missing_is_refused(folder: Path, name: str) -> None:
    (folder / "planes" / name).unlink()
    refused(
        folder,
        "planes",
        "transform",
        folder / "planes",
        folder / "x.npy",
        "--out",
        folder / "y.npy",
    )


# -- what stands beside the model ------------------------------------------------------------------

ESTIMATORS: dict[str, Any] = {
    "no object": [],
    "a later version": {"version": 99},
    "another format": {"format": "pickle"},
    "unknown solver": {"solver": "magic"},
    "solver a number": {"solver": 3},
    "unknown mixing": {"mixing": "bent"},
    "channels zero": {"channels": 0},
    "channels a word": {"channels": "many"},
    "seed below zero": {"random_state": -1},
    "seed too large": {"random_state": 2**40},
    "too few names": {"feature_names": ["a"]},
    "names of numbers": {"feature_names": [1] * 12},
    "evidence a list": {"evidence": []},
    "trace a word": {"trace": "fast"},
    "stages nested": {"trace": {"stages": [[[[]]]]}},
    "coordinates ragged": {"placement.coordinates": [[1.0], [1.0, 2.0]]},
    "coordinates infinite": {"placement.coordinates": [[float("inf")]] * 12},
    "points beyond": {"placement.point": [99] * 12},
    "points of 10^30": {"placement.point": [10**30] * 12},
    "points below": {"placement.point": [-2] * 12},
    "points too few": {"placement.point": [0]},
    "channels beyond": {"placement.channel": [12] * 12},
    "twins beyond": {"placement.twin": [12] * 12},
    "confidence of 2": {"placement.confidence": [2.0] * 12},
    "unknown reason": {"placement.reason": ["<script>"] * 12},
    "left out and placed": {"placement.reason": ["dead"] * 12},
}


@pytest.mark.parametrize("case", ESTIMATORS)
def test_what_stands_beside_a_model_must_fit_it(folder: Path, case: str) -> None:
    path = folder / "placed" / "estimator.json"
    record = json.loads(path.read_text())
    changes = ESTIMATORS[case]
    for key, value in changes.items() if isinstance(changes, dict) else ():
        where, _, name = key.rpartition(".")
        (record[where] if where else record)[name] = value
    path.write_text(json.dumps(record if isinstance(changes, dict) else changes))
    refused(
        folder,
        "estimator.json",
        "transform",
        folder / "placed",
        folder / "x.npy",
        "--out",
        folder / "y.npy",
    )


GAPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no file": lambda parts: None,
    "mean NaN": lambda parts: parts | {"mean": parts["mean"] * np.nan},
    "mean shorter": lambda parts: parts | {"mean": parts["mean"][:-1]},
    "neighbours beyond": lambda parts: parts | {"near": parts["near"] + 12},
    "neighbours below": lambda parts: parts | {"near": parts["near"] - 12},
    "covariance infinite": lambda parts: parts | {"covariance": parts["covariance"] + np.inf},
    "covariance smaller": lambda parts: parts | {"covariance": parts["covariance"][:, :-1]},
    "covariance missing": lambda parts: {k: v for k, v in parts.items() if k != "covariance"},
    "near of one axis": lambda parts: parts | {"near": parts["near"][0]},
}


@pytest.mark.parametrize("case", GAPS)
def test_what_predicts_gaps_must_fit_the_model(folder: Path, case: str) -> None:
    path = folder / "placed" / "gaps.safetensors"
    parts = GAPS[case](load_file(path))
    path.unlink()
    if parts is None:
        path.write_bytes(b"nothing")
    else:
        save_file({k: np.ascontiguousarray(v) for k, v in parts.items()}, path)
    refused(
        folder,
        "gaps.safetensors",
        "transform",
        folder / "placed",
        folder / "x.npy",
        "--out",
        folder / "y.npy",
    )


# -- what must still pass --------------------------------------------------------------------------


def test_sound_models_and_those_of_0_1_0_load(folder: Path) -> None:
    X = np.load(folder / "x.npy")
    for kind in ("planes", "sparse", "placed"):
        assert load(folder / kind).transform(X).shape == (300, 12)
    assert load(OLD).model_.grid == Grid((4, 5))
    assert "digest" not in json.loads((OLD / "model.json").read_text())


def test_single_precision_is_sound(folder: Path) -> None:
    model = load_model(folder / "planes").to(np.float32)
    save_model(model, folder / "single")
    assert load_model(folder / "single").E.dtype == np.float32


def test_one_changed_byte_anywhere_is_seen(folder: Path) -> None:
    """A flipped bit in either file: refused, or (white space, the order of keys) the very same
    model.
    """
    expected = load_model(folder / "planes").lifting_map()
    draw = random.Random(0)  # noqa: S311 - places, not secrets
    for name in ("model.json", "model.safetensors"):
        path = folder / "planes" / name
        whole = path.read_bytes()
        for _ in range(60):
            at, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
            path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            try:
                found = load_model(folder / "planes")
            except InputError as error:
                assert "\n" not in str(error)  # noqa: PT017 - either way is right
            else:
                assert np.array_equal(found.lifting_map(), expected)
        path.write_bytes(whole)
