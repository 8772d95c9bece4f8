"""Descent of the misfit F: the lag model given the places, then the places given the lag model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.solvers.fast.place.slots import LagModel, PairClasses, fit_lags

__all__ = ["costs", "exchanges", "refine"]

_ROUNDS = 12


def costs(S: NDArray, slot: NDArray, slots: PairClasses, model: LagModel) -> NDArray[np.float64]:
    """cost[i, g] = Σ_j (s_ij - K(g - p_j))²/2v, but for a constant, of column i in slot g while the others stay.

    The column that is in g takes i's slot, so cost[i, p_j] + cost[j, p_i] - cost[i, p_i] - cost[j, p_j] is an
    exchange's exact change.
    """
    now = slots.index[np.ix_(slot, slot)]
    cost = np.zeros((len(slot), slots.size))
    columns = np.arange(len(slot))
    index = slots.index[slot]
    for s, k, variance in zip(S, model.K, model.v, strict=True):
        expected = k[index]
        square = expected * expected
        part = square.sum(axis=0) - square - 2 * (s @ expected)
        own = expected[columns, slot]  # of a column with itself: there is no such pair
        there = k[now]
        there[columns, columns] = 0.0
        part[:, slot] += there * there - own * own - 2 * s * (there - own)
        part[columns, slot] += own * own
        cost += part / (2 * variance * len(S))
    return cost


def changes(cost: NDArray, slot: NDArray) -> NDArray[np.float64]:
    """Change of the cost if column i goes to slot g, and the column there, if any, to i's."""
    own = cost[np.arange(len(slot)), slot]
    change = cost - own[:, None]
    swap = change[:, slot]
    change[:, slot] = swap + swap.T
    return change


def exchanges(cost: NDArray, slot: NDArray, most: int | None = None) -> NDArray[np.int64]:
    """The disjoint exchanges of two columns, and moves into empty slots, that lower the cost most; ``most`` of them at most."""
    change = changes(cost, slot)
    at = np.full(cost.shape[1], -1)
    at[slot] = np.arange(len(slot))
    goal = change.argmin(axis=1)
    gain = change[np.arange(len(slot)), goal]
    free = np.ones(cost.shape[1], dtype=bool)
    new = slot.copy()
    for i in np.argsort(gain, kind="stable")[: int((gain < -1e-9).sum())][:most]:
        here, there = slot[i], goal[i]
        if free[here] and free[there]:
            free[here] = free[there] = False
            new[i] = there
            if at[there] >= 0:
                new[at[there]] = here
    return new


def refine(
    S: NDArray, slot: NDArray, slots: PairClasses, widths: tuple[float, ...], prior: float = 4.0, rounds: int = _ROUNDS
) -> tuple[float, NDArray[np.int64]]:
    """F and slots after descent, with lag models that are smoothed by each of ``widths`` in turn."""
    for width in widths:
        model = fit_lags(S, slot, slots, width, prior)
        for _ in range(rounds):
            cost = costs(S, slot, slots, model)
            for propose in (_assignment, exchanges, _one_exchange):
                proposal = propose(cost, slot)
                found = fit_lags(S, proposal, slots, width, prior)
                if found.misfit < model.misfit - 1e-9:
                    slot, model = proposal, found
                    break
            else:
                break
    return fit_lags(S, slot, slots, 0.0, prior).misfit, slot


def _assignment(cost: NDArray, slot: NDArray) -> NDArray[np.int64]:  # noqa: ARG001 - as `exchanges`
    return linear_sum_assignment(cost)[1].astype(np.int64)


def _one_exchange(cost: NDArray, slot: NDArray) -> NDArray[np.int64]:
    """The best exchange alone: the change of several at once is not the sum of theirs."""
    return exchanges(cost, slot, 1)
