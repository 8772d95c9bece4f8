"""Sources as smooth fields: the amplitude of a source at a place, sources fitted to fields, and
channels placed by many sources.

A source near a probe is large where it is near, and falls off smoothly in all directions. At place
p it has the amplitude

    m(p) = exp(α - ρ(p)),      ρ(p)² = |B (p - μ)|² + ζ²,

with a triangular B (how fast it falls off, and in which direction less) and a distance ζ from the
plane of the contacts. One field carries little information on the places of its channels; hundreds
that must all have this form determine them, including gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

__all__ = [
    "Fields",
    "Sources",
    "adjust",
    "best_contacts",
    "contact_costs",
    "fit_sources",
    "limited",
    "loss",
    "residuals",
]

# the residual from which a channel counts less
_HUBER = 2.0
# how far a channel may go from where it starts, in steps, before that costs as much as a residual
# of one deviation
_LEASH = 30.0


@dataclass(frozen=True)
class Fields:
    """Mean amplitudes (E, d) of E groups of events on d channels, their standard errors (E, d), and
    the part of an amplitude that no model of a source gets right.
    """

    amplitude: NDArray[np.float64]
    error: NDArray[np.float64]
    relative: float = 0.08

    @property
    def compressed(self) -> NDArray[np.float64]:
        """asinh(amplitude / error): the logarithm where a channel sees the source, flat where it
        sees noise.
        """
        return np.arcsinh(self.amplitude / self.error)

    @property
    def weight(self) -> NDArray[np.float64]:
        """One over the variance of `compressed`."""
        return 1 / (1 / (1 + (self.amplitude / self.error) ** 2) + self.relative**2)

    def some(self, which: NDArray[np.bool_]) -> Fields:
        """Some of the events."""
        return replace(self, amplitude=self.amplitude[which], error=self.error[which])

    def of(self, channels: NDArray[np.int64]) -> Fields:
        """The same events on some channels."""
        return replace(self, amplitude=self.amplitude[:, channels], error=self.error[:, channels])


@dataclass(frozen=True)
class Sources:
    """Parameters (E, K) of E sources: α, μ (P), the lower triangle of B, ζ."""

    theta: NDArray[np.float64]
    dimension: int

    def distance(self, places: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """(E, g): ρ at places (g, P); and p - μ, B (p - μ), B."""
        P = self.dimension
        away = places[None] - self.theta[:, None, 1 : 1 + P]
        B = np.zeros((len(self.theta), P, P))
        B[:, *np.tril_indices(P)] = self.theta[:, 1 + P : -1]
        u = away @ B.transpose(0, 2, 1)
        return np.sqrt(np.sum(u * u, axis=-1) + self.theta[:, None, -1] ** 2 + 1e-9), away, u, B

    def log_amplitude(self, places: NDArray) -> NDArray[np.float64]:
        """(E, g): log m at places (g, P)."""
        return self.theta[:, :1] - self.distance(places)[0]


def _expected(sources: Sources, places: NDArray, error: NDArray) -> NDArray[np.float64]:
    """Compressed amplitudes (E, d) of the sources at ``places`` (d, P)."""
    return np.arcsinh(np.exp(np.clip(sources.log_amplitude(places), -50, 50)) / error)


def _model(sources: Sources, places: NDArray, error: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Compressed amplitudes (E, d) and their derivatives by the sources' parameters (E, d, K) and
    by the places (E, d, P).
    """
    P = sources.dimension
    rho, away, u, B = sources.distance(places)
    m = np.exp(np.clip(sources.theta[:, :1] - rho, -50, 50)) / error
    slope = m / np.sqrt(1 + m * m)
    toward = u / rho[..., None]
    by_mean = toward @ B
    rows, columns = np.tril_indices(P)
    parts = [np.ones_like(rho)[..., None], by_mean, -toward[..., rows] * away[..., columns]]
    parts.append((-sources.theta[:, None, -1] / rho)[..., None])
    return (
        np.arcsinh(m),
        slope[..., None] * np.concatenate(parts, axis=-1),
        -slope[..., None] * by_mean,
    )


def _prior(dimension: int, decay: float) -> tuple[NDArray, NDArray]:
    """Mean and precision of the parameters (of α and μ: none): falls off by ``decay`` for each
    step, alike in all directions.
    """
    rows, columns = np.tril_indices(dimension)
    mean = np.r_[np.zeros(1 + dimension), np.where(rows == columns, decay, 0.0), 1.0]
    precision = np.r_[np.full(1 + dimension, 1e-6), np.full(len(rows), 1 / (0.7 * decay) ** 2), 1.0]
    return mean, precision


def _starts(fields: Fields, places: NDArray, decay: float) -> Sources:
    """Each source at the centre of its largest amplitudes."""
    P = places.shape[1]
    size = np.maximum(fields.amplitude, 0) ** 2
    size = size / np.maximum(size.sum(axis=1, keepdims=True), 1e-12)
    mean, _ = _prior(P, decay)
    theta = np.tile(mean, (len(size), 1))
    theta[:, 1 : 1 + P] = size @ places
    theta[:, 0] = np.log(np.maximum(fields.amplitude.max(axis=1), 1e-6)) + 1.2
    return Sources(theta, P)


def _robust(r: NDArray) -> NDArray[np.float64]:
    return 1 / np.maximum(1.0, np.abs(r) / _HUBER)


def loss(r: NDArray) -> NDArray[np.float64]:
    """Half the square of small residuals, growing linearly from there."""
    size = np.abs(r)
    return np.where(size < _HUBER, size**2 / 2, _HUBER * (size - _HUBER / 2))


def residuals(fields: Fields, sources: Sources, places: NDArray) -> NDArray[np.float64]:
    """(E, d): by how many deviations the channels at ``places`` (d, P) differ from the sources'
    fields.
    """
    return np.asarray(
        (fields.compressed - _expected(sources, places, fields.error)) * np.sqrt(fields.weight)
    )


def fit_sources(
    fields: Fields,
    places: NDArray,
    decay: float = 0.7,
    start: Sources | None = None,
    rounds: int = 30,
) -> Sources:
    """The sources that the fields come from, with channels at ``places`` (d, P), in steps: each by
    Levenberg and Marquardt.
    """
    sources = start or _starts(fields, places, decay)
    mean, precision = _prior(sources.dimension, decay)
    target, weight = fields.compressed, fields.weight
    root = np.sqrt(weight)
    damping = np.full(len(target), 1e-2)

    def cost(s: Sources) -> NDArray:
        r = (target - _expected(s, places, fields.error)) * root
        return loss(r).sum(axis=1) + 0.5 * np.sum(precision * (s.theta - mean) ** 2, axis=1)

    now = cost(sources)
    for _ in range(rounds):
        value, by_theta, _ = _model(sources, places, fields.error)
        r = target - value
        w = weight * _robust(r * root)
        gradient = ((w * r)[:, None] @ by_theta)[:, 0] - precision * (sources.theta - mean)
        hessian = (by_theta * w[..., None]).transpose(0, 2, 1) @ by_theta + np.diag(precision)
        size = np.einsum("ekk->ek", hessian)
        damped = hessian + (damping[:, None] * size)[:, :, None] * np.eye(size.shape[1])
        step = np.linalg.solve(damped, gradient[..., None])[..., 0]
        proposal = Sources(sources.theta + step, sources.dimension)
        new = cost(proposal)
        better = new < now
        sources = Sources(
            np.where(better[:, None], proposal.theta, sources.theta), sources.dimension
        )
        settled = np.where(better, now - new, 0.0)
        now = np.where(better, new, now)
        damping = np.clip(np.where(better, damping / 4, damping * 6), 1e-6, 1e6)
        if settled.max() < 1e-2 and (better.any() or damping.min() > 1e3):
            break
    return sources


def contact_costs(fields: Fields, sources: Sources, points: NDArray) -> NDArray[np.float64]:
    """(d, M): what is unexplained of each channel if it were at each of ``points`` (M, P)."""
    amplitude = np.exp(np.clip(sources.log_amplitude(points), -50, 50))
    target, root = fields.compressed, np.sqrt(fields.weight)
    cost = np.empty((target.shape[1], len(points)))
    for i in range(len(cost)):
        expected = np.arcsinh(amplitude / fields.error[:, i, None])
        cost[i] = loss((target[:, i, None] - expected) * root[:, i, None]).sum(axis=0)
    return cost


def best_contacts(fields: Fields, sources: Sources, points: NDArray) -> NDArray[np.int64]:
    """The numbers of ``points``, one for each channel, that leave least unexplained."""
    cost = contact_costs(fields, sources, points)
    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.int64)


def limited(each: NDArray, most: float) -> float:
    """What sources leave unexplained, ``most`` of it for each: one that is not a source (several
    that could not be distinguished) counts little.
    """
    return float(np.sum(most * each / (most + each)))


def adjust(
    fields: Fields, places: NDArray, sources: Sources, decay: float = 0.7, rounds: int = 40
) -> tuple[NDArray[np.float64], Sources]:
    """Places of channels (d, P) and sources together, from ``places``: bundle adjustment by Schur
    complement.
    """
    mean, precision = _prior(sources.dimension, decay)
    target, weight = fields.compressed, fields.weight
    root, first = np.sqrt(weight), places
    d, P = places.shape
    damping = 1e-2

    def cost(s: Sources, p: NDArray) -> float:
        r = (target - _expected(s, p, fields.error)) * root
        held = np.sum(precision * (s.theta - mean) ** 2) + np.sum((p - first) ** 2) / _LEASH**2
        return float(loss(r).sum() + 0.5 * held)

    now = cost(sources, places)
    for _ in range(rounds):
        value, by_theta, by_place = _model(sources, places, fields.error)
        r = target - value
        w = weight * _robust(r * root)
        g_s = ((w * r)[:, None] @ by_theta)[:, 0] - precision * (sources.theta - mean)
        g_p = np.einsum("ed,edp->dp", w * r, by_place) - (places - first) / _LEASH**2
        h_s = (by_theta * w[..., None]).transpose(0, 2, 1) @ by_theta + np.diag(precision)
        h_p = np.einsum("ed,edp,edq->dpq", w, by_place, by_place) + np.eye(P) / _LEASH**2
        h_sp = (w[..., None, None] * by_theta[..., :, None] * by_place[..., None, :]).transpose(
            0, 2, 1, 3
        )
        h_sp = h_sp.reshape(len(w), -1, d * P)
        while damping < 1e8:
            a = h_s * (1 + damping * np.eye(h_s.shape[1]))
            b = h_p * (1 + damping * np.eye(P))
            inner = np.linalg.solve(a, np.concatenate([h_sp, g_s[..., None]], axis=2))
            flat = h_sp.transpose(2, 0, 1).reshape(d * P, -1)
            reduced = -flat @ inner[..., :-1].reshape(-1, d * P)
            for j in range(d):
                reduced[j * P : (j + 1) * P, j * P : (j + 1) * P] += b[j]
            move = np.linalg.solve(reduced, g_p.ravel() - flat @ inner[..., -1].ravel())
            step = inner[..., -1] - inner[..., :-1] @ move
            proposal = Sources(sources.theta + step, P), places + move.reshape(d, P)
            new = cost(*proposal)
            if new < now:
                break
            damping *= 6
        else:
            break
        sources, places = proposal
        gained, now = now - new, new
        damping = max(damping / 4, 1e-6)
        if gained < 1e-5 * max(now, 1.0):
            break
    return places, sources
