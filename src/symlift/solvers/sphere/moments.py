"""Places on a sphere by second and third moments together, under a smooth spectrum.

On a cap, the radius shows in its curvature alone, and polynomials of any weights hide it: caps that
are 10 % too large explain correlations as well.  Two things say more.  Pulses are not Gaussian:
E[x_i² x_j] depends on the angle, too, is sharper than the correlation, and has other errors.  And
spectra are smooth: log a_l - log(2l + 1) hardly bends from one degree to the next.

Of 64 columns on a cap of 1.2 rad, a fifth of them dead, with noise as strong as the signal (8,000
rows, ten seeds): within half of the distance to the nearest 0.87 of the living by correlations,
1.00 by both; by correlations under a smooth spectrum 0.89, by the likelihood of Gaussian rows 0.67.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from symlift.search.problem import Halves
from symlift.search.settings import PlaceSettings
from symlift.solvers.sphere.angles import legendre_values

__all__ = ["MOST", "FieldMoments", "by_moments", "clipped", "moments_of"]

#: most columns: a descent over their pairs takes two seconds
MOST = 320
# usual change of slope of the log-spectrum from one degree to the next: 0.04 for heat that has
# spread by 0.2 rad, 0.2 for a band of ripples
_BENT = 0.3
# widths of heat whose spectrum a descent begins with, and its length
_WIDTHS, _ITERATIONS = np.geomspace(0.05, 1.2, 24), 400
# columns on whose pairs errors are estimated
_SOME = 64


@dataclass(frozen=True, eq=False)
class FieldMoments:
    """E[x_i x_j] and (E[x_i² x_j] + E[x_i x_j²])/2 of columns of variance 1, (d, d) each, and one
    over the squared standard error of an entry of each.
    """

    second: NDArray[np.float64]
    third: NDArray[np.float64]
    weights: tuple[float, float]


def clipped(X: NDArray, halves: Halves, settings: PlaceSettings) -> NDArray[np.float64]:
    """The columns of ``halves`` as they are, in standard deviations up to a limit; NaN are gaps.

    Ranks would take most of their third moments away, and so do robust deviations, which the rare
    pulses of clean rows exceed (caps with a third of the signal as noise: 0.73 in place, 1.00).
    """
    x = np.asarray(X, dtype=np.float64)[halves.rows.number][:, halves.columns]
    centre, spread = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    return np.clip((x - centre) / np.maximum(spread, 1e-300), -settings.clip, settings.clip)


def moments_of(x: NDArray, worth: float) -> FieldMoments:
    """The moments of rows x (n, d), which are ``worth`` so many independent ones."""
    present = np.isfinite(x).astype(np.float64)
    count = np.maximum(present.sum(axis=0), 1)
    x = np.where(present > 0, x, 0.0)
    x = (x - x.sum(axis=0) / count) * present
    x /= np.maximum(np.sqrt(np.square(x).sum(axis=0) / count), 1e-300)
    square = (x * x - 1) * present
    pairs = np.maximum(present.T @ present, 1)
    second, third = x.T @ x / pairs, square.T @ x / pairs
    third = (third + third.T) / 2
    # pulses may be negative everywhere: the spectrum of the third moment is that of positive ones
    above = np.triu_indices(len(third), 1)
    if np.vdot(third[above], second[above]) < 0:
        third = -third
    some = np.linspace(0, len(third) - 1, min(len(third), _SOME)).astype(int)
    errors = _variances(x[:, some], square[:, some], pairs[np.ix_(some, some)])
    return FieldMoments(second, third, (worth / errors[0], worth / errors[1]))


def _variances(x: NDArray, square: NDArray, pairs: NDArray) -> tuple[float, float]:
    """Variance of x_i x_j over rows, and that of (x_i² x_j + x_i x_j²)/2, in the median pair."""
    above = np.triu_indices(len(pairs), 1)
    x2, mixed = x * x, square * x
    second = (x2.T @ x2 - np.square(x.T @ x) / pairs) / pairs
    crossed, product = (square * square).T @ x2, square.T @ x
    product = (product + product.T) / 2
    third = ((crossed + crossed.T) / 4 + mixed.T @ mixed / 2 - np.square(product) / pairs) / pairs
    one, other = (max(float(np.median(v[above])), 1e-12) for v in (second, third))
    return one, other


def by_moments(u: NDArray, moments: FieldMoments, degree: int) -> NDArray[np.float64]:
    """The nearest unit vectors to u (d, 3) by whose angles both moments are explained best, with
    spectra up to ``degree`` that hardly bend.
    """
    d, above = len(u), np.triu_indices(len(u), 1)
    own = [(moments.second[above], moments.weights[0]), (moments.third[above], moments.weights[1])]
    multiple = 2 * np.arange(degree + 1) + 1
    bend = np.diff(np.eye(degree + 1), 2, axis=0) / _BENT
    at = legendre_values(np.clip(u @ u.T, -1, 1)[above], degree)[0]
    start = [u.ravel(), *(_spectrum(at, values) for values, _ in own)]

    def function(flat: NDArray) -> tuple[float, NDArray]:
        v, spectra = flat[: 3 * d].reshape(d, 3), flat[3 * d :].reshape(2, -1)
        length = np.linalg.norm(v, axis=1, keepdims=True)
        unit = v / length
        P, slopes = legendre_values(np.clip(unit @ unit.T, -1, 1)[above], degree)
        value, slope, gradients = 0.0, np.zeros(len(P[0])), []
        for (values, weight), spectrum in zip(own, spectra, strict=True):
            a, bent = multiple * np.exp(np.minimum(spectrum, 20.0)), bend @ spectrum
            rest = a @ P - values
            value += weight / 2 * float(rest @ rest) + float(bent @ bent) / 2
            slope += weight * rest * (a @ slopes)
            gradients.append(weight * (P @ rest) * a + bend.T @ bent)
        pairs = np.zeros((d, d))
        pairs[above] = slope
        moved = (pairs + pairs.T) @ unit
        moved -= np.sum(moved * unit, axis=1, keepdims=True) * unit
        return value, np.concatenate([(moved / length).ravel(), *gradients])

    end = minimize(
        function,
        np.concatenate(start),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS, "ftol": 1e-12, "maxcor": 30},
    )
    v = end.x[: 3 * d].reshape(d, 3)
    return np.asarray(v / np.linalg.norm(v, axis=1, keepdims=True))


def _spectrum(P: NDArray, values: NDArray) -> NDArray[np.float64]:
    """log(a_l/(2l + 1)) of heat that explains values at angles best, of several widths."""
    ell = np.arange(len(P))
    logs = -0.5 * np.multiply.outer(_WIDTHS**2, ell * (ell + 1.0))
    shapes = (np.exp(logs) * (2 * ell + 1)) @ P
    size = np.maximum(shapes @ values / np.square(shapes).sum(axis=1), 1e-9)
    best = int(np.argmin(np.square(size[:, None] * shapes - values).sum(axis=1)))
    return np.asarray(np.log(size[best]) + logs[best])
