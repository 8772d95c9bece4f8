"""Files that are read elsewhere than by `recover`: folders of Kilosort, data sets, kept samples.
Each is refused in one line, within the same bounds, and nothing outside of it is read.  And nothing
is opened but by those who check it.
"""

from __future__ import annotations

import ast
import errno
import gzip
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from bounded import bounded
from commands import everything

import symlift
import symlift_paper
from symlift.datasets import load_mnist, load_nwb_gratings, load_recording
from symlift.ephys import read_kilosort
from symlift.ephys.kilosort import replace_kilosort_map
from symlift.errors import InputError, SymliftError
from symlift.storage.numpy_files import read_array
from symlift.storage.sample_file import SamplesError, read_samples

# -- who opens files -------------------------------------------------------------------------------

#: what opens or unpacks a file that may come from anywhere
OPENERS = {
    "np.load", "np.memmap", "np.fromfile", "np.loadtxt", "np.genfromtxt",
    "np.lib.format.read_array",
    "h5py.File", "zarr.open", "zipfile.ZipFile", "gzip.decompress", "gzip.GzipFile", "gzip.open",
    "load_file", "safe_open", "torch.load", "loadmat", "whosmat", "load_workbook", "ast.parse",
    "json.load", "json.loads", "yaml.load", "yaml.safe_load", "tomllib.loads", "tomllib.load",
    "ipc.open_file", "ipc.open_stream", "parquet.ParquetFile", "parquet.read_table", "pd.read_csv",
    "read_csv", "pickle.load", "pickle.loads", "joblib.load", "extra", "zlib.decompress",
    "zlib.decompressobj",
}  # fmt: skip
#: module → what it opens; each is attacked by the tests that are named
ALLOWED = {
    # test_readers, test_bombs, test_fuzz_readers
    "symlift/runs/readers/arrays.py": {
        "np.load", "zipfile.ZipFile", "np.lib.format.read_array", "json.loads", "zarr.open",
        "extra",
    },
    "symlift/runs/readers/arrow.py": {
        "extra", "parquet.ParquetFile", "ipc.open_file", "ipc.open_stream",
    },
    "symlift/runs/readers/hdf5.py": {"extra"},
    "symlift/runs/readers/inflate.py": {"zlib.decompressobj"},
    "symlift/runs/readers/matlab.py": {"zlib.decompressobj"},
    "symlift/runs/readers/text.py": {"np.loadtxt"},
    "symlift/runs/readers/workbook.py": {"extra", "zipfile.ZipFile", "load_workbook"},
    "symlift/runs/writers.py": {"extra", "zarr.open", "zipfile.ZipFile"},  # which it writes
    # here
    "symlift/storage/numpy_files.py": {"zipfile.ZipFile", "np.lib.format.read_array"},
    "symlift/datasets/images.py": {"gzip.GzipFile"},
    "symlift/ephys/kilosort.py": {"np.memmap", "ast.parse"},
    # test_fuzz_loaders
    "symlift/storage/strict_json.py": {"json.loads"},
    "symlift/storage/model_file.py": {"load_file"},
    "symlift/_estimator_file.py": {"load_file"},
    "symlift/_parts_file.py": {"load_file"},
    "symlift/solvers/neural/checkpoint.py": {"safe_open"},
    "symlift_paper/bounded_yaml.py": {"yaml.safe_load"},
    # text of its own: a lock's first thousand letters, the project next to the working folder
    "symlift/storage/lock.py": {"json.loads"},
    "symlift/cli/extensions.py": {"tomllib.loads"},
}  # fmt: skip


def openers_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            yield from (name for name in OPENERS if called == name or called.endswith(f".{name}"))


def test_nothing_is_opened_but_by_those_who_check_it() -> None:
    opened = {}
    for package in (symlift, symlift_paper):
        top = Path(package.__file__).parent
        for path in sorted(top.rglob("*.py")):
            names = set(openers_of(path))
            if names:
                opened[path.relative_to(top.parent).as_posix()] = names
    assert opened == ALLOWED


# -- folders of Kilosort ---------------------------------------------------------------------------

PARAMETERS = {
    "dat_path": "'raw.dat'", "n_channels_dat": "4", "dtype": "'int16'", "offset": "0",
    "sample_rate": "30000.",
}  # fmt: skip


def parameters(folder: Path, **changed: str) -> None:
    lines = [f"{name} = {value}\n" for name, value in (PARAMETERS | changed).items()]
    (folder / "params.py").write_text("".join(lines))


def header(shape: tuple[int, ...], descr: str = "<i8") -> bytes:
    out = io.BytesIO()
    declared = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, declared)
    return out.getvalue()


@pytest.fixture
def sorted_folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "channel_map.npy", np.arange(4)[:, None])
    np.save(tmp_path / "channel_positions.npy", np.arange(8.0).reshape(4, 2))
    np.random.default_rng(0).integers(1, 255, 8_000).astype("u1").tofile(tmp_path / "raw.dat")
    parameters(tmp_path)
    return tmp_path


def array(name: str, content: Any) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            with (folder / name).open("wb") as file:
                np.save(file, content, allow_pickle=True)

    return write


def pipe(name: str) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return write


def text(content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "params.py").write_text(content)


def setting(**changed: str) -> Callable[[Path], object]:
    return lambda folder: parameters(folder, **changed)


SORTED: dict[str, Callable[[Path], object]] = {
    # the bytes of the raw file would be addresses of objects: once, they ended the process
    "samples are objects": setting(dtype="'O'"),
    **{
        f"samples of type {kind}": setting(dtype=repr(kind))
        for kind in ("V0", "S0", "U3", "c16", "M8[s]", "i2,f4", "(3,)i2", "f16", "no", "i2,(")
    },
    "samples of no type": setting(dtype="[1, 2]"),
    "a rate without end": setting(sample_rate="1e999"),
    "a rate beyond floats": setting(sample_rate="1" + "0" * 400),
    "no end of channels": setting(n_channels_dat="1e999"),
    "too many channels": setting(n_channels_dat="1e300"),
    "an offset before the file": setting(offset="-10"),
    "an offset behind the file": setting(offset="100000"),
    "half an offset": setting(offset="0.5"),
    "an offset without end": setting(offset="1e999"),
    "a raw file of a long name": setting(dat_path=repr("a" * 5000)),
    "a raw file of an impossible name": setting(dat_path=r"'raw\x00.dat'"),
    "a raw file in two lines": setting(dat_path=r"'a\nb'"),
    "a raw file in red": setting(dat_path=r"'\x1b[31mraw'"),
    "deeply nested": text("dat_path = " + "(" * 5000 + ")" * 5000),
    "many signs": text("dat_path = " + "-" * 50_000 + "1"),
    "no text": lambda folder: (folder / "params.py").write_bytes(b"dat_path = '\xe9'\n"),
    "too long": text("# " + "x" * 70_000 + "\ndat_path = 'raw.dat'\n"),
    "a map that is too large": array("channel_map.npy", header((10**12,))),
    "a map of negative length": array("channel_map.npy", header((-1,))),
    "a map of nothing": array("channel_map.npy", np.zeros((0, 1))),
    "a map of words": array("channel_map.npy", np.array(["a"] * 4)),
    "a map with gaps": array("channel_map.npy", np.array([0, 1, 2, np.nan])),
    "a map beyond integers": array("channel_map.npy", np.array([0, 1, 2, 1e300])),
    "positions in words": array("channel_positions.npy", np.array([["a", "b"]] * 4)),
    "complex positions": array("channel_positions.npy", np.ones((4, 2), complex)),
    "positions that are dates": array("channel_positions.npy", np.ones((4, 2), "M8[s]")),
    "positions that are objects": array("channel_positions.npy", np.ones((4, 2), object)),
    "positions without end": array("channel_positions.npy", np.full((4, 2), 1e308)),
    "a pickle": array("channel_positions.npy", b"\x80\x04."),
    "a raw file that is a pipe": pipe("raw.dat"),
    "parameters that are a pipe": pipe("params.py"),
    "a map that is a pipe": pipe("channel_map.npy"),
}


@pytest.mark.parametrize("case", SORTED)
def test_a_folder_of_kilosort_that_is_none_is_one_line(sorted_folder: Path, case: str) -> None:
    SORTED[case](sorted_folder)
    with pytest.raises(InputError) as caught, bounded():
        read_kilosort(sorted_folder)
    said = str(caught.value)
    assert "\n" not in said
    assert "\x1b" not in said
    assert len(said) < 600


def test_nothing_in_a_folder_of_kilosort_is_run(sorted_folder: Path) -> None:
    parameters(sorted_folder, extra="__import__('pathlib').Path('made').touch()", offset="9**9**9")
    recording = read_kilosort(sorted_folder)
    assert recording.get_traces().shape == (1_000, 4)
    assert not Path("made").exists()


def test_a_repaired_map_is_written_whole_or_not_at_all(
    sorted_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, out = read_kilosort(sorted_folder), tmp_path / "out"
    really = os.fsync

    def full(descriptor: int) -> None:
        if len(left) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        left.pop()
        really(descriptor)

    for first in (True, False):
        before = everything(out)
        for writes in range(1, 6):
            left = [0] * writes
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", full)
                with pytest.raises(SymliftError, match="out cannot be written"):
                    replace_kilosort_map(recording, np.ones((4, 2)), out)
            assert everything(out) == before
            assert out.exists() != first
        replace_kilosort_map(recording, np.zeros((4, 2)), out)
        assert len(everything(out)) == (3 if first else 4)
        (out / "notes.txt").write_text("mine")


# -- data sets and kept samples --------------------------------------------------------------------


def archive(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


LARGE = header((36 << 20,)) + bytes(288 << 20)  # zeros, which pack to a quarter of a megabyte
DECLARED = header((10**12, 3))


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Archives whose arrays are far larger than they are, or than they say."""
    folder = tmp_path_factory.mktemp("packed")
    for name, content in (("large", LARGE), ("declared", DECLARED)):
        members = ("X", "angles", "period", "x_train", "x_test", "y_train", "y_test")
        archive(folder / f"{name}.npz", **dict.fromkeys(members[:1], content))
        archive(folder / f"{name}-all.npz", **dict.fromkeys(members[3:4], content))
    return folder


@pytest.mark.parametrize("name", ["large", "declared"])
def test_a_recording_that_unpacks_to_too_much(packed: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "head_direction_mouse28.npz").symlink_to(packed / f"{name}.npz")
    with pytest.raises(InputError, match=r"that unpack to|damaged"), bounded():
        load_recording("head-direction", tmp_path)


@pytest.mark.parametrize("name", ["large", "declared"])
def test_digits_that_unpack_to_too_much(packed: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"that unpack to|cannot be read"), bounded():
        load_mnist(packed / f"{name}-all.npz")


def test_digits_that_are_packed_and_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("symlift.datasets.images._MOST_BYTES", 1 << 20)
    with gzip.open(tmp_path / "train-images-idx3-ubyte.gz", "wb", compresslevel=1) as file:
        file.write(b"\0\0\x08\x01\x03\xff\xff\xff")
        for _ in range(100):
            file.write(bytes(1 << 20))
    with pytest.raises(InputError, match="incomplete"), bounded(memory=20 << 20):
        load_mnist(tmp_path)


@pytest.mark.parametrize("name", ["large", "declared"])
def test_kept_samples_that_unpack_to_too_much(packed: Path, tmp_path: Path, name: str) -> None:
    content = LARGE if name == "large" else DECLARED
    archive(tmp_path / "samples.npz", observed=content)
    with pytest.raises(SamplesError, match="damaged"), bounded():
        read_samples(tmp_path, 3)


def test_a_link_is_no_kept_sample(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "samples.npz").symlink_to(packed / "large.npz")
    with pytest.raises(SamplesError, match="missing"):
        read_samples(tmp_path, 3)


@pytest.mark.parametrize("name", ["objects", "declared", "short"])
def test_an_array_that_is_none(tmp_path: Path, name: str) -> None:
    content = {"objects": header((4,), "|O") + bytes(64), "declared": DECLARED}.get(name, b"\x93NU")
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"object|bytes are there|EOF"), bounded():
        read_array(tmp_path / "x.npy")


def test_links_in_a_session_of_gratings_are_not_followed(tmp_path: Path) -> None:
    """Else the name of a structure is a line of a file that somebody else may not read."""
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.arange(3.0)
    (tmp_path / "secret").write_bytes(b"root:x:0:0" * 4)
    for name in ("spike_times", "spike_times_index", "peak_channel_id"):
        for kind in ("link", "soft", "external"):
            path = tmp_path / f"{name}-{kind}.nwb"
            with h5py.File(path, "w") as file:
                file["units/spike_times"] = np.arange(9.0)
                file["units/spike_times_index"] = np.array([3, 6, 9])
                file["units/peak_channel_id"] = np.array([1, 2, 3])
                place = file.create_group("general/extracellular_ephys/electrodes")
                place["id"], place["location"] = np.array([1, 2, 3]), ["VISp"] * 3
                del file["units"][name]
                if kind == "external":
                    stored = [(str(tmp_path / "secret"), 0, 24)]
                    file["units"].create_dataset(name, (3,), "i8", external=stored)
                else:
                    linked = h5py.ExternalLink(str(tmp_path / "other.h5"), "secret")
                    file["units"][name] = linked if kind == "link" else h5py.SoftLink("/general")
            with pytest.raises(InputError, match=r"not followed|no presentations") as caught:
                load_nwb_gratings(path)
            assert "no presentations" not in str(caught.value) or name == "spike_times"
            assert "root:" not in str(caught.value)


@pytest.mark.parametrize("damage", ["short", "lengths", "group", "words"])
def test_a_session_of_gratings_that_is_none_is_one_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "session.nwb"
    with h5py.File(path, "w") as file:
        file["units/spike_times"] = np.arange(9.0)
        file["units/spike_times_index"] = np.array([3, 6, 9])
        file["units/peak_channel_id"] = ["a"] * 3 if damage == "words" else np.array([1, 2, 3])
        place = file.create_group("general/extracellular_ephys/electrodes")
        place["id"] = np.array([1, 2] if damage == "lengths" else [1, 2, 3])
        if damage == "group":
            place.create_group("location")
        else:
            place["location"] = ["VISp"] * 3
    if damage == "short":
        path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match="is not an HDF5 file, or is damaged") as caught:
        load_nwb_gratings(path)
    assert "\n" not in str(caught.value)
