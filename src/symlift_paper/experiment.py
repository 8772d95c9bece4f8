"""One row of the paper's tables as data: where its vectors come from, what the paper reports."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from symlift.core.grid import Grid
from symlift.datasets import (
    Observations,
    gsn,
    image_crops,
    ising,
    load_mnist,
    load_recording,
    scrambled_bits,
)
from symlift.errors import InputError
from symlift.estimator import LatentDomain
from symlift.solvers.registry import check_solver
from symlift.storage.numpy_files import UNREADABLE, read_arrays

__all__ = ["Experiment", "PaperValues", "Printed", "Training"]

#: largest numbers of rows and entries of an experiment: more do not fit into a workstation's memory
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
    """Values that the paper reports, None if it reports none; one similarity for each axis."""

    r: float | None = None
    similarity: tuple[float, ...] = ()
    similarity_exact: tuple[float, ...] = ()
    circular_correlation: float | None = None
    gpu_hours: float | None = None
    #: baseline → the value of the same kind that the paper reports for it
    baselines: dict[str, float] = Field(default_factory=dict)


class Training(_Frozen):
    """Our training in the full table: its seeds, the most seconds that each may take, and from how
    many random starts its closed form is tried alone.
    """

    seeds: Seeds
    seconds: PositiveFloat
    starts: Annotated[int, Field(ge=1, le=1000)] = 4


class Printed(_Frozen):
    """The paper's training as printed: its seeds, and the steps that its clock runs over."""

    seeds: Seeds
    steps: Annotated[int, Field(ge=1)]


class Experiment(_Frozen):
    """Describe one row of the tables: its data, the grid behind them, and what is run on them.

    Recordings and files are fixed: a seed changes only the solver's draws, and all rows are used
    unless ``n`` is smaller.

    Parameters
    ----------
    name : str
        Lower-case letters, digits and hyphens.
    title : str
        One line for people.
    block : str, default="own"
        The part of the table that the row belongs to.
    source : {"gsn", "ising", "mnist", "mnist-bits", "recording", "file"}
        Where the vectors come from.  "file" reads the arrays ``X``, ``latent`` and, if there is
        one, ``transform`` from the ``.npz`` that ``options["path"]`` names.
    shape : tuple of int
        Shape of the grid.
    periodic : bool, default=False
        Whether all axes are closed.
    transform : str, default="permutation"
        How the signals are mixed.  "permutation" stands for the paper's identity: the seed permutes
        the columns, so that a method that returns X scores nothing.
    solver : str, default="auto"
        The solver that "auto" stands for in this row.
    n : int, default=50000
        Number of rows.
    baseline_n : int, default=20000
        Number of rows that baselines get.
    options : dict
        Options of the data set.
    baselines : dict of str to dict
        Methods to compare with.  A mapping of settings to lists of values replaces the method's own
        search.
    seeds : tuple of int, default=(0, 1, 2)
        Seeds of data, transform and solver.
    training : Training, optional
        Our training in the full table.
    covariance : Training, optional
        Our training from planes of the covariance instead of random ones.
    printed : Printed, optional
        The paper's training as printed: its seeds and steps.
    tabled : Printed, optional
        The same over the steps of the paper's training table, clipped or not.
    paper : PaperValues
        What the paper reports.
    cost : dict of str to float
        Expected seconds for one seed of each method, for planning only.
    scoring : {"authors"}, optional
        Score baselines as the authors' scripts do, instead of as the paper's text says.

    Examples
    --------
    >>> row = Experiment(name="ring", title="a ring", source="gsn", shape=(9,), periodic=True)
    >>> row.observe(seed=0, n=20).X.shape
    (20, 9)
    """

    name: Name
    title: Annotated[str, Field(max_length=300)]
    #: the part of the table that the row belongs to
    block: Literal["generators", "waveforms", "images", "bits", "recordings", "own"] = "own"
    source: Literal["gsn", "ising", "mnist", "mnist-bits", "recording", "file"]
    shape: Annotated[
        tuple[Annotated[int, Field(ge=2, le=MAX_ROWS, strict=True)], ...],
        Field(min_length=1, max_length=3),
    ]
    periodic: bool = False
    transform: str = "permutation"
    solver: str = "auto"
    n: RowCount = 50_000
    #: enough rows for stable covariances, few enough for a search
    baseline_n: RowCount = 20_000
    options: dict[str, Any] = Field(default_factory=dict)
    baselines: dict[str, dict[str, list[Any]]] = Field(default_factory=dict)
    seeds: Seeds = (0, 1, 2)
    training: Training | None = None
    covariance: Training | None = None
    printed: Printed | None = None
    tabled: Printed | None = None
    paper: PaperValues = PaperValues()
    #: method → seconds that one seed takes, for planning only
    cost: dict[str, PositiveFloat] = Field(default_factory=dict)
    scoring: Literal["authors"] | None = None

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        check_solver(self.solver)
        points = math.prod(self.shape)
        if points * max(self.n, self.baseline_n) > MAX_NUMBERS or points * points > MAX_NUMBERS:
            raise ValueError(
                f"{self.n} rows of {points} points are too many: give a smaller n or shape"
            )
        for name, search in self.baselines.items():
            if math.prod(len(values) for values in search.values()) > MAX_SEARCH:
                raise ValueError(
                    f"the search of {name[:40]!r} has more than {MAX_SEARCH} combinations"
                )
        return self

    def observe(self, seed: int, n: int | None = None) -> Observations:
        """Make the data set of this row; data and transform both depend on the seed.

        Parameters
        ----------
        seed : int
            Seed of data and transform.
        n : int, optional
            Number of rows instead of the experiment's own.

        Returns
        -------
        Observations
            The vectors with the truth behind them.

        Raises
        ------
        InputError
            If the options do not suit the data set, or its file cannot be read.
        """
        try:
            data = self._made(seed, n)
        except InputError:
            raise
        # options are passed to the data set unchanged: an error there is a mistake in the file
        except (
            TypeError,
            ValueError,
            LookupError,
            ArithmeticError,
            AttributeError,
            MemoryError,
        ) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(
                f"experiment {self.name!r}: its data cannot be made ({reason}): check its options"
            ) from None
        if not (np.isfinite(data.X).all() and np.isfinite(data.latent).all()):
            raise InputError(
                f"experiment {self.name!r}: its data hold NaN or infinity: check its options"
            )
        return data

    def _made(self, seed: int, n: int | None) -> Observations:
        count = self.n if n is None else n
        if count * math.prod(self.shape) > MAX_NUMBERS:
            raise InputError(
                f"experiment {self.name!r}: {count} rows of {self.shape} points are too many: give"
                " a smaller -n"
            )
        if self.source == "gsn":
            return gsn(
                count,
                self.shape,
                periodic=self.periodic,
                transform=self.transform,
                random_state=seed,
                **self.options,
            )
        if self.source == "ising":
            return ising(
                count, self.shape, transform=self.transform, random_state=seed, **self.options
            )
        if self.source in ("recording", "file"):
            data = load_recording(**self.options) if self.source == "recording" else self._stored()
            return replace(data, X=data.X[:n], latent=data.latent[:n])
        images = load_mnist().images
        if self.source == "mnist-bits":
            return scrambled_bits(
                image_crops(images, self.shape, count, random_state=seed), random_state=seed
            )
        return image_crops(
            images, self.shape, count, transform=self.transform, random_state=seed, **self.options
        )

    def estimator(self, seed: int, solver: str) -> LatentDomain:
        """Return the estimator for this row, not yet fitted.

        Parameters
        ----------
        seed : int
            Its random state.
        solver : str
            Its solver.

        Returns
        -------
        LatentDomain
            An estimator with the grid of this row.
        """
        return LatentDomain(
            grid=self.shape, periodic=self.periodic, solver=solver, random_state=seed
        )

    def _stored(self) -> Observations:
        unknown = set(self.options) - {"path"}
        if unknown:
            raise InputError(
                f"experiment {self.name!r}: option {min(unknown)[:40]!r} is unknown: give path: an"
                " .npz"
            )
        path = Path(str(self.options.get("path", "")))
        try:
            arrays = read_arrays(path, ("X", "latent", "transform"), 8 * MAX_NUMBERS)
        except UNREADABLE as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"experiment {self.name!r}: {path} cannot be read ({reason}): give options: {{path:"
                " an .npz}"
            ) from None
        if not {"X", "latent"} <= set(arrays):
            raise InputError(
                f"experiment {self.name!r}: {path} must hold arrays X and latent (and may hold"
                " transform)"
            )
        grid = Grid(self.shape, self.periodic)
        self._check_arrays(path, grid, **arrays)
        return Observations(
            arrays["X"], arrays["latent"], arrays.get("transform"), grid, grid.periodic, self.name
        )

    def _check_arrays(
        self, path: Path, grid: Grid, X: NDArray, latent: NDArray, transform: NDArray | None = None
    ) -> None:
        """Refuse arrays whose rows, columns and grid points do not match."""
        wrong = ""
        if any(
            a.dtype.kind not in "fiub"
            for a in (X, latent) + (() if transform is None else (transform,))
        ):
            wrong = "arrays that are not of numbers"
        elif X.ndim != 2 or len(X) < 2 or X.shape[1] < 2:
            wrong = f"X of shape {X.shape}, where (n, d) is needed"
        elif len(latent) != len(X) or latent.size not in (len(X), len(X) * grid.size):
            wrong = (
                f"latent of shape {latent.shape}, where ({len(X)}, {grid.size}) is needed, or one"
                " angle for each row"
            )
        elif transform is not None and transform.shape != (grid.size, X.shape[1]):
            wrong = (
                f"transform of shape {transform.shape}, where ({grid.size}, {X.shape[1]}) is needed"
            )
        elif transform is not None and not np.isfinite(transform).all():
            wrong = "a transform with NaN or infinity"
        if wrong:
            raise InputError(f"experiment {self.name!r}: {path} holds {wrong}: write it again")
