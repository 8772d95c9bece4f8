"""A domain that is found again and again while rows keep coming."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from symlift.core.rows import (
    check_finite,
    check_largest,
    float_type,
)
from symlift.errors import FitWarning
from symlift.solvers.contract import Solution
from symlift.solvers.reorder import reordered
from symlift.statistics.stream import Stream
from symlift.storage.sample_file import Samples

if TYPE_CHECKING:
    pass


__all__ = ["StreamsRows"]


class StreamsRows:
    """The method of `LatentDomain` that takes rows batch by batch."""

    random_state: Any
    samples_: Samples
    solution_: Solution
    diagnosis_: Any

    if TYPE_CHECKING:

        def _array(self, X: Any, reset: bool = False) -> NDArray: ...
        def _check_settings(self) -> None: ...
        def _adopt(self, solution: Solution) -> None: ...
        def fit(self, X: ArrayLike, y: Any = None, *, names: Any = None) -> Self: ...
        @property
        def _names(self) -> Any: ...
        @property
        def _places(self) -> bool: ...

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
        # on a copy, as `fit`: rows that end in an error, or in Ctrl-C, have not been added
        added = copy.copy(self)
        added._add(X, half_life)
        self.__dict__ = added.__dict__
        return self

    def _add(self, X: ArrayLike, half_life: float | None) -> None:
        self._check_settings()
        rows = self._array(X, reset=not hasattr(self, "n_features_in_"))
        check_finite(rows, False, self._names)
        check_largest(rows, self._names)
        before_them = getattr(self, "stream_", None)
        stream = Stream.of(rows.shape[1]) if before_them is None else before_them.copy()
        rng = np.random.default_rng(
            (check_random_state(self.random_state).randint(2**31 - 1), stream.batches)
        )
        exchange = stream.add(np.asarray(rows, dtype=float_type(rows.dtype)), rng, half_life)
        if exchange is not None:
            warnings.warn(exchange.words(self._names), FitWarning, stacklevel=3)
        # rows of the last fit, and what it found for columns in their first places
        before, first = getattr(self, "_streamed", None) or self._fitted_before()
        enough = self._places or len(stream.sample) > 1.25 * rows.shape[1] + 1
        if enough and len(stream.sample) >= 2 * before:
            self.fit(stream.sample, names=self._names)
            before, first = len(stream.sample), self.solution_
            self._adopt(reordered(first, stream.role))
            self.diagnosis_ = None  # that of the places before columns exchanged theirs
        elif exchange is not None and first is not None:
            self._adopt(reordered(first, stream.role))
            self.diagnosis_ = None
        self.stream_, self._streamed = stream, (before, first)

    def __sklearn_is_fitted__(self) -> bool:
        # the first rows fix the columns, and may be too few for a fit
        return hasattr(self, "model_")

    def _fitted_before(self) -> tuple[int, Solution | None]:
        """Number of rows of a fit before the first batch, and its solution."""
        total = self.samples_.total if hasattr(self, "samples_") else 0
        return total, getattr(self, "solution_", None)
