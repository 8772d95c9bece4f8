"""The methods that the paper compares with, each behind one small protocol, and the search that reports their best.

>>> import numpy as np
>>> from symlift.baselines import applicable, get_baseline, tune
>>> from symlift.datasets import gsn
>>> data = gsn(500, 15, transform="permutation", random_state=0)
>>> [b.name for b in applicable(data)]
['glasso', 'covariance', 'ica', 'random', 'tica', 'liegan']
>>> found = get_baseline("glasso").run(data.X, data.grid, {"alpha": 0.1}, np.random.default_rng(0))
>>> found.transform(data.X).shape
(500, 15)
"""

from __future__ import annotations

from symlift.baselines.covariance import COVARIANCE
from symlift.baselines.glasso import GLASSO
from symlift.baselines.ica import ICA, RANDOM
from symlift.baselines.liegan import LIEGAN
from symlift.baselines.phase import ISOMAP_PHASE, PCA_PHASE, UMAP_PHASE
from symlift.baselines.protocol import Baseline, BaselineResult
from symlift.baselines.tica import TICA
from symlift.baselines.topology import ISOMAP, UMAP
from symlift.baselines.tuning import Trial, Tuned, choose, score, try_all, tune
from symlift.datasets import Observations
from symlift.errors import InputError

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

BASELINES = {
    baseline.name: baseline
    for baseline in (
        GLASSO, COVARIANCE, ISOMAP, UMAP, PCA_PHASE, ISOMAP_PHASE, UMAP_PHASE, ICA, RANDOM, TICA, LIEGAN
    )
}  # fmt: skip
# minutes to hours for a full search: they are run when asked for by name
SLOW = ("tica", "liegan")


def get_baseline(name: str) -> Baseline:
    """The baseline called ``name``."""
    if name not in BASELINES:
        raise InputError(f"baseline {name!r} is unknown: choose one of {', '.join(BASELINES)}")
    return BASELINES[name]


def applicable(data: Observations, slow: bool = True) -> list[Baseline]:
    """The baselines that can be scored on ``data``: phases where its latent is one angle a row, else signals and generators."""
    d = data.X.shape[1]
    return [
        baseline
        for baseline in BASELINES.values()
        if baseline.applies(d, data.grid) and (baseline.finds == "phases") == data.angles
        and (slow or baseline.name not in SLOW)
    ]  # fmt: skip
