"""What each experiment is: data, transform, grid, and the figures that the paper reports for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from symlift.datasets import Observations, gsn, image_crops, ising, load_mnist, load_recording, scrambled_bits
from symlift.errors import InputError

__all__ = ["EXPERIMENTS", "Experiment", "PaperFigures", "get_experiment"]


class PaperFigures(BaseModel):
    """What the paper reports; None where it reports nothing.  Two similarities where there are two axes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    r: float | None = None
    similarity: tuple[float, ...] = ()
    similarity_exact: tuple[float, ...] = ()
    circular_correlation: float | None = None
    gpu_hours: float | None = None


class Experiment(BaseModel):
    """One row: where the vectors come from and which grid is behind them.

    ``transform="permutation"`` is the paper's identity: columns are permuted by the seed before a solver sees them, so
    that returning X scores nothing.  ``solver`` is what "auto" means here.  Recordings are what they are: a seed changes the
    solver's draws only, and all of their rows are used unless ``n`` asks for fewer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    source: Literal["gsn", "ising", "mnist", "mnist-bits", "recording"]
    shape: tuple[int, ...]
    periodic: bool = False
    transform: str = "permutation"
    solver: str = "auto"
    n: int = Field(default=50_000, gt=0)
    options: dict[str, Any] = Field(default_factory=dict)
    paper: PaperFigures = PaperFigures()

    def observe(self, seed: int, n: int | None = None) -> Observations:
        """The data set of this row for a seed: data and transform both depend on it."""
        count = self.n if n is None else n
        if self.source == "gsn":
            return gsn(
                count, self.shape, periodic=self.periodic, transform=self.transform, random_state=seed, **self.options
            )
        if self.source == "ising":
            return ising(count, self.shape, transform=self.transform, random_state=seed, **self.options)
        if self.source == "recording":
            data = load_recording(**self.options)
            return replace(data, X=data.X[:n], latent=data.latent[:n])
        images = load_mnist().images
        if self.source == "mnist-bits":
            return scrambled_bits(image_crops(images, self.shape, count, random_state=seed), random_state=seed)
        return image_crops(images, self.shape, count, transform=self.transform, random_state=seed, **self.options)


def _ring(shifts: str, similarity: float) -> Experiment:
    return Experiment(
        name=f"gsn15-{shifts}",
        title=f"shot noise on a ring of 15, {shifts} shifts",
        source="gsn",
        shape=(15,),
        periodic=True,
        options={"shifts": shifts},
        paper=PaperFigures(similarity_exact=(similarity,), gpu_hours=1.0),
    )


def _waveform(basis: str, transform: str, r: float, similarity: float) -> Experiment:
    return Experiment(
        name=f"gsn63-{basis}-{transform}",
        title=f"{basis} shot noise on 63 points, {transform}",
        source="gsn",
        shape=(63,),
        transform={"identity": "permutation", "dst": "dst1"}[transform],
        options={"basis": basis},
        paper=PaperFigures(r=r, similarity=(similarity,), gpu_hours=11.0),
    )


def _images(side: int, r: float, similarity: tuple[float, float], gpu_hours: float) -> Experiment:
    return Experiment(
        name=f"mnist{side}-shuffled",
        title=f"shuffled {side}×{side} crops of MNIST",
        source="mnist",
        shape=(side, side),
        paper=PaperFigures(r=r, similarity=similarity, gpu_hours=gpu_hours),
    )


def _bits(side: int, r: float, gpu_hours: float) -> Experiment:
    return Experiment(
        name=f"mnist{side}-bits",
        title=f"scrambled bits of {side}×{side} crops of MNIST",
        source="mnist-bits",
        shape=(side, side),
        paper=PaperFigures(r=r, gpu_hours=gpu_hours),
    )


def _recording(name: str, title: str, recording: str, points: int, **paper: Any) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        source="recording",
        shape=(points,),
        periodic=True,
        solver="homogeneous",
        options={"name": recording},
        paper=PaperFigures(**paper),
    )


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        _ring("fft", 0.9953),
        _ring("discrete", 0.9933),
        _ring("continuous", 0.9862),
        _waveform("gaussian", "identity", 0.850, 0.961),
        _waveform("gaussian", "dst", 0.982, 0.970),
        _waveform("legendre", "identity", 0.981, 0.964),
        _waveform("legendre", "dst", 0.997, 0.959),
        Experiment(
            name="ising33-linear",
            title="Ising chain of 33 spins under a random linear map",
            source="ising",
            shape=(33,),
            transform="linear",
            paper=PaperFigures(r=0.960, similarity=(0.956,), gpu_hours=7.5),
        ),
        _images(15, 0.995, (0.921, 0.949), 41.0),
        _images(27, 0.947, (0.718, 0.716), 132.0),
        _bits(15, 0.944, 8.0),
        _bits(27, 0.941, 28.0),
        _recording(
            "neural-gratings",
            "drifting gratings (the paper: static ones), 110 units of visual cortex, a ring of 180°",
            "drifting-gratings",
            30,
            circular_correlation=0.851,
            gpu_hours=0.25,
        ),
        _recording(
            "neural-head-direction", "head direction of a mouse, 32 cells, a ring of 360°", "head-direction", 32
        ),
    )
}


def get_experiment(name: str) -> Experiment:
    """The experiment called ``name``."""
    if name not in EXPERIMENTS:
        raise InputError(f"experiment {name!r} is unknown: `symlift experiment list` shows them all")
    return EXPERIMENTS[name]
