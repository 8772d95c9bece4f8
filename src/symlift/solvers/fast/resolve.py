"""Resolve: sharpen a nearly stationary lifting map by the paper's three terms, with one marginal
shared by all points.

    J(W) = h̄(y) - log|det W|/N + isometry · distortion(W)/2 + stationary · Σ_k ‖M_k - Π
    M_k‖²/‖M_k‖²

The first two are the total correlation per point (resolution), which does not depend on the mixing;
the distortion is infomax at fixed ‖W‖; the last is stationarity of second to fourth moments.
Stationarity alone cannot distinguish the truth from an all-pass copy of it; the entropy of the
shared marginal can, since a copy fills silent parts of the signal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from symlift.core.lags import LagClasses
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.statistics.moments import CLIP, moment_sizes

__all__ = [
    "SharedEntropy",
    "least_distortion_filter",
    "relative_loss",
    "resolve",
    "unit_determinant",
]


def unit_determinant(W: NDArray) -> NDArray[np.float64]:
    """W scaled to |det W| = 1, so that maps found in different ways have one scale."""
    return W / np.exp(np.linalg.slogdet(W)[1] / len(W))


class SharedEntropy:
    """Plug-in entropy of all values of Z together, -Σ_b q_b log (k * q)_b, and its exact gradient
    in Z.

    q is the linear binning of the values, k a Gaussian of the given bandwidth; Z is expected to
    have unit pooled variance.
    """

    def __init__(self, bandwidth: float, half_width: float = 6.0, bins: int = 1200) -> None:
        self.low, self.step, self.bins = -half_width, 2 * half_width / bins, bins
        reach = int(np.ceil(4 * bandwidth / self.step))
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * self.step / bandwidth) ** 2)
        self.kernel = kernel / kernel.sum()

    def __call__(self, Z: NDArray) -> tuple[float, NDArray]:
        u = Z * (1 / self.step)
        u -= self.low / self.step
        np.clip(u, 1, self.bins - 2 - 1e-3, out=u)
        i = u.astype(np.intp)  # other integers would be converted in each of the next steps
        u -= i
        flat = i.ravel()
        upper = np.bincount(flat, u.ravel(), self.bins)
        q = (np.bincount(flat, minlength=self.bins) - upper) / Z.size
        q[1:] += upper[:-1] / Z.size
        p = np.convolve(q, self.kernel, "same") + 1e-12
        log_p = np.log(p)
        value = -float(q @ log_p) + np.log(self.step)
        dq = -log_p - np.convolve(q / p, self.kernel, "same")
        slope = np.diff(dq, append=0.0) / (self.step * Z.size)
        return value, slope.astype(Z.dtype)[i]


class _Nonstationarity:
    """Σ_k ‖M_k - Π M_k‖²/‖M_k‖² over E[z zᵀ], E[z² zᵀ], E[z² z²ᵀ], and its gradient in Z.

    The denominators stay those of the first Z, so that value and gradient are consistent.
    """

    def __init__(self, Z: NDArray, lags: LagClasses) -> None:
        self.lags = lags
        M2, _, M4 = self._moments(*self._powers(Z))
        self.sizes = moment_sizes(float(np.sum(M2**2)), float(np.sum(M4**2)), float(np.sum(M2**4)))

    @staticmethod
    def _powers(Z: NDArray) -> tuple[NDArray, NDArray]:
        z = np.clip(Z, -CLIP, CLIP)
        q = z**2
        return z, q - q.mean(axis=0)

    @staticmethod
    def _moments(z: NDArray, q: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        n = len(z)
        return z.T @ z / n, q.T @ z / n, q.T @ q / n

    def __call__(self, Z: NDArray) -> tuple[float, NDArray]:
        z, q = self._powers(Z)
        residuals = [M - self.lags.project(M) for M in self._moments(z, q)]
        value = sum(
            float(np.sum(R**2)) / size for R, size in zip(residuals, self.sizes, strict=True)
        )
        R2, R3, R4 = (
            (R / size).astype(Z.dtype) for R, size in zip(residuals, self.sizes, strict=True)
        )
        toward_squares = z @ (2 * R3.T) + q @ (4 * R4)
        gradient = (z @ (4 * R2) + q @ (2 * R3) + 2 * z * toward_squares) / len(Z)
        return value, np.where(np.abs(Z) < CLIP, gradient, 0)


def resolve(
    W: NDArray,
    X: NDArray,
    lags: LagClasses,
    isometry: float = 1.0,
    stationary: float = 5.0,
    settings: FastSettings = DEFAULT,
) -> NDArray[np.float64]:
    """Minimise J(W) over all invertible W from a start, by L-BFGS on (1 + Θ) W, with a density that
    goes from coarse to fine.
    """
    m = len(W)
    for bandwidth in settings.bandwidths:
        loss = relative_loss(W, X, lags, bandwidth, isometry, stationary)
        optimum = minimize(
            loss,
            np.zeros(m * m),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": settings.resolve_steps},
        )
        W = (np.eye(m) + optimum.x.reshape(m, m)) @ W
    return W


def relative_loss(
    W: NDArray, X: NDArray, lags: LagClasses, bandwidth: float, isometry: float, stationary: float
) -> Callable[[NDArray], tuple[float, NDArray]]:
    """Θ ↦ J((1 + Θ) W) up to a constant, and its gradient, both flat. Rows of X may be float32:
    they are only averaged over.
    """
    n, m = len(X), len(W)
    entropy = SharedEntropy(bandwidth)
    Y0 = X @ W.T.astype(X.dtype)
    G0 = W @ W.T
    nonstationarity = _Nonstationarity(Y0 / np.sqrt(np.mean(Y0**2)), lags)

    def loss(theta: NDArray) -> tuple[float, NDArray]:
        T = np.eye(m) + theta.reshape(m, m)
        sign, logdet = np.linalg.slogdet(T)
        if sign <= 0:
            return 1e6, np.zeros(m * m)
        Y = Y0 @ T.T.astype(Y0.dtype)
        s = float(np.sqrt(np.mean(Y**2, dtype=np.float64)))
        Z = Y / np.asarray(s, dtype=Y.dtype)
        h, slope = entropy(Z)
        penalty, push = nonstationarity(Z)
        slope = slope + stationary * push
        radial = float(np.sum(slope * Z, dtype=np.float64))  # the dependence on Z, through -log s
        gradient = (slope.T @ Y0).astype(np.float64) / s
        gradient += (1.0 - radial) * (Z.T @ Y0).astype(np.float64) / (n * m * s)
        TG = T @ G0
        size = float(np.sum(TG * T))
        gradient += isometry * TG / size - (1 + isometry) * np.linalg.inv(T).T / m
        value = (
            h
            + stationary * penalty
            + np.log(s)
            + 0.5 * isometry * np.log(size)
            - (1 + isometry) * logdet / m
        )
        return float(value), gradient.ravel()

    return loss


def least_distortion_filter(V: NDArray, lags: LagClasses, taps: int = 3) -> NDArray[np.float64]:
    """W = K V with K a short symmetric stationary filter (lags up to ``taps`` on each axis) of
    least distortion.

    The measurement determines the field up to a convolution; its modulus is chosen so that the
    recovered inverse is nearest to an isometry. A short filter corrects the kernel that all points
    share and leaves the measurement's own spectrum alone.
    """
    n = len(V)
    group, count = _symmetric_lags(lags, taps)
    inside = group >= 0
    G = V @ V.T

    def matrix(c: NDArray) -> NDArray:
        return np.where(inside, np.append(c, 0.0)[group], 0.0)

    def loss(c: NDArray) -> tuple[float, NDArray]:
        K = matrix(c)
        values, vectors = np.linalg.eigh(K)
        if values[0] <= 1e-9 * values[-1]:
            return 1e6, np.zeros_like(c)
        KG = K @ G
        power = float(np.sum(KG * K))
        slope = 2 * KG / power - 2 * (vectors / values) @ vectors.T / n
        gradient = np.bincount(group[inside], slope[inside], minlength=count)
        return np.log(power) - 2 * float(np.mean(np.log(values))), gradient

    start = np.zeros(count)
    start[group[0, 0]] = 1.0
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return matrix(optimum.x) @ V


def _symmetric_lags(lags: LagClasses, taps: int) -> tuple[NDArray[np.int64], int]:
    """Class of each pair, -1 beyond ``taps``, and the number of classes; a displacement and its
    opposite are one class.
    """
    lengths = lags.shape
    steps = np.stack(np.unravel_index(np.arange(lags.count.size), lengths), axis=1)
    centre = np.array(
        [
            0 if wraps else n - 1
            for n, wraps in zip(lags.grid.shape, lags.grid.periodic, strict=True)
        ]
    )
    period = np.array(lengths)
    delta = steps - centre
    wrapped = np.where(lags.grid.periodic, (delta + period // 2) % period - period // 2, delta)
    opposite = np.where(lags.grid.periodic, (-delta) % period, -delta + centre)
    partner = np.ravel_multi_index(tuple(opposite.T), lengths)
    label = np.minimum(np.arange(len(partner)), partner)
    label = np.where(np.abs(wrapped).max(axis=1) <= taps, label, -1)
    used, compact = np.unique(label, return_inverse=True)
    shift = int(used[0] == -1)
    return (compact - shift)[lags.index], len(used) - shift
