"""`place`, `propose` and `unmix` are doors: they give what the estimator gives."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import symlift
from symlift import Grid, InputError, LatentDomain, Scattered, place, propose, unmix
from symlift.datasets import gsn
from symlift.metrics import signal_recovery
from symlift.solvers.contract import GridCandidate


@pytest.fixture(scope="module")
def shuffled():
    return gsn(1500, (4, 6), transform="permutation", random_state=1)


def test_columns_are_placed_as_the_estimator_places_them(shuffled):
    found = place(shuffled.X, (4, 6), random_state=0)
    est = LatentDomain((4, 6), mixing="shuffled", random_state=0).fit(shuffled.X)
    np.testing.assert_array_equal(found.point, est.placement_.point)
    assert signal_recovery(shuffled.latent, est.transform(shuffled.X), (4, 6)).r > 0.99


def test_gaps_and_names_go_through(shuffled):
    X = shuffled.X.copy()
    X[::7, 3] = np.nan
    assert (place(X, "4x6", random_state=0).point >= 0).all()


@pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")
def test_the_first_proposal_is_what_auto_takes(shuffled):
    proposals = propose(shuffled.X, random_state=0)
    assert proposals[0].domain == LatentDomain(random_state=0).fit(shuffled.X).grid_ == Grid((4, 6))
    shares = [one.share for one in proposals[1:]]
    assert shares == sorted(shares, reverse=True)
    assert set(place(shuffled.X, proposals[0].domain, random_state=0).point) == set(range(24))


def test_nothing_is_proposed_for_noise(rng):
    assert propose(rng.normal(size=(300, 12)), random_state=0) == ()


def test_a_candidate_is_a_domain():
    assert GridCandidate((3, 4), (False, True), 0.9).domain == Grid((3, 4), (False, True))
    assert GridCandidate((3, 4), (False, False), 0.9, scattered=True).domain == Scattered(2)


def test_a_rotation_is_undone():
    data = gsn(4000, 15, transform="orthogonal", periodic=True, random_state=0)
    model = unmix(data.X, 15, mixing="orthogonal", periodic=True, random_state=0)
    assert signal_recovery(data.latent, model.lift(data.X), 15, periodic=True).r > 0.99


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: unmix(X, 24, mixing="shuffled"), "mixing 'shuffled' is none to undo"),
        (lambda X: place(X, 24, channels=0), "channels=0"),
        (lambda X: propose(X, random_state="a"), "random_state='a'"),
        (lambda X: propose(X[:, :1]), "fewer than 2 columns"),
        (lambda X: propose(np.full_like(X, np.inf)), "infinit"),
    ],
    ids=["mixing", "channels", "seed", "one column", "infinity"],
)
def test_invalid_requests_are_one_line(shuffled, call, message):
    with pytest.raises(InputError, match=message):
        call(shuffled.X)


@pytest.mark.parametrize("function", [place, propose, unmix])
def test_settings_are_given_by_name(function):
    kinds = [one.kind for one in inspect.signature(function).parameters.values()]
    positional = 1 if function is propose else 2
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds[positional:])


def test_the_public_names_are_few():
    # what somebody has to look through: a name more has to replace one, or to be worth it
    names = [name for name in symlift.__all__ if not name.startswith("__")]
    assert len(names) == 15
