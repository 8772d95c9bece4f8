"""The homogeneous setting: each vector is one point of a ring (an angle), seen through many noisy, tuned channels.

The latent signal is a spike on a circle.  Its projection on the lowest harmonics is all that there is to recover, and the
fundamental one is enough: its phase is the position, its amplitude the strength.  So the output has rank two, whatever the
number of grid points, and what has to be found is one plane of the observations in which the data are a *ring*.

1. **Stabilise** (:func:`stabilise`): square roots make Poisson noise alike everywhere, rows of unit length know no common gain.
2. **Search**: in whitened principal coordinates z, a uniform ring of radius ρ with Gaussian noise of variance σ² = 1 - ρ²/2 has the
   log density, relative to the Gaussian of the same covariance,

       log p(u)/g(u) = -(|u|² + ρ²)/2σ² + log I₀(ρ|u|/σ²) - log σ² + |u|²/2,        u = Bᵀz,

   so every plane B has a likelihood.  Nothing else has to be modelled: whatever is Gaussian beside the ring costs nothing.
3. **Follow the curve** (:func:`follow`): tuned populations trace a closed curve with higher harmonics.  Expectation-maximisation
   for z = a + Σ_h A_h (cos hφ, sin hφ) + noise of any covariance, φ uniform, in few harmonics.
4. **Read out** (:func:`read_out`): φ | x ~ von Mises with natural parameter Bᵀ(x - mean).  For Poisson neurons with von Mises
   tuning that *is* the posterior, linear in the counts, and a gain only scales the amplitude.
5. **Assemble** (:func:`assemble`): the group turns the planes of all harmonics, each at its own speed, and leaves the rest of x
   as it is, so that :meth:`~symlift.LatentDomain.shift` gives full observations; the filter keeps the fundamental.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import i0e, i1e

from symlift.errors import InputError
from symlift.grid import Grid
from symlift.group import TranslationGroup
from symlift.lifting import LiftedModel
from symlift.metrics import circular_correlation
from symlift.solvers import Progress, Solution, no_progress

__all__ = ["assemble", "follow", "read_out", "ring_likelihood", "search", "solve", "stabilise"]

# of the curve: four evenly spaced stimuli hold two; three did better on sharply tuned synthetic populations, worse on few stimuli
HARMONICS = 2
# of the action: a bump that is moved takes its sharp parts along
MOVED_HARMONICS = 4
_ANGLES = 2 * np.pi * np.arange(60) / 60
_MOST_DIMENSIONS = 12
_STARTS, _KEPT, _RANDOM_STARTS, _SEARCH_ROWS, _SAME_PLANE = 256, 8, 20, 1_500, 1.8
_RADII = np.array([0.1, 0.3, 0.6, 0.9, 1.2, 1.4, 1.6, 1.7, 1.8, 1.88, 1.94, 1.97])  # ρ²
_ROWS = 20_000
# phases from two halves of the columns agree on rows that were not fitted, and are round: 1 is a circle, 2 a Gaussian blob
_AGREEMENT, _ROUNDNESS = 0.25, 1.75


def solve(X: NDArray, grid: Grid, rng: np.random.Generator, progress: Progress = no_progress) -> Solution:
    """A lifting map of rank two onto a ring: phase is position, amplitude is strength."""
    if grid.ndim != 1 or not grid.axes_periodic[0] or grid.size < 3:
        raise InputError(
            f"the homogeneous solver finds a ring, but the grid is {grid}: use grid=(N,), periodic=True, with N of at least 3"
        )
    n, d = X.shape
    if d < 4:
        raise InputError(f"X has {d} columns that vary: a ring needs at least 4 to stand out from noise")
    chosen = np.sort(rng.choice(n, _ROWS, replace=False)) if n > _ROWS else np.arange(n)
    rows = np.asarray(X[chosen], dtype=np.float64)
    progress("searching", 0.0)
    Z = stabilise(rows)
    U = _whitened(Z, _informative_rank(Z, rng))
    planes, gains = search(U, rng)
    progress("following", 0.4)
    plane = U @ planes[0]
    harmonics, likelihood = follow(U, np.arctan2(plane[:, 1], plane[:, 0]))
    progress("reading out", 0.7)
    B, ridge = read_out(rows, harmonics[:, 0], rng)
    model = assemble(rows, B, harmonics, grid)
    agreement, roundness = _evidence(Z, harmonics[:, 0], rng)
    search_stage = {"stage": "search", "dimensions": U.shape[1], "likelihood": round(gains[0], 4)}
    if len(gains) > 1:
        search_stage["runner_up"] = round(gains[1], 4)
    trace = {
        "solver": "homogeneous",
        "stages": [
            search_stage,
            {"stage": "follow", "likelihood": round(likelihood, 4), "resultants": _resultants(harmonics)},
            {"stage": "read out", "ridge": ridge},
        ],
        "evidence": {
            "locality": round(agreement, 4),
            "roundness": round(min(roundness, 1e6), 4),
            "found": bool(agreement > _AGREEMENT and roundness < _ROUNDNESS),
        },
    }
    return Solution(model, trace)


def stabilise(X: NDArray) -> NDArray[np.float64]:
    """Vectors whose noise is alike everywhere: √(x + 3/8) of counts, rows of one length where nothing is negative.

    Counts have Poisson noise, which the square root makes even; a gain common to all channels scales a row, and leaves its
    direction.  Vectors with negative entries (z-scores) only have their columns standardised.

    >>> stabilise(np.array([[3.0, 0.0, 1.0], [30.0, 0.0, 10.0]])).round(1)
    array([[1.4, 0.5, 0.9],
           [1.5, 0.2, 0.9]])
    """
    rows = np.asarray(X, dtype=np.float64)
    if (rows < 0).any():
        return (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-12)
    roots = np.sqrt(rows + 0.375) if np.array_equal(rows, np.round(rows)) else rows
    lengths = np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-12)
    return roots * (np.sqrt(rows.shape[1]) / lengths)


# -- the plane ---------------------------------------------------------------------------------------------------------


def _informative_rank(Z: NDArray, rng: np.random.Generator, draws: int = 4) -> int:
    """Principal components that are stronger than those of independently permuted columns (parallel analysis), at least 4."""
    centred = Z - Z.mean(axis=0)
    found = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    chance = np.zeros_like(found)
    for _ in range(draws):
        shuffled = rng.permuted(centred, axis=0)
        chance = np.maximum(chance, np.linalg.eigvalsh(shuffled.T @ shuffled)[::-1])
    below = np.flatnonzero(found <= chance)
    rank = int(below[0]) if len(below) else len(found)
    return min(max(rank, 4), _MOST_DIMENSIONS, Z.shape[1] - 1)


def _whitened(Z: NDArray, rank: int) -> NDArray[np.float64]:
    """The first ``rank`` principal coordinates of Z, each of variance one."""
    centred = Z - Z.mean(axis=0)
    spectrum, directions = np.linalg.eigh(centred.T @ centred / len(Z))
    return centred @ (directions[:, ::-1][:, :rank] / np.sqrt(spectrum[::-1][:rank]))


def ring_likelihood(power: NDArray, radius2: float) -> NDArray[np.float64]:
    """log p(u)/g(u) at |u|² = ``power`` for a noisy ring with ρ² = ``radius2`` beside the Gaussian of equal covariance.

    >>> points = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> bool(ring_likelihood((points**2).sum(axis=1), 1.0).mean() < 0)
    True
    """
    noise = 1 - radius2 / 2
    argument = np.sqrt(radius2 * power) / noise
    return -(power + radius2) / (2 * noise) + np.log(i0e(argument)) + argument - np.log(noise) + power / 2


def search(U: NDArray, rng: np.random.Generator) -> tuple[list[NDArray], list[float]]:
    """Distinct planes (k, 2) of whitened rows that look most like a ring, best first, and their mean log-likelihoods.

    Starts: minima of the fourth moments, pairs of the first principal coordinates, and random planes, since heavy tails beside
    the ring can hide it from fourth moments.  The ring's radius grows during the climb: a thin ring has many small hills.
    """
    n, k = U.shape
    rows = U[rng.choice(n, _SEARCH_ROWS, replace=False)] if n > _SEARCH_ROWS else U
    pairs = [np.eye(k)[:, [i, j]] for i in range(min(k, 4)) for j in range(i)]
    starts = [*_flattest_planes(rows, rng), *pairs, *np.linalg.qr(rng.normal(size=(_RANDOM_STARTS, k, 2)))[0]]
    found = sorted((_ascend(rows, B) for B in starts), key=lambda pair: -pair[1])
    planes: list[NDArray] = []
    for B, _ in found:
        # the overlap of two planes, tr P₁P₂, is 2 where they are the same
        if all(np.sum((B.T @ other) ** 2) < _SAME_PLANE for other in planes):
            planes.append(B)
    return planes, [_best_radius(U, B)[1] for B in planes]


def _flattest_planes(U: NDArray, rng: np.random.Generator, sweeps: int = 150) -> list[NDArray]:
    """Local minima of E|Bᵀz|⁴ over planes, from many random ones at once, on the fourth moments alone.

    With P = BBᵀ it is the quadratic form of P in T = E[zzᵀ ⊗ zzᵀ]; B ← polar((c - T·P) B) goes down for c large enough.
    """
    n, k = U.shape
    squares = (U[:, :, None] * U[:, None, :]).reshape(n, -1)
    moments = squares.T @ squares / n
    planes = np.linalg.qr(rng.normal(size=(_STARTS, k, 2)))[0]
    for _ in range(sweeps):
        pulled = ((planes @ planes.swapaxes(1, 2)).reshape(len(planes), -1) @ moments).reshape(-1, k, k)
        shift = 0.6 * np.linalg.norm(pulled, axis=(1, 2))[:, None, None]
        left, _, right = np.linalg.svd(shift * planes - pulled @ planes, full_matrices=False)
        planes = left @ right
    flat = (planes @ planes.swapaxes(1, 2)).reshape(len(planes), -1)
    order = np.argsort(np.einsum("si,ij,sj->s", flat, moments, flat))
    kept: list[int] = []
    for s in order:
        if all(flat[s] @ flat[other] < _SAME_PLANE for other in kept):
            kept.append(int(s))
        if len(kept) == _KEPT:
            break
    return [planes[s] for s in kept]


def _best_radius(U: NDArray, B: NDArray) -> tuple[float, float]:
    power = ((U @ B) ** 2).sum(axis=1)
    means = [float(ring_likelihood(power, radius2).mean()) for radius2 in _RADII]
    best = int(np.argmax(means))
    return float(_RADII[best]), means[best]


def _ascend(U: NDArray, B: NDArray, steps: int = 20) -> tuple[NDArray, float]:
    """Gradient ascent of the ring's likelihood over planes: broad rings first, then the radius that fits best, twice."""
    for radius2 in (0.6, 1.2, None, None):
        B = _climb(U, B, radius2 or _best_radius(U, B)[0], steps)
    return B, _best_radius(U, B)[1]


def _climb(U: NDArray, B: NDArray, radius2: float, steps: int) -> NDArray[np.float64]:
    noise, radius, step = 1 - radius2 / 2, np.sqrt(radius2), 1.0
    u = U @ B
    power = np.maximum((u**2).sum(axis=1), 1e-12)
    value = float(ring_likelihood(power, radius2).mean())
    for _ in range(steps):
        argument = radius * np.sqrt(power) / noise
        weight = 1 - 1 / noise + radius / noise * i1e(argument) / i0e(argument) / np.sqrt(power)
        G = U.T @ (weight[:, None] * u) / len(U)
        G -= B @ (B.T @ G)
        while True:
            left, _, right = np.linalg.svd(B + step * G, full_matrices=False)
            trial = left @ right
            u = U @ trial
            power = np.maximum((u**2).sum(axis=1), 1e-12)
            gained = float(ring_likelihood(power, radius2).mean()) - value
            if gained > 0:
                break
            step /= 3
            if step < 1e-4:
                return B
        B, value, step = trial, value + gained, step * 1.5
        if gained < 1e-6:
            break
    return B


# -- the curve ---------------------------------------------------------------------------------------------------------


def _basis(angles: NDArray, harmonics: int) -> NDArray[np.float64]:
    """cos hφ, sin hφ for h = 1 …: (2 · harmonics, angles)."""
    return np.concatenate([[np.cos(h * angles), np.sin(h * angles)] for h in range(1, harmonics + 1)])


def follow(
    U: NDArray, phase: NDArray, harmonics: int = HARMONICS, steps: int = 100
) -> tuple[NDArray[np.complex128], float]:
    """Posterior means of e^{ihφ}, h = 1 … 4, for points on a closed curve, and the log-likelihood beside a Gaussian.

    z = a + Σ_h A_h (cos hφ, sin hφ) + noise with one covariance of any shape, φ uniform: expectation-maximisation from ``phase``.
    The covariance takes what moves independently of the angle.  Few harmonics, so that the curve cannot fold to follow that, and
    so that equal steps of φ are nearly equal steps along it.
    """
    n, k = U.shape
    curve = np.concatenate([np.ones((1, len(_ANGLES))), _basis(_ANGLES, harmonics)])
    share = np.exp(4 * (np.cos(phase[:, None] - _ANGLES) - 1))
    share /= share.sum(axis=1, keepdims=True)
    before = -np.inf
    for _ in range(steps):
        weight, sums = share.sum(axis=0), share.T @ U
        F = curve.T @ np.linalg.solve((curve * weight) @ curve.T, curve @ sums)
        S = (U.T @ U - sums.T @ F - F.T @ sums + (F * weight[:, None]).T @ F) / n + 1e-6 * np.eye(k)
        precision = np.linalg.inv(S)
        logs = U @ precision @ F.T - 0.5 * np.einsum("mi,ij,mj->m", F, precision, F)
        top = logs.max(axis=1, keepdims=True)
        share = np.exp(logs - top)
        total = share.sum(axis=1, keepdims=True)
        share /= total
        rest = -0.5 * np.einsum("ni,ij,nj->n", U, precision - np.eye(k), U) - 0.5 * np.linalg.slogdet(S)[1]
        value = float(np.mean(top[:, 0] + np.log(total[:, 0] / len(_ANGLES)) + rest))
        if value - before < 1e-4:
            break
        before = value
    return share @ np.exp(1j * np.outer(_ANGLES, np.arange(1, MOVED_HARMONICS + 1))), value


def _resultants(harmonics: NDArray) -> list[float]:
    """|E e^{ihφ}|: 0 for phases that are spread evenly."""
    return np.abs(harmonics.mean(axis=0)).round(4).tolist()


# -- the readout -------------------------------------------------------------------------------------------------------


def read_out(X: NDArray, target: NDArray, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """B (d, 2) of the von Mises regression φ | x ~ exp(Re(ū e^{iφ}) - log I₀(|u|)), u = Bᵀ(x - mean), and its ridge.

    ``target`` holds E[e^{iφ}] for each row.  The log-likelihood is concave; the ridge is the one that predicts held-out rows best.
    """
    centred = X - X.mean(axis=0)
    widths = centred.std(axis=0)
    rows = centred / widths
    wanted = np.stack([target.real, target.imag], axis=1)
    held = rng.permutation(len(rows)) < len(rows) // 4
    best, B = (-np.inf, 0.0), np.zeros((rows.shape[1], 2))
    for ridge in (1.0, 0.1, 0.01, 0.001):  # from strong to weak, each from the last one's solution
        B = _von_mises(rows[~held], wanted[~held], ridge, B)
        value = -_von_mises_loss(B, rows[held], wanted[held], 0.0)[0]
        if value > best[0]:
            best = value, ridge
    return _von_mises(rows, wanted, best[1], B) / widths[:, None], best[1]


def _von_mises(rows: NDArray, wanted: NDArray, ridge: float, B: NDArray) -> NDArray[np.float64]:
    def loss(flat: NDArray) -> tuple[float, NDArray]:
        value, gradient = _von_mises_loss(flat.reshape(B.shape), rows, wanted, ridge)
        return value, gradient.ravel()

    return minimize(loss, B.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x.reshape(B.shape)


def _von_mises_loss(B: NDArray, rows: NDArray, wanted: NDArray, ridge: float) -> tuple[float, NDArray[np.float64]]:
    """-E[Re(m̄ u) - log I₀(|u|)] + ridge ‖B‖²/2, and its gradient."""
    u = rows @ B
    length = np.sqrt((u**2).sum(axis=1) + 1e-12)
    normaliser = np.log(i0e(length)) + length
    value = float(np.mean(normaliser - (u * wanted).sum(axis=1)) + ridge * np.sum(B**2) / 2)
    slope = (i1e(length) / i0e(length) / length)[:, None] * u - wanted
    return value, rows.T @ slope / len(rows) + ridge * B


def assemble(X: NDArray, B: NDArray, harmonics: NDArray, grid: Grid) -> LiftedModel:
    """The lifted model: plane h turns by 2πh/N a step, the filter is 1 on the fundamental and 0 elsewhere, and E is invertible.

    Coordinates of plane 1 are u₁ = Bᵀ(x - mean).  Regressing x on them leaves a rest that is uncorrelated with them, on which the
    next harmonic is read out, and so on; rows that vanish on all regressors complete E, and do not turn.
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    rest = X - mean
    covariance = rest.T @ rest / n
    project = np.eye(d)  # (x - mean) → what is left of it
    readouts, regressors = [], []
    for h in range(min(harmonics.shape[1], d // 2 - 1)):
        left = project @ covariance @ project.T
        if h == 0:
            R = B.T
        else:
            wanted = np.stack([harmonics[:, h].real, harmonics[:, h].imag], axis=1)
            cross = project @ (rest.T @ (wanted - wanted.mean(axis=0)) / n)
            R = np.linalg.solve(left + 1e-2 * np.trace(left) / d * np.eye(d), cross).T
        R = R @ project
        spread = R @ covariance @ R.T
        if np.linalg.cond(spread) > 1e8:
            break
        A = project @ covariance @ R.T @ np.linalg.inv(spread)
        # one length for each plane, so that E is well conditioned; the plane's shape is as it was read out
        size = np.sqrt(np.trace(spread) / 2)
        readouts.append(R / size)
        regressors.append(A * size)
        project = project - A @ R
    fixed = null_space(np.concatenate(regressors, axis=1).T).T / np.sqrt(np.trace(covariance) / d)
    E = np.concatenate([*readouts, fixed])
    theta = np.zeros((1, d // 2))
    theta[0, : len(readouts)] = 2 * np.pi * np.arange(1, len(readouts) + 1) / grid.size
    r = np.zeros(d // 2 + d % 2)
    r[0] = 1.0
    group = TranslationGroup(torch.eye(d, dtype=torch.float64), torch.from_numpy(theta))
    return LiftedModel(grid, torch.from_numpy(mean), 1.0, torch.from_numpy(E), group, torch.from_numpy(r), "linear")


# -- the evidence ------------------------------------------------------------------------------------------------------


def _evidence(Z: NDArray, target: NDArray, rng: np.random.Generator) -> tuple[float, float]:
    """Do two halves of the columns tell the same position on rows that were not fitted, and is it a circle?

    Readouts u_a, u_b of the halves have independent noise, so that E[u_a ū_b] = E|z|² and E[u_a² ū_b²] = E|z|⁴ are those of the
    latent alone: roundness E|z|⁴/(E|z|²)² is 1 on a circle and 2 in a Gaussian plane.
    """
    columns, held = rng.permutation(Z.shape[1]), rng.permutation(len(Z)) < len(Z) // 2
    wanted = np.stack([target.real, target.imag], axis=1)
    readings = []
    for half in (columns[::2], columns[1::2]):
        part = Z[:, half] - Z[~held][:, half].mean(axis=0)
        gram = part[~held].T @ part[~held]
        ridge = 0.05 * np.trace(gram) / len(half) * np.eye(len(half))
        u = part[held] @ np.linalg.solve(gram + ridge, part[~held].T @ wanted[~held])
        readings.append(u[:, 0] + 1j * u[:, 1])
    a, b = readings
    agreement = circular_correlation(np.angle(a), np.angle(b))
    common = float(np.mean(a * b.conj()).real)
    fourth = float(np.mean(a**2 * b.conj() ** 2).real)
    return agreement, fourth / common**2 if common > 0 and fourth > 0 else np.inf
