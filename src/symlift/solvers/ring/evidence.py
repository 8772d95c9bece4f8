"""Evidence for angles: two halves of the columns agree, and the planes of a torus are circles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.metrics.circular import circular_correlation
from symlift.solvers.contract import Contest, Evidence, TunedTo

__all__ = ["AngleEvidence", "angle_evidence", "torus_lead"]

# least agreement of the phases from two halves of the columns, on rows that were not fitted
_AGREEMENT = 0.25
# roundness: 1 is a circle, 1.1 to 1.3 an open square, 2 a Gaussian blob; where halves agree less,
# it scatters more
_CIRCLE, _SCATTER, _SHARP = 1.25, 0.8, 0.6
# roundness depends on which columns are in which half: the median of so many halvings
_HALVINGS = 5


@dataclass(frozen=True)
class AngleEvidence:
    """Agreement of the phases that two halves of the columns give, and the roundness of their
    plane.
    """

    agreement: float
    roundness: float

    @property
    def agrees(self) -> bool:
        """Whether the halves give the same position."""
        return self.agreement > _AGREEMENT

    @property
    def is_angle(self) -> bool:
        """Whether it is an angle: halves agree, and it runs round a circle."""
        return self.agrees and self.roundness < self.roundest

    @property
    def roundest(self) -> float:
        """The roundness up to which a plane can be that of a circle.

        >>> AngleEvidence(0.8, 1.0).roundest, round(AngleEvidence(0.3, 1.0).roundest, 2)
        (1.25, 1.49)
        """
        return _CIRCLE + _SCATTER * max(_SHARP - self.agreement, 0.0)

    def judged(self, domain: TunedTo, wanted: TunedTo, among: Contest) -> Evidence:
        """The same as `Evidence`: found if the ``domain`` is the ``wanted`` one."""
        return Evidence(
            found=domain == wanted, carried_by="angles", domain=domain,
            agreement=round(self.agreement, 4), roundness=round(min(self.roundness, 1e6), 4),
            contest=among,
        )  # fmt: skip


def angle_evidence(Z: NDArray, target: NDArray, rng: np.random.Generator) -> AngleEvidence:
    """Do two halves of the columns give the same position on rows that were not fitted, and is it a
    circle?

    Readouts u_a, u_b of the halves have independent noise, so that E[u_a ū_b] = E|z|² and E[u_a²
    ū_b²] = E|z|⁴ are those of the latent alone: roundness E|z|⁴/(E|z|²)² is 1 on a circle and 2 in
    a Gaussian plane.
    """
    halvings = np.array([_halved(Z, target, rng) for _ in range(_HALVINGS)])
    return AngleEvidence(float(np.median(halvings[:, 0])), float(np.median(halvings[:, 1])))


def _halved(Z: NDArray, target: NDArray, rng: np.random.Generator) -> tuple[float, float]:
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


def torus_lead(likelihoods: Mapping[str, float]) -> float:
    """How far a torus is ahead of all other domains, as a share of its likelihood; -1 at the least.

    >>> torus_lead({"torus": 2.0, "ring": 1.0, "plane": 1.5})
    0.25
    """
    torus = likelihoods.get("torus", 0.0)
    others = max(value for name, value in likelihoods.items() if name != "torus")
    return max(1 - others / torus, -1.0) if torus > 0 else -1.0
