"""Is the result real?  An answer from the data alone, in words, with the figures beside it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symlift.errors import FitWarning
from symlift.grid import Grid
from symlift.metrics import equivariance_error, signal_recovery
from symlift.objective import LagClasses, score
from symlift.solvers import TRAINED
from symlift.solvers.fast.arrange import arrange, explained_elsewhere, similarities

if TYPE_CHECKING:
    from symlift.estimator import LatentDomain

__all__ = ["ABSENT", "PRESENT", "UNIDENTIFIABLE", "Diagnosis", "diagnose"]

PRESENT = "an identifiable translation symmetry is present and stable"
UNIDENTIFIABLE = "a translation symmetry is present, but not identifiable from these data"
ABSENT = "no evidence for a translation symmetry"

_ROWS = 30_000
# halves of the data have to give the same signals; columns permuted over samples must not look as local as the data do
_AGREEMENT, _LOCALITY_MARGIN = 0.9, 0.2
# columns that are shuffled points of a line or ring explain this much of their statistics there
_ARRANGED, _SIMILARITY_ROWS = 0.8, 6_000


@dataclass(frozen=True)
class Diagnosis:
    """A verdict in words, how sure it is (0 to 1), and the figures that it rests on."""

    verdict: str
    confidence: float
    figures: dict[str, float | None]

    def __str__(self) -> str:
        return f"{self.verdict} (confidence {self.confidence:.2f})"


def diagnose(estimator: LatentDomain, X: NDArray) -> Diagnosis:
    """Held-out figures of a fit, its agreement between independent halves of the data, and a control.

    The control permutes the samples of each column independently, which keeps every marginal and destroys the field.  Training
    again on each would take hours: a trained model has to agree with what the fast solver finds in either half instead.
    """
    rng = np.random.default_rng(0)
    rows = X if len(X) <= _ROWS else X[np.sort(rng.choice(len(X), _ROWS, replace=False))]
    rows = rows[rng.permutation(len(rows))]
    model, grid = estimator.model_, estimator.grid_
    W = estimator.lifting_map_
    _, parts = score(W, rows - rows.mean(axis=0), LagClasses(grid))
    values = np.linalg.svd(W, compute_uv=False)
    spectrum = np.linalg.eigvalsh(np.cov(rows.T).reshape(rows.shape[1], -1))
    # halves go as far as the fit itself went; the control need not go further than components to show that it has nothing
    trained = estimator.solver in TRAINED
    reach = None if trained else estimator.trace_.get("reach")
    first, second = (_refit(estimator, part, seed, reach) for seed, part in enumerate((rows[::2], rows[1::2])))
    pairs = ((estimator, first), (estimator, second)) if trained else ((first, second),)
    head = rows[:4_000]
    agreement = min(signal_recovery(a.transform(head), b.transform(head), grid).r for a, b in pairs)
    control = _refit(estimator, rng.permuted(rows, axis=0), 2, "components" if reach == "general" else reach)
    here, alternatives = _localities_of_columns(rows, grid)
    own, theirs = (fit.trace_.get("evidence", {}) for fit in (first if trained else estimator, control))
    figures: dict[str, float | None] = {
        **{name: round(value, 4) for name, value in parts.items()},
        "equivariance_error": round(equivariance_error(model, rows[:1_000], [1] * grid.ndim), 6),
        "agreement_of_halves": round(float(agreement), 4),
        "locality": own.get("locality"),
        "locality_of_control": theirs.get("locality"),
        **{f"locality_on_a_{name}": round(value, 4) for name, value in alternatives.items()},
        "nongaussianity": own.get("nongaussianity"),
        "effective_rank": round(float(spectrum.sum() ** 2 / np.sum(spectrum**2)), 2),
        "condition": round(float(values[0] / max(values[-1], 1e-300)), 2),
        "samples_per_parameter": round(len(X) / W.shape[1], 2),
    }
    # a simpler grid only has to do as well; a line, which a ring can be cut into, has to do better than the ring
    needed = max(_ARRANGED, here + (0.05 if grid.ndim == 1 else -0.003))
    better = [name for name, value in alternatives.items() if value > needed]
    if better:
        name = max(better, key=lambda key: alternatives[key])
        warnings.warn(
            f"the columns fit a {name} of {grid.size} points as well as the grid {grid}, or better: fit that instead",
            FitWarning,
            stacklevel=3,
        )
    return _judge(figures, found=bool(own.get("found", False)) and not better)


def _localities_of_columns(rows: NDArray, grid: Grid) -> tuple[float, dict[str, float]]:
    """How well the columns themselves fit the grid, and a line or ring that is simpler, or open where the grid closes.

    Folding a line into rows gives a grid that explains it no less, and a line can be bent into a ring: a fit does not show that.
    """
    if rows.shape[1] != grid.size:
        return 0.0, {}
    simpler = {"line": Grid((grid.size,)), "ring": Grid((grid.size,), periodic=True)}
    bent = grid.ndim == 1 and grid.axes_periodic[0]
    asked = {
        name: other for name, other in simpler.items()
        if (other.shape, other.axes_periodic) != (grid.shape, grid.axes_periodic)
        and (LagClasses(other).count.size < LagClasses(grid).count.size or bent)
    }  # fmt: skip
    if not asked:
        return 0.0, {}
    fit, held = (similarities(rows[part][:_SIMILARITY_ROWS]) for part in (slice(0, None, 2), slice(1, None, 2)))

    def locality(other: Grid) -> float:
        order, _ = arrange(fit, other, np.random.default_rng(0))
        return explained_elsewhere(fit, held, order, LagClasses(other))

    return locality(grid), {name: locality(other) for name, other in asked.items()}


def _refit(estimator: LatentDomain, rows: NDArray, seed: int, reach: str | None) -> LatentDomain:
    """The same settings on other rows; the fast solver in place of one that trains."""
    from sklearn.base import clone

    solver = "fast" if estimator.solver in TRAINED else estimator.solver
    twin = clone(estimator).set_params(grid=estimator.grid_, solver=solver, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return twin._fit(rows, **({} if reach is None else {"reach": reach}))


def _judge(figures: dict[str, float | None], found: bool) -> Diagnosis:
    """The verdict.  Each threshold's distance, as a share of what is possible, makes the confidence."""
    locality, control = figures["locality"] or 0.0, figures["locality_of_control"] or 0.0
    agreement = figures["agreement_of_halves"] or 0.0
    # a control below 0 is chance, not a reason to believe in the data
    margin = locality - max(control, 0.0)
    if margin < _LOCALITY_MARGIN:
        return Diagnosis(ABSENT, round(float(np.clip(1 - margin / _LOCALITY_MARGIN, 0, 1)), 3), figures)
    if found and agreement > _AGREEMENT:
        sure = min((agreement - _AGREEMENT) / (1 - _AGREEMENT), (margin - _LOCALITY_MARGIN) / (1 - _LOCALITY_MARGIN))
        return Diagnosis(PRESENT, round(float(np.clip(0.5 + sure / 2, 0, 1)), 3), figures)
    return Diagnosis(UNIDENTIFIABLE, round(float(np.clip(1 - agreement / 2, 0, 1)), 3), figures)
