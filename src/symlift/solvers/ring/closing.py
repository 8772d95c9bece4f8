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
from functools import cached_property

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
_STEPS, _AGAIN, _VISITS = 30, 8, 20
# a ring visits every part at least a third as often as what surrounds it: with a tenth, seven of
# eight arcs of 330 degrees were rings in one halving of four, as noise bridges their openings
_LEAST = 1 / 3
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
        """How often all states are visited (m, parts) by the rows outside of each part, of which
        ``keep`` (m, parts) has the complement: by expectation-maximisation with a gentle density,
        which goes on into the part.
        """
        length = self.length[:, None]
        norm = self.kernel @ (keep * length)
        weights = np.where(keep, start + 1e-9, 0.0)
        everywhere = weights
        for _ in range(steps):
            weights /= weights.sum(axis=0)
            share = weights * (self.fitted.T @ (1 / (self.fitted @ weights + 1e-300)))
            everywhere = self.kernel @ share / norm * length
            weights = np.where(keep, everywhere, 0.0)
        return everywhere / everywhere.sum(axis=0)

    def ahead(self, width: float) -> NDArray[np.float64]:
        """How far the ring is ahead of an arc with an opening of this width at each centre on each
        held-out row (centre, row): it visits the part as often as the rows do that it was fitted
        to, and at least a third as often as what surrounds it.
        """
        away = np.abs((self.place[:, None] - _CENTRES + 180) % 360 - 180)
        keep = away > width / 2
        density = self.density(keep, self.base[:, None], _AGAIN)
        arc, part = np.where(keep, density, 0.0), np.where(keep, 0.0, density)
        even = part.sum(axis=0)
        arc, part = (p / np.maximum(p.sum(axis=0), 1e-300) for p in (arc, part))
        ratio = _ratio(self.fitted, part, arc)
        visits = even
        for _ in range(_VISITS):
            visits = np.mean(visits * ratio / (1 - visits + visits * ratio), axis=0)
        visits = np.maximum(visits, _LEAST * even)
        ratio = _ratio(self.held, part, arc)
        lead = np.clip(np.log1p(visits * (ratio - 1)), -_MOST, _MOST)
        return np.where(keep.any(axis=0), lead, 0.0).T

    @cached_property
    def base(self) -> NDArray[np.float64]:
        """How often states are visited where no part is left out."""
        every = np.ones((len(self.place), 1), bool)
        return self.density(every, self.length[:, None], _STEPS)[:, 0]


def _ratio(rows: NDArray, part: NDArray, arc: NDArray) -> NDArray[np.float64]:
    return np.asarray((rows @ part + 1e-300) / (rows @ arc + 1e-300), dtype=np.float64)


def closing_link(U: NDArray, fits: list[tuple[DomainFit, NDArray, NDArray]]) -> ClosingLink:
    """The closing link of two closed curves, each with the rows it was fitted to and the other half
    of the rows, which it is judged on.
    """
    both = [_along(U, *fit, fits[0][0]) for fit in fits]
    arcs = {_WIDTHS[0]: [along.ahead(_WIDTHS[0]) for along in both]}
    narrow = _leads(arcs[_WIDTHS[0]], _WIDTHS[0])
    lead, width, others = narrow[0], _WIDTHS[0], narrow[1]
    for wider in _WIDTHS[1:]:
        if others >= ENOUGH and width > _WIDTHS[0]:
            break
        width, arcs[wider] = wider, [along.ahead(wider) for along in both]
        lead, others = _leads(arcs[wider], wider)
    if narrow[1] >= ENOUGH:  # an opening of this width must not be likelier by a standard error
        lead = min(lead, narrow[0] + ENOUGH + 1)
    if lead < ENOUGH:  # how wide it is open
        arcs |= {
            wide: [along.ahead(wide) for along in both] for wide in _WIDTHS if wide not in arcs
        }
    total = {wide: float(sum(p.sum(axis=1) for p in parts).min()) for wide, parts in arcs.items()}
    best = min(total, key=lambda wide: total[wide])
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
    return float(differences.mean() / max(scatter, 1e-12))


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
