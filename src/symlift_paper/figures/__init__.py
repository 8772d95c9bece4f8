"""The paper's figures, each drawn from a run of its experiments on request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from symlift.errors import InputError
from symlift.solvers.contract import Progress, no_progress
from symlift.storage.atomic import write_atomically
from symlift_paper.figures.request import Request
from symlift_paper.registry import get_experiment

__all__ = ["FIGURES", "FORMATS", "PaperFigure", "draw"]

#: file formats of a figure
FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True)
class PaperFigure:
    """What a figure shows, and the experiments that are run for it.

    ``n`` is the default number of samples, None for the experiment's own number.
    """

    title: str
    experiments: tuple[str, ...]
    module: str
    n: int | None = None


#: every figure by name; modules are imported on demand, so that nothing here imports matplotlib
FIGURES = {
    "waveforms": PaperFigure(
        "generators, resolving filters and lifting of shot noise, in the native and the DST-I"
        " domain",
        ("gsn63-gaussian-identity", "gsn63-gaussian-dst"),
        "waveforms",
    ),
    "bits": PaperFigure(
        "digits emerging from scrambled bits: snapshots of our training and of the fast solver",
        ("mnist15-bits",),
        "bits",
        n=20_000,
    ),
    "lifting-map": PaperFigure(
        "lifting maps of scrambled bits, trained and of the fast solver, and the weights of bits",
        ("mnist15-bits",),
        "lifting_map",
        n=20_000,
    ),
    "neural": PaperFigure(
        "head direction: model output, polar code, real and moved samples",
        ("neural-head-direction",),
        "neural",
    ),
    "neural-gratings": PaperFigure(
        "drifting gratings: model output, polar code, real and moved samples",
        ("neural-gratings",),
        "neural",
    ),
    "neural-synthetic": PaperFigure(
        "synthetic gratings: model output, polar code, real and moved samples",
        (),
        "neural",
    ),
    "transport": PaperFigure(
        "samples moved by one step of the stimulus: synthetic gratings and two recordings",
        ("neural-head-direction", "neural-gratings"),
        "transport",
    ),
    "gsn-samples": PaperFigure(
        "samples of the shot-noise processes, latent and as observed",
        (
            "gsn63-gaussian-identity",
            "gsn63-gaussian-dst",
            "gsn63-legendre-identity",
            "gsn63-legendre-dst",
            "gsn15-fft",
            "gsn15-discrete",
            "gsn15-continuous",
        ),
        "samples",
        n=2_000,
    ),
}


def draw(
    name: str,
    folder: Path,
    *,
    seed: int = 0,
    n: int | None = None,
    seconds: float | None = None,
    formats: Sequence[str] = ("svg", "png"),
    progress: Progress = no_progress,
) -> list[Path]:
    """Run what the figure ``name`` needs, draw it, write ``folder/name.*`` and return the paths.

    Either all formats are written or none. The same seed and n give the same files on the same
    machine. ``seconds`` stops trainings that take longer: where one was stopped, the file depends
    on the machine's speed.
    """
    if name not in FIGURES:
        raise InputError(f"figure {name!r} is unknown: use one of {', '.join(FIGURES)}")
    unknown = [kind for kind in formats if kind not in FORMATS]
    if unknown or not formats:
        asked = repr(unknown[0]) if unknown else "none"
        raise InputError(f"a figure's format cannot be {asked}: use {', '.join(FORMATS)}")
    if (n is not None and n < 1) or (seconds is not None and not seconds > 0):
        raise InputError(
            f"n = {n} and seconds = {seconds}: a figure needs at least one sample, and more than 0"
            " seconds"
        )
    chosen = FIGURES[name]
    request = Request(
        tuple(get_experiment(needed) for needed in chosen.experiments),
        seed,
        chosen.n if n is None else n,
        seconds,
        progress,
    )
    from symlift.plotting import styled, write_figure

    with styled():
        figure = import_module(f"{__name__}.{chosen.module}").paint(request)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in formats]
    with ExitStack() as stack:  # every file is whole before the first one appears
        for path, kind in zip(paths, formats, strict=True):
            write_figure(figure, stack.enter_context(write_atomically(path)), kind)
    return paths
