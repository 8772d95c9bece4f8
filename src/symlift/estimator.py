"""LatentDomain: validate, choose a solver, fit, transform, save."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from symlift._lifts_rows import LiftsRows
from symlift._watch import refit_words, watching
from symlift.core.domain import Domain, Scattered, TakenColumns
from symlift.core.frames import as_frame, check_frame, check_kind, column_names, numeric_rows
from symlift.core.grid import Grid
from symlift.core.linalg import of_one_direction
from symlift.core.model import LiftedModel
from symlift.core.rows import (
    ColumnsOf,
    Survey,
    check_enough,
    check_finite,
    check_largest,
    check_moments,
    column_of,
    float_type,
    survey,
    varying,
)
from symlift.core.sphere import Sphere
from symlift.diagnosis import Asked, Diagnosis, Level
from symlift.errors import CostWarning, FitWarning, InputError
from symlift.solvers.choose_grid import asked_domain, choose_grid
from symlift.solvers.contract import Progress, Reach, Solution, no_progress
from symlift.solvers.plan import plan_fit
from symlift.solvers.registry import (
    TRAINED,
    canonical,
    check_channels,
    check_mixing,
    check_options,
    check_solver,
    get_solver,
)
from symlift.solvers.reorder import reordered
from symlift.statistics.gather import gathered
from symlift.statistics.prediction import GapFiller
from symlift.statistics.stream import Stream
from symlift.storage.sample_file import Samples, SamplesError, read_samples

if TYPE_CHECKING:
    from symlift._estimator_file import EstimatorRecord

__all__ = ["LatentDomain", "given_rows", "load_domain"]

# gaps are predicted from statistics of at most so many rows, and learned unasked for at most so
# many columns
_GAP_ROWS, _GAP_COLUMNS = 4_000, 1_024


class LatentDomain(LiftsRows, BaseEstimator):
    r"""Find the grid that vectors were measured on, its translation symmetry, and the signals.

    The fitted map is y(t) = w₀ᵀ ρ̂(-t) E (x - mean), evaluated at the points t of the grid; ρ̂ is
    the translation group that was found.

    Parameters
    ----------
    grid : "auto", int, tuple of int, str, Grid, Scattered or Sphere, default="auto"
        Shape of the grid: ``63``, ``(63,)``, ``(15, 15)``, ``(6, 6, 6)``, ``"15x15"``; or places
        without a grid, ``"scattered"`` in a plane and ``"scattered3"`` in space; or ``Sphere(5)``
        and its rotations, ``"sphere"`` with a degree that is found. With "auto" lines, rings, grids
        and scattered places compete.
    periodic : bool or sequence of bool, default=False
        Whether axes close on themselves: one flag, or one for each axis. A proposed grid ("auto")
        brings its own flags.
    solver : {"auto", "fast", "ring", "neural", "refine", "random"}, default="auto"
        How the domain is found. "auto" takes the fast solver; "ring" is for populations of tuned
        neurons; "neural" and "refine" train a model and need PyTorch.
    mixing : {"auto", "shuffled", "orthogonal", "linear"}, default="auto"
        What is known about how columns arise from points: each column is a point ("shuffled"),
        columns are a rotation of the points ("orthogonal"), or any invertible map ("linear").
    channels : "auto" or int, default="auto"
        Number of columns at each point.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed. The same seed on the same machine gives the same result.
    verbose : int, default=0
        1 shows a progress bar on a terminal and in notebooks, elsewhere one line per stage; 2
        prints the lines as well.
    solver_options : mapping, optional
        Further options of the solver, such as ``{"preset": "gsn15", "seconds": 60}`` for "neural".

    Attributes
    ----------
    model_ : LiftedModel
        The map and its symmetry group. Of scattered places, it is the field on a grid over their
        box.
    grid_ : Grid, Scattered or Sphere
        The domain of the signals; on a sphere, ``grid_.points`` are where `transform` evaluates.
    n_channels_ : int
        Number of signals at each grid point.
    placement_ : Placement or None
        Where each column sits, if columns are points.
    coverage_ : ndarray of shape (\*grid,) or None
        Number of columns at each point; None without a placement.
    lifting_map_ : ndarray of shape (grid points · channels, d)
        W in ``Y = (X - mean) @ W.T``; computed on first access.
    generators_ : ndarray of shape (axes, d, d)
        Generators of translations, or of the rotations of a sphere, in observation coordinates;
        computed on first access.
    evidence_ : Evidence
        Numbers that support the result, on rows that were held out from the search.
    trace_ : Trace
        What each stage of the solver did.
    diagnosis_ : Diagnosis or None
        The last result of `diagnose` for this fit; saved with it.
    samples_ : Samples
        Some rows of the fit, drawn at random, which reports and plots show.
    stream_ : Stream
        After `partial_fit`: moments of all rows so far, and the exchanges of columns. Not saved.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section "Method".

    Examples
    --------
    Twenty shuffled sensors on a plane of 4 by 5 find their places:

    >>> from symlift import LatentDomain
    >>> from symlift.datasets import gsn
    >>> data = gsn(600, (4, 5), transform="permutation", random_state=1)
    >>> est = LatentDomain(grid=(4, 5), random_state=0).fit(data.X)
    >>> est.to_grid(est.transform(data.X)).shape
    (600, 4, 5)
    >>> print(est.diagnose(data.X).verdict.words)
    an identifiable translation symmetry is present and stable
    >>> from symlift.metrics import signal_recovery
    >>> signal_recovery(data.latent, est.transform(data.X), data.grid).r > 0.99
    True
    """

    grid_: Any  # a Grid or a Sphere, whose users know which

    def __init__(
        self,
        grid: Any = "auto",
        periodic: bool | Sequence[bool] = False,
        solver: str = "auto",
        mixing: str = "auto",
        channels: str | int = "auto",
        random_state: Any = None,
        verbose: int = 0,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.grid = grid
        self.periodic = periodic
        self.solver = solver
        self.mixing = mixing
        self.channels = channels
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002 - scikit-learn passes it
        *,
        progress: Progress | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Find the domain of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations: an array, a memory map, a data frame or a Dask array. NaN marks gaps.
        y : None
            Ignored; scikit-learn passes it.
        progress : callable, optional
            Called as ``progress(stage, share)`` while the work goes on.
        names : sequence of str, optional
            Names of the columns, if X does not carry them itself.

        Returns
        -------
        LatentDomain
            The fitted estimator.

        Warns
        -----
        FitWarning
            If the tests at the end of the fit do not support the result.
        CostWarning
            If the fit may take more than half of the free memory, or more than ten minutes.
        """
        # on a copy, which takes our place in one step: a fit that fails or is interrupted leaves
        # the estimator as it was, fitted or not
        fitted = copy.copy(self)
        for streamed in ("stream_", "_streamed"):
            fitted.__dict__.pop(streamed, None)
        fitted._check_settings()
        given = fitted._array(X, reset=True)
        if names is not None:
            fitted.feature_names_in_ = column_names(names, given.shape[1])
        with watching(self.verbose, progress) as watch:
            fitted._find(given, watch)
        self.__dict__ = fitted.__dict__
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002 - scikit-learn passes it
        *,
        half_life: float | None = None,
    ) -> Self:
        """Add rows that keep coming, and notice columns that exchange places.

        Moments of all rows so far are kept exactly, and a sample of them, from which the domain is
        found again whenever there are twice as many rows. Each batch is compared with the rows
        before it: where columns have exchanged places, the placement follows them.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The next rows, without gaps; at most 4,096 columns.
        y : None
            Ignored; scikit-learn passes it.
        half_life : float, optional
            Number of rows after which a row has half of its weight; by default none is forgotten.

        Returns
        -------
        LatentDomain
            The estimator; not fitted yet while there are too few rows for the mixing asked for.

        Warns
        -----
        FitWarning
            If columns have exchanged places.
        """
        self._check_settings()
        rows = self._array(X, reset=not hasattr(self, "n_features_in_"))
        check_finite(rows, False, self._names)
        check_largest(rows, self._names)
        # a copy: rows that end in an error, or Ctrl-C, have not been added
        before_them = getattr(self, "stream_", None)
        stream = Stream.of(rows.shape[1]) if before_them is None else before_them.copy()
        rng = np.random.default_rng(
            (check_random_state(self.random_state).randint(2**31 - 1), stream.batches)
        )
        exchange = stream.add(np.asarray(rows, dtype=float_type(rows.dtype)), rng, half_life)
        if exchange is not None:
            warnings.warn(exchange.words(self._names), FitWarning, stacklevel=2)
        # rows of the last fit, and what it found for columns in their first places
        before, first = getattr(self, "_streamed", None) or self._fitted_before()
        enough = self._places or len(stream.sample) > 1.25 * rows.shape[1] + 1
        if enough and len(stream.sample) >= 2 * before:
            again = copy.copy(self).fit(stream.sample, names=self._names)
            before, first = len(stream.sample), again.solution_
            again._adopt(reordered(first, stream.role))
            self.__dict__ = again.__dict__
        elif exchange is not None and first is not None:
            self._adopt(reordered(first, stream.role))
        self.stream_, self._streamed = stream, (before, first)
        return self

    def _fitted_before(self) -> tuple[int, Solution | None]:
        """Number of rows of a fit before the first batch, and its solution."""
        total = self.samples_.total if hasattr(self, "samples_") else 0
        return total, getattr(self, "solution_", None)

    def _find(self, given: NDArray, watch: Progress) -> None:
        # one local generator from the given seed; the global state is never touched
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31 - 1, size=4)
        )
        # sampling a large array must not change what solvers draw
        sampling = np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
        seen = survey(given, sampling, self._places, self._names)
        varies, usable = seen.varies, int(seen.varies.sum())
        if usable < 2:
            raise InputError(
                f"X has n_features = {len(varies)}, of which {usable} vary: a grid needs at least 2"
            )
        if not self._places:  # the fast solver holds out a fifth of the rows
            check_enough(len(given), usable, 5 if canonical(self.solver) == "fast" else None)
            if canonical(self.solver) == "fast" and of_one_direction(seen.rows):
                raise InputError(
                    "the rows vary along one direction only, and no mixing can be undone from that:"
                    " give rows that differ in more than their size"
                )
        single = self._places and self.channels in ("auto", 1)
        asked = asked_domain(self.grid, self.periodic, single)
        self._say_cost(len(given), seen, asked)
        grid, candidates = choose_grid(
            asked, self.periodic, seen.rows, varies,
            self._places or canonical(self.solver) == "ring", rng, watch,
        )  # fmt: skip
        constant = np.flatnonzero(~varies)
        if len(constant):
            warnings.warn(
                f"{len(constant)} constant columns get weight 0 (the first is"
                f" {column_of(int(constant[0]), self._names)})",
                FitWarning,
                stacklevel=3,
            )
        # training draws from all rows, in memory or not; the other solvers use a sample
        rows = (
            given
            if canonical(self.solver) in TRAINED and seen.rows.dtype == float_type(given.dtype)
            else seen.rows
        )
        solution = self._solve(rows, varies, grid, rng, watch, **self._options())
        solution = replace(solution, trace=replace(solution.trace, candidates=candidates))
        self.gap_filler_ = self._learn_gaps(seen)
        watch("checking", None)
        from symlift.diagnosis.examine import check_fit

        solution, doubts = check_fit(solution, rows, self._asked(), self._names)
        self._adopt(solution)
        self.samples_ = self._some(rows)
        self.diagnosis_: Diagnosis | None = None
        if doubts:
            warnings.warn(doubts, FitWarning, stacklevel=3)

    def _say_cost(self, rows: int, seen: Survey, grid: Domain | None) -> None:
        """Warn of a fit that may take much memory or time; refuse one that cannot be made here."""
        plan = plan_fit(
            rows,
            int(seen.varies.sum()),
            grid.size if isinstance(grid, Grid) else None,
            canonical(self.solver),
            self.mixing,
            seen.gaps,
            seen.rows.dtype.itemsize,
        )
        line = plan.say()
        if line:
            warnings.warn(line, CostWarning, stacklevel=4)

    def _asked(self) -> Asked:
        return Asked(
            self.mixing,
            canonical(self.solver),
            not (isinstance(self.grid, str) and self.grid == "auto"),
        )

    def _check_settings(self) -> None:
        check_solver(self.solver)
        check_mixing(self.mixing)
        check_channels(self.channels)
        check_options(self.solver_options)
        ignored = {"mixing": self.mixing, "channels": self.channels}
        for name, value in ignored.items():
            if canonical(self.solver) != "fast" and value != "auto":
                warnings.warn(
                    f"{name}={value!r} has no effect with solver={self.solver!r}: leave it out, or"
                    ' use solver="fast"',
                    FitWarning,
                    stacklevel=3,
                )

    @property
    def _places(self) -> bool:
        """Whether columns may be placed one by one, so that gaps, few rows and missing points are
        no obstacle.
        """
        return canonical(self.solver) == "fast" and self.mixing in ("auto", "shuffled")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._places
        return tags

    def _options(self) -> dict[str, Any]:
        options = dict(self.solver_options or {})
        if canonical(self.solver) == "fast":
            options = {"mixing": self.mixing, "channels": self.channels, **options}
        return options

    def _learn_gaps(self, seen: Survey) -> GapFiller | None:
        """The predictor of missing entries, from a sample of rows; None for very many columns
        without gaps.
        """
        rows = seen.rows
        if not self._places or (rows.shape[1] > _GAP_COLUMNS and not seen.gaps):
            return None
        return GapFiller.of(rows[:: max(1, len(rows) // _GAP_ROWS)])

    def _solve(
        self,
        rows: NDArray,
        varies: NDArray[np.bool_],
        grid: Domain,
        rng: np.random.Generator,
        progress: Progress = no_progress,
        solver: str | None = None,
        **options: Any,
    ) -> Solution:
        """A solution for all columns, from those that vary."""
        chosen = self.solver if solver is None else solver
        solve = get_solver(chosen, grid)
        columns = np.flatnonzero(varies)
        if canonical(chosen) in TRAINED:
            view: Any = ColumnsOf(rows, columns)
            solution = solve(view, grid, rng, progress, **options)
        elif varies.all() or (
            canonical(chosen) == "fast" and not isinstance(grid, Sphere)
        ):  # the fast solver names its dead columns itself
            return solve(rows, grid, rng, progress, **options)
        else:
            solution = solve(rows[:, columns], grid, rng, progress, **options)
        if varies.all():
            return solution
        # a constant column equals its mean
        first = np.nan_to_num(np.asarray(rows[0], dtype=np.float64))
        model = solution.model.with_columns(varies, first)
        placement = None if solution.placement is None else solution.placement.with_dead(varies)
        return Solution(model, solution.evidence, solution.trace, placement)

    def _adopt(self, solution: Solution) -> None:
        model = solution.model
        self.solution_ = solution
        self.model_, self.n_channels_ = model, model.channels
        self.grid_: Any = model.grid  # a Grid, or a Scattered
        self.evidence_, self.trace_, self.placement_ = (
            solution.evidence,
            solution.trace,
            solution.placement,
        )
        self.lifter_: LiftedModel | TakenColumns = model
        if solution.scattered and solution.placement is not None:
            self.placement_ = solution.placement.without_grid()
            self.grid_ = self.placement_.grid
            self.lifter_ = TakenColumns(model.mean, np.flatnonzero(~self.placement_.left_out))
        if self.placement_ is not None:
            self.placement_ = self.placement_.named(self._names)
        self.coverage_ = (
            None if self.placement_ is None else self.placement_.coverage(self.n_channels_)
        )
        self.mean_ = model.mean.astype(np.float64)
        self.n_features_in_ = model.n_features
        for made in ("lifting_map_", "generators_"):
            self.__dict__.pop(made, None)

    @property
    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _array(self, X: Any, reset: bool = False) -> NDArray:
        return given_rows(self, X, reset)

    def _rows(self, X: ArrayLike, fill: bool = True) -> NDArray:
        """X as `_array` returns it, checked, with gaps filled in unless ``fill`` is False."""
        rows = self._array(X)
        return (
            self._filled(rows) if check_finite(rows, self._places, self._names) and fill else rows
        )

    def _filled(self, rows: NDArray) -> NDArray:
        filler = getattr(self, "gap_filler_", None)
        if filler is None:
            raise InputError(
                "X holds NaN, and the rows of the fit had none: drop or impute them first, or fit"
                " rows with gaps"
            )
        return filler.fill(rows)

    def _some(self, rows: NDArray) -> Samples:
        """Some rows of the fit for reports and plots, without gaps."""
        samples = Samples.draw(rows)
        filler = getattr(self, "gap_filler_", None)
        return (
            samples if filler is None else replace(samples, observed=filler.fill(samples.observed))
        )

    def name_columns(self, names: Sequence[str]) -> None:
        """Name the columns, as fitting a data frame does; placement and files carry the names.

        Parameters
        ----------
        names : sequence of str
            One name for each column, all different.
        """
        check_is_fitted(self)
        self.feature_names_in_ = column_names(names, self.n_features_in_)
        self._adopt(self.solution_)

    # -- trusting a fit ----------------------------------------------------------------------------

    def score(self, X: ArrayLike, y: Any = None) -> float:  # noqa: ARG002 - scikit-learn passes y
        """Return how good the fit is on X; larger is better.

        The score is -(resolution + distortion/2 + 10 · max(stationarity, 0)). It compares fits of
        the same rows on the same grid, best with rows that were not fitted. On a sphere it is the
        share of the third moment of the rows that rotations leave as it is.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations.
        y : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        float
            The score.
        """
        from symlift.solvers.sphere.judge import judge_rows
        from symlift.statistics.selection import held_out_in_window

        check_is_fitted(self)
        rows = np.asarray(self._rows(X), dtype=np.float64)
        check_moments(rows, self._names)
        if isinstance(self.grid_, Sphere):
            return judge_rows(self.model_, rows).share
        return -held_out_in_window(
            self.model_.map, rows, self.model_.lattice, self.n_channels_
        ).value()

    def diagnose(
        self,
        X: ArrayLike,
        level: Level = "quick",
        blocks: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> Diagnosis:
        """Decide whether the result is real.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations, those of the fit or others.
        level : {"quick", "full"}, default="quick"
            "quick" costs less than the fit. "full" also fits halves of X (and quarters, if those
            disagree), more controls and other grids: up to six fits. Models that were trained are
            always compared with what the fast solver finds in halves.
        blocks : array-like of shape (n,), optional
            Labels of rows that belong together, such as the rows of one session: halves are then
            made of whole blocks.
        progress : callable, optional
            Called as ``progress(stage, share)`` while the work goes on.

        Returns
        -------
        Diagnosis
            The verdict, the probability that the result is right, the tests behind both, and next
            steps.
        """
        from symlift.diagnosis.examine import check_request, diagnose

        check_is_fitted(self)
        rows = self._rows(X, fill=False)
        check_moments(rows, self._names)
        check_request(level, blocks, len(rows))
        trained = canonical(self.solver) in TRAINED
        options = {} if trained else self._options()

        def refit(part: NDArray, seed: int, reach: Reach | None) -> Solution:
            watch(refit_words(seed), None)
            varies = varying(part)
            further = {} if reach is None else {"reach": reach}
            solver = "fast" if trained else self.solver
            rng = np.random.default_rng(seed)
            return self._solve(
                part, varies, self.grid_, rng, solver=solver, **{**options, **further}
            )

        with watching(self.verbose, progress) as watch:
            further = refit if level == "full" or trained else None
            diagnosis = diagnose(
                self.solution_, rows, further, trained, blocks, self._asked(), self._names
            )
        for step in diagnosis.next_steps:
            if step.params.get("grid", "auto") != "auto":
                warnings.warn(step.text, FitWarning, stacklevel=2)
        self.diagnosis_ = diagnosis
        return diagnosis

    # -- keeping a fit -----------------------------------------------------------------------------

    def save(
        self, folder: str | os.PathLike[str], overwrite: bool = False, samples: bool = True
    ) -> None:
        """Write the fit into a folder; `load` reads it back.

        Parameters
        ----------
        folder : str or path-like
            The folder: model (safetensors and JSON), settings and evidence.
        overwrite : bool, default=False
            Whether a fit that is already there is replaced.
        samples : bool, default=True
            Whether some rows of the data are written, too, which ``symlift report`` draws.
        """
        from symlift._estimator_file import write_fit

        check_is_fitted(self)
        filler, rows = getattr(self, "gap_filler_", None), getattr(self, "samples_", None)
        write_fit(self.model_, self._record(), filler, rows if samples else None, folder, overwrite)

    def report(self, path: str | os.PathLike[str], X: ArrayLike | None = None) -> Path:
        """Write the page about this fit, one file that opens offline.

        Parameters
        ----------
        path : str or path-like
            The HTML file.
        X : array-like of shape (n, d), optional
            Rows that samples are taken from, by default those of the fit.

        Returns
        -------
        pathlib.Path
            The file that was written.
        """
        from symlift.report import write_page

        check_is_fitted(self)
        samples = getattr(self, "samples_", None) if X is None else self._some(self._rows(X))
        placement = self.solution_.placement  # on the grid of the model, which pages draw
        placement = None if placement is None else placement.named(self._names)
        return write_page(path, self.model_, self._record(), placement, samples)

    def _record(self) -> EstimatorRecord:
        """Settings, evidence, trace and placement, as they are saved."""
        from symlift._estimator_file import EstimatorRecord, PlacementRecord

        names = getattr(self, "feature_names_in_", None)
        seed, placement = self.random_state, self.solution_.placement
        return EstimatorRecord(
            solver=self.solver, mixing=self.mixing, channels=self.channels,
            random_state=int(seed) if isinstance(seed, int | np.integer) else None,
            feature_names=None if names is None else [str(name) for name in names],
            evidence=self.evidence_, trace=self.trace_,
            placement=None if placement is None else PlacementRecord.of(placement),
            scattered=self.solution_.scattered,
            diagnosis=getattr(self, "diagnosis_", None),
        )  # fmt: skip


def given_rows(estimator: BaseEstimator, X: Any, reset: bool = False) -> NDArray:
    """X as an array (n, d) of numbers, its columns noted in (``reset``) or compared with those of
    the estimator; arrays of floats, integers and bits are neither converted nor copied.
    """
    X = gathered(X)
    X = as_frame(X)
    check_kind(X)
    check_frame(X)
    least = 2 if reset else 1
    plain = (
        isinstance(X, np.ndarray)
        and X.ndim == 2
        and X.dtype.kind in "fiub"
        and X.dtype.itemsize <= 8
    )
    if plain and len(X) >= least and X.shape[1]:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return np.asarray(X)
    if not hasattr(X, "columns") and not (isinstance(X, np.ndarray) and X.dtype.kind in "fiub"):
        X = numeric_rows(X)
    # single precision holds bits and bytes exactly, at half the memory
    small = getattr(getattr(X, "dtype", None), "itemsize", 8) == 1
    dtypes = [np.float32, np.float64] if small else [np.float64, np.float32]
    rows: NDArray = validate_data(
        estimator, X, reset=reset, dtype=dtypes, ensure_all_finite=False, ensure_min_samples=least
    )
    return rows


def load_domain(folder: str | os.PathLike[str]) -> LatentDomain:
    """Load one fitted `LatentDomain`, as it was saved."""
    from symlift._estimator_file import check_fits, read_estimator, read_gaps
    from symlift.storage.model_file import load_model

    model = load_model(folder)
    record = read_estimator(folder)
    est = LatentDomain(
        grid=(
            str(Scattered(model.grid.ndim))
            if record.scattered
            else model.grid
            if isinstance(model.grid, Sphere)
            else model.grid.shape
        ),
        periodic=model.grid.periodic
        if isinstance(model.grid, Grid) and not record.scattered
        else False,
        solver=record.solver,
        mixing=record.mixing,
        channels=record.channels,
        random_state=record.random_state,
    )
    placement = check_fits(record, model, folder)
    if record.feature_names is not None:
        est.feature_names_in_ = np.array(record.feature_names, dtype=object)
    est.gap_filler_ = read_gaps(folder, model.n_features)
    est._adopt(Solution(model, record.evidence, record.trace, placement, record.scattered))
    est.diagnosis_ = record.diagnosis
    with suppress(SamplesError):  # a model can be used without them
        est.samples_ = read_samples(folder, model.n_features)
    return est
