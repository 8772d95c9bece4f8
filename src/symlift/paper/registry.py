"""What each experiment is, as data: where its vectors come from, what is run on them, and the figures that the paper reports.

The paper's rows are in ``paper.yaml``; a file of the same form adds rows of one's own.
"""

from __future__ import annotations

import inspect
import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError, model_validator

from symlift.core.grid import Grid
from symlift.datasets import Observations, gsn, image_crops, ising, load_mnist, load_recording, scrambled_bits
from symlift.errors import InputError
from symlift.estimator import LatentDomain
from symlift.paper.bounded_yaml import MAX_BYTES, read_yaml
from symlift.solvers.registry import check_solver

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "PaperValues",
    "Training",
    "experiments_with",
    "get_experiment",
    "read_experiments",
]

#: rows, and numbers, that an experiment may make: more do not fit into the memory of a workstation
MAX_ROWS, MAX_NUMBERS = 10**8, 2**29
#: combinations of settings that a baseline may be searched over
MAX_SEARCH = 10_000

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=64)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1, max_length=1000)]
RowCount = Annotated[int, Field(ge=2, le=MAX_ROWS)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PaperValues(_Frozen):
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
    title: Annotated[str, Field(max_length=300)]
    #: the part of the table that it belongs to
    block: Literal["generators", "waveforms", "images", "bits", "recordings", "own"] = "own"
    source: Literal["gsn", "ising", "mnist", "mnist-bits", "recording", "file"]
    shape: Annotated[
        tuple[Annotated[int, Field(ge=2, le=MAX_ROWS, strict=True)], ...], Field(min_length=1, max_length=3)
    ]
    periodic: bool = False
    transform: str = "permutation"
    solver: str = "auto"
    n: RowCount = 50_000
    #: rows that baselines get: enough for covariances to settle, few enough for a search
    baseline_n: RowCount = 20_000
    options: dict[str, Any] = Field(default_factory=dict)
    baselines: dict[str, dict[str, list[Any]]] = Field(default_factory=dict)
    seeds: Seeds = (0, 1, 2)
    training: Training | None = None
    paper: PaperValues = PaperValues()
    #: method → seconds that one seed takes, for plans only
    cost: dict[str, PositiveFloat] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        check_solver(self.solver)
        points = math.prod(self.shape)
        if points * max(self.n, self.baseline_n) > MAX_NUMBERS or points * points > MAX_NUMBERS:
            raise ValueError(f"{self.n} rows of {points} points are too many: give a smaller n or shape")
        for name, search in self.baselines.items():
            if math.prod(len(values) for values in search.values()) > MAX_SEARCH:
                raise ValueError(f"the search of {name[:40]!r} has more than {MAX_SEARCH} combinations")
        return self

    def observe(self, seed: int, n: int | None = None) -> Observations:
        """The data set of this row for a seed: data and transform both depend on it."""
        try:
            data = self._made(seed, n)
        except InputError:
            raise
        # options are handed to the data set as they are written: what does not suit it is the file's mistake
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, MemoryError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(
                f"experiment {self.name!r}: its data cannot be made ({reason}): check its options"
            ) from None
        if not (np.isfinite(data.X).all() and np.isfinite(data.latent).all()):
            raise InputError(f"experiment {self.name!r}: its data hold NaN or infinity: check its options")
        return data

    def _made(self, seed: int, n: int | None) -> Observations:
        count = self.n if n is None else n
        if count * math.prod(self.shape) > MAX_NUMBERS:
            raise InputError(
                f"experiment {self.name!r}: {count} rows of {self.shape} points are too many: give a smaller -n"
            )
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
        unknown = set(self.options) - {"path"}
        if unknown:
            raise InputError(f"experiment {self.name!r}: option {min(unknown)[:40]!r} is unknown: give path: an .npz")
        path = Path(str(self.options.get("path", "")))
        try:
            arrays = _stored_arrays(path, ("X", "latent", "transform"))
        except (
            OSError,
            ValueError,
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            MemoryError,
        ) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"experiment {self.name!r}: {path} cannot be read ({reason}): give options: {{path: an .npz}}"
            ) from None
        if not {"X", "latent"} <= set(arrays):
            raise InputError(f"experiment {self.name!r}: {path} must hold arrays X and latent (and may hold transform)")
        grid = Grid(self.shape, self.periodic)
        self._check_arrays(path, grid, **arrays)
        return Observations(arrays["X"], arrays["latent"], arrays.get("transform"), grid, grid.periodic, self.name)

    def _check_arrays(
        self, path: Path, grid: Grid, X: NDArray, latent: NDArray, transform: NDArray | None = None
    ) -> None:
        """The arrays of a file belong together: rows, columns and grid points."""
        wrong = ""
        if any(a.dtype.kind not in "fiub" for a in (X, latent) + (() if transform is None else (transform,))):
            wrong = "arrays that are not of numbers"
        elif X.ndim != 2 or len(X) < 2 or X.shape[1] < 2:
            wrong = f"X of shape {X.shape}, where (n, d) is needed"
        elif len(latent) != len(X) or latent.size not in (len(X), len(X) * grid.size):
            wrong = (
                f"latent of shape {latent.shape}, where ({len(X)}, {grid.size}) is needed, or one angle for each row"
            )
        elif transform is not None and transform.shape != (grid.size, X.shape[1]):
            wrong = f"transform of shape {transform.shape}, where ({grid.size}, {X.shape[1]}) is needed"
        elif transform is not None and not np.isfinite(transform).all():
            wrong = "a transform with NaN or infinity"
        if wrong:
            raise InputError(f"experiment {self.name!r}: {path} holds {wrong}: write it again")


def _stored_arrays(path: Path, names: tuple[str, ...]) -> dict[str, NDArray]:
    """The named arrays of an ``.npz``, those that are there; their declared sizes are looked at before anything is unpacked."""
    with zipfile.ZipFile(path) as archive:
        declared = {i.filename.removesuffix(".npy"): i.file_size for i in archive.infolist()}
    if sum(declared.get(name, 0) for name in names) > 8 * MAX_NUMBERS:
        raise ValueError("its arrays are too large")
    with np.load(path, allow_pickle=False) as stored:
        return {name: np.asarray(stored[name]) for name in names if name in stored}


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
        rows = read_yaml(text)
    except ValueError as error:
        raise InputError(f"{source} cannot be used ({error}): give a list of experiments in YAML") from None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{source} must be a list of experiments, each with name, title, source and shape")
    found: dict[str, Experiment] = {}
    for row in rows:
        try:
            experiment = Experiment.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])[:80] or "as a whole"
            message = " ".join(first["msg"].removeprefix("Value error, ").split())
            raise InputError(f"{source}, experiment {str(row.get('name'))[:64]!r}, {where}: {message}") from None
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
        own = read_experiments(_text(file), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read ({error}): give a YAML file of experiments") from None
    for experiment in own.values():
        _check_baselines(experiment, file)
    taken = sorted(set(own) & set(EXPERIMENTS))
    if taken:
        raise InputError(f"{file}: {taken[0]!r} is one of the paper's experiments: choose another name")
    return EXPERIMENTS | own


def _text(file: Path) -> str:
    """The text of a file, or a little more of it than is allowed."""
    with file.open("rb") as handle:
        return handle.read(MAX_BYTES + 1).decode("utf-8")


def _check_baselines(experiment: Experiment, file: Path) -> None:
    """Methods to compare with must be there, and take the settings that they are searched over."""
    from symlift.paper.baselines import get_baseline

    for name, search in experiment.baselines.items():
        baseline = get_baseline(name)
        taken = inspect.signature(baseline.fit).parameters
        wide = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
        for setting in search:
            if setting not in list(taken)[3:] and not wide:
                raise InputError(
                    f"{file}, experiment {experiment.name!r}: {name} has no setting {setting[:40]!r}: leave it out"
                )
