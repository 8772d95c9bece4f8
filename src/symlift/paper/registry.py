"""What each experiment is, as data: where its vectors come from, what is run on them, and the figures that the paper reports.

The paper's rows are in ``paper.yaml``; a file of the same form adds rows of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError

from symlift.core.grid import Grid
from symlift.datasets import Observations, gsn, image_crops, ising, load_mnist, load_recording, scrambled_bits
from symlift.errors import InputError
from symlift.estimator import LatentDomain

try:
    import yaml
except ImportError:
    raise InputError(
        "the paper's experiments need PyYAML, which is not installed: pip install 'symlift[paper]'"
    ) from None

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "PaperFigures",
    "Training",
    "experiments_with",
    "get_experiment",
    "read_experiments",
]

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Seeds = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PaperFigures(_Frozen):
    """What the paper reports; None where it reports nothing.  Two similarities where there are two axes."""

    r: float | None = None
    similarity: tuple[float, ...] = ()
    similarity_exact: tuple[float, ...] = ()
    circular_correlation: float | None = None
    gpu_hours: float | None = None
    #: baseline → the figure of the same kind that the paper reports for it
    baselines: dict[str, float] = Field(default_factory=dict)


class Training(_Frozen):
    """The paper's training as the full table runs it: from these seeds, for at most so many seconds each."""

    seeds: Seeds
    seconds: PositiveFloat


class Experiment(_Frozen):
    """One row: where the vectors come from, which grid is behind them, and what is run on them.

    ``transform="permutation"`` is the paper's identity: columns are permuted by the seed before a solver sees them, so
    that returning X scores nothing.  ``solver`` is what "auto" means here.  Recordings are what they are: a seed changes the
    solver's draws only, and all of their rows are used unless ``n`` asks for fewer.

    ``baselines`` names the methods to compare with; a mapping of settings to lists of values replaces a method's own search.
    ``source: file`` reads arrays ``X``, ``latent`` and, where there is one, ``transform`` from ``options: {path: ….npz}``.
    """

    name: Name
    title: str
    #: the part of the table that it belongs to
    block: Literal["generators", "waveforms", "images", "bits", "recordings", "own"] = "own"
    source: Literal["gsn", "ising", "mnist", "mnist-bits", "recording", "file"]
    shape: Annotated[tuple[PositiveInt, ...], Field(min_length=1, max_length=3)]
    periodic: bool = False
    transform: str = "permutation"
    solver: str = "auto"
    n: PositiveInt = 50_000
    #: rows that baselines get: enough for covariances to settle, few enough for a search
    baseline_n: PositiveInt = 20_000
    options: dict[str, Any] = Field(default_factory=dict)
    baselines: dict[str, dict[str, list[Any]]] = Field(default_factory=dict)
    seeds: Seeds = (0, 1, 2)
    training: Training | None = None
    paper: PaperFigures = PaperFigures()
    #: method → seconds that one seed takes, for plans only
    cost: dict[str, PositiveFloat] = Field(default_factory=dict)

    def observe(self, seed: int, n: int | None = None) -> Observations:
        """The data set of this row for a seed: data and transform both depend on it."""
        count = self.n if n is None else n
        if self.source == "gsn":
            return gsn(
                count, self.shape, periodic=self.periodic, transform=self.transform, random_state=seed, **self.options
            )
        if self.source == "ising":
            return ising(count, self.shape, transform=self.transform, random_state=seed, **self.options)
        if self.source in ("recording", "file"):
            data = load_recording(**self.options) if self.source == "recording" else self._stored()
            return replace(data, X=data.X[:n], latent=data.latent[:n])
        images = load_mnist().images
        if self.source == "mnist-bits":
            return scrambled_bits(image_crops(images, self.shape, count, random_state=seed), random_state=seed)
        return image_crops(images, self.shape, count, transform=self.transform, random_state=seed, **self.options)

    def estimator(self, seed: int, solver: str) -> LatentDomain:
        """What is fitted to the vectors of this row."""
        return LatentDomain(grid=self.shape, periodic=self.periodic, solver=solver, random_state=seed)

    def _stored(self) -> Observations:
        path = Path(str(self.options.get("path", "")))
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in ("X", "latent", "transform") if name in stored}
        except (OSError, ValueError) as error:
            raise InputError(
                f"experiment {self.name!r}: {path} cannot be read ({error}): give options: {{path: an .npz}}"
            ) from None
        if not {"X", "latent"} <= set(arrays):
            raise InputError(f"experiment {self.name!r}: {path} must hold arrays X and latent (and may hold transform)")
        grid = Grid(self.shape, self.periodic)
        return Observations(arrays["X"], arrays["latent"], arrays.get("transform"), grid, grid.periodic, self.name)


def read_experiments(text: str, source: str) -> dict[str, Experiment]:
    """Experiments from YAML: a list of mappings with the fields of :class:`Experiment`.

    >>> rows = '''
    ... - name: gsn31-ring
    ...   title: shot noise on a ring of 31
    ...   source: gsn
    ...   shape: [31]
    ...   periodic: true
    ... '''
    >>> read_experiments(rows, "rows.yaml")["gsn31-ring"].observe(seed=0, n=10).X.shape
    (10, 31)
    """
    try:
        rows = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{source} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{source} must be a list of experiments, each with name, title, source and shape")
    found: dict[str, Experiment] = {}
    for row in rows:
        try:
            experiment = Experiment.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError(f"{source}, experiment {row.get('name')!r}, {where}: {first['msg']}") from None
        if experiment.name in found:
            raise InputError(f"{source} has two experiments called {experiment.name!r}: rename one")
        found[experiment.name] = experiment
    return found


#: the paper's rows, and one of our own
EXPERIMENTS = read_experiments((files(__package__) / "paper.yaml").read_text(encoding="utf-8"), "paper.yaml")


def get_experiment(name: str, file: Path | None = None) -> Experiment:
    """The experiment called ``name``: one of the paper's, or one in ``file``."""
    known = experiments_with(file)
    if name not in known:
        raise InputError(f"experiment {name!r} is unknown: `symlift experiment list` shows them all")
    return known[name]


def experiments_with(file: Path | None = None) -> dict[str, Experiment]:
    """The paper's experiments, and those of a YAML file; no name may stand for two things."""
    if file is None:
        return EXPERIMENTS
    try:
        own = read_experiments(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read ({error}): give a YAML file of experiments") from None
    taken = sorted(set(own) & set(EXPERIMENTS))
    if taken:
        raise InputError(f"{file}: {taken[0]!r} is one of the paper's experiments: choose another name")
    return EXPERIMENTS | own
