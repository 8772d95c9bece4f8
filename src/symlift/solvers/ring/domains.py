"""Domains that rows may be points of, as mixtures of states, and how well each predicts other rows.

A domain is a set of states with smooth functions on them. Rows are z = Σ_f A_f f(state) + noise
with one covariance of any shape: expectation-maximisation fits A, the covariance and, where states
are few enough, how often each is visited. Clusters, an open curve, a ring, a torus, a ring with an
independent open variable (a cylinder) and an open square differ only in their states and functions,
so that their likelihoods can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "POINTS",
    "TORUS",
    "Domain",
    "DomainFit",
    "beside_phase",
    "best_fit",
    "climb",
    "closed_curve",
    "clusters",
    "curve_starts",
    "cylinder",
    "cylinder_starts",
    "open_curve",
    "plane",
    "plane_starts",
    "ring_starts",
    "torus",
    "torus_starts",
]

_STEPS, _FIRST_STEPS = 60, 10
#: points of a closed or open curve
POINTS = 72
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
        logs = np.zeros((len(self.states), len(at)), np.float32).T
        for axis, wraps in enumerate(self.closed):
            away = at[:, axis, None] - self.states[:, axis]
            logs += _CONCENTRATION * (np.cos(away) - 1) if wraps else -(away**2) / (2 * _WIDTH**2)
        return shares_of(logs)[0]

    @property
    def size(self) -> int:
        """Directions that the functions can take: what makes one domain simpler than another."""
        return len(self.functions) - 1


@dataclass(frozen=True, eq=False)
class DomainFit:
    """Result of expectation-maximisation: shares of the states (n, m), the mean log-likelihood
    relative to a Gaussian, and how often each state is visited.
    """

    share: NDArray[np.float64]
    likelihood: float
    centres: NDArray[np.float64]
    covariance: NDArray[np.float64]
    weights: NDArray[np.float64]

    def of(self, U: NDArray) -> NDArray[np.float64]:
        """The log-likelihood of each of other rows."""
        return self._expect(U)[1]

    def shares(self, U: NDArray) -> NDArray[np.float64]:
        """Shares of the states for other rows."""
        return self._expect(U)[0]

    def by_state(self, U: NDArray) -> NDArray[np.float64]:
        """The likelihood of rows in each state, up to a factor for each row: (n, m)."""
        logs = _states_logs(U, self.centres, self.covariance, np.ones(len(self.centres)))
        return np.exp(logs - logs.max(axis=1, keepdims=True))

    def _expect(self, U: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _expect(U, self.centres, self.covariance, self.weights)


def climb(
    U: NDArray, domain: Domain, share: NDArray, steps: int = _STEPS, even: bool = True
) -> DomainFit:
    """Expectation-maximisation from shares of the states (n, m), in single precision except where
    systems are solved.

    ``even``: all states are visited equally often; otherwise how often is fitted as well.
    """
    n, k = U.shape
    rows, scatter = np.asarray(U, np.float32), np.asarray(U.T @ U, np.float64)
    f, before = domain.functions, -np.inf
    weights = np.full(f.shape[1], 1 / f.shape[1])
    share = np.asarray(share, np.float32)
    for _ in range(steps):
        weight = share.sum(axis=0, dtype=np.float64)
        sums = np.asarray(share.T @ rows, np.float64)
        gram = (f * weight) @ f.T
        # functions are undetermined at states that no row is in
        gram += 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
        F = f.T @ np.linalg.solve(gram, f @ sums)
        S = (scatter - sums.T @ F - F.T @ sums + (F * weight[:, None]).T @ F) / n
        S += 1e-6 * np.eye(k)
        if not even:  # half a row in each state, so that none is impossible
            weights = (weight + 0.5) / (n + 0.5 * len(weight))
        share, likelihoods = _expect(rows, F, S, weights)
        value = float(likelihoods.mean(dtype=np.float64))
        if value - before < 1e-4:
            break
        before = value
    return DomainFit(share, value, F, S, weights)


def best_fit(U: NDArray, domain: Domain, starts: list[NDArray], even: bool = True) -> DomainFit:
    """The fit from the start that is the best after a few steps; ``starts`` are positions."""
    tried = [climb(U, domain, domain.near(at), _FIRST_STEPS) for at in starts]
    fit = climb(U, domain, max(tried, key=lambda fit: fit.likelihood).share)
    return fit if even else climb(U, domain, fit.share, even=False)


def _states_logs(U: NDArray, F: NDArray, S: NDArray, weights: NDArray) -> NDArray[Any]:
    """Log-likelihoods of rows in each state, up to a constant of each row, of the type of rows;
    states are the outer axis in memory, over which sums are three times as fast.
    """
    drawn = np.linalg.solve(S, F.T)
    offsets = np.log(weights) - 0.5 * np.einsum("mi,im->m", F, drawn)
    return (drawn.T.astype(U.dtype) @ U.T + offsets.astype(U.dtype)[:, None]).T


def _expect(
    U: NDArray, F: NDArray, S: NDArray, weights: NDArray
) -> tuple[NDArray[Any], NDArray[Any]]:
    share, mass = shares_of(_states_logs(U, F, S, weights))
    away = (np.linalg.inv(S) - np.eye(len(S))).astype(U.dtype)
    return share, mass - 0.5 * (((U @ away) * U).sum(axis=1) + np.linalg.slogdet(S)[1])


def shares_of(logs: NDArray) -> tuple[NDArray[Any], NDArray[Any]]:
    """Shares in proportion to e^logs along each row (n, m), and the logarithm of each row's sum."""
    top = logs.max(axis=1, keepdims=True)
    share = np.exp(logs - top)
    total = share.sum(axis=1, keepdims=True)
    share /= total
    return share, (top + np.log(total))[:, 0]


# -- which there are -------------------------------------------------------------------------------


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


def clusters(count: int) -> Domain:
    """So many places, each by itself."""
    return Domain(np.arange(float(count))[:, None], np.eye(count), (False,))


def open_curve(degree: int) -> Domain:
    """An open curve: polynomials up to this degree."""
    x = _inside(POINTS)
    powers = np.polynomial.legendre.legvander(2 * x - 1, degree).T
    return Domain(x[:, None], np.asarray(powers, dtype=np.float64), (False,))


def closed_curve(harmonics: int = 4) -> Domain:
    """A closed curve of so many harmonics."""
    angles = _turn(POINTS)
    return Domain(angles[:, None], np.stack(_waves(angles, harmonics)), (True,))


def torus(harmonics: int = 2, states: int = 16) -> Domain:
    """Two angles, and products of so many harmonics of each."""
    at = _pairs(_turn(states), _turn(states))
    first, second = (_waves(angle, harmonics) for angle in at.T)
    return Domain(at, _products(first, second), (True, True))


def cylinder(harmonics: int, degree: int) -> Domain:
    """A closed curve that changes with an independent open variable."""
    at = _pairs(_turn(48), _inside(4))
    return Domain(
        at, _products(_waves(at[:, 0], harmonics), _cosines(at[:, 1], degree)), (True, False)
    )


def plane(degree: int) -> Domain:
    """An open square, and products of cosines up to this degree."""
    at = _pairs(_inside(12), _inside(12))
    return Domain(at, _products(*(_cosines(x, degree) for x in at.T)), (False, False))


TORUS = torus()


# -- where to begin --------------------------------------------------------------------------------


def angle_in(U: NDArray, plane: NDArray) -> NDArray[np.float64]:
    """The angle (n,) of rows in a plane (k, 2)."""
    u = U @ plane
    return np.arctan2(u[:, 1], u[:, 0])


def ranks(values: NDArray) -> NDArray[np.float64]:
    """The rank of each value, as a share of their number."""
    placed = np.empty(len(values))
    placed[np.argsort(values, kind="stable")] = _inside(len(values))
    return placed


def torus_starts(U: NDArray, planes: list[NDArray]) -> list[NDArray[np.float64]]:
    """Angles (n, 2) in each pair of the planes that look most like rings."""
    angles = [angle_in(U, plane) for plane in planes[:_PLANES]]
    return [np.stack(pair, axis=1) for pair in combinations(angles, 2)]


def plane_starts(U: NDArray) -> list[NDArray[np.float64]]:
    """Ranks of two of the first principal coordinates, as they are and turned by 45 degrees."""
    pairs = list(combinations(range(min(U.shape[1], 3)), 2))
    straight = [U[:, list(pair)] for pair in pairs]
    turned = [U[:, list(pair)] @ np.array([[1.0, 1.0], [1.0, -1.0]]) for pair in pairs]
    return [np.stack([ranks(column) for column in both.T], axis=1) for both in straight + turned]


def cylinder_starts(U: NDArray, planes: list[NDArray]) -> list[NDArray[np.float64]]:
    """The angle in a plane, and the rank of the residual of a leading principal coordinate."""
    return [
        np.stack([angle_in(U, plane), ranks(U[:, axis] - U @ plane @ plane[axis])], axis=1)
        for plane in planes[:2]
        for axis in range(2)
    ]


def beside_phase(U: NDArray, phase: NDArray) -> NDArray[np.float64]:
    """An angle, and the rank of what varies most among rows besides it."""
    waves = np.stack(_waves(phase, 2), axis=1)
    rest = U - waves @ np.linalg.lstsq(waves, U, rcond=None)[0]
    first = np.linalg.eigh(rest.T @ rest)[1][:, -1]
    return np.stack([phase, ranks(rest @ first)], axis=1)


def ring_starts(U: NDArray, planes: list[NDArray]) -> list[NDArray[np.float64]]:
    """The angle in each of the planes that look most like rings."""
    return [angle_in(U, plane)[:, None] for plane in planes[:3]]


def curve_starts(U: NDArray, planes: list[NDArray]) -> list[NDArray[np.float64]]:
    """Angles cut where rows are fewest, and the ranks of the first principal coordinates."""
    cut = [_cut(angle_in(U, plane)) for plane in planes[:3]]
    return [ranks(x)[:, None] for x in (*cut, *U.T[:3])]


def _cut(angle: NDArray, parts: int = 36, wide: int = 7) -> NDArray[np.float64]:
    """The angle from the middle of its emptiest part, of ``wide`` of so many ``parts``."""
    count = np.histogram(np.mod(angle, 2 * np.pi), parts, (0, 2 * np.pi))[0]
    around = sum(np.roll(count, shift) for shift in range(-(wide // 2), wide // 2 + 1))
    return np.mod(angle - (np.argmin(around) + 0.5) * 2 * np.pi / parts, 2 * np.pi)
