"""The closing link: does a closed curve close, or is a part of it empty, as on an arc?

Rows alone do not say whether a curve through them is closed: an open curve whose ends meet gives
the same rows. What they do say is whether a part of the closed curve is empty. So every part of a
certain width competes with the whole ring: the curve and its noise stay as they were fitted, how
often its places are visited is fitted again, once everywhere and once outside of the part, and both
are judged on held-out rows. A ring has to be ahead of every such arc by two standard errors.

How often places are visited changes gently along the curve, in units of its length under the noise
(20 degrees of a turn). With as much freedom as there are places, a ring could hide its gap by not
visiting it. The emptiest part is chosen on one half of the held-out rows and judged on the other,
both ways, because the emptiest of many parts is empty by chance on the rows it was chosen on.

Parts have a twelfth of a turn, or more where rows are so noisy, or stimuli so few, that parts other
than the emptiest are not known to be visited either: a link is one of the links if it is as local
as they are. Where narrower parts are known to be visited, an opening of that width refutes a ring
if it is likelier than none by one standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.ring.domains import DomainFit

__all__ = ["ENOUGH", "ClosingLink", "closing_link"]

#: standard errors by which one domain has to be ahead of another
ENOUGH = 2.0
# degrees of a turn: how gently the density changes, and widths of openings; one of the first width
# must not be likelier than none
_GENTLE, _WIDTHS = 20.0, (20.0, 30.0, 45.0, 60.0)
_CENTRES = np.arange(0.0, 360.0, 15.0)
_STEPS, _AGAIN = 30, 8
# no single row decides: log-likelihood ratios beyond this are cut off
_MOST = 4.0


@dataclass(frozen=True)
class ClosingLink:
    """By how many standard errors a ring is ahead of the best arc with an opening of ``width``
    degrees, and the ``opening`` of the best arc of any width.
    """

    lead: float
    width: float
    opening: float

    @property
    def closes(self) -> bool:
        """Whether the closing link is one of the links of the curve."""
        return self.lead >= ENOUGH


@dataclass(frozen=True, eq=False)
class _Along:
    """A fitted closed curve with places (m,) in degrees along it, the length of each state, and
    likelihoods of the rows it was fitted to, and of held-out ones.
    """

    place: NDArray[np.float64]
    length: NDArray[np.float64]
    kernel: NDArray[np.float64]
    fitted: NDArray[np.float64]
    held: NDArray[np.float64]

    def density(self, keep: NDArray, start: NDArray, steps: int) -> NDArray[np.float64]:
        """How often states are visited outside of a part, by expectation-maximisation with a gentle
        density.
        """
        weights = np.where(keep, start + 1e-9, 0.0)
        inside = self.kernel * keep
        norm = inside @ self.length
        for _ in range(steps):
            weights /= weights.sum()
            share = self.fitted * weights
            weights = (share / (share.sum(axis=1, keepdims=True) + 1e-300)).mean(axis=0)
            weights = np.where(keep, inside @ weights / norm * self.length, 0.0)
        return weights / weights.sum()

    def logs(self, weights: NDArray) -> NDArray[np.float64]:
        return np.log(self.held @ weights + 1e-300)


def closing_link(U: NDArray, fits: list[tuple[DomainFit, NDArray, NDArray]]) -> ClosingLink:
    """The closing link of two closed curves, each with the rows it was fitted to and the other half
    of the rows, which it is judged on.
    """
    both = [_along(U, *fit, fits[0][0]) for fit in fits]
    every = np.ones(len(both[0].place), bool)
    bases = [a.density(every, a.length, _STEPS) for a in both]
    arcs = {
        width: [
            np.array([_ahead(a, base, centre, width) for centre in _CENTRES])
            for a, base in zip(both, bases, strict=True)
        ]
        for width in _WIDTHS
    }
    narrow, *leads = ((width, *_leads(arcs[width], width)) for width in _WIDTHS)
    visited = [(width, lead) for width, lead, others in leads if others >= ENOUGH]
    width, lead = visited[0] if visited else leads[-1][:2]
    if narrow[2] >= ENOUGH:  # an opening of this width must not be likelier by a standard error
        lead = min(lead, narrow[1] + ENOUGH + 1)
    total = {width: float(sum(part.sum(axis=1) for part in arcs[width]).min()) for width in _WIDTHS}
    best = min(total, key=lambda width: total[width])
    return ClosingLink(lead, width, best if total[best] < 0 else 0.0)


def _leads(ahead: list[NDArray], width: float) -> tuple[float, float]:
    """How far the ring is ahead of arcs with one opening (two arrays (centre, row)): the best arc,
    and the best of those whose opening is elsewhere.
    """
    best, other = [], []
    for chosen, judged in (ahead, ahead[::-1]):
        totals = chosen.sum(axis=1)
        at = int(totals.argmin())
        away = np.abs((_CENTRES - _CENTRES[at] + 180) % 360 - 180) > width + _GENTLE
        best.append(judged[at])
        other.append(judged[int(np.where(away, totals, np.inf).argmin())])
    return in_errors(np.concatenate(best)), in_errors(np.concatenate(other))


def in_errors(differences: NDArray) -> float:
    """The mean of differences in units of its standard error."""
    scatter = float(differences.std()) / np.sqrt(max(len(differences), 1))
    return float(differences.mean()) / max(scatter, 1e-12)


def _ahead(along: _Along, base: NDArray, centre: float, width: float) -> NDArray[np.float64]:
    """How far the ring is ahead of an arc on each held-out row."""
    keep = np.abs((along.place - centre + 180) % 360 - 180) > width / 2
    if keep.all() or not keep.any():
        return np.zeros(len(along.held))
    arc = along.density(keep, base, _AGAIN)
    return np.clip(along.logs(base) - along.logs(arc), -_MOST, _MOST)


def _along(U: NDArray, fit: DomainFit, fitted: NDArray, held: NDArray, first: DomainFit) -> _Along:
    """Lengths and places under the noise of the fit; places are those of the nearest states of the
    ``first`` fit, so that parts are the same in both.
    """
    points = _under_noise(fit, fit)
    step = np.linalg.norm(np.roll(points, -1, axis=0) - points, axis=1)
    length = (step + np.roll(step, 1)) / (2 * step.sum())
    own = 360 * (np.cumsum(step) - step) / step.sum()
    kernel = np.exp(-(((own[:, None] - own + 180) % 360 - 180) ** 2) / (2 * _GENTLE**2))
    others = _under_noise(first, fit)
    near = ((points[:, None] - others) ** 2).sum(axis=-1).argmin(axis=1)
    step = np.linalg.norm(np.roll(others, -1, axis=0) - others, axis=1)
    place = (360 * (np.cumsum(step) - step) / step.sum())[near]
    return _Along(place, length, kernel, fit.by_state(U[fitted]), fit.by_state(U[held]))


def _under_noise(curve: DomainFit, noise: DomainFit) -> NDArray[np.float64]:
    """States of a curve in coordinates in which the noise of a fit is one in all directions."""
    return curve.centres @ np.linalg.cholesky(np.linalg.inv(noise.covariance))
