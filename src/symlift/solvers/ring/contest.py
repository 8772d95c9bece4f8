"""Which domain: nothing, clusters, an open curve, a ring, a torus or an open square, by how well
each predicts rows that it was not fitted to.

Every candidate is fitted to each half of the rows and judged on the other one, row by row, so that
the difference of two of them has a standard error. Of those within two standard errors of the best
the simplest is taken: the one whose states can differ in the fewest directions. A closed curve then
has to earn its closing link (`symlift.solvers.ring.closing`), or it is an arc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.contract import Contest, TunedTo
from symlift.solvers.ring.closing import ENOUGH, ClosingLink, closing_link, in_errors
from symlift.solvers.ring.domains import (
    POINTS,
    TORUS,
    Domain,
    DomainFit,
    beside_phase,
    best_fit,
    climb,
    closed_curve,
    clusters,
    curve_starts,
    cylinder,
    cylinder_starts,
    open_curve,
    plane,
    plane_starts,
    ring_starts,
    torus,
    torus_starts,
)

__all__ = ["contest"]

# rows that are looked at, further ones for the closing link, and those of each half to which
# surfaces (256 states) are fitted first
_ROWS, _MORE_ROWS, _SURFACE_ROWS = 3_000, 6_000, 750
# directions that a ring of tuned units takes (three harmonics; two with an open variable): curves
# that fill a space need more and more
_FEW = {True: 6, False: 9}
_CLUSTERS, _DEGREES, _HARMONICS = (2, 3, 4, 6, 8, 12), (1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 6, 8)
_SEEDINGS, _AGAIN = 4, 10
# curves that explain so much of what the best one does are as good a picture of the rows
_NEARLY = 0.9
_CYLINDERS, _PLANES, _TORI = (
    (cylinder(1, 1), cylinder(2, 1), cylinder(5, 1)),
    (plane(2), plane(4)),
    (torus(1, 12), TORUS),
)
# log-likelihood of a row that is a detail: states that are off by a seventh of the noise
_DETAIL = 0.01
# the ends of an arc are nearer to each other than the curve is wide; those of a line are not
_NEAR_ENDS = 0.85
# states with less of the median weight hold hardly any rows, and are no part of the curve that is
# measured: this only names the curve, an arc or a line
_VISITED = 0.1


@dataclass(eq=False)
class _Candidate:
    """One candidate, its log-likelihood of each row by the fit to the other half, and both fits."""

    name: TunedTo
    size: int
    rows: NDArray[np.float64]
    fits: list[tuple[DomainFit, NDArray, NDArray]]

    @property
    def score(self) -> float:
        return float(self.rows.mean())

    @property
    def is_curve(self) -> bool:
        """Whether it has one variable: a ring with an independent one is a ring as well."""
        return len(self.fits[0][0].centres) == POINTS


def contest(U: NDArray, planes: list[NDArray], phase: NDArray, rng: np.random.Generator) -> Contest:
    """The domain of whitened rows U (n, k), and how far the others are behind; ``planes`` are those
    in which the rows look most like rings, and ``phase`` (n,) is the angle that was found: where
    curves begin.
    """
    order = rng.permutation(len(U))
    phase = phase[order[:_ROWS]]
    U, more = U[order[:_ROWS]], U[order[_ROWS : _ROWS + _MORE_ROWS]]
    halves = np.arange(len(U))[::2], np.arange(len(U))[1::2]
    candidates: dict[tuple[str, int], _Candidate] = {}
    for fitted, held in (halves, halves[::-1]):
        for name, size, fit in _fits(U[fitted], planes, phase[fitted], rng):
            candidate = candidates.setdefault(
                (name, size), _Candidate(name, size, np.full(len(U), -np.inf), [])
            )
            candidate.rows[held] = fit.of(U[held])
            candidate.fits.append((fit, fitted, held))
    nothing = _Candidate("", 0, np.zeros(len(U)), [])
    # a torus needs two planes to start from, in both halves
    every = [nothing, *(c for c in candidates.values() if len(c.fits) == len(halves))]
    return _judged(np.concatenate([U, more]), every, phase, rng)


def _judged(
    U: NDArray, every: list[_Candidate], phase: NDArray, rng: np.random.Generator
) -> Contest:
    best = max(every, key=lambda c: c.score)
    leaders = {
        name: max((c for c in every if c.name == name), key=lambda c: c.score)
        for name in dict.fromkeys(c.name for c in every)
    }
    near = [name for name, leader in leaders.items() if _as_good(leader, best)]
    winner = min((_plainest(every, leaders[name]) for name in near), key=lambda c: c.size)
    curves = [c for c in every if c.name == "ring" and c.is_curve]
    closing = _closing(U, phase, curves, rng)
    domain = winner.name
    if domain in ("line", "ring"):
        # rows of an open curve whose ends meet are those of a closed one: the link decides
        if "ring" in near:
            domain = "ring" if closing.closes else "arc"
        elif _ends(winner.fits[0][0]) < _NEAR_ENDS:
            domain = "arc"
    plain = max(c.score for c in every if c.name == "ring" and c.size <= _FEW[c.is_curve])
    share = min(max(plain / max(best.score, 1e-12), 0.0), 1.0)
    return replace(_result(domain, winner, leaders, closing), plain=round(share, 4))


def _closing(
    U: NDArray, phase: NDArray, curves: list[_Candidate], rng: np.random.Generator
) -> ClosingLink:
    """The closing link of curves that are fitted to halves of the rows that were ``seen``, and
    judged on all others: the median of all curves that are nearly as good as the best, each for two
    halvings.

    No single curve decides: with few harmonics it may not follow the rows, with many it wanders
    into what else moves them, and is long where no rows are. Leads scatter by two standard errors
    among halvings.
    """
    finest = max(curve.score for curve in curves)
    seen = len(phase)
    order, rest = rng.permutation(seen), np.arange(seen, len(U))  # rest: rows that no fit has seen
    halves = order[::2], order[1::2]
    links = []
    for curve in curves:
        if curve.score < finest - (1 - _NEARLY) * abs(finest):
            continue
        again = [
            (_curve(U[fitted], curve.size // 2, [phase[fitted, None]]), fitted, held)
            for fitted, held in (halves, halves[::-1])
        ]
        for fits in (curve.fits, again):
            further = [
                (fit, fitted, np.concatenate([held, rest[half::2]]))
                for half, (fit, fitted, held) in enumerate(fits)
            ]
            links.append(closing_link(U, further))
    return sorted(links, key=lambda link: link.lead)[(len(links) - 1) // 2]


def _plainest(every: list[_Candidate], leader: _Candidate) -> _Candidate:
    """The simplest candidate of a kind that may be as good as its best: by one standard error more,
    because the best of many fits is ahead of its like by chance.
    """
    kind = [c for c in every if c.name == leader.name]
    return min((c for c in kind if _as_good(c, leader, ENOUGH + 1)), key=lambda c: c.size)


def _as_good(candidate: _Candidate, best: _Candidate, enough: float = ENOUGH) -> bool:
    """Within two standard errors of the best, or of a detail: with many rows the sharper part of a
    tuning, which no domain is about, is many standard errors.
    """
    behind = best.rows - candidate.rows
    return candidate is best or in_errors(behind) < enough or float(behind.mean()) < _DETAIL


def _result(
    domain: TunedTo, winner: _Candidate, leaders: dict[TunedTo, _Candidate], closing: ClosingLink
) -> Contest:
    """Margins are those of the best of the winner's kind over the best of each other kind; between
    an arc and a ring, that of the closing link.
    """
    margins: dict[TunedTo, float] = {
        name: in_errors(leaders[winner.name].rows - other.rows)
        for name, other in leaders.items()
        if name != winner.name
    }
    if winner.name in ("ring", "line"):
        margins.pop("ring", None)
        margins.pop("line", None)
        if domain == "ring":
            margins["arc"] = closing.lead
        else:
            margins["ring"] = 2 * ENOUGH - closing.lead
    runner_up = min(margins, key=lambda name: margins[name])
    others = [other for name, other in leaders.items() if name not in ("ring", "line")]
    rival = max(others, key=lambda c: c.score)
    return Contest(
        domain=domain,
        runner_up=runner_up,
        margin=round(float(margins[runner_up]), 3),
        closing=round(float(closing.lead), 3),
        opening=closing.opening,
        beyond=round(in_errors(leaders["ring"].rows - rival.rows), 3),
        scores={
            name or "nothing": round(other.score, 4)
            for name, other in sorted(leaders.items(), key=lambda pair: -pair[1].score)
        },
    )


def _ends(fit: DomainFit) -> float:
    """Distance of the ends of an open curve, as a share of the largest distance on it."""
    on = fit.weights > _VISITED * np.median(fit.weights)
    at = fit.centres[on]
    apart = ((at[:, None] - at) ** 2).sum(axis=-1)
    return float(np.sqrt(apart[0, -1] / max(apart.max(), 1e-300)))


# -- candidates ------------------------------------------------------------------------------------


def _fits(
    U: NDArray, planes: list[NDArray], phase: NDArray, rng: np.random.Generator
) -> Iterator[tuple[TunedTo, int, DomainFit]]:
    for count in _CLUSTERS:
        yield "clusters", count - 1, _clustered(U, count, rng)
    for degree in _DEGREES:
        yield "line", degree, best_fit(U, open_curve(degree), curve_starts(U, planes), even=False)
    for harmonics in _HARMONICS:
        starts = [phase[:, None], *ring_starts(U, planes)]
        yield "ring", 2 * harmonics, _curve(U, harmonics, starts)
    some = U[:_SURFACE_ROWS]
    beside = [beside_phase(some, phase[:_SURFACE_ROWS]), *cylinder_starts(some, planes)]
    surfaces: tuple[tuple[TunedTo, tuple[Domain, ...], list[NDArray]], ...] = (
        ("ring", _CYLINDERS, beside),
        ("plane", _PLANES, plane_starts(some)),
        ("torus", _TORI, torus_starts(some, planes)),
    )
    for name, domains, starts in surfaces:
        for domain in domains if starts else ():
            few = best_fit(some, domain, starts)
            yield name, domain.size, climb(U, domain, few.shares(U), _AGAIN)


def _curve(U: NDArray, harmonics: int, starts: list[NDArray]) -> DomainFit:
    return best_fit(U, closed_curve(harmonics), starts, even=False)


def _clustered(U: NDArray, count: int, rng: np.random.Generator) -> DomainFit:
    """The best of a few fits from places that are far from each other."""
    domain = clusters(count)
    fits = []
    for _ in range(_SEEDINGS):
        centres = U[rng.integers(len(U), size=1)]
        for _ in range(count - 1):
            away = ((U[:, None] - centres) ** 2).sum(axis=-1).min(axis=1)
            centres = np.concatenate([centres, U[[rng.choice(len(U), p=away / away.sum())]]])
        nearest = ((U[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
        share = 0.9 * np.eye(count)[nearest] + 0.1 / count
        fits.append(climb(U, domain, share, 30, even=False))
    return climb(U, domain, max(fits, key=lambda fit: fit.likelihood).share, even=False)
