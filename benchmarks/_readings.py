"""Readings of generated recordings, kept in ``benchmarks/.readings`` (not in the repository):
sorting the neurons of a recording takes most of the time, and what follows is then measured anew
within minutes.

A reading is that of the sources it was made with: if one of the modules that read traces changes,
all are made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import symlift.ephys
from symlift.ephys.channels import Channels, read_channels
from symlift.ephys.fields import Fields
from symlift.ephys.traces import parts_of

FOLDER = Path(__file__).parent / ".readings"
SOURCES = (
    "events",
    "fields",
    "groups",
    "levels",
    "sorting",
    "traces",
    "waveforms",
    "whiten",
    "channels",
)


@dataclass(frozen=True)
class Reading:
    """What was read of a recording, and the processor seconds of it."""

    channels: Channels
    seconds: float

    def reordered(self, order: NDArray[np.int64]) -> Reading:
        """The same of a recording whose channel k was channel order[k]."""
        channels = self.channels
        new = np.argsort(order)
        now = new[channels.living]
        by = np.argsort(now)
        twin = channels.twin[order]
        moved = Channels(
            channels.reason[order],
            np.where(twin >= 0, new[twin], -1),
            now[by],
            channels.correlation[np.ix_(by, by)],
            channels.fields.of(by),
        )
        return replace(self, channels=moved)

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Within it, probes are checked and matched with this reading, whatever their traces."""
        with (
            patch("symlift.ephys.probes.parts_of", lambda *_: None),
            patch("symlift.ephys.probes.read_channels", lambda *_: self.channels),
        ):
            yield


def reading(key: str, recording: Callable[[], Any]) -> Reading:
    """The reading of the recording that ``recording`` makes, from the folder if it is there."""
    path = FOLDER / _version() / f"{key.replace('/', '-')}.npz"
    if path.is_file():
        return _loaded(path)
    made = recording()
    began = time.process_time()
    channels = read_channels(parts_of(made), float(made.sampling_frequency))
    read = Reading(channels, time.process_time() - began)
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = channels.fields
    np.savez(
        path,
        reason=channels.reason,
        twin=channels.twin,
        living=channels.living,
        correlation=channels.correlation,
        amplitude=fields.amplitude,
        error=fields.error,
        numbers=np.array([fields.relative, read.seconds]),
    )
    return read


def _loaded(path: Path) -> Reading:
    with np.load(path) as file:
        relative, seconds = file["numbers"]
        fields = Fields(file["amplitude"], file["error"], float(relative))
        reason, twin, living = file["reason"], file["twin"], file["living"]
        channels = Channels(reason, twin, living, file["correlation"], fields)
        return Reading(channels, float(seconds))


def _version() -> str:
    folder = Path(symlift.ephys.__file__).parent
    sources = b"".join((folder / f"{name}.py").read_bytes() for name in SOURCES)
    return sha256(sources).hexdigest()[:12]
