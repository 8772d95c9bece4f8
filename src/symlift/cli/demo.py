"""The demonstration: scramble known signals, recover them from the vectors alone, draw both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.datasets import Observations, gsn, image_crops, load_mnist
from symlift.errors import InputError
from symlift.loading import load
from symlift.metrics import align, signal_recovery
from symlift.plotting import gallery, save_figure
from symlift.report import write_report
from symlift.runs.recover import recover
from symlift.runs.writers import write_rows
from symlift.storage.lock import Lock
from symlift.storage.plain_files import refuse_links

__all__ = ["run_demo"]

SIDE, SAMPLES = 15, 20_000


def demo_data(seed: int) -> tuple[Observations, str]:
    """Shuffled crops of digits, or shuffled shot noise where no digits are installed."""
    try:
        images = load_mnist().images
    except InputError:
        return gsn(
            SAMPLES, (12, 12), transform="permutation", random_state=seed
        ), "2-D shot noise, shuffled"
    return image_crops(
        images, (SIDE, SIDE), SAMPLES, transform="permutation", random_state=seed
    ), "shuffled digits"


def run_demo(out: Path, seed: int = 0, solver: str = "auto") -> dict[str, Any]:
    """Scramble, recover from a file, write the report and ``demo.png``; return the measures."""
    data, what = demo_data(seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{out} cannot be a folder ({error.strerror}): choose another --out"
        ) from None
    with Lock(out / ".lock", f"the demonstration in {out}"):
        refuse_links(out, ["run"])
        return _run_in(out, data, what, seed, solver)


def _run_in(out: Path, data: Observations, what: str, seed: int, solver: str) -> dict[str, Any]:
    observed = out / "observed.npy"
    write_rows(observed, data.X)
    run = recover(
        observed,
        out / "run",
        grid=str(data.grid),
        solver=solver,
        seed=seed,
        overwrite=(out / "run").exists(),
    )
    assert run is not None  # noqa: S101 - there is one process only
    report = write_report(run.folder)
    recovered = load(run.folder).transform(data.X)
    recovery = signal_recovery(data.latent, recovered, data.grid)
    assert recovery.alignment is not None  # noqa: S101 - the global protocol always has one
    # show the samples of largest energy, in the orientation of the truth
    shown = np.argsort(-data.latent[:500].var(axis=1), kind="stable")[:8]
    rows: dict[str, NDArray] = {
        "as observed": data.X[shown],
        "recovered": align(recovered[shown], recovery.alignment, data.grid),
        "hidden truth": data.latent[shown],
    }
    seconds = run.record.timings.fit
    figure = out / "demo.png"
    save_figure(
        gallery(rows, data.grid, title=f"{what}: r = {recovery.r:.3f} in {seconds:.1f} s"), figure
    )
    diagnosis = run.record.diagnosis
    return {
        "what": what,
        "n": len(data.X),
        "d": data.X.shape[1],
        "solver": solver,
        "r": float(recovery.r),
        "seconds": seconds,
        "verdict": None if diagnosis is None else diagnosis.verdict.words,
        "figure": str(figure),
        "report": str(report),
    }
