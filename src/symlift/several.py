"""LatentDomains: several domains in one table."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from symlift._given_rows import given_rows
from symlift._parameters import check_parameters
from symlift._parts import checked_parts, naming_part, part_labels, progress_of_part, surer_fit
from symlift._parts_file import (
    PARTS_FILE,
    PartsRecord,
    part_folder,
    replaced_parts,
    write_maps,
    write_parts,
)
from symlift._watch import watching
from symlift.core.domain import given_domain
from symlift.core.grid import Grid
from symlift.core.rows import Survey, check_enough, check_finite, float_type, survey
from symlift.core.tabular import column_names
from symlift.diagnosis import Diagnosis, Level
from symlift.errors import FitWarning, InputError
from symlift.estimator import LatentDomain
from symlift.solvers.contract import Progress
from symlift.solvers.registry import canonical
from symlift.statistics.gather import each_block, is_dask
from symlift.storage.atomic import sweep
from symlift.storage.model_file import MODEL_FILES

__all__ = ["LatentDomains"]


class LatentDomains(TransformerMixin, BaseEstimator):
    """Find several domains in one table: chromosomes, shanks of a probe, modules of cells.

    Columns that predict each other on held-out rows make a part, and each part is fitted by a
    `LatentDomain` of its own. Columns that nothing predicts belong to none. If columns are mixtures
    (``mixing="orthogonal"`` or ``"linear"``), they belong to no part either: then parts are
    subspaces, in which independent fields lie.

    Parameters
    ----------
    parts : "auto", int or array-like of int, default="auto"
        Number of parts, or the part of each column (-1 for none). With "auto" the data decide.
    grid : "auto", int, tuple of int, str or Grid, default="auto"
        Grid of every part, as in `LatentDomain`.
    periodic : bool or sequence of bool, default=False
        Whether axes of the grids close on themselves.
    solver : {"auto", "fast", "ring", "neural", "refine", "random"}, default="auto"
        How each domain is found.
    mixing : {"auto", "shuffled", "orthogonal", "linear"}, default="auto"
        What is known about how columns arise from points. "auto" and "shuffled" look for parts
        among columns, "orthogonal" and "linear" among subspaces.
    channels : "auto" or int, default="auto"
        Number of columns at each point.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed. The same seed on the same machine gives the same result.
    verbose : int, default=0
        Progress, as in `LatentDomain`.
    solver_options : mapping, optional
        Further options of the solver.

    Attributes
    ----------
    labels_ : ndarray of int, shape (d,)
        The part of each column, -1 for none; the largest part has number 0. All are -1 if parts are
        subspaces.
    domains_ : list of LatentDomain
        One fitted estimator for each part, of the columns whose label is its number, in their
        order; for subspaces, of the rows ``(X - mean_) @ maps_[k]``.
    maps_ : list of ndarray of shape (d, k), or None
        What leads from the columns to an orthonormal basis of each subspace; None if parts are
        columns.
    mean_ : ndarray of shape (d,) or None
        The mean of the rows, where `maps_` are used.

    Examples
    --------
    Two lines of sensors and three sensors that see nothing, in one shuffled table:

    >>> import numpy as np
    >>> from symlift import LatentDomains
    >>> from symlift.datasets import gsn
    >>> lines = [gsn(3000, 12, transform="permutation", random_state=seed).X for seed in (1, 2)]
    >>> X = np.concatenate([*lines, np.random.default_rng(0).normal(size=(3000, 3))], axis=1)
    >>> est = LatentDomains(random_state=0).fit(X)
    >>> np.bincount(est.labels_ + 1)
    array([ 3, 12, 12])
    >>> [str(domain.grid_) for domain in est.domains_]
    ['12', '12']
    >>> est.transform(X).shape, est.get_feature_names_out()[12]
    ((3000, 24), 'part1__p0')
    """

    def __init__(
        self,
        parts: Any = "auto",
        *,
        grid: Any = "auto",
        periodic: bool | Sequence[bool] = False,
        solver: str = "auto",
        mixing: str = "auto",
        channels: str | int = "auto",
        random_state: Any = None,
        verbose: int = 0,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.parts = parts
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
        """Find the parts of the rows of X, and the domain of each.

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
        LatentDomains
            The fitted estimator.

        Warns
        -----
        FitWarning
            If no columns predict each other, or if the fit of a part is not supported.
        """
        # on a copy, so that a fit that fails leaves the estimator as it was
        fitted = copy.copy(self)
        check_parameters(self.get_params(deep=False))
        fitted._one()._check_settings()
        given = given_rows(fitted, X, reset=True)
        if names is not None:
            fitted.feature_names_in_ = column_names(names, given.shape[1])
        with watching(self.verbose, progress) as watch:
            fitted._find(given, watch)
        self.__dict__ = fitted.__dict__
        return self

    def _one(self, seed: int | None = None) -> LatentDomain:
        """An estimator for one part."""
        return LatentDomain(
            self.grid,
            periodic=self.periodic,
            solver=self.solver,
            mixing=self.mixing,
            channels=self.channels,
            random_state=seed,
            solver_options=self.solver_options,
        )

    @property
    def _in_columns(self) -> bool:
        """Whether parts are groups of columns, and not subspaces."""
        return self.mixing in ("auto", "shuffled")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._one()._places
        return tags

    @property
    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _find(self, given: NDArray, watch: Progress) -> None:
        state = check_random_state(self.random_state)
        rng = np.random.default_rng(state.randint(2**31 - 1, size=4))
        parts = checked_parts(self.parts, given.shape[1], self._in_columns)
        seen = survey(given, rng, self._one()._places, self._names)
        watch("parts", None)
        self.maps_: list[NDArray] | None = None
        self.mean_: NDArray | None = None
        if self._in_columns:
            self.labels_ = part_labels(seen.rows, parts, rng)
            tables = [seen.rows[:, self.labels_ == k] for k in range(self.labels_.max() + 1)]
        else:
            self.labels_ = np.full(given.shape[1], -1, dtype=np.int64)
            self.mean_, self.maps_ = self._subspaces(seen, parts, rng, watch)
            tables = self._tables(seen.rows)
        seeds = [int(state.randint(2**31 - 1)) for _ in tables]
        self.domains_: list[LatentDomain] = []
        for k, table in enumerate(tables):
            step = progress_of_part(watch, k, len(tables))
            self.domains_.append(self._fitted(k, table, self._one(seeds[k]), step))
        usual = self._usual_line()
        for k, table in enumerate(tables) if usual is not None else ():
            if self.domains_[k].grid_.ndim > 1:
                step = progress_of_part(watch, k, len(tables))
                one = self._one(seeds[k]).set_params(grid=(table.shape[1],), periodic=usual)
                self.domains_[k] = surer_fit(self.domains_[k], self._fitted(k, table, one, step))
        if not self.domains_:
            warnings.warn(
                "no columns predict each other beyond chance: there are no parts; give more rows,"
                " or labels if you know the parts",
                FitWarning,
                stacklevel=3,
            )

    def _fitted(
        self, part: int, table: NDArray, domain: LatentDomain, progress: Progress
    ) -> LatentDomain:
        # what is warned names the part: there may be many
        with naming_part(f"part {part}"):
            return domain.fit(table, names=self._names_of(part), progress=progress)

    def _usual_line(self) -> bool | None:
        """Whether most parts are open lines (False) or rings (True); None if most are neither.

        Domains of one table are mostly of one kind. A line with steps of unequal length can be
        folded into a narrow grid that explains a little more of its few rows: two of nineteen
        chromosomes were.
        """
        if given_domain(self.grid, self.periodic) is not None:
            return None
        kinds = [domain.grid_.periodic for domain in self.domains_]
        for closed in (False, True):
            if 2 * kinds.count((closed,)) > len(kinds):
                return closed
        return None

    def _subspaces(
        self, seen: Survey, parts: int | None, rng: np.random.Generator, watch: Progress
    ) -> tuple[NDArray, list[NDArray]]:
        from symlift.solvers.fast.subspaces import independent_subspaces

        varies = np.flatnonzero(seen.varies)
        check_enough(len(seen.rows), len(varies), 5 if canonical(self.solver) == "fast" else None)
        mean = np.asarray(seen.rows.mean(axis=0, dtype=np.float64))
        rows = seen.rows[:, varies] - mean[varies]
        maps = independent_subspaces(rows, parts, self.mixing == "orthogonal", rng, watch)
        whole = [np.zeros((len(mean), one.shape[1])) for one in maps]
        for out, one in zip(whole, maps, strict=True):
            out[varies] = one
        return mean, whole

    def _names_of(self, part: int) -> list[str] | None:
        if self._names is None or self.maps_ is not None:
            return None
        return [str(name) for name in self._names[self.labels_ == part]]

    def _tables(self, rows: NDArray) -> list[NDArray]:
        """What each domain is fitted to: its columns, or the coordinates in its subspace."""
        if self.maps_ is None or self.mean_ is None:
            return [rows[:, self.labels_ == k] for k in range(len(self.domains_))]
        centred = np.asarray(rows, dtype=float_type(rows.dtype)) - self.mean_
        return [(centred @ one).astype(float_type(rows.dtype)) for one in self.maps_]

    def _rows(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        rows = given_rows(self, X)
        check_finite(rows, self._one()._places, self._names)
        return rows

    # -- using a fit -------------------------------------------------------------------------------

    @property
    def n_outputs_(self) -> int:
        """Number of signals of all parts together."""
        check_is_fitted(self)
        return sum(domain.lifter_.n_outputs for domain in self.domains_)

    def transform(self, X: ArrayLike) -> NDArray:
        """Lift observations to the signals of all parts, side by side.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations; gaps (NaN) are predicted from the other columns of a part.

        Returns
        -------
        ndarray of shape (n, signals of all parts)
            What `LatentDomain.transform` gives for each part, in their order. For a Dask array, a
            Dask array that is not computed yet.
        """
        check_is_fitted(self)
        if is_dask(X):
            lazy: NDArray = each_block(self.transform, X, self.n_outputs_)
            return lazy
        rows = self._rows(X)
        nothing = np.empty((len(rows), 0), dtype=float_type(rows.dtype))
        tables = zip(self.domains_, self._tables(rows), strict=True)
        return np.concatenate(
            [nothing, *(domain.transform(table) for domain, table in tables)], axis=1
        )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002 - scikit-learn's signature
        """Return the names of the signals.

        Parameters
        ----------
        input_features : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        ndarray of str
            ``part0__p12``: the part, and the point as `LatentDomain` names it.
        """
        check_is_fitted(self)
        names = [
            f"part{k}__{name}"
            for k, domain in enumerate(self.domains_)
            for name in domain.get_feature_names_out()
        ]
        return np.array(names, dtype=object)

    def diagnose(
        self,
        X: ArrayLike,
        level: Level = "quick",
        blocks: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> list[Diagnosis]:
        """Decide for each part whether its result is real.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations, those of the fit or others.
        level : {"quick", "full"}, default="quick"
            How much work is done, as in `LatentDomain.diagnose`.
        blocks : array-like of shape (n,), optional
            Labels of rows that belong together.
        progress : callable, optional
            Called as ``progress(stage, share)`` while the work goes on.

        Returns
        -------
        list of Diagnosis
            One for each part.
        """
        rows = self._rows(X)
        out = []
        with watching(self.verbose, progress) as watch:
            tables = self._tables(rows)
            for k, (domain, table) in enumerate(zip(self.domains_, tables, strict=True)):
                with naming_part(f"part {k}"):
                    step = progress_of_part(watch, k, len(tables))
                    out.append(domain.diagnose(table, level, blocks, progress=step))
        return out

    # -- keeping a fit -----------------------------------------------------------------------------

    def save(
        self, folder: str | os.PathLike[str], overwrite: bool = False, samples: bool = True
    ) -> None:
        """Write the fit into a folder; `load` reads it back.

        Parameters
        ----------
        folder : str or path-like
            The folder: ``parts.json``, and one folder for each part in ``parts/``.
        overwrite : bool, default=False
            Whether a fit that is already there is replaced.
        samples : bool, default=True
            Whether some rows of the data are written, too, which ``symlift report`` draws.
        """
        check_is_fitted(self)
        folder = Path(folder)
        sweep(folder)
        if any((folder / name).exists() for name in MODEL_FILES):
            raise InputError(f"{folder} holds the model of one domain: choose another folder")
        if (folder / PARTS_FILE).exists() and not overwrite:
            raise InputError(
                f"{folder} holds saved domains: choose another folder, or give overwrite=True"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with replaced_parts(folder) as new:
            for k, domain in enumerate(self.domains_):
                domain.save(part_folder(new, k), samples=samples)
            if self.maps_ is not None and self.mean_ is not None:
                write_maps(self.mean_, self.maps_, new)
            write_parts(self._record(), new)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page about all parts, and one page for each next to it.

        Parameters
        ----------
        path : str or path-like
            The HTML file; pages of parts have its name and ``-part0``, ``-part1`` and so on.

        Returns
        -------
        pathlib.Path
            The file that was written.
        """
        from symlift.report import PartLine, write_parts_page

        check_is_fitted(self)
        target = Path(path)
        lines = []
        for k, domain in enumerate(self.domains_):
            page = domain.report(target.with_name(f"{target.stem}-part{k}.html"))
            diagnosis = getattr(domain, "diagnosis_", None)
            lines.append(PartLine.of(domain.model_, domain.placement_, diagnosis, page.name))
        left = [i for i in np.flatnonzero(self.labels_ < 0).tolist() if self.maps_ is None]
        names = [f"x{i}" if self._names is None else str(self._names[i]) for i in left]
        return write_parts_page(target, target.stem, len(self.labels_), lines, names)

    def _record(self) -> PartsRecord:
        grid = given_domain(self.grid, self.periodic)
        seed, names = self.random_state, self._names
        kind: Any = self.parts if isinstance(self.parts, str) else "labels"
        return PartsRecord(
            parts=kind if np.ndim(self.parts) or kind == "auto" else int(self.parts),
            grid="auto" if grid is None else str(grid),
            periodic=list(grid.periodic) if isinstance(grid, Grid) else False,
            solver=self.solver, mixing=self.mixing, channels=self.channels,
            random_state=int(seed) if isinstance(seed, int | np.integer) else None,
            feature_names=None if names is None else [str(name) for name in names],
            labels=self.labels_.tolist(), count=len(self.domains_), mapped=self.maps_ is not None,
        )  # fmt: skip
