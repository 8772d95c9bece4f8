"""Recordings that SpikeInterface would load: none runs what it says; sound ones pass."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from commands import everything, refused

from symlift.ephys.saved import check_saved
from symlift.errors import InputError

CORE = "spikeinterface.core"
BINARY = f"{CORE}.binaryfolder.BinaryFolderRecording"


class Touch:
    """What unpickles to a file in the working folder."""

    def __reduce__(self) -> Any:
        return os.close, (os.open("made", os.O_CREAT),)


def described(name: str, kwargs: Any = None, **more: Any) -> dict[str, Any]:
    return {"class": name, "kwargs": kwargs or {}, "version": "0.102.0", "annotations": {}} | more


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as SpikeInterface saves it."""
    folder = tmp_path / "recording"
    write(folder / "si_folder.json", described(BINARY, {"folder_path": "."}))
    write(folder / "provenance.json", described(f"{CORE}.generate.NoiseGeneratorRecording"))
    np.zeros((100, 4), "i2").tofile(folder / "traces_cached_seg0.raw")
    (folder / "properties").mkdir()
    np.save(folder / "properties/gain_to_uV.npy", np.ones(4))
    np.save(folder / "properties/group_name.npy", np.array(["a"] * 4))
    monkeypatch.chdir(tmp_path)
    return folder


def pickled(folder: Path, name: str = "x.pkl") -> None:
    (folder / name).write_bytes(pickle.dumps({"class": "it"}))


def objects(folder: Path, name: str = "properties/x.npy") -> None:
    np.save(folder / name, np.array([{}] * 4), allow_pickle=True)


def says(name: str, kwargs: Any = None, **more: Any) -> Callable[[Path], object]:
    return lambda folder: write(folder / "si_folder.json", described(name, kwargs, **more))


def elsewhere(make: Callable[[Path], object], name: str) -> Callable[[Path], object]:
    """Something beside the folder that its description names."""

    def spoil(folder: Path) -> None:
        (folder.parent / "beside").mkdir()
        make(folder.parent / "beside")
        inner = described(BINARY, {"folder_path": f"../beside{name}"})
        outer = f"{CORE}.frameslicerecording.FrameSliceRecording"
        write(folder / "si_folder.json", described(outer, {"parent_recording": inner}))

    return spoil


def cached(folder: Path) -> None:
    (folder / "si_folder.json").unlink()
    pickled(folder, "cached.pkl")


def beside(**kinds: Any) -> Callable[[Path], object]:
    return lambda folder: [write(folder / f"{name}.json", value) for name, value in kinds.items()]


CASES: dict[str, Callable[[Path], object]] = {
    "a function": says(f"{CORE}.load", {"file_or_folder_or_dict": "x.pkl"}),
    "a class of Python": says("subprocess.Popen", {"args": "touch made"}),
    "a class of numpy": says("numpy.lib.npyio.FakeRecording"),
    "a class by a similar name": says("spikeinterface_evil.core.FakeRecording"),
    "no class": says({"a": 1}),  # type: ignore[arg-type]
    "a class within": says(BINARY, {"x": [described("os.system", {"command": "touch made"})]}),
    "properties elsewhere": says(BINARY, folder_metadata="../beside"),
    "a pickle it names": lambda folder: (pickled(folder), says(BINARY, {"x": "x.pkl"})(folder)),
    "a pickle": cached,
    "properties of objects": objects,
    "times of objects": lambda folder: objects(folder, "times_cached_seg0.npy"),
    "objects elsewhere": elsewhere(
        lambda folder: ((folder / "properties").mkdir(), objects(folder)), ""
    ),
    "a pickle elsewhere": elsewhere(lambda folder: pickled(folder, "cached.pkl"), ""),
    "a class elsewhere": elsewhere(lambda folder: write(folder / "a.json", {"class": "os.x"}),
                                   "/a.json"),
    "a sorting": beside(spikeinterface_info={"object": "SortingAnalyzer"}),
    "a group": beside(spikeinterface_info={"object": "Group[Recording]", "dict_keys": ["a"]}),
    "nothing known": beside(spikeinterface_info=[]),
    "a sorter's folder": lambda folder: (folder / "sorter_output").mkdir(),
    "not JSON": lambda folder: write(folder / "si_folder.json", "{"),
    "deep JSON": lambda folder: write(folder / "si_folder.json", "[" * 5000),
    "a link": lambda folder: (folder / "si_folder.json").unlink()
    or (folder / "si_folder.json").symlink_to("provenance.json"),
    "a damaged array": lambda folder: (folder / "properties/x.npy").write_bytes(b"\x93NUMPY"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_recording_that_runs_something_is_one_line(saved: Path, case: str) -> None:
    CASES[case](saved)
    before = everything(saved.parent)
    with pytest.raises(InputError) as caught:
        check_saved(saved)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert everything(saved.parent) == before


def test_sound_recordings_pass(saved: Path) -> None:
    check_saved(saved)
    filtered = f"{CORE[:-5]}.preprocessing.filter.BandpassFilterRecording"
    nested = described(filtered, {"recording": described(BINARY, {"folder_path": "recording"})})
    write(saved.parent / "filtered.json", nested)
    check_saved(saved.parent / "filtered.json")
    write(saved / "spikeinterface_info.json", {"object": "Recording"})
    check_saved(saved)
    check_saved(saved.parent / "session.nwb")


@pytest.mark.parametrize("kind", ["sound", "pickle", "an analyzer", "a link", "no JSON"])
def test_a_zarr_runs_nothing(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "recording.zarr"
    root = zarr.open(str(folder), mode="w")
    root.create_dataset("traces_seg0", data=np.zeros((100, 4), "i2"))
    root.attrs["separator"] = "as the user likes"
    meta = folder / "traces_seg0/.zarray"
    if kind == "pickle":
        meta.write_text(json.dumps(json.loads(meta.read_text()) | {"filters": [{"id": "pickle"}]}))
    elif kind == "an analyzer":
        root.attrs["spikeinterface_info"] = {"object": "SortingAnalyzer"}
    elif kind == "a link":
        (folder / "traces_seg0/0.0").unlink()
        (folder / "traces_seg0/0.0").symlink_to("/etc/hostname")
    elif kind == "no JSON":
        meta.write_text("{")
    if kind == "sound":
        check_saved(folder)
        return
    with pytest.raises(InputError) as caught:
        check_saved(folder)
    assert "\n" not in str(caught.value)


def test_the_command_looks_before_it_loads(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symlift.cli.probe._needed", lambda: None)
    (saved.parent / "x.pkl").write_bytes(pickle.dumps(Touch()))
    Path("made").unlink()  # by making the pickle
    for given in ("x.pkl", "recording"):
        CASES["a pickle it names"](saved)
        refused(saved.parent, "pickle", "probe", "check", given)
    assert not Path("made").exists()
