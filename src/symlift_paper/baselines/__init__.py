"""The baselines of the paper behind one small protocol, and the search for their best settings.

>>> import numpy as np
>>> from symlift_paper.baselines import applicable, get_baseline, tune
>>> from symlift.datasets import gsn
>>> data = gsn(500, 15, transform="permutation", random_state=0)
>>> [b.name for b in applicable(data)]
['glasso', 'covariance', 'ica', 'random', 'tica', 'liegan']
>>> result = get_baseline("glasso").run(data.X, data.grid, {"alpha": 0.1}, np.random.default_rng(0))
>>> result.transform(data.X).shape
(500, 15)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.datasets import Observations
from symlift.errors import InputError
from symlift_paper.baselines.covariance import COVARIANCE
from symlift_paper.baselines.glasso import GLASSO
from symlift_paper.baselines.ica import ICA, RANDOM
from symlift_paper.baselines.phase import ISOMAP_PHASE, PCA_PHASE, UMAP_PHASE
from symlift_paper.baselines.protocol import Baseline, BaselineResult
from symlift_paper.baselines.tica import TICA
from symlift_paper.baselines.topology import ISOMAP, UMAP
from symlift_paper.baselines.tuning import Trial, Tuned, choose, score, try_all, tune

__all__ = [
    "BASELINES",
    "SLOW",
    "Baseline",
    "BaselineResult",
    "Trial",
    "Tuned",
    "applicable",
    "choose",
    "get_baseline",
    "score",
    "try_all",
    "tune",
]


def _liegan(X: NDArray, grid: Grid, rng: np.random.Generator, **settings: Any) -> BaselineResult:
    """Fit LieGAN, which needs PyTorch: it is only imported when it is run."""
    from symlift_paper.baselines.liegan import fit

    return fit(X, grid, rng, **settings)


LIEGAN = Baseline(
    "liegan",
    "generators",
    _liegan,
    (
        {
            "rate": (1e-4, 1e-3, 1e-2),
            "discriminator_rate": (2e-5, 2e-4, 2e-3),
            "penalty": (0.1, 1.0, 10.0),
        },
    ),
    axes=(1,),
)
BASELINES = {
    baseline.name: baseline
    for baseline in (
        GLASSO,
        COVARIANCE,
        ISOMAP,
        UMAP,
        PCA_PHASE,
        ISOMAP_PHASE,
        UMAP_PHASE,
        ICA,
        RANDOM,
        TICA,
        LIEGAN,
    )
}
# a full search takes minutes to hours: these are only run on request by name
SLOW = ("tica", "liegan")


def get_baseline(name: str) -> Baseline:
    """The baseline called ``name``."""
    if name not in BASELINES:
        raise InputError(f"baseline {name!r} is unknown: choose one of {', '.join(BASELINES)}")
    return BASELINES[name]


def applicable(data: Observations, slow: bool = True) -> list[Baseline]:
    """The baselines that can be scored on ``data``.

    Those that find phases where the latent is one angle per row, else signals and generators.
    """
    d = data.X.shape[1]
    return [
        baseline
        for baseline in BASELINES.values()
        if baseline.applies(d, data.grid) and (baseline.finds == "phases") == data.angles
        and (slow or baseline.name not in SLOW)
    ]  # fmt: skip
