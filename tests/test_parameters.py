"""Parameters of estimators: each invalid value is one line that names it, whoever asks."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from symlift import InputError, LatentDomain, LatentDomains
from symlift._parameters import CONSTRAINTS

INVALID = [
    ({"grid": None}, "grid None"),
    ({"grid": (9,), "periodic": (True, False)}, "periodic has 2 entries"),
    ({"periodic": None, "grid": 9}, "periodic None"),
    ({"solver": "slow"}, "solver 'slow' is unknown"),
    ({"mixing": 3}, "mixing 3 is unknown"),
    ({"channels": 0}, "channels=0"),
    ({"channels": True}, "channels=True"),
    ({"channels": "two"}, "channels='two'"),
    ({"random_state": "a"}, "random_state='a'"),
    ({"random_state": -1}, "random_state=-1"),
    ({"random_state": np.random.default_rng(0)}, "random_state=Generator"),
    ({"verbose": "loud"}, "verbose='loud'"),
    ({"verbose": -1}, "verbose=-1"),
    ({"solver_options": [1]}, "solver_options is .1."),
    ({"grid": 9, "solver": "random", "solver_options": {"speed": 1}}, "no option 'speed'"),
    ({"grid": 9, "solver_options": {"speed": 1}}, "no option 'speed'"),
]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(100, 9))


@pytest.mark.parametrize(("settings", "message"), INVALID, ids=lambda value: str(value)[:40])
def test_an_invalid_value_is_one_line(rows, settings, message):
    with pytest.raises(InputError, match=message) as error:
        LatentDomain(**settings).fit(rows)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("settings", "message"), INVALID[2:14], ids=lambda value: str(value)[:40])
def test_several_domains_check_the_same(rows, settings, message):
    with pytest.raises(InputError, match=message):
        LatentDomains(**settings).fit(rows)


def test_every_parameter_is_checked():
    for estimator in (LatentDomain, LatentDomains):
        names = set(inspect.signature(estimator).parameters)
        assert names - {"grid", "periodic", "parts"} == set(CONSTRAINTS)


def test_what_follows_the_grid_is_given_by_name():
    with pytest.warns(FutureWarning, match="give periodic=True, solver='random' by name"):
        est = LatentDomain((9,), True, "random", random_state=3)
    assert (est.periodic, est.solver, est.random_state) == (True, "random", 3)
    assert clone(est).get_params() == est.get_params()
    with pytest.raises(TypeError, match="positional argument"):
        LatentDomain((9,), True, periodic=True)
