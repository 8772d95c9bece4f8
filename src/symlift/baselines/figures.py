"""What the paper reports for its baselines: Table 1, the recordings, and the 24 rows of topographic ICA."""

from __future__ import annotations

__all__ = ["PAPER", "PAPER_TICA", "paper_figure"]

# experiment → baseline → figure: r for signals, circular correlation for phases, similarity for generators
PAPER: dict[str, dict[str, float]] = {
    "gsn15-fft": {"liegan": 0.9999},
    "gsn15-discrete": {"liegan": 0.4277},
    "gsn15-continuous": {"liegan": 0.4533},
    "gsn63-gaussian-identity": {"glasso": 0.812, "covariance": 0.495, "random": 0.284},
    "gsn63-legendre-identity": {"glasso": 0.487, "covariance": 0.272, "random": 0.176},
    "gsn63-gaussian-dst": {"glasso": 0.352, "covariance": 0.426, "random": 0.277},
    "gsn63-legendre-dst": {"glasso": 0.184, "covariance": 0.263, "random": 0.172},
    "ising33-linear": {"glasso": 0.352, "covariance": 0.595, "random": 0.332},
    "mnist15-shuffled": {"glasso": 0.371, "covariance": 0.316, "umap": 0.790, "isomap": 0.763, "random": 0.126},
    "mnist27-shuffled": {"glasso": 0.233, "covariance": 0.197, "umap": 0.702, "isomap": 0.611, "random": 0.070},
    "neural-gratings": {"isomap-phase": 0.551, "umap-phase": 0.347},
}

# experiment → (rate, pool) → correlation
PAPER_TICA: dict[str, dict[tuple[float, int], float]] = {
    "gsn63-gaussian-dst": {
        (1e-2, 5): 0.0725, (1e-2, 3): 0.0672, (1e-4, 3): 0.0598, (1e-3, 3): 0.0563, (1e-3, 5): 0.0521, (1e-4, 5): 0.0517,
    },
    "gsn63-gaussian-identity": {
        (1e-2, 3): 0.0662, (1e-2, 5): 0.0629, (1e-3, 5): 0.0520, (1e-4, 3): 0.0493, (1e-3, 3): 0.0484, (1e-4, 5): 0.0450,
    },
    "gsn63-legendre-identity": {
        (1e-4, 3): 0.0446, (1e-3, 3): 0.0412, (1e-4, 5): 0.0352, (1e-2, 5): 0.0303, (1e-3, 5): 0.0288, (1e-2, 3): 0.0282,
    },
    "gsn63-legendre-dst": {
        (1e-3, 3): 0.0358, (1e-3, 5): 0.0357, (1e-4, 5): 0.0336, (1e-2, 5): 0.0316, (1e-2, 3): 0.0275, (1e-4, 3): 0.0256,
    },
}  # fmt: skip


def paper_figure(experiment: str, baseline: str) -> float | None:
    """The paper's figure for a baseline on an experiment (the best of its search); None where it has none.

    >>> paper_figure("mnist15-shuffled", "isomap"), paper_figure("gsn63-gaussian-dst", "tica"), paper_figure("gsn15-fft", "ica")
    (0.763, 0.0725, None)
    """
    if baseline == "tica" and experiment in PAPER_TICA:
        return max(PAPER_TICA[experiment].values())
    return PAPER.get(experiment, {}).get(baseline)
