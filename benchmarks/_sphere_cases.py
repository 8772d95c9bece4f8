"""Cases of the benchmark of domains that live on a sphere."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift import LatentDomain
from symlift.core.linalg import polar
from symlift.datasets import Observations, gsn, random_linear, random_orthogonal, sphere_noise
from symlift.metrics import generator_similarity, signal_recovery
from symlift.solvers.sphere.angles import same_places

# samples that are compared with the truth
_COMPARED = 5000
# radius of a cap in radians, and factors of its angles
_CAP, _FACTORS = 1.2, np.linspace(0.7, 1.4, 36)


def dense(degree: int, n: int, pulses: str, condition: float, seed: int) -> dict[str, Any]:
    """Shot noise behind a rotation or a map of some condition; the degree is not given."""
    d, side = (degree + 1) ** 2, condition**0.5
    mixing = np.random.default_rng([seed, 38])
    A = random_orthogonal(d, mixing) if condition == 1 else random_linear(d, 1 / side, side, mixing)
    data = sphere_noise(n, degree, pulses=pulses, transform=A, random_state=seed)
    est, record = fitted(data.X, mixing="orthogonal" if condition == 1 else "linear")
    return record | _against(est, data)


def columns(where: str, noise: float, dead: float, seed: int) -> dict[str, Any]:
    """Columns at points of a sphere, in any order; some of them see noise alone."""
    rng = np.random.default_rng([seed, 39])
    truth = _points(where, rng)
    X = sphere_noise(8000, 9, sensors=truth, noise=noise, random_state=seed).X
    lost = rng.permutation(len(truth))[: int(dead * len(truth))]
    X[:, lost] = rng.normal(size=(len(X), len(lost)))
    est, record = fitted(X, mixing="shuffled")
    living = ~np.isin(np.arange(len(truth)), lost)
    placed = est.placement_
    u = np.nan_to_num(placed.coordinates) if placed is not None else np.zeros_like(truth)
    return record | {
        "right": round(_in_place(u, truth, living, 1.0), 4),
        # the radius of a cap shows in its curvature alone: the same after one factor of all angles
        "right_scaled": round(max(_in_place(u, truth, living, f) for f in _FACTORS), 4),
    }


def dipoles(depth: float, far: float, seed: int) -> dict[str, Any]:
    """Columns on a cap that see radial fields of dipoles under it, as magnetometers do, and three
    far sources that reach all of them.
    """
    rng = np.random.default_rng([seed, 40])
    truth = _points("cap", rng)
    source = rng.normal(size=(300, 3))
    source *= (1 - depth) / np.linalg.norm(source, axis=1, keepdims=True)
    moment = np.cross(rng.normal(size=source.shape), source)
    gain = truth @ moment.T / np.linalg.norm(truth[:, None] - source, axis=2) ** 3
    X = rng.laplace(size=(4000, 300)) @ (gain / (gain.std() * np.sqrt(300))).T
    for _ in range(3):
        v, w = rng.normal(size=(2, 3))
        reach = 1 + truth @ v + (truth @ w) ** 2
        X += far * np.outer(rng.normal(size=len(X)), reach / np.sqrt(np.mean(reach**2)))
    X += 0.2 * rng.normal(size=X.shape)
    est, record = fitted(X, mixing="shuffled")
    placed = est.placement_
    on = np.zeros(0, dtype=int) if placed is None else np.flatnonzero(~placed.left_out)
    agreement = same_places(placed.coordinates[on], truth[on]) if placed is not None else 0.0
    return record | {"placed": len(on), "agreement": round(agreement, 4)}


def _points(where: str, rng: np.random.Generator) -> NDArray[np.float64]:
    if where == "uniform":
        v = rng.normal(size=(200, 3))
        return v / np.linalg.norm(v, axis=1, keepdims=True)
    z, around = rng.uniform(np.cos(_CAP), 1, 64), rng.uniform(0, 2 * np.pi, 64)
    ring = np.sqrt(1 - z * z)
    return np.stack([ring * np.cos(around), ring * np.sin(around), z], axis=1)


def _in_place(u: NDArray[Any], truth: NDArray[Any], living: NDArray[Any], factor: float) -> float:
    """Share of the living columns within half of the mean angle to the nearest, after one turn."""
    u, truth = u[living], truth[living]
    top = u.mean(axis=0) / max(float(np.linalg.norm(u.mean(axis=0))), 1e-12)
    if factor != 1:
        angle = np.arccos(np.clip(u @ top, -1, 1))[:, None]
        side = u - (u @ top)[:, None] * top
        side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
        u = np.cos(factor * angle) * top + np.sin(factor * angle) * side
    turned = np.sum(u @ polar(u.T @ truth) * truth, axis=1)
    off = np.where(np.linalg.norm(u, axis=1) > 0.5, np.arccos(np.clip(turned, -1, 1)), np.inf)
    between = np.arccos(np.clip(truth @ truth.T, -1, 1)) + 9 * np.eye(len(truth))
    return float(np.mean(off < between.min(axis=1).mean() / 2))


def no_sphere(kind: str, seed: int) -> dict[str, Any]:
    """Data of other domains, or of none, offered as a sphere of 36 dimensions."""
    _, record = fitted(_other(kind, seed), mixing="orthogonal")
    return record


def _other(kind: str, seed: int) -> NDArray[Any]:
    rng, n = np.random.default_rng([seed, 83]), 10_000
    if kind == "gaussian field":
        return sphere_noise(n, 5, pulses="normal", random_state=seed).X
    if kind == "white noise":
        return rng.normal(size=(n, 36))
    if kind == "ring":
        return gsn(n, 36, periodic=True, transform="orthogonal", random_state=seed).X
    if kind == "torus":
        return gsn(n, (6, 6), periodic=True, transform="orthogonal", random_state=seed).X
    if kind == "grid":
        return gsn(n, (6, 6), transform="orthogonal", random_state=seed).X
    skewed = rng.exponential(size=(n, 36))
    if kind == "few skewed":
        skewed[:, 5:] = rng.normal(size=(n, 31))
    return skewed @ random_orthogonal(36, rng)


def fitted(X: NDArray[Any], **settings: Any) -> tuple[LatentDomain, dict[str, Any]]:
    """A sphere fitted to X, and what the fit says of itself."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        est = LatentDomain(grid="sphere", random_state=0, **settings).fit(X)
    seconds = time.process_time() - began
    diagnosis = est.diagnose(X)
    return est, {
        "cpu": round(seconds, 2),
        "warned": bool(warned),
        "domain": str(est.grid_),
        "verdict": diagnosis.verdict.value,
        "confidence": round(diagnosis.confidence, 3),
    }


def _against(est: LatentDomain, data: Observations) -> dict[str, Any]:
    if est.grid_ != data.grid:
        return {"r": 0.0, "r_detail": 0.0, "similarity": 0.0}
    rows = slice(0, _COMPARED)
    found_field = signal_recovery(data.latent[rows], est.transform(data.X[rows]), data.grid)
    similarity = generator_similarity(est.generators_, data.transform, data.grid)
    return {
        "r": round(found_field.r, 4),
        "r_detail": round(found_field.r_detail, 4),
        "similarity": round(float(similarity.min()), 4),
    }
