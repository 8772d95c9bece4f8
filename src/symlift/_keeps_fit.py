"""A fit is named, saved and reported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from symlift.core.model import LiftedModel
from symlift.core.tabular import column_names
from symlift.solvers.contract import Evidence, Solution, Trace
from symlift.storage.sample_file import Samples

if TYPE_CHECKING:
    from symlift._estimator_file import EstimatorRecord


__all__ = ["KeepsFit"]


class KeepsFit:
    """The methods of `LatentDomain` that write a fit down."""

    solver: str
    mixing: str
    channels: str | int
    random_state: Any
    model_: LiftedModel
    evidence_: Evidence
    trace_: Trace
    solution_: Solution
    n_features_in_: int

    if TYPE_CHECKING:

        def _adopt(self, solution: Solution) -> None: ...
        def _rows(self, X: ArrayLike, fill: bool = True) -> NDArray: ...
        @property
        def _names(self) -> Any: ...

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

    def _some(self, rows: NDArray) -> Samples:
        """Some rows of the fit for reports and plots, without gaps."""
        samples = Samples.draw(rows)
        filler = getattr(self, "gap_filler_", None)
        return (
            samples if filler is None else replace(samples, observed=filler.fill(samples.observed))
        )
