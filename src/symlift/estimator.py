"""LatentDomain: validate, choose a solver, fit, transform, save."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from symlift._given_rows import noted_columns
from symlift._keeps_fit import KeepsFit
from symlift._lifts_rows import LiftsRows
from symlift._parameters import by_keyword, check_known_options, check_parameters
from symlift._streams_rows import StreamsRows
from symlift._watch import refit_words, watching
from symlift.core.domain import Domain, TakenColumns
from symlift.core.linalg import of_one_direction
from symlift.core.model import LiftedModel
from symlift.core.rows import (
    ColumnsOf,
    Survey,
    check_enough,
    check_moments,
    column_of,
    digest_of_rows,
    float_type,
    survey,
    varying,
)
from symlift.core.sphere import Sphere
from symlift.core.tabular import column_names
from symlift.diagnosis import Asked, Diagnosis, Level
from symlift.errors import FitWarning, InputError
from symlift.search.wide_rows import rows_used
from symlift.solvers.choose_grid import asked_domain, choose_grid
from symlift.solvers.contract import Progress, Reach, Solution, no_progress
from symlift.solvers.fast.settings import DEFAULT
from symlift.solvers.plan import plan_domain, say_cost
from symlift.solvers.registry import TRAINED, canonical, get_solver
from symlift.statistics.gather import is_dask, survey_elsewhere
from symlift.statistics.prediction import GapFiller

__all__ = ["LatentDomain"]

# missing entries are predicted from statistics of at most so many rows; where the rows of the fit
# have none, the predictor is learned up to so many columns
_GAP_ROWS, _GAP_COLUMNS = 4_000, 1_024
# columns from which entries of very many columns are predicted
_GAP_BESIDE = 8


class LatentDomain(LiftsRows, StreamsRows, KeepsFit, BaseEstimator):
    r"""Find the grid that vectors were measured on, its translation symmetry, and the signals.

    The fitted map is y(t) = w₀ᵀ ρ̂(-t) E (x - mean), evaluated at the points t of the grid; ρ̂ is
    the translation group that was found.

    Parameters
    ----------
    grid : "auto", int, tuple of int, str, Grid, Scattered or Sphere, default="auto"
        Shape of the grid: ``63``, ``(63,)``, ``(15, 15)``, ``(6, 6, 6)``, ``"15x15"``; or places
        without a grid, ``"scattered"`` in a plane and ``"scattered3"`` in space; or ``Sphere(5)``
        and its rotations, ``"sphere"`` with a degree that is found, ``"projective"`` for columns
        that are axes. With "auto" lines, rings, grids, scattered places and spheres compete.
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
        The last diagnosis of this fit, saved with it: the quick one that every fit ends with, or
        that of `diagnose`. None where the solver gives no evidence (training).
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
    _judged: tuple[str, str] | None

    @by_keyword
    def __init__(
        self,
        grid: Any = "auto",
        *,
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
        given = noted_columns(fitted, X) if is_dask(X) else fitted._array(X, reset=True)
        if names is not None:
            fitted.feature_names_in_ = column_names(names, given.shape[1])
        with watching(self.verbose, progress) as watch:
            fitted._find(given, watch)
        self.__dict__ = fitted.__dict__
        return self

    def _find(self, given: Any, watch: Progress) -> None:
        # one local generator from the given seed; the global state is never touched
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31 - 1, size=4)
        )
        # sampling a large array must not change what solvers draw
        sampling = np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0])  # type: ignore[attr-defined]
        if is_dask(given):
            watch("rows", None)
            n, d = given.shape
            most = rows_used(int(n), int(d), DEFAULT.place) if self._places else None
            seen = survey_elsewhere(given, sampling, self._places, most)
            given = seen.rows
        else:
            # very many columns are scored batch by batch
            wide = self._places and given.shape[1] > DEFAULT.place.dense
            seen = survey(given, sampling, self._places, self._names, as_they_are=wide)
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
        if self._places:  # before a grid is proposed, which takes minutes
            DEFAULT.place.check_channels(usable, self.channels, asked is not None)
        solver, width = canonical(self.solver), seen.rows.dtype.itemsize
        say_cost(plan_domain(len(given), usable, asked, solver, self.mixing, seen.gaps, width), 3)
        grid, candidates = choose_grid(
            asked, self.periodic, seen.rows, varies,
            self._places or canonical(self.solver) == "ring", rng, watch, self._spheres,
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
        self.gap_filler_ = self._learn_gaps(seen, solution)
        watch("checking", None)
        from symlift.diagnosis.examine import check_fit

        solution, doubts, judged = check_fit(solution, rows, self._asked(), self._names)
        self._adopt(solution)
        self.samples_ = self._some(rows)
        self.diagnosis_: Diagnosis | None = judged
        self._judged = None if judged is None else ("quick", digest_of_rows(given))
        if doubts:
            warnings.warn(doubts, FitWarning, stacklevel=3)

    def _asked(self) -> Asked:
        return Asked(
            self.mixing,
            canonical(self.solver),
            not (isinstance(self.grid, str) and self.grid == "auto"),
        )

    def _check_settings(self) -> None:
        check_parameters(self.get_params(deep=False))
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

    @property
    def _spheres(self) -> tuple[bool, bool]:
        """Whether spheres may be proposed: with columns as their points, or behind a rotation."""
        one = canonical(self.solver) == "fast" and self.channels in ("auto", 1)
        return one and self._places, one and self.mixing in ("auto", "orthogonal")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._places
        return tags

    def _options(self) -> dict[str, Any]:
        options = dict(self.solver_options or {})
        if canonical(self.solver) == "fast":
            options = {"mixing": self.mixing, "channels": self.channels, **options}
        return options

    def _learn_gaps(self, seen: Survey, solution: Solution) -> GapFiller | None:
        """The predictor of missing entries, from a sample of rows; None for very many columns
        without gaps.
        """
        rows = seen.rows
        if not self._places or (rows.shape[1] > _GAP_COLUMNS and not seen.gaps):
            return None
        some = rows[:: max(1, len(rows) // _GAP_ROWS)]
        if rows.shape[1] <= DEFAULT.place.dense or solution.placement is None:
            return GapFiller.of(some)
        return GapFiller.of_near(some, solution.placement.beside(_GAP_BESIDE))

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
        check_known_options(solve, options, chosen)
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
        # what diagnosis_ is of: level and rows; other names or places, another diagnosis
        self._judged = None
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

    # -- trusting a fit ----------------------------------------------------------------------------

    def diagnose(
        self,
        X: ArrayLike,
        level: Level = "quick",
        blocks: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> Diagnosis:
        """Decide whether the result is real.

        Rows of the fit have their quick diagnosis from it, and the last diagnosis of this fit is
        returned for the same rows and level.

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
        wanted = (level, digest_of_rows(rows) if blocks is None else "")
        if wanted[1] and wanted == self._judged and self.diagnosis_ is not None:
            return self._advised(self.diagnosis_)
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
        self.diagnosis_, self._judged = diagnosis, wanted
        return self._advised(diagnosis)

    @staticmethod
    def _advised(diagnosis: Diagnosis) -> Diagnosis:
        """A diagnosis, with a warning where it names another grid."""
        for step in diagnosis.next_steps:
            if step.params.get("grid", "auto") != "auto":
                warnings.warn(step.text, FitWarning, stacklevel=3)
        return diagnosis
