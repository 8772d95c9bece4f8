"""Minimise the misfit F: alternate between fitting the lag model and improving the slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.search.criterion import LagModel, PairClasses, fit_lags

__all__ = ["costs", "exchanges", "refine"]

_ROUNDS = 12


def costs(S: NDArray, slot: NDArray, slots: PairClasses, model: LagModel) -> NDArray:
    """cost[i, g] = Σ_j (s_ij - K(g - p_j))²/2v, up to a constant: column i moves to slot g.

    The other columns stay, except that a column in g takes the slot of i, so that cost[i, p_j] +
    cost[j, p_i] - cost[i, p_i] - cost[j, p_j] is the exact change of the cost by an exchange.
    Computed in the precision of S.
    """
    # everything in place: at 225 slots most of the time went into new memory
    d, columns = len(slot), np.arange(len(slot))
    cost, exchanged = np.zeros((d, slots.size), S.dtype), np.zeros((d, d), S.dtype)
    index = slots.index.take(slot, axis=0).astype(np.intp)
    for s, k, variance in zip(S, model.K, model.v, strict=True):
        weight = float(1 / (2 * variance * len(S)))
        expected = k.astype(S.dtype).take(index)
        own = expected[columns, slot]  # a column has no pair with itself
        # the pair of i with the column in g: its mean is that of their slots now
        pair = expected.take(slot, axis=1)
        pair[columns, columns] = 0.0
        pair -= s
        pair *= pair
        alone = own - s
        alone *= alone
        pair -= alone
        pair[columns, columns] += own * own
        pair *= weight
        exchanged += pair
        part = s @ expected
        part *= -2
        expected *= expected
        part += expected.sum(axis=0)
        part -= expected
        part *= weight
        cost += part
    cost[:, slot] += exchanged
    return cost


def changes(cost: NDArray, slot: NDArray) -> NDArray[np.float64]:
    """Change of the cost if column i moves to slot g, and a column in g to the slot of i."""
    own = cost[np.arange(len(slot)), slot]
    change = cost - own[:, None]
    swap = change[:, slot]
    change[:, slot] = swap + swap.T
    return change


def exchanges(cost: NDArray, slot: NDArray, most: int | None = None) -> NDArray[np.int64]:
    """Slots after the disjoint exchanges, and moves into empty slots, that lower the cost most.

    At most ``most`` of them are made.
    """
    change = changes(cost, slot)
    at = np.full(cost.shape[1], -1)
    at[slot] = np.arange(len(slot))
    goal = change.argmin(axis=1)
    gain = change[np.arange(len(slot)), goal]
    free = np.ones(cost.shape[1], dtype=bool)
    new = slot.copy()
    for i in np.argsort(gain, kind="stable")[: int((gain < -1e-9).sum())][:most]:
        origin, target = slot[i], goal[i]
        if free[origin] and free[target]:
            free[origin] = free[target] = False
            new[i] = target
            if at[target] >= 0:
                new[at[target]] = origin
    return new


def refine(
    S: NDArray,
    slot: NDArray,
    slots: PairClasses,
    widths: tuple[float, ...],
    prior: float = 4.0,
    rounds: int = _ROUNDS,
) -> tuple[float, NDArray[np.int64]]:
    """F and slots after descent, with lag models smoothed by each of ``widths`` in turn.

    Steps are proposed in single precision, which takes half of the time, and accepted by F in
    double precision.
    """
    single = S.astype(np.float32)
    for width in widths:
        model = fit_lags(S, slot, slots, width, prior)
        for _ in range(rounds):
            cost = costs(single, slot, slots, model)
            for propose in (_assignment, exchanges, _one_exchange):
                proposal = propose(cost, slot)
                proposed = fit_lags(S, proposal, slots, width, prior)
                if proposed.misfit < model.misfit - 1e-9:
                    slot, model = proposal, proposed
                    break
            else:
                break
    return fit_lags(S, slot, slots, 0.0, prior).misfit, slot


def _assignment(cost: NDArray, slot: NDArray) -> NDArray[np.int64]:  # noqa: ARG001 - as `exchanges`
    return linear_sum_assignment(cost)[1].astype(np.int64)


def _one_exchange(cost: NDArray, slot: NDArray) -> NDArray[np.int64]:
    """The best exchange alone: the change by several exchanges is not the sum of their changes."""
    return exchanges(cost, slot, 1)
