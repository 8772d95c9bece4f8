"""``symlift probe``: which wire is which electrode?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from symlift.cli.console import AsJson, Overwrite, Quiet, Steps, echo, print_json
from symlift.errors import InputError
from symlift.storage.atomic import write_atomically

if TYPE_CHECKING:
    from probeinterface import Probe

    from symlift.ephys import MapFault, ProbeCheck, ProbeMatch, ProbeRank

__all__ = ["probe_app"]

# confidence below which a channel is named
_UNSURE = 0.5

probe_app = typer.Typer(
    help="Which wire is which electrode? Probes of recordings.", no_args_is_help=True
)

Recording = Annotated[
    Path,
    typer.Argument(
        metavar="REC",
        help="What SpikeInterface reads (a folder it saved, .nwb, …), or Kilosort's folder.",
    ),
]
ProbeFile = Annotated[
    Path | None, typer.Option("--probe", metavar="FILE", help="A probe (probeinterface's .json).")
]
OutFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Where the probe goes: probe.json.")
]


Anchors = Annotated[
    list[str] | None,
    typer.Option(
        "--anchor", metavar="ID=CONTACT", help="A contact that is known, numbered from 0; repeat."
    ),
]


@probe_app.command()
def check(
    recording: Recording,
    probe: ProbeFile = None,
    layout: Annotated[
        list[Path] | None,
        typer.Option(
            "--layout", metavar="FILE", help="Another wired probe that it may be; repeat."
        ),
    ] = None,
    anchor: Anchors = None,
    windows: Annotated[
        str | None, typer.Option(help="Check parts of this length: 1min, 30s.")
    ] = None,
    repair: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Where the repaired map goes: a probe's .json, or for Kilosort a new folder.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Exit with 3 if the map is not right, with 4 if the traces cannot tell.",
        ),
    ] = False,
) -> None:
    """Is the map of a recording what its traces say? Lists blocks that are reversed, shifted,
    exchanged or turned, channels that are swapped, without spikes, dead, duplicated and floating,
    and what the traces cannot tell.

    Example: symlift probe check recording
    """
    if not _of_kilosort(recording):
        _needed()
    from symlift.ephys import MapVerdict, check_probe

    _free(repair, overwrite)
    claimed = None if probe is None else _read_probe(probe)
    read = _read(recording)
    with Steps(quiet) as progress:
        result = check_probe(
            read,
            claimed,
            layouts=[_read_probe(one) for one in layout or ()],
            anchors=_anchors(read, anchor),
            windows=windows,
            progress=progress,
        )
    if repair is not None:
        _write_repaired(read, result.positions, repair)
    if as_json:
        print_json(_verdict(result))
    elif not quiet:
        for line in _lines(result):
            echo(line)
        if repair is not None:
            echo(f"repaired map: {repair}")
    if exit_code and not result.ok:
        raise typer.Exit(4 if result.verdict is MapVerdict.CANNOT_TELL else 3)


def _verdict(result: ProbeCheck) -> dict[str, Any]:
    """The check as one object, to be attached to a report."""

    def plain(one: MapFault) -> dict[str, Any]:
        return {
            "kind": one.kind, "sentence": one.sentence, "channels": _names(one.channels),
            "probability": round(one.probability, 4), "gain": round(one.gain, 2),
        }  # fmt: skip

    return {
        "ok": result.ok, "verdict": result.verdict.value,
        "confidence": round(result.confidence, 4), "probability": round(result.probability, 4),
        "faults": [plain(one) for one in result.faults],
        "cannot_tell": [plain(one) for one in result.cannot_tell], "whole": list(result.whole),
        "swapped": [_names(group) for group in result.swapped],
        "swap_confidence": [round(sure, 4) for sure in result.swap_confidence],
        "silent": _names(result.silent), "dead": _names(result.dead),
        "floating": _names(result.floating),
        "duplicated": [_names(pair) for pair in result.duplicated],
        "positions": [[round(float(x), 4) for x in at] for at in result.positions],
        "windows": [
            {"start": one.start, "stop": round(one.stop, 3), "verdict": one.verdict.value,
             "sentences": list(one.sentences)}
            for one in result.windows
        ],
    }  # fmt: skip


def _lines(result: ProbeCheck) -> Iterator[str]:
    """The check in words."""
    from symlift.ephys import MapVerdict

    lies = ", up to how the whole probe lies" if result.whole else ""
    words = {
        MapVerdict.RIGHT: f"the map is right{lies} (confidence {result.confidence:.2f})",
        MapVerdict.WRONG: "the map is not right",
        MapVerdict.CANNOT_TELL: "the traces cannot tell whether the map is right",
        MapVerdict.UNCERTAIN: f"the map is uncertain (confidence {result.confidence:.2f})",
    }
    yield words[result.verdict]
    for one in result.windows:
        wrong = "; ".join(one.sentences)
        yield f"{one.start:g} to {one.stop:g} s: {one.verdict.value}{': ' if wrong else ''}{wrong}"
    for fault in result.faults:
        yield f"{fault.kind}: {fault.sentence} (probability {fault.probability:.2f})"
    for group, sure in zip(result.swapped, result.swap_confidence, strict=True):
        yield f"swapped: {' '.join(_names(group))} (confidence {sure:.2f})"
    if len(result.faults) + len(result.swapped) > 1:
        yield f"the map without all of this is right with a probability of {result.probability:.2f}"
    for fault in result.cannot_tell:
        yield f"cannot tell: whether {fault.sentence} (probability {fault.probability:.2f})"
    if result.whole:
        yield f"cannot tell: whether the whole probe is {', '.join(result.whole)} (give --anchor)"
    for word, channels in (
        ("without spikes", result.silent),
        ("dead", result.dead),
        ("floating", result.floating),
    ):
        if channels:
            yield f"{word}: {' '.join(_names(channels))}"
    for copy, original in result.duplicated:
        yield f"duplicated: {copy} repeats {original}"


def _anchors(recording: Any, given: list[str] | None) -> dict[Any, int] | None:
    """Contacts by the ids of channels, which are numbers or words."""
    if not given:
        return None
    ids = {str(channel): channel for channel in recording.channel_ids}
    anchors = {}
    for text in given:
        name, _, contact = text.rpartition("=")
        if not contact.isdecimal() or not name:
            raise InputError(f"anchor {text!r} is not understood: give ID=CONTACT, such as ch3=17")
        if name not in ids:
            raise InputError(f"anchor {text!r}: the recording has no channel {name}")
        anchors[ids[name]] = int(contact)
    return anchors


def _write_repaired(recording: Any, positions: NDArray, out: Path) -> None:
    """A folder like Kilosort's, or a probe wired in the order of channels."""
    from symlift.ephys.kilosort import KilosortFolder, replace_kilosort_map

    if isinstance(recording, KilosortFolder):
        replace_kilosort_map(recording, positions, out)
        return
    from probeinterface import Probe

    probe = Probe(ndim=2, si_units="um")
    probe.set_contacts(positions=positions, shapes="circle", shape_params={"radius": 5})
    probe.set_device_channel_indices(list(range(len(positions))))
    _write_probe(probe, out)


@probe_app.command()
def match(
    recording: Recording,
    probe: Annotated[
        list[Path] | None,
        typer.Option("--probe", metavar="FILE", help="A probe; several of them are ranked."),
    ] = None,
    out: OutFile = None,
    anchor: Anchors = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Wire a probe of known geometry: which channel is on which contact? Or rank several layouts.

    Example: symlift probe match recording --probe probe.json --out wired.json
    """
    _needed()
    _free(out, overwrite)
    if not probe:
        raise InputError(
            "match needs the geometry: give --probe FILE, or `symlift probe recover --grid` for a"
            " line or rectangle"
        )
    from symlift.ephys import match_probe

    layouts = [_read_probe(one) for one in probe]
    read = _read(recording)
    known = _anchors(read, anchor)
    with Steps(quiet) as progress:
        if len(layouts) > 1:
            ranks = match_probe(read, layouts, anchors=known, progress=progress)
            _finish_ranks(ranks, probe, out, as_json, quiet)
            return
        wired = match_probe(read, layouts[0], anchors=known, progress=progress)
    sure = [round(float(c), 4) for c in wired.confidence]
    _finish(wired.probe, out, as_json, quiet, {"confidence": sure})
    if not (as_json or quiet):
        for line in _confidence_lines(wired, read):
            echo(line)


@probe_app.command()
def recover(
    recording: Recording,
    grid: Annotated[str, typer.Option(help="Contacts along each axis: 32 or 8x8.")],
    pitch: Annotated[
        float | None, typer.Option(help="Distance of contacts in µm.", show_default="steps")
    ] = None,
    out: OutFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the probe of a recording: positions of contacts on a line or rectangle, and their
    channels.

    Example: symlift probe recover recording --grid 8x8 --pitch 30 --out probe.json
    """
    _needed()
    _free(out, overwrite)
    from symlift.ephys import recover_probe

    with Steps(quiet) as progress:
        recovered = recover_probe(_read(recording), grid, pitch, progress=progress)
    _finish(recovered, out, as_json, quiet, {})


def _confidence_lines(wired: ProbeMatch, recording: Any) -> Iterator[str]:
    """How sure each shank is, and the channels that are not."""
    from symlift.ephys.claimed import shanks_of

    sure = wired.confidence
    device = np.asarray(wired.probe.device_channel_indices)
    shanks = shanks_of(wired.probe)
    for shank in range(0 if shanks is None else int(shanks.max()) + 1):
        on = device[(shanks == shank) & (device >= 0)]
        living = sure[on][sure[on] > 0]
        if len(living):
            yield f"shank {shank}: confidence {np.median(living):.2f} (least {living.min():.2f})"
    ids = [str(channel) for channel in recording.channel_ids]
    unsure = [f"{ids[i]} ({sure[i]:.2f})" for i in np.flatnonzero((sure > 0) & (sure < _UNSURE))]
    nowhere = [ids[i] for i in np.flatnonzero(sure == 0)]
    placed = sure[sure > 0] if (sure > 0).any() else np.zeros(1)
    yield f"confidence: {np.median(placed):.2f} in the middle, {placed.min():.2f} at least"
    if unsure:
        yield f"unsure: {' '.join(unsure)}"
    if nowhere:
        yield f"without spikes, on contacts that are left: {' '.join(nowhere)}"


def _finish_ranks(
    ranks: tuple[ProbeRank, ...], files: list[Path], out: Path | None, as_json: bool, quiet: bool
) -> None:
    """Layouts, the best first; the best is written."""
    if out is not None:
        _write_probe(ranks[0].probe, out)
    if as_json:
        shown = [
            {
                "file": str(files[one.number]),
                "probability": round(one.probability, 4),
                "cost": round(one.cost, 2),
                "changed": [fault.sentence for fault in one.faults],
            }
            for one in ranks
        ]
        print_json({"probe": None if out is None else str(out), "layouts": shown})
    elif not quiet:
        for one in ranks:
            changed = "; ".join(fault.sentence for fault in one.faults)
            tail = f", where {changed}" if changed else ""
            echo(f"{files[one.number]}: probability {one.probability:.2f}{tail}")


def _names(channels: tuple[Any, ...]) -> list[str]:
    return [str(channel) for channel in channels]


def _needed() -> None:
    missing = [name for name in ("spikeinterface", "probeinterface") if find_spec(name) is None]
    if missing:
        raise InputError(f"{missing[0]} is not installed: pip install 'symlift[ephys]'")


def _free(out: Path | None, overwrite: bool) -> None:
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} exists: give another name, or --overwrite")
    if out is not None and not out.parent.is_dir():
        raise InputError(f"{out.parent} is not a folder: make it first")


def _of_kilosort(path: Path) -> bool:
    return (path / "channel_map.npy").is_file()


def _read(path: Path) -> Any:
    """Read a recording with SpikeInterface, or a folder of Kilosort or phy without it."""
    if not path.exists():
        raise InputError(f"{path} does not exist: give a recording that SpikeInterface reads")
    if _of_kilosort(path):
        from symlift.ephys import read_kilosort

        return read_kilosort(path)
    from symlift.ephys.saved import check_saved

    check_saved(path)
    from spikeinterface.core import load

    tries: list[Callable[[], Any]] = [lambda: load(path)]
    if path.suffix == ".nwb":
        from spikeinterface.extractors import read_nwb_recording

        tries.insert(0, lambda: read_nwb_recording(path))
    loaded = None
    for attempt in tries:
        try:
            loaded = attempt()
            break
        except Exception as error:  # readers of foreign formats raise errors of many kinds
            reason = " ".join(str(error).split())[:120]
    if loaded is None or not hasattr(loaded, "get_traces"):
        raise InputError(
            f"{path} is no recording that SpikeInterface"
            f" reads{'' if loaded is not None else f' ({reason})'}: save it with"
            " recording.save(folder=…) and give that folder"
        )
    return loaded


def _read_probe(path: Path) -> Probe:
    from probeinterface import read_probeinterface

    if not path.is_file():
        raise InputError(f"{path} is not a file: give a probe that probeinterface wrote (.json)")
    try:
        probes = read_probeinterface(path).probes
    except Exception as error:
        raise InputError(
            f"{path} is no probe of probeinterface ({' '.join(str(error).split())[:120]}): write"
            " one with write_probeinterface"
        ) from error
    if len(probes) != 1:
        raise InputError(f"{path} holds {len(probes)} probes: give a file with one")
    return probes[0]


def _write_probe(probe: Probe, out: Path) -> None:
    """Whole or not at all."""
    from probeinterface import write_probeinterface

    with write_atomically(out) as temporary:
        write_probeinterface(temporary, probe)


def _finish(
    probe: Probe, out: Path | None, as_json: bool, quiet: bool, more: dict[str, Any]
) -> None:
    """Write the probe to the given file and print the result."""
    device = [int(channel) for channel in probe.device_channel_indices]
    placed = sum(channel >= 0 for channel in device)
    if out is not None:
        _write_probe(probe, out)
    if as_json:
        print_json(
            {"probe": None if out is None else str(out), "device_channel_indices": device, **more}
        )
    elif not quiet:
        echo(f"{placed} channels on {len(device)} contacts")
        if out is None:
            for contact, channel in enumerate(device):
                x, y = probe.contact_positions[contact][:2]
                echo(
                    f"contact {contact} ({x:g}, {y:g}):"
                    f" {'none' if channel < 0 else f'channel {channel}'}"
                )
        else:
            echo(f"probe: {out}")
