"""``symlift probe``: which wire is which electrode?"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symlift.cli.console import AsJson, Overwrite, Quiet, Steps, echo, print_json
from symlift.errors import InputError
from symlift.storage.atomic import write_atomically

if TYPE_CHECKING:
    from probeinterface import Probe

__all__ = ["probe_app"]

probe_app = typer.Typer(
    help="Which wire is which electrode? Probes of recordings.", no_args_is_help=True
)

Recording = Annotated[
    Path,
    typer.Argument(
        metavar="REC",
        help="A recording that SpikeInterface reads: a folder it saved, .nwb, .raw, …",
    ),
]
ProbeFile = Annotated[
    Path | None, typer.Option("--probe", metavar="FILE", help="A probe (probeinterface's .json).")
]
OutFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Where the probe goes: probe.json.")
]


@probe_app.command()
def check(
    recording: Recording,
    probe: ProbeFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if the map is not right.")
    ] = False,
) -> None:
    """Is the map of a recording what its traces say? Lists swapped, dead, duplicated and floating
    channels.

    Example: symlift probe check recording
    """
    _needed()
    from symlift.ephys import check_probe

    claimed = None if probe is None else _read_probe(probe)
    with Steps(quiet) as progress:
        result = check_probe(_read(recording), claimed, progress=progress)
    if as_json:
        print_json(
            {
                "ok": result.ok, "confidence": round(result.confidence, 4),
                "swapped": [_names(group) for group in result.swapped],
                "swap_confidence": [round(sure, 4) for sure in result.swap_confidence],
                "dead": _names(result.dead), "floating": _names(result.floating),
                "duplicated": [_names(pair) for pair in result.duplicated],
            }
        )  # fmt: skip
    elif not quiet:
        words = "right" if result.ok else "not right" if result.swapped else "uncertain"
        echo(f"the map is {words} (confidence {result.confidence:.2f})")
        for group, sure in zip(result.swapped, result.swap_confidence, strict=True):
            echo(f"swapped: {' '.join(_names(group))} (confidence {sure:.2f})")
        for word, channels in (("dead", result.dead), ("floating", result.floating)):
            if channels:
                echo(f"{word}: {' '.join(_names(channels))}")
        for copy, original in result.duplicated:
            echo(f"duplicated: {copy} repeats {original}")
    if exit_code and not result.ok:
        raise typer.Exit(3)


@probe_app.command()
def match(
    recording: Recording,
    probe: ProbeFile = None,
    out: OutFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Wire a probe of known geometry: which channel is on which contact?

    Example: symlift probe match recording --probe probe.json --out wired.json
    """
    _needed()
    _free(out, overwrite)
    if probe is None:
        raise InputError(
            "match needs the geometry: give --probe FILE, or `symlift probe recover --grid` for a"
            " line or rectangle"
        )
    from symlift.ephys import match_probe

    geometry = _read_probe(probe)
    with Steps(quiet) as progress:
        wired = match_probe(_read(recording), geometry, progress=progress)
    _finish(
        wired.probe,
        out,
        as_json,
        quiet,
        {"confidence": [round(float(c), 4) for c in wired.confidence]},
    )


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


def _read(path: Path) -> Any:
    """Read a recording with SpikeInterface."""
    if not path.exists():
        raise InputError(f"{path} does not exist: give a recording that SpikeInterface reads")
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


def _finish(
    probe: Probe, out: Path | None, as_json: bool, quiet: bool, more: dict[str, Any]
) -> None:
    """Write the probe to the given file, whole or not at all, and print the result."""
    from probeinterface import write_probeinterface

    device = [int(channel) for channel in probe.device_channel_indices]
    placed = sum(channel >= 0 for channel in device)
    if out is not None:
        with write_atomically(out) as temporary:
            write_probeinterface(temporary, probe)
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
