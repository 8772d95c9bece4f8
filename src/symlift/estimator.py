"""LatentDomain: validate, choose a solver, fit, transform, save."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from symlift.diagnosis import Diagnosis, diagnose
from symlift.errors import FitWarning, InputError
from symlift.grid import Grid
from symlift.lifting import LiftedModel, write_atomically
from symlift.objective import LagClasses, score
from symlift.solvers import get_solver

__all__ = ["LatentDomain", "load"]

_NOT_FOUND = (
    "held-out rows show no identifiable domain on this grid: do not trust the result; "
    "check the grid's shape and periodicity, or give more rows"
)


class LatentDomain(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Find the grid that vectors were measured on, its translation symmetry, and the signals.

    Parameters
    ----------
    grid : "auto", or the grid's shape: ``63``, ``(63,)``, ``(15, 15)``, ``(6, 6, 6)``.
    periodic : whether axes close on themselves: one bool, or one for each axis.  A proposed grid ("auto") brings its own.
    solver : "auto" for the best one installed, or a solver's name.
    random_state : seed, ``numpy.random.RandomState`` or None.  The same seed on the same machine gives the same result.

    Attributes
    ----------
    model_ : the :class:`~symlift.lifting.LiftedModel` that was found.
    grid_ : its :class:`~symlift.grid.Grid`.
    lifting_map_ : (grid points, d), ``Y = (X - mean_) @ lifting_map_.T``.
    generators_ : (P, d, d), translation generators in observation coordinates.
    trace_ : what each stage of the solver did.

    >>> X = np.random.default_rng(0).laplace(size=(200, 9))
    >>> est = LatentDomain(grid=(9,), periodic=True, solver="random", random_state=0).fit(X)
    >>> est.to_grid(est.transform(X)).shape
    (200, 9)
    """

    def __init__(
        self,
        grid: Any = "auto",
        periodic: bool | Sequence[bool] = False,
        solver: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.grid = grid
        self.periodic = periodic
        self.solver = solver
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn passes y
        """Find the domain of the rows of X (n, d)."""
        return self._fit(X)

    def _fit(self, X: ArrayLike, **options: Any) -> Self:
        rows = self._rows(X, reset=True)
        n, d = rows.shape
        solve = get_solver(self.solver)
        varies = np.ptp(rows, axis=0) > 0
        if n <= varies.sum():
            raise InputError(
                f"{n} rows are too few for the covariance of {int(varies.sum())} columns: give more rows than columns"
            )
        # one generator of our own from whatever seed was given; the global state is never touched
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1, size=4))
        grid = self._choose_grid(rows, varies, rng)
        if varies.all():
            solution = solve(rows, grid, rng, **options)
            model = solution.model
        else:
            constant = np.flatnonzero(~varies)
            warnings.warn(
                f"{len(constant)} constant columns get weight 0 (the first is column {constant[0]})",
                FitWarning,
                stacklevel=3,
            )
            solution = solve(rows[:, varies], grid, rng, **options)
            W = np.zeros((grid.size, d))
            W[:, varies] = solution.model.lifting_map()
            model = LiftedModel.from_lifting_map(W, grid, mean=rows.mean(axis=0, dtype=np.float64))
        self._adopt(model)
        self.trace_ = solution.trace
        if not self.trace_.get("evidence", {}).get("found", True):
            warnings.warn(_NOT_FOUND, FitWarning, stacklevel=3)
        return self

    def _adopt(self, model: LiftedModel) -> None:
        self.model_ = model
        self.grid_ = model.grid
        self.mean_ = model.mean.numpy().astype(np.float64)
        self.lifting_map_ = model.lifting_map()
        self.generators_ = model.generators()
        self.n_features_in_ = model.n_features
        self._n_features_out = model.grid.size

    def _choose_grid(self, rows: NDArray, varies: NDArray, rng: np.random.Generator) -> Grid:
        """The grid that was given, if the columns that vary can fill it, or the one that the data propose."""
        usable, d = int(varies.sum()), len(varies)
        periodic = self.periodic if isinstance(self.periodic, bool) else tuple(self.periodic)
        if isinstance(self.grid, Grid):
            return self._fitting(self.grid, usable, d)
        if not isinstance(self.grid, str):
            return self._fitting(Grid(self.grid, periodic), usable, d)
        if self.grid != "auto":
            return self._fitting(Grid.parse(self.grid, periodic), usable, d)
        if usable < 2:
            raise InputError(f"X has n_features = {d}, of which {usable} vary: a grid needs at least 2")
        from symlift.solvers.fast.propose import propose_grid

        proposed = propose_grid(rows[:, varies], rng)
        if proposed is not None:
            return proposed
        warnings.warn(
            f"the grid could not be told from the data: taking a line of {usable} points; pass grid=(height, width) for images",
            FitWarning,
            stacklevel=4,
        )
        return Grid((usable,), periodic if isinstance(periodic, bool) else periodic[:1], confidence=0.0)

    @staticmethod
    def _fitting(grid: Grid, usable: int, d: int) -> Grid:
        if grid.size > usable:
            have = f"{d} columns" if usable == d else f"{d} columns, of which {usable} vary"
            raise InputError(f"the grid {grid} has {grid.size} points, but X has {have}: give a smaller grid")
        return grid

    def _rows(self, X: ArrayLike, reset: bool = False) -> NDArray:
        # single precision holds bits and bytes exactly, at half the memory
        small = getattr(getattr(X, "dtype", None), "itemsize", 8) == 1
        rows: NDArray = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float32, np.float64] if small else [np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
        step = max(1, 4_000_000 // rows.shape[1])
        for start in range(0, len(rows), step):
            finite = np.isfinite(rows[start : start + step])
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                raise InputError(
                    f"X holds NaN or infinity (row {start + row}, column {column}): drop or impute it first"
                )
        return rows

    # -- using a fit ---------------------------------------------------------------------------------------------------

    def transform(self, X: ArrayLike) -> NDArray:
        """Lifted signals, (n, grid points)."""
        check_is_fitted(self)
        return self.model_.lift(self._rows(X))

    def inverse_transform(self, Y: ArrayLike) -> NDArray:
        """Observations (n, d) of lifted signals: the pseudo-inverse of :meth:`transform`."""
        check_is_fitted(self)
        return self.model_.unlift(np.asarray(Y))

    def to_grid(self, Y: ArrayLike) -> NDArray:
        """Signals (n, grid points) as fields (n, *grid)."""
        check_is_fitted(self)
        Y = np.asarray(Y)
        if Y.ndim != 2 or Y.shape[1] != self.grid_.size:
            raise InputError(
                f"signals of shape {Y.shape} do not fit the grid {self.grid_}: they must be (n, {self.grid_.size})"
            )
        return Y.reshape(len(Y), *self.grid_.shape)

    def shift(self, X: ArrayLike, t: float | Sequence[float]) -> NDArray:
        """Observations moved by t grid steps along the recovered symmetry, mean + E⁺ ρ̂(t) E (X - mean)."""
        check_is_fitted(self)
        return self.model_.act(self._rows(X), np.atleast_1d(t))

    def phase(self, X: ArrayLike) -> NDArray:
        """Position on the ring, in radians: argument of the fundamental harmonic of the lifted signal."""
        return np.angle(self._fundamental(X))

    def amplitude(self, X: ArrayLike) -> NDArray:
        """Strength of the fundamental harmonic of the lifted signal."""
        return np.abs(self._fundamental(X))

    def _fundamental(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        if self.grid_.ndim != 1 or not self.grid_.axes_periodic[0]:
            raise InputError(
                f"phase and amplitude need a ring, but the grid is {self.grid_} and open: fit with grid=(N,), periodic=True"
            )
        Y = self.transform(X)
        # e^{iωn} rather than the FFT's e^{-iωn}: the phase grows as the signal moves towards larger index
        return Y @ np.exp(2j * math.pi * np.arange(Y.shape[1]) / Y.shape[1])

    # -- trusting a fit ------------------------------------------------------------------------------------------------

    def score(self, X: ArrayLike, y: Any = None) -> float:  # noqa: ARG002 - scikit-learn passes y
        """How good the fit is on X, larger is better; comparable between fits on the same grid, on the same rows.

        -(resolution + distortion/2 + 10 · max(stationarity, 0)), best on rows that were not fitted.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        value, _ = score(self.lifting_map_, np.asarray(rows, dtype=np.float64), LagClasses(self.grid_))
        return -value

    def diagnose(self, X: ArrayLike) -> Diagnosis:
        """Is the result real?  A verdict in words, its confidence and its figures, from the data alone.

        Fits the halves of X and a control in which each column's samples are permuted: costs up to three more fits.
        """
        check_is_fitted(self)
        return diagnose(self, self._rows(X))

    # -- keeping a fit -------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model (safetensors and JSON) and the settings into ``folder``; :func:`load` reads it back."""
        check_is_fitted(self)
        self.model_.save(folder)
        settings: dict[str, Any] = {
            "settings": {"periodic": list(self.grid_.axes_periodic), "solver": self.solver},
            "trace": self.trace_,
        }
        names = getattr(self, "feature_names_in_", None)
        settings["feature_names"] = None if names is None else [str(name) for name in names]
        with write_atomically(Path(folder) / "estimator.json") as temporary:
            temporary.write_text(json.dumps(settings, indent=1, default=_plain) + "\n")


def load(folder: str | os.PathLike[str]) -> LatentDomain:
    """A fitted :class:`LatentDomain`, as it was saved."""
    model = LiftedModel.load(folder)
    path = Path(folder) / "estimator.json"
    try:
        kept = json.loads(path.read_text()) if path.exists() else {}
        settings = kept.get("settings", {})
        est = LatentDomain(
            grid=model.grid.shape, periodic=model.grid.axes_periodic, solver=settings.get("solver", "auto")
        )
        names = kept.get("feature_names")
    except (json.JSONDecodeError, UnicodeDecodeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}): save the model again") from None
    est._adopt(model)
    est.trace_ = kept.get("trace", {})
    if names is not None:
        est.feature_names_in_ = np.array(names, dtype=object)
    return est


def _plain(value: Any) -> Any:
    """numpy scalars and arrays as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
