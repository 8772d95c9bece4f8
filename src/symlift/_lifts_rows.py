"""What a fitted domain does with rows: signals, translations, the field anywhere, phases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from symlift._given_rows import given_rows
from symlift.core.angles import fundamental, fundamentals
from symlift.core.domain import Scattered, TakenColumns
from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.core.rows import check_finite, check_moments
from symlift.core.sphere import Sphere
from symlift.core.tabular import numeric_rows
from symlift.errors import InputError
from symlift.statistics.gather import each_block, is_dask
from symlift.statistics.kriging import FieldPredictor
from symlift.storage.sample_file import Samples

__all__ = ["LiftsRows"]


class LiftsRows(TransformerMixin):
    """The methods of `LatentDomain` that use a fit; what the fit found is in the attributes."""

    # scikit-learn's `set_output` wraps `transform` in the class that defines it, if that is a
    # transformer

    grid_: Any
    model_: LiftedModel
    lifter_: LiftedModel | TakenColumns
    n_channels_: int
    samples_: Samples

    if TYPE_CHECKING:

        @property
        def _names(self) -> Any: ...
        @property
        def _places(self) -> bool: ...

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

    @cached_property
    def lifting_map_(self) -> NDArray[np.float64]:
        """W, of shape (grid points · channels, d)."""
        check_is_fitted(self)
        return self.lifter_.lifting_map()

    @cached_property
    def generators_(self) -> NDArray[np.float64]:
        """L_eff = E⁺ L̂ E, (P, d, d)."""
        check_is_fitted(self)
        if isinstance(self.grid_, Scattered):
            W = self.lifter_.lifting_map()
            return np.asarray(W.T @ self._predictor().derivatives() @ W)
        return self.model_.generators()

    def transform(self, X: ArrayLike) -> NDArray:
        """Lift observations to signals on the grid, Y = (X - mean) Wᵀ.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations; gaps (NaN) are predicted from the other columns.

        Returns
        -------
        ndarray of shape (n, grid points · channels)
            Signals, channels fastest. For a Dask array, a Dask array that is not computed yet.
        """
        check_is_fitted(self)
        if is_dask(X):
            return cast(NDArray, each_block(self.transform, X, self.lifter_.n_outputs))
        return self.lifter_.lift(self._rows(X))

    def inverse_transform(self, Y: ArrayLike) -> NDArray:
        """Compute the observations that belong to signals: the pseudo-inverse of `transform`.

        Parameters
        ----------
        Y : array-like of shape (n, grid points · channels)
            Signals.

        Returns
        -------
        ndarray of shape (n, d)
            Observations.
        """
        check_is_fitted(self)
        return self.lifter_.unlift(Y if isinstance(Y, np.ndarray) else numeric_rows(Y, "Y"))

    def to_grid(self, Y: ArrayLike) -> NDArray:
        r"""Arrange signals as fields on the grid.

        Parameters
        ----------
        Y : array-like of shape (n, grid points · channels)
            Signals, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, \*grid) or (n, \*grid, channels)
            Fields; the last axis is there if there are several channels.
        """
        check_is_fitted(self)
        Y = Y if isinstance(Y, np.ndarray) else numeric_rows(Y, "Y")
        if Y.ndim != 2 or Y.shape[1] != self.lifter_.n_outputs:
            raise InputError(
                f"signals of shape {Y.shape} do not fit the grid {self.grid_}: they must be (n,"
                f" {self.lifter_.n_outputs})"
            )
        channels = (self.n_channels_,) if self.n_channels_ > 1 else ()
        return Y.reshape(len(Y), *self.grid_.shape, *channels)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002 - scikit-learn's signature
        """Return the names of the signals.

        Parameters
        ----------
        input_features : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        ndarray of str
            ``p12`` on a line or ring, ``r3c7`` on a plane, ``s1r3c7`` in 3-D; ``k0`` is appended
            for channels.
        """
        check_is_fitted(self)
        return np.array(self.grid_.point_names(self.n_channels_), dtype=object)

    def shift(self, X: ArrayLike, t: float | Sequence[float]) -> NDArray:
        """Move observations along the recovered symmetry: mean + E⁺ ρ̂(t) E (X - mean).

        Of scattered places, which no translation maps to each other, the field is predicted where
        each of them comes from.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations.
        t : float or sequence of float
            Number of grid steps along each axis; of scattered places, of their units; on a sphere a
            rotation vector in radians.

        Returns
        -------
        ndarray of shape (n, d)
            Moved observations.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        if isinstance(self.lifter_, TakenColumns):
            change = self._predictor().change(self.lifter_.lift(rows), t)
            return rows + self.lifter_.unlift(change) - self.lifter_.mean
        return self.model_.act(rows, np.atleast_1d(t))

    def field(
        self, X: ArrayLike, at: ArrayLike, *, return_std: bool = False
    ) -> NDArray | tuple[NDArray, NDArray[np.float64]]:
        """Predict the field anywhere, by the best linear prediction from the signals near by.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations; gaps (NaN) are predicted from the other columns.
        at : array-like of shape (m, axes)
            Where: in grid steps from the first point, or in the units of scattered places.
        return_std : bool, default=False
            Whether to return the standard error of the prediction, too.

        Returns
        -------
        values : ndarray of shape (n, m)
            The field, like the signals without its mean.
        std : ndarray of shape (m,)
            Its standard error, if ``return_std`` is True.

        Raises
        ------
        InputError
            If ``at`` does not fit the domain, or if there are several channels.

        Examples
        --------
        >>> from symlift import LatentDomain
        >>> from symlift.datasets import gsn
        >>> X = gsn(600, (4, 5), transform="permutation", random_state=1).X
        >>> est = LatentDomain(grid=(4, 5), random_state=0).fit(X)
        >>> est.field(X[:2], [[1.0, 2.5], [2.0, 2.0]]).shape
        (2, 2)
        """
        check_is_fitted(self)
        if self.n_channels_ > 1:
            raise InputError("a field of several channels has no single value: fit one alone")
        weights = self._predictor().weights(at)
        values = weights.of(self.transform(X))
        return (values, weights.error) if return_std else values

    def _predictor(self) -> FieldPredictor:
        """How the field anywhere follows from the signals, from the rows that the fit kept."""
        if getattr(self, "samples_", None) is None:
            raise InputError(
                "the fit was saved without rows (samples=False), which the covariance of its field"
                " is estimated from: fit again, or save with samples"
            )
        return FieldPredictor.of(self.transform(self.samples_.observed), self.grid_)

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
        rows = self._rows(X)
        check_moments(rows, self._names)
        if isinstance(self.grid_, Sphere):
            return judge_rows(self.model_, np.asarray(rows, dtype=np.float64)).share
        # in double precision only what a window of the grid uses: of many columns, few
        return -held_out_in_window(
            self.model_.map, rows, self.model_.lattice, self.n_channels_
        ).value()

    def phase(self, X: ArrayLike) -> NDArray:
        """Return positions on a ring or torus, the arguments of the fundamental harmonics.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations.

        Returns
        -------
        ndarray of shape (n,) or (n, axes)
            Angles in radians; one for each axis of a torus.
        """
        return np.angle(self._fundamental(X))

    def amplitude(self, X: ArrayLike) -> NDArray:
        """Return the strength of the fundamental harmonic of the signal.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations.

        Returns
        -------
        ndarray of shape (n,) or (n, axes)
            Amplitudes; one for each axis of a torus.
        """
        return np.abs(self._fundamental(X))

    def _fundamental(self, X: ArrayLike) -> NDArray:
        check_is_fitted(self)
        if not all(self.grid_.periodic):
            shape = ": fit with periodic=True" if isinstance(self.grid_, Grid) else ""
            raise InputError(
                f"phase and amplitude need a ring or a torus, but the domain {self.grid_} is open"
                + shape
            )
        Y = self.transform(X)
        return fundamental(Y) if self.grid_.is_ring else fundamentals(Y, self.grid_.shape)
