"""The paper's numbers for topographic ICA, 24 configurations.

Those of its other baselines are in ``paper.yaml``.
"""

from __future__ import annotations

__all__ = ["PAPER_TICA"]

# experiment → (rate, pool) → correlation
PAPER_TICA: dict[str, dict[tuple[float, int], float]] = {
    "gsn63-gaussian-dst": {
        (1e-2, 5): 0.0725,
        (1e-2, 3): 0.0672,
        (1e-4, 3): 0.0598,
        (1e-3, 3): 0.0563,
        (1e-3, 5): 0.0521,
        (1e-4, 5): 0.0517,
    },
    "gsn63-gaussian-identity": {
        (1e-2, 3): 0.0662,
        (1e-2, 5): 0.0629,
        (1e-3, 5): 0.0520,
        (1e-4, 3): 0.0493,
        (1e-3, 3): 0.0484,
        (1e-4, 5): 0.0450,
    },
    "gsn63-legendre-identity": {
        (1e-4, 3): 0.0446,
        (1e-3, 3): 0.0412,
        (1e-4, 5): 0.0352,
        (1e-2, 5): 0.0303,
        (1e-3, 5): 0.0288,
        (1e-2, 3): 0.0282,
    },
    "gsn63-legendre-dst": {
        (1e-3, 3): 0.0358,
        (1e-3, 5): 0.0357,
        (1e-4, 5): 0.0336,
        (1e-2, 5): 0.0316,
        (1e-2, 3): 0.0275,
        (1e-4, 3): 0.0256,
    },
}
