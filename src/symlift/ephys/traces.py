"""Traces of a SpikeInterface recording, in parts of a second, from the whole of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.ephys.levels import Parts
from symlift.errors import InputError

__all__ = ["parts_of", "seconds_in"]

# seconds that are read, evenly from the whole recording
_SECONDS = 60


def seconds_in(recording: Any) -> float:
    """How long a recording is, all segments together."""
    samples = sum(
        int(recording.get_num_samples(segment)) for segment in range(recording.get_num_segments())
    )
    return samples / float(recording.sampling_frequency)


def parts_of(recording: Any, span: tuple[float, float] = (0.0, np.inf)) -> Parts:
    """Parts of about a second, at most a minute in all, between two times in seconds; traces are
    not scaled, since all channels of a probe have one gain.
    """
    rate = float(recording.sampling_frequency)
    length = max(1, round(rate))
    windows = [
        (segment, start, min(start + length, int(recording.get_num_samples(segment))))
        for segment in range(recording.get_num_segments())
        for start in range(0, int(recording.get_num_samples(segment)), length)
    ]
    # segments follow each other
    began = dict(
        enumerate(
            np.cumsum(
                [0]
                + [int(recording.get_num_samples(s)) for s in range(recording.get_num_segments())]
            ).tolist()
        )
    )
    low, high = span[0] * rate, span[1] * rate
    windows = [
        w
        for w in windows
        if w[2] - w[1] >= length // 2 and low <= began[w[0]] + w[1] and began[w[0]] + w[2] <= high
    ]
    if len(windows) < 5:
        raise InputError(
            f"the recording is {len(windows)} s long: give one of 10 s or more, better a minute"
        )
    chosen = [windows[i] for i in np.unique(np.linspace(0, len(windows) - 1, _SECONDS).astype(int))]

    def read() -> Iterator[NDArray]:
        for segment, start, stop in chosen:
            part = np.asarray(
                recording.get_traces(segment_index=segment, start_frame=start, end_frame=stop)
            )
            if not np.isfinite(part).all():
                raise InputError(
                    f"the traces hold NaN or infinity between {start / rate:.0f} and"
                    f" {stop / rate:.0f} s: cut them out"
                )
            yield part

    return read
