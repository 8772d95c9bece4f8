"""scikit-learn's own checks.  What is expected to fail is listed with its reason."""

from __future__ import annotations

import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from symlift import LatentDomain
from symlift.datasets import gsn

EXPECTED_FAILURES: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [LatentDomain(random_state=0, solver="fast")],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def test_grid_search_by_score():
    """The score is comparable between fits of the same data on the same grid."""
    data = gsn(4_000, 12, periodic=True, transform="orthogonal", random_state=1)
    search = GridSearchCV(
        LatentDomain(grid=12, periodic=True, random_state=0), {"solver": ["random", "fast"]}, cv=2
    )
    search.fit(data.X)
    assert search.best_params_ == {"solver": "fast"}
