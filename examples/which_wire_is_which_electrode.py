"""A recording whose channel map has two channels swapped: check the map, then wire the probe anew
from the traces alone.

Run: python examples/which_wire_is_which_electrode.py [--out FOLDER] [--seconds S] (needs the extra
ephys)
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from symlift.ephys import ProbeCheck, check_probe, match_probe
from symlift.plotting import save_figure


def simulated(seconds: float, seed: int = 0) -> tuple[Any, Any]:
    """An 8×8 array over 64 neurons, by SpikeInterface's generator; channels 10 and 45 are swapped
    in the map.
    """
    from probeinterface import generate_multi_columns_probe
    from spikeinterface.core import generate_ground_truth_recording

    probe = generate_multi_columns_probe(
        num_columns=8, num_contact_per_column=8, xpitch=30, ypitch=30
    )
    probe.set_device_channel_indices(np.arange(64))
    recording, _ = generate_ground_truth_recording(
        durations=[seconds], probe=probe, num_units=64, seed=seed
    )
    wrong = np.arange(64)
    wrong[[10, 45]] = 45, 10
    probe.set_device_channel_indices(wrong)
    recording.set_probe(probe)
    return recording, probe


def draw(claimed: NDArray, recovered: NDArray, check: ProbeCheck, ids: list[Any]) -> Figure:
    """Contacts with the numbers of their channels: as the file claims, with what is wrong marked,
    and as found.
    """
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 4.6), sharex=True, sharey=True, layout="constrained"
    )
    suspects = {channel for group in check.swapped for channel in group}
    for ax, where, title in zip(
        axes, (claimed, recovered), ("as the file claims", "as the traces say"), strict=True
    ):
        colours = ["C3" if i in suspects else "0.7" if i in check.dead else "C0" for i in ids]
        ax.scatter(*where.T, s=130, c=colours)
        for number, (x, y) in enumerate(where):
            ax.annotate(str(number), (x, y), ha="center", va="center", fontsize=6, color="white")
        ax.set(title=title, xlabel="µm", aspect="equal")
    return figure


def main(recording: Any, probe: Any, out: Path | None = None) -> dict[str, Any]:
    """Check the map of a recording, wire its probe anew; returns both."""
    check = check_probe(recording)
    print(
        f"the map is {'right' if check.ok else 'not right'}; swapped: {check.swapped}, dead:"
        f" {check.dead}"
    )
    match = match_probe(recording, probe)
    where = np.empty((len(recording.channel_ids), 2))
    device = np.asarray(match.probe.device_channel_indices)
    where[device[device >= 0]] = np.asarray(match.probe.contact_positions)[device >= 0]
    print(f"contacts found, median confidence {np.median(match.confidence):.2f}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        figure = draw(
            recording.get_channel_locations(),
            where,
            check,
            np.asarray(recording.channel_ids).tolist(),
        )
        save_figure(figure, out / "electrodes.png")
        print(f"picture: {out / 'electrodes.png'}")
    return {"check": check, "match": match}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the recording")
    parser.add_argument("--out", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    recording, probe = simulated(arguments.seconds)
    main(recording, probe, arguments.out)
