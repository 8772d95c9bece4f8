"""Linear processes: components without a domain of their own, put in order by how their mixing
columns overlap.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.datasets import ising, random_linear, random_orthogonal
from symlift.metrics import signal_recovery
from symlift.solvers.fast.innovations import overlaps, process_frame

pytestmark = pytest.mark.portable


def autoregressive(n, length, seed):
    """(field, innovations): AR(1) with Laplace innovations."""
    e = np.random.default_rng(seed).laplace(size=(n, length))
    f = e.copy()
    f[:, 0] /= np.sqrt(1 - 0.8**2)
    for t in range(1, length):
        f[:, t] += 0.8 * f[:, t - 1]
    return f, e


def mixed(f, condition, seed):
    rng = np.random.default_rng(seed)
    d = f.shape[1]
    A = (
        random_orthogonal(d, rng)
        if condition == 1
        else random_linear(d, condition**-0.5, condition**0.5, rng)
    )
    return f @ A


def test_overlaps_do_not_depend_on_a_rotation_of_the_data():
    rng = np.random.default_rng(0)
    U, Q = rng.normal(size=(6, 6)), random_orthogonal(6, rng)
    np.testing.assert_allclose(overlaps(U), overlaps(U @ Q), atol=1e-10)
    np.testing.assert_allclose(np.diag(overlaps(U)), 1)


@pytest.mark.parametrize("causal", [True, False])
def test_exact_components_give_the_process_from_either_end(causal):
    """Shuffled components with random signs of a known process behind a rotation: order, signs and
    direction come back.
    """
    N, rng = 30, np.random.default_rng(1)
    H = np.tril(0.8 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N))))
    H[:, 0] /= np.sqrt(1 - 0.8**2)
    H = H if causal else H[::-1, ::-1]
    A = random_orthogonal(N, rng)
    U = np.linalg.inv(A @ H)[rng.permutation(N)] * rng.choice([-1.0, 1.0], N)[:, None]
    found = process_frame(U, Grid((N,)), rng, orthogonal=True)
    assert found.explained > 0.95
    F = np.abs(found.W @ A)  # a signed permutation: the identity or the mirror
    assert max(np.trace(F), np.trace(F[::-1])) > 0.97 * N


def test_random_mixings_explain_little():
    rng = np.random.default_rng(2)
    A = random_linear(30, 30**-0.5, 30**0.5, rng)
    assert process_frame(np.linalg.inv(A), Grid((30,)), rng, orthogonal=False).explained < 0.6


@pytest.mark.parametrize(("condition", "least"), [(1.0, 0.98), (4.0, 0.95)])
def test_a_process_comes_back(condition, least):
    f, _ = autoregressive(12_000, 50, 3)
    X = mixed(f, condition, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        process = LatentDomain(grid=(50,), random_state=0).fit(X)
    assert process.trace_.chosen == "process"
    assert process.evidence_.found
    assert signal_recovery(f, process.transform(X), (50,)).r > least


def test_innovations_are_the_other_answer():
    f, e = autoregressive(12_000, 30, 3)
    X = mixed(f, 1.0, 4)
    other = LatentDomain(grid=(30,), random_state=0, solver_options={"sharpest": True}).fit(X)
    assert other.trace_.chosen == "innovations"
    assert signal_recovery(e, other.transform(X), (30,)).r > 0.95
    (stage,) = [one for one in other.trace_.stages if one.name == "process"]
    answers = stage.values["answers"]
    assert set(answers) == {"process", "innovations"}
    assert answers["innovations"]["resolution"] < answers["process"]["resolution"]
    assert answers["innovations"]["distortion"] > answers["process"]["distortion"]


def test_independent_values_behind_a_mixing_are_no_process():
    X = mixed(np.random.default_rng(5).laplace(size=(8_000, 24)), 10.0, 6)
    with pytest.warns(match=r"."):
        fitted = LatentDomain(
            grid=(24,), random_state=0, solver_options={"reach": "components"}
        ).fit(X)
    assert fitted.trace_.chosen not in ("process", "innovations")
    assert not fitted.evidence_.found


def test_domain_walls_of_spins_are_not_taken_for_innovations():
    """Their mixing columns overlap as those of a process do, but that process is not stationary."""
    spins = ising(12_000, 24, transform="linear", random_state=1)
    est = LatentDomain(grid=(24,), random_state=1).fit(spins.X)
    answers = [
        stage.values["answers"]["process"]
        for stage in est.trace_.stages
        if stage.name == "process" and "answers" in stage.values
    ]
    assert all(answer["stationarity"] > 0.004 for answer in answers)
    assert est.trace_.chosen != "process"
    assert signal_recovery(spins.latent, est.transform(spins.X), spins.grid).r > 0.9
