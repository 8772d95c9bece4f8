"""Piecewise constant fields behind a rotation: the chain of differences, its sum, and what is no
chain.
"""

from __future__ import annotations

import numpy as np
import pytest

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.metrics import signal_recovery
from symlift.solvers.fast.steps import chain_of_steps, summed_steps

pytestmark = pytest.mark.portable


def rotation(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def differences(T):
    """Unit rows along the differences of neighbours, and one more that closes the ring."""
    return np.concatenate([np.diff(T, axis=0), T[:1] + T[-1:]]) / np.sqrt(2)


def piecewise_constant(n, length, seed):
    rng = np.random.default_rng(seed)
    jump = rng.random((n, length)) < 0.15
    jump[:, 0] = True
    last = np.maximum.accumulate(np.where(jump, np.arange(length), 0), axis=1)
    f = np.take_along_axis(rng.normal(size=(n, length)), last, axis=1)
    return f + 0.01 * rng.normal(size=f.shape)


@pytest.mark.parametrize("n", [5, 12, 40])
@pytest.mark.parametrize("seed", [0, 1])
def test_differences_in_any_order_and_sign_sum_up_to_the_frame(n, seed):
    T = rotation(n, seed)
    rng = np.random.default_rng(seed)
    U = differences(T)
    # the one that closes the ring overlaps a little less, as components of data do
    U[-1] += 0.3 * T.sum(axis=0) / np.sqrt(n)
    U = U[rng.permutation(n)] * rng.choice([-1.0, 1.0], (n, 1)) * rng.uniform(0.5, 2, (n, 1))
    steps = chain_of_steps(U)
    assert steps is not None
    np.testing.assert_allclose(np.sum(steps[:-1] * steps[1:], axis=1), -0.5, atol=1e-12)
    frames = summed_steps(steps)
    for W in frames:
        np.testing.assert_allclose(W @ W.T, np.eye(n), atol=1e-10)
    alike = [np.abs(np.trace(W @ V.T)) / n for W in frames for V in (T, T[::-1])]
    assert max(alike) == pytest.approx(1, abs=1e-10)
    # the two differ by the sign of the mean
    means = [W.mean(axis=0) for W in frames]
    np.testing.assert_allclose(means[0], -means[1], atol=1e-10)


def test_other_components_form_no_chain():
    rng = np.random.default_rng(0)
    assert chain_of_steps(rotation(12, 0)) is None
    assert chain_of_steps(rng.normal(size=(12, 12))) is None
    smooth = rotation(12, 1) + 0.9 * np.roll(rotation(12, 1), 1, axis=0)
    assert chain_of_steps(smooth + 0.9 * np.roll(smooth, 2, axis=0)) is None


@pytest.mark.parametrize("sharpest", [False, True])
def test_piecewise_constant_fields_are_recovered_and_their_increments_are_the_other_answer(
    sharpest,
):
    length = 24
    f = piecewise_constant(8_000, length, 2)
    X = f @ rotation(length, 3)
    options = {"sharpest": True} if sharpest else None
    est = LatentDomain(grid=(length,), random_state=0, solver_options=options)
    if sharpest:
        with pytest.warns(UserWarning, match="differs from point to point"):
            est.fit(X)
    else:
        est.fit(X)
    trace = est.trace_
    assert trace.chosen == ("increments" if sharpest else "steps")
    (stage,) = [stage for stage in trace.stages if stage.name == "steps"]
    assert set(stage.values["answers"]) == {"steps", "increments"}
    r = signal_recovery(f, est.transform(X), Grid((length,))).r
    assert r < 0.5 if sharpest else r > 0.99


def test_a_process_is_not_taken_for_steps():
    """Innovations of an autoregressive process form a chain of nearly the same overlaps."""
    length, rng = 20, np.random.default_rng(4)
    e = rng.laplace(size=(10_000, length + 40))
    y = np.zeros_like(e)
    for k in range(1, e.shape[1]):
        y[:, k] = 0.8 * y[:, k - 1] + e[:, k]
    y = y[:, -length:]
    est = LatentDomain(grid=(length,), random_state=0).fit(y @ rotation(length, 5))
    (stage,) = [stage for stage in est.trace_.stages if stage.name == "steps"]
    assert stage.values["roughness"] > 0.7
    assert est.trace_.chosen == "process"
    assert signal_recovery(y, est.transform(y @ rotation(length, 5)), Grid((length,))).r > 0.95
