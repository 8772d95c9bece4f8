"""What a user gives as X, as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from symlift.core.tabular import as_frame, check_frame, check_kind, numeric_rows
from symlift.errors import InputError
from symlift.statistics.gather import check_shape, gathered

if TYPE_CHECKING:
    pass

__all__ = ["given_rows", "noted_columns"]


def noted_columns(estimator: BaseEstimator, X: Any) -> Any:
    """X, a Dask array, as it is; the number of its columns is noted in the estimator."""
    check_shape(X)
    if X.dtype.kind not in "fiub" or min(X.shape) < 1 or len(X) < 2:
        raise InputError(
            f"X is a Dask array of {X.dtype} and shape {X.shape}: give numbers, at least 2 rows"
        )
    validate_data(estimator, X, reset=True, skip_check_array=True)
    return X


def given_rows(estimator: BaseEstimator, X: Any, reset: bool = False) -> NDArray:
    """X as an array (n, d) of numbers, its columns noted in (``reset``) or compared with those of
    the estimator; arrays of floats, integers and bits are neither converted nor copied.
    """
    X = as_frame(gathered(X))
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
