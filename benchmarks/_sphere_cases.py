"""Cases of the benchmark of domains that live on a sphere."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift import LatentDomain
from symlift.datasets import Observations, gsn, random_linear, random_orthogonal, sphere_noise
from symlift.metrics import generator_similarity, signal_recovery

# samples that are compared with the truth
_COMPARED = 5000


def dense(degree: int, n: int, pulses: str, condition: float, seed: int) -> dict[str, Any]:
    """Shot noise behind a rotation or a map of some condition; the degree is not given."""
    d, side = (degree + 1) ** 2, condition**0.5
    mixing = np.random.default_rng([seed, 38])
    A = random_orthogonal(d, mixing) if condition == 1 else random_linear(d, 1 / side, side, mixing)
    data = sphere_noise(n, degree, pulses=pulses, transform=A, random_state=seed)
    est, record = fitted(data.X, mixing="orthogonal" if condition == 1 else "linear")
    return record | _against(est, data)


def no_sphere(kind: str, seed: int) -> dict[str, Any]:
    """Data of other domains, or of none, offered as a sphere of 36 dimensions."""
    _, record = fitted(_other(kind, seed), mixing="auto")
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
