"""Wrong experiment files: each is refused in one line, quickly, and nothing is written."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from commands import refused, run_command

from symlift.errors import InputError
from symlift_paper.bounded_yaml import MAX_ALIASES, MAX_DEPTH, MAX_NODES, read_yaml
from symlift_paper.registry import read_experiments

GOOD = {
    "name": "mine",
    "title": "t",
    "source": "gsn",
    "shape": "[9]",
    "n": "40",
    "baseline_n": "40",
}


def row(**changes: str) -> str:
    return "- {" + ", ".join(f"{k}: {v}" for k, v in (GOOD | changes).items() if v) + "}"


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

# texts that are no list of experiments, and what the one line must say
TEXTS = {
    "empty": ("", "must be a list"),
    "nothing but a comment": ("# none", "must be a list"),
    "a word": ("hello", "must be a list"),
    "a number": ("7", "must be a list"),
    "a mapping": ("name: mine", "must be a list"),
    "a list of words": ("[a, b]", "must be a list"),
    "a list of lists": ("[[a]]", "must be a list"),
    "open bracket": ("- [", "not YAML"),
    "open quote": ('- "name', "not YAML"),
    "a tab": ("-\tname: a\n\tb", "not YAML"),
    "two documents": ("- {}\n---\n- {}", "not YAML"),
    "control characters": ("- \x00\x01", "not YAML"),
    "a Python object": ("- !!python/object/apply:os.system [touch owned]", "not YAML"),
    "a Python name": ("- !!python/name:os.system", "not YAML"),
    "an unknown tag": ("- !mine {name: a}", "not YAML"),
    "a list as key": ("- {? [a] : b}", "not YAML"),
    "an anchor bomb": (BOMB, "entries, with its aliases unfolded"),
    "aliases beyond count": (f"- &a x\n- [{', '.join(['*a'] * (MAX_ALIASES + 1))}]", "aliases"),
    "a recursive list": ("&a [*a]", "holds itself"),
    "a recursive mapping": ("- &a {name: *a}", "holds itself"),
    "a recursive merge": ("- &a {<<: *a}", "holds itself"),
    "an unknown alias": ("- *nobody", "not YAML"),
    "deep lists": ("[" * 5000 + "]" * 5000, "levels"),
    "deep and open": ("[" * 100_000, "levels"),
    "deep mappings": ("{a: " * 3000 + "1" + "}" * 3000, "levels"),
    "deep blocks": ("\n".join(" " * i + "a:" for i in range(400)), "levels"),
    "many entries": ("[" + ", ".join(["1"] * (MAX_NODES + 1)) + "]", "entries"),
    "too large": ("# " + "x" * 2**20, "more than 1 MB"),
    "a long text": (row(title="x" * 10_001), "a text of 10001 characters"),
    "a number of 5,000 digits": (row(n="9" * 5000), "cannot be used"),
    "a number beyond 64 bits": (row(n=str(2**64)), "beyond 64 bits"),
    "hexadecimal beyond 64 bits": (row(n="0x" + "f" * 2000), "beyond 64 bits"),
    "NaN": (row(options="{noise: .nan}"), "is no number that can be used"),
    "infinity": (row(options="{noise: .inf}"), "is no number that can be used"),
    "1e999": (row(options="{noise: 1.0e+999}"), "is no number that can be used"),
    "a date": (row(title="2026-01-01"), "a value of type date"),
    "a day that is none": (row(title="2026-02-31"), "cannot be used"),
    "bytes": (row(options="{path: !!binary aGVsbG8=}"), "a value of type bytes"),
    "a set": (row(options="{path: !!set {a, b}}"), "a value of type set"),
    "pairs": (row(options="{path: !!pairs [a: 1]}"), "where text, numbers"),
    "a key that is a number": (row(options="{1: 2}"), "the key '1' is no text"),
    "a key that is nothing": (row(options="{~: 2}"), "is no text"),
    "a merge with a word": ("- {<<: a}", "not YAML"),
}
# single fields that are wrong
FIELDS = {
    "name": ["", "A", "a b", "../up", "a/b", "-a", "'a\\nb'", "x" * 65, "7", "[a]", "~", "é"],
    "title": ["~", "[a]", "{a: b}", "x" * 301],
    "source": ["magic", "~", "[gsn]", "GSN"],
    "shape": [
        "[]",
        "[1]",
        "[0]",
        "[-9]",
        "[9.5]",
        "['9']",
        "9",
        "~",
        "[9, 9, 9, 9]",
        "[100000000]",
        "[99999, 99999]",
        "[true]",
        "[[9]]",
        "{a: 9}",
        "[1000000000000]",
        "[30000]",
    ],
    "periodic": ["maybe", "[true]", "2", "~"],
    "solver": ["magic", "~", "3", "[fast]", "x" * 5_000],
    "n": ["0", "1", "-5", "1.5", "many", "~", "1000000000", "[5]"],
    "baseline_n": ["0", "-1", "x", "100000001"],
    "options": ["[]", "x", "~", "3"],
    "baselines": [
        "[ica]",
        "{ica: 3}",
        "{ica: {alpha: 3}}",
        "{magic: {}}",
        "{glasso: {colour: [1]}}",
        "{glasso: {alpha: ["
        + ", ".join(["1"] * 200)
        + "], beta: ["
        + ", ".join(["1"] * 200)
        + "]}}",
    ],
    "seeds": ["[]", "[-1]", "[0.5]", "[x]", "7", "[4294967296]", "[99999999999]", "~"],
    "training": [
        "3",
        "{seeds: [0]}",
        "{seeds: [0], seconds: 0}",
        "{seeds: [0], seconds: -1}",
        "{seeds: [], seconds: 9}",
        "{seeds: [0], seconds: 9, more: 1}",
    ],
    "paper": ["3", "{r: high}", "{colour: 1}", "{similarity: 0.5}", "{baselines: {a: b}}"],
    "cost": ["3", "{fast: 0}", "{fast: -1}", "{fast: x}"],
    "block": ["mine", "~", "3"],
    "colour": ["red"],
}
WRONG = [(key, value) for key, values in FIELDS.items() for value in values]
# what only the data set can say, when it is made
OPTIONS = {
    "unknown option": row(options="{colour: red}"),
    "an option given twice": row(options="{random_state: 3}"),
    "noise a word": row(options="{noise: loud}"),
    "noise below zero": row(options="{noise: -1.0}"),
    "noise of 1e300": row(options="{noise: 1.0e+300}"),
    "noise a list": row(options="{noise: [1]}"),
    "unknown basis": row(options="{basis: magic}"),
    "unknown variant": row(options="{variant: magic}"),
    "basis a number": row(options="{basis: 3}"),
    "basis a list": row(options="{basis: [gaussian]}"),
    "unknown shifts": row(options="{shifts: sideways}"),
    "unknown transform": row(transform="magic"),
    "transform a path": row(transform="../../etc/passwd"),
    "ising with no temperature": row(source="ising", options="{beta: cold}"),
    "ising below zero": row(source="ising", options="{sweeps: -3}"),
    "ising sweeps a word": row(source="ising", options="{sweeps: many}"),
    "ising of three temperatures": row(source="ising", options="{beta: [1.0, 2.0, 3.0]}"),
    "recording unknown": row(source="recording", options="{name: nobody}"),
    "recording without name": row(source="recording"),
    "recording name a list": row(source="recording", options="{name: [a]}"),
    "recording elsewhere": row(
        source="recording", options="{name: head-direction, folder: nowhere}"
    ),
    "file without path": row(source="file"),
    "file that is not there": row(source="file", options="{path: none.npz}"),
    "file that is a folder": row(source="file", options="{path: .}"),
    "file path a number": row(source="file", options="{path: 3}"),
    "file with another option": row(source="file", options="{path: good.npz, mode: w}"),
    "file of text": row(source="file", options="{path: text.npz}"),
    "file cut": row(source="file", options="{path: cut.npz}"),
    "file of objects": row(source="file", options="{path: objects.npz}"),
    "file without latent": row(source="file", options="{path: alone.npz}"),
    "latent of other rows": row(source="file", options="{path: rows.npz}"),
    "latent of other points": row(source="file", options="{path: points.npz}"),
    "X of three axes": row(source="file", options="{path: axes.npz}"),
    "X of one row": row(source="file", options="{path: one.npz}"),
    "X of words": row(source="file", options="{path: words.npz}"),
    "X complex": row(source="file", options="{path: complex.npz}"),
    "X with NaN": row(source="file", options="{path: nan.npz}"),
    "X with infinity": row(source="file", options="{path: inf.npz}"),
    "transform of another shape": row(source="file", options="{path: transform.npz}"),
    "transform with NaN": row(source="file", options="{path: nantransform.npz}"),
    "a bomb": row(source="file", options="{path: bomb.npz}"),
    "more points than columns": row(
        source="file", shape="[30]", solver="random", options="{path: wide.npz}"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arrays of every wrong kind."""
    here = tmp_path_factory.mktemp("experiments")
    X = np.random.default_rng(0).normal(size=(40, 9))
    broken = X.copy()
    broken[3, 2] = np.nan
    arrays: dict[str, dict[str, object]] = {
        "good": {"X": X, "latent": X},
        "alone": {"X": X},
        "rows": {"X": X, "latent": X[:30]},
        "points": {"X": X, "latent": X[:, :5]},
        "axes": {"X": X.reshape(40, 3, 3), "latent": X},
        "one": {"X": X[:1], "latent": X[:1]},
        "words": {"X": X.astype("U3"), "latent": X},
        "complex": {"X": X * 1j, "latent": X},
        "nan": {"X": broken, "latent": X},
        "inf": {"X": np.where(X > 2, np.inf, X), "latent": X},
        "transform": {"X": X, "latent": X, "transform": np.eye(8)},
        "nantransform": {"X": X, "latent": X, "transform": np.full((9, 9), np.nan)},
        "wide": {"X": X, "latent": np.zeros((40, 30))},
    }
    for name, content in arrays.items():
        np.savez(here / f"{name}.npz", **content)  # type: ignore[arg-type]
    np.savez(here / "objects.npz", X=np.array([[object()]]), latent=X, allow_pickle=True)
    (here / "text.npz").write_text("no archive")
    (here / "cut.npz").write_bytes((here / "good.npz").read_bytes()[:500])
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**28, 9)}
    )
    with zipfile.ZipFile(here / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("X.npy", "w", force_zip64=True) as file:
            file.write(header.getvalue())
            for _ in range(5):
                file.write(bytes(2**20))
        archive.writestr("latent.npy", b"")
    # what the directory of the archive declares is the attacker's to write: 18 GB
    raw = bytearray((here / "bomb.npz").read_bytes())
    at = raw.index(b"PK\x01\x02")
    raw[at + 24 : at + 28] = (2**32 - 2).to_bytes(4, "little")
    (here / "bomb.npz").write_bytes(bytes(raw))
    return here


def attack(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, words: str
) -> None:
    monkeypatch.chdir(folder)
    path = tmp_path / "rows.yaml"
    path.write_text(text, encoding="utf-8")
    cache = tmp_path / "cache"
    refused(
        folder,
        words,
        "experiment",
        "run",
        "mine",
        "--file",
        path,
        "--cache",
        cache,
        "--solver",
        "random",
        "--json",
    )
    assert not cache.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["rows.yaml"]


@pytest.mark.parametrize("case", TEXTS)
def test_a_file_that_is_no_list_of_experiments_is_refused(folder, monkeypatch, tmp_path, case):
    attack(folder, monkeypatch, tmp_path, TEXTS[case][0], TEXTS[case][1])


@pytest.mark.parametrize(("key", "value"), WRONG, ids=[f"{k}: {v[:25]}" for k, v in WRONG])
def test_a_field_that_is_wrong_is_refused(folder, monkeypatch, tmp_path, key, value):
    attack(folder, monkeypatch, tmp_path, row(**{key: value or "''"}), "error: ")


@pytest.mark.parametrize("key", ["name", "title", "source", "shape"])
def test_a_field_that_is_missing_is_named(folder, monkeypatch, tmp_path, key):
    attack(folder, monkeypatch, tmp_path, row(**{key: ""}), key)


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_do_not_suit_the_data_are_refused(folder, monkeypatch, tmp_path, case):
    attack(folder, monkeypatch, tmp_path, OPTIONS[case], "error: ")


def test_bytes_that_are_no_text_are_refused(folder, tmp_path):
    (tmp_path / "rows.yaml").write_bytes(b"\xff\xfe\x00")
    refused(tmp_path, "rows.yaml", "experiment", "list", "--file", tmp_path / "rows.yaml")


def test_anchors_within_bounds_serve(folder, monkeypatch, tmp_path):
    text = (
        "- &one {name: one, title: t, source: gsn, shape: [9]}\n- {<<: *one, name:"
        f" two}}\n{row()}"
    )
    found = read_experiments(text, "rows.yaml")
    assert found["two"].shape == (9,)
    (tmp_path / "rows.yaml").write_text(text)
    arguments = (
        "experiment",
        "run",
        "mine",
        "--file",
        tmp_path / "rows.yaml",
        "--cache",
        tmp_path / "c",
    )
    code, out, err = run_command(*arguments, "--solver", "random", "--json")
    assert (code, err) == (0, "")
    assert '"experiment": "mine"' in out


def test_depth_is_counted_as_it_is_said():
    inside = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    read_yaml(inside)
    with pytest.raises(ValueError, match="levels"):
        read_yaml(f"[{inside}]")
    with pytest.raises(InputError):
        read_experiments(f"[{inside}]", "rows.yaml")
