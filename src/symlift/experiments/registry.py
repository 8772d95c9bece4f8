"""What each experiment is: data, transform, grid, and the figures that the paper reports for it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from symlift.datasets import Observations, gsn, image_crops, ising, load_mnist
from symlift.errors import InputError

__all__ = ["EXPERIMENTS", "Experiment", "PaperFigures", "get_experiment"]


class PaperFigures(BaseModel):
    """What the paper reports; None where it reports nothing.  Two similarities where there are two axes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    r: float | None = None
    similarity: tuple[float, ...] = ()
    similarity_exact: tuple[float, ...] = ()
    gpu_hours: float | None = None


class Experiment(BaseModel):
    """One row: where the vectors come from and which grid is behind them.

    ``transform="permutation"`` is the paper's identity: columns are permuted by the seed before a solver sees them, so
    that returning X scores nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    source: Literal["gsn", "ising", "mnist"]
    shape: tuple[int, ...]
    periodic: bool = False
    transform: str = "permutation"
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
        images = load_mnist().images
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
    )
}


def get_experiment(name: str) -> Experiment:
    """The experiment called ``name``."""
    if name not in EXPERIMENTS:
        raise InputError(f"experiment {name!r} is unknown: `symlift experiment list` shows them all")
    return EXPERIMENTS[name]
