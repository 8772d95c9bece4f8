"""Likelihood of held-out rows under each domain that a population may be tuned to, as mixtures of
states.

A domain is a set of states with smooth functions on them. Rows are z = Σ_f A_f f(state) + noise
with one covariance of any shape, and all states are equally likely: expectation-maximisation fits A
and the covariance. A ring, a torus, a ring with an independent open variable (a cylinder) and an
open square differ only in their states and functions, so that their likelihoods can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "TORUS",
    "Domain",
    "DomainFit",
    "best_fit",
    "climb",
    "domain_likelihoods",
    "torus_starts",
]

_ROWS, _STEPS, _FIRST_STEPS = 3_000, 60, 10
# starts: how sharp the first guess of a state is, on closed and on open axes
_CONCENTRATION, _WIDTH = 4.0, 0.1
_PLANES = 4


@dataclass(frozen=True, eq=False)
class Domain:
    """States (m, axes), functions on them (f, m), and which of its axes close."""

    states: NDArray[np.float64]
    functions: NDArray[np.float64]
    closed: tuple[bool, ...]

    def near(self, at: NDArray) -> NDArray[np.float64]:
        """Shares of the states (n, m) for rows whose states are about ``at`` (n, axes)."""
        logs = np.zeros((len(at), len(self.states)))
        for axis, wraps in enumerate(self.closed):
            away = at[:, axis, None] - self.states[:, axis]
            logs += _CONCENTRATION * (np.cos(away) - 1) if wraps else -(away**2) / (2 * _WIDTH**2)
        return _shares(logs)[0]


@dataclass(frozen=True, eq=False)
class DomainFit:
    """Result of expectation-maximisation: shares of the states (n, m), and the mean log-likelihood
    relative to a Gaussian.
    """

    share: NDArray[np.float64]
    likelihood: float
    centres: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def of(self, U: NDArray) -> float:
        """The mean log-likelihood of other rows."""
        return _expect(U, self.centres, self.covariance)[1]

    def shares(self, U: NDArray) -> NDArray[np.float64]:
        """Shares of the states for other rows."""
        return _expect(U, self.centres, self.covariance)[0]


def climb(U: NDArray, domain: Domain, share: NDArray, steps: int = _STEPS) -> DomainFit:
    """Expectation-maximisation from shares of the states (n, m)."""
    n, k = U.shape
    f, before = domain.functions, -np.inf
    for _ in range(steps):
        weight, sums = share.sum(axis=0), share.T @ U
        gram = (f * weight) @ f.T
        # functions are undetermined at states that no row is in
        gram += 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
        F = f.T @ np.linalg.solve(gram, f @ sums)
        S = (U.T @ U - sums.T @ F - F.T @ sums + (F * weight[:, None]).T @ F) / n + 1e-6 * np.eye(k)
        share, value = _expect(U, F, S)
        if value - before < 1e-4:
            break
        before = value
    return DomainFit(share, value, F, S)


def _expect(U: NDArray, F: NDArray, S: NDArray) -> tuple[NDArray[np.float64], float]:
    precision = np.linalg.inv(S)
    share, mass = _shares(U @ precision @ F.T - 0.5 * np.einsum("mi,ij,mj->m", F, precision, F))
    rest = (
        -0.5 * np.einsum("ni,ij,nj->n", U, precision - np.eye(len(S)), U)
        - 0.5 * np.linalg.slogdet(S)[1]
    )
    return share, float(np.mean(mass - np.log(len(F)) + rest))


def _shares(logs: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    top = logs.max(axis=1, keepdims=True)
    share = np.exp(logs - top)
    total = share.sum(axis=1, keepdims=True)
    return share / total, (top + np.log(total))[:, 0]


# -- the four --------------------------------------------------------------------------------------


def _waves(x: NDArray, most: int) -> list[NDArray]:
    return [
        np.ones_like(x),
        *(wave(h * x) for h in range(1, most + 1) for wave in (np.cos, np.sin)),
    ]


def _cosines(x: NDArray, most: int) -> list[NDArray]:
    """Functions on [0, 1] without a slope at its ends."""
    return [np.cos(np.pi * a * x) for a in range(most + 1)]


def _pairs(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    return np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)


def _products(first: list[NDArray], second: list[NDArray]) -> NDArray[np.float64]:
    return np.stack([a * b for a in first for b in second])


def _turn(count: int) -> NDArray[np.float64]:
    return 2 * np.pi * np.arange(count) / count


def _inside(count: int) -> NDArray[np.float64]:
    return (np.arange(count) + 0.5) / count


def _ring() -> Domain:
    angles = _turn(60)
    return Domain(angles[:, None], np.stack(_waves(angles, 4)), (True,))


def _torus() -> Domain:
    states = _pairs(_turn(16), _turn(16))
    return Domain(states, _products(_waves(states[:, 0], 2), _waves(states[:, 1], 2)), (True, True))


def _cylinder() -> Domain:
    states = _pairs(_turn(32), _inside(8))
    return Domain(
        states, _products(_waves(states[:, 0], 4), _cosines(states[:, 1], 2)), (True, False)
    )


def _plane() -> Domain:
    states = _pairs(_inside(16), _inside(16))
    return Domain(
        states, _products(_cosines(states[:, 0], 4), _cosines(states[:, 1], 4)), (False, False)
    )


TORUS = _torus()
_OTHERS = {"ring": _ring(), "cylinder": _cylinder(), "plane": _plane()}


# -- which of them ---------------------------------------------------------------------------------


def torus_starts(U: NDArray, planes: list[NDArray]) -> list[NDArray[np.float64]]:
    """Angles (n, 2) in each pair of the planes that look most like rings."""
    angles = [_angle(U, plane) for plane in planes[:_PLANES]]
    return [np.stack(pair, axis=1) for pair in combinations(angles, 2)]


def domain_likelihoods(
    U: NDArray,
    planes: list[NDArray],
    rng: np.random.Generator,
    names: Sequence[str] = ("torus", *_OTHERS),
) -> dict[str, float]:
    """Mean log-likelihood, relative to a Gaussian, of whitened rows that were not fitted, under
    each domain.

    "torus" is left out where there is only one plane to start from.
    """
    drawn = rng.permutation(len(U))[:_ROWS]
    fitted, held = drawn[::2], drawn[1::2]
    starts = {
        "torus": torus_starts(U, planes),
        "ring": [_angle(U, plane)[:, None] for plane in planes[:3]],
        "cylinder": _cylinder_starts(U, planes),
        "plane": _plane_starts(U),
    }
    domains = {"torus": TORUS, **_OTHERS}
    return {
        name: round(best_fit(U[fitted], domains[name], [at[fitted] for at in some]).of(U[held]), 4)
        for name, some in starts.items()
        if some and name in names
    }


def best_fit(U: NDArray, domain: Domain, starts: list[NDArray]) -> DomainFit:
    """The fit from the start that is the best after a few steps."""
    tried = [climb(U, domain, domain.near(at), _FIRST_STEPS) for at in starts]
    return climb(U, domain, max(tried, key=lambda fit: fit.likelihood).share)


def _angle(U: NDArray, plane: NDArray) -> NDArray[np.float64]:
    u = U @ plane
    return np.arctan2(u[:, 1], u[:, 0])


def _plane_starts(U: NDArray) -> list[NDArray[np.float64]]:
    """Ranks of two of the first principal coordinates, as they are and turned by 45 degrees."""
    pairs = list(combinations(range(min(U.shape[1], 3)), 2))
    straight = [U[:, list(pair)] for pair in pairs]
    turned = [U[:, list(pair)] @ np.array([[1.0, 1.0], [1.0, -1.0]]) for pair in pairs]
    return [np.stack([_rank(column) for column in both.T], axis=1) for both in (*straight, *turned)]


def _cylinder_starts(U: NDArray, planes: list[NDArray]) -> list[NDArray[np.float64]]:
    """The angle in a plane, and the rank of the residual of a leading principal coordinate."""
    return [
        np.stack([_angle(U, plane), _rank(U[:, axis] - U @ plane @ plane[axis])], axis=1)
        for plane in planes[:2]
        for axis in range(2)
    ]


def _rank(values: NDArray) -> NDArray[np.float64]:
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = _inside(len(values))
    return ranks
