"""The phase of single cells, with the verdict on whether they lie on a ring at all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symlift
from symlift.cells.genes import CELL_CYCLE, CIRCADIAN
from symlift.cells.tables import counts_of, names_of
from symlift.diagnosis import Diagnosis, Verdict
from symlift.errors import FitWarning, InputError
from symlift.estimator import LatentDomain

__all__ = ["PhaseResult", "phase"]

_SETS: dict[str, Mapping[str, float]] = {"cell_cycle": CELL_CYCLE, "circadian": CIRCADIAN}
_POINTS, _GENES, _CELLS = 30, 8, 50
#: width of the window in which cells are counted around each cell, as a share of the ring
_WINDOW = 1 / 12
#: phases of crowded rings are uneven at first: a second choice of cells is made with better ones
_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class PhaseResult:
    """Phases of cells, and whether to believe them.

    Parameters
    ----------
    diagnosis : Diagnosis
        The verdict on the ring, with its tests and next steps.
    phase : ndarray of shape (n,)
        Angle of each cell in radians, from 0 to 2π; NaN for cells without counts in the genes, and
        for all cells where the verdict is "absent".
    genes : tuple of str
        The genes that were used.
    gene_phase, gene_strength : ndarray of shape (genes,)
        The phase at which each gene is highest, and the correlation of its expression with it.
    oriented : bool
        Whether origin and direction were taken from genes with known peaks.
    cells : int
        The number of cells that the ring was fitted to, spread evenly along it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from symlift.datasets import cycling_cells
    >>> data = cycling_cells(600, random_state=0)
    >>> cells = SimpleNamespace(X=data.X, obs={}, uns={})
    >>> result = phase(cells, genes=range(60))
    >>> result.believed, result.diagnosis.verdict.value, result.phase.shape
    (True, 'present', (600,))
    """

    diagnosis: Diagnosis
    phase: NDArray[np.float64]
    genes: tuple[str, ...]
    gene_phase: NDArray[np.float64]
    gene_strength: NDArray[np.float64]
    oriented: bool
    cells: int

    @property
    def believed(self) -> bool:
        """Whether the cells lie on a ring, and the data single it out."""
        return self.diagnosis.verdict is Verdict.PRESENT

    def plain(self) -> dict[str, Any]:
        """Return the result without the cells' phases, in types that ``.h5ad`` files hold.

        Returns
        -------
        dict of str to object
            Verdict, tests, genes and version.
        """
        diagnosis = self.diagnosis
        return {
            "verdict": diagnosis.verdict.value,
            "words": diagnosis.verdict.words,
            "confidence": float(diagnosis.confidence),
            "believed": self.believed,
            "tests": {
                test.name: float("nan") if test.value is None else float(test.value)
                for test in diagnosis.tests
            },
            "not_passed": [test.name for test in diagnosis.tests if test.passed is False],
            "next_steps": [step.text for step in diagnosis.next_steps],
            "genes": list(self.genes),
            "gene_phase": self.gene_phase,
            "gene_strength": self.gene_strength,
            "oriented": self.oriented,
            "cells": self.cells,
            "version": symlift.__version__,
        }


def phase(
    adata: Any,
    genes: str | Mapping[str, float] | Sequence[str] | Sequence[int] = "cell_cycle",
    *,
    layer: str | None = None,
    key: str = "phase",
    random_state: int = 0,
) -> PhaseResult:
    """Find the phase of single cells on a ring, and say whether there is one.

    The ring solver is fitted to the counts of the genes.  Most cells of a tissue rest in one part
    of the cycle, so further fits take cells that are spread evenly along the ring of the first, and
    the verdict is on these.  ``obs[key]`` and ``uns["symlift"]`` are written.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells × genes; anything that has ``X``, ``obs``, ``uns`` and, for genes by name,
        ``var_names``.  Counts, sparse or dense, not scaled.
    genes : {"cell_cycle", "circadian"}, mapping, or sequence of str or int
        Genes that follow the cycle.  A mapping from names to angles says when each is highest, as
        `CELL_CYCLE` and `CIRCADIAN` do; origin and direction of the phase are taken from it.
    layer : str, optional
        The layer that holds the counts; "counts" where there is one, else ``X``.
    key : str, default="phase"
        Name of the column of ``obs`` that is written.
    random_state : int, default=0
        Seed.

    Returns
    -------
    PhaseResult
        Phases, verdict and genes.

    Raises
    ------
    InputError
        If there are too few cells or genes, or if the numbers are no counts.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from symlift.datasets import cycling_cells
    >>> data = cycling_cells(600, random_state=0)
    >>> cells = SimpleNamespace(X=data.X, obs={}, uns={})
    >>> _ = phase(cells, genes=range(60))
    >>> from symlift.metrics import circular_correlation
    >>> bool(abs(circular_correlation(cells.obs["phase"], data.latent)) > 0.95)
    True
    """
    columns, peaks = _columns(adata, genes)
    counts, rest = counts_of(adata, columns, layer)
    named = names_of(adata)
    names = tuple(str(c) if named is None else named[c] for c in columns)
    seen = counts.sum(axis=1) > 0
    if seen.sum() < _CELLS:
        raise InputError(
            f"{int(seen.sum())} cells have counts in these genes: a ring needs at least {_CELLS}"
        )
    # all other genes as one column: rows are compared as shares of a cell's counts, not of those of
    # the cycle, which are few in a resting cell
    rows = np.column_stack([counts, rest])[seen] if rest.any() else counts[seen]
    chosen, est = _fitted(rows, random_state)
    diagnosis = est.diagnose(rows[chosen])
    angle = np.full(len(counts), np.nan)
    angle[seen] = est.phase(rows)
    at, strength = _gene_phases(rows, angle[seen])
    at, strength = at[: len(columns)], strength[: len(columns)]
    angle, at = _oriented(angle, at, strength, peaks)
    if diagnosis.verdict is Verdict.ABSENT:
        angle[:] = np.nan
    result = PhaseResult(diagnosis, angle, names, at, strength, peaks is not None, len(chosen))
    adata.obs[key] = angle
    adata.uns["symlift"] = result.plain()
    if not result.believed:
        warnings.warn(_doubt(result, key), FitWarning, stacklevel=2)
    return result


def _columns(
    adata: Any, genes: str | Mapping[str, float] | Sequence[str] | Sequence[int]
) -> tuple[list[int], NDArray[np.float64] | None]:
    """The columns of the genes, and where each is highest, if that is known."""
    if isinstance(genes, str):
        if genes not in _SETS:
            raise InputError(
                f"genes={genes!r} is unknown: give {' or '.join(map(repr, _SETS))}, or a list of"
                " genes"
            )
        genes = _SETS[genes]
    asked = list(genes)
    positions = [int(gene) for gene in asked if isinstance(gene, int | np.integer)]
    if len(positions) == len(asked):
        width = adata.X.shape[1]
        outside = [gene for gene in positions if not 0 <= gene < width]
        if outside:
            raise InputError(f"gene {outside[0]} does not exist: there are {width}, from 0 on")
        return _enough(positions, len(asked)), None
    names = names_of(adata)
    if names is None:
        raise InputError("genes by name need var_names: give their positions, genes=[0, 1, …]")
    where = {name.casefold(): i for i, name in reversed([*enumerate(names)])}
    present = [gene for gene in map(str, asked) if gene.casefold() in where]
    columns = _enough([where[gene.casefold()] for gene in present], len(asked))
    if not isinstance(genes, Mapping):
        return columns, None
    return columns, np.array([genes[gene] for gene in present])


def _enough(columns: list[int], asked: int) -> list[int]:
    unique = list(dict.fromkeys(columns))
    if len(unique) < _GENES:
        raise InputError(
            f"{len(unique)} of {asked} genes are in the data: a ring needs at least {_GENES}; give"
            " others with genes="
        )
    return columns


def _fitted(rows: NDArray, seed: int) -> tuple[NDArray[np.int64], LatentDomain]:
    """A fit to cells that are spread evenly, and which these are."""
    rng = np.random.default_rng(seed)
    chosen, est = np.arange(len(rows)), _fit(rows, seed)
    for _ in range(_ROUNDS):
        fewer = _evenly(est.phase(rows), rng)
        if len(fewer) < _CELLS:
            break
        chosen, est = fewer, _fit(rows[fewer], seed)
    return chosen, est


def _fit(rows: NDArray, seed: int) -> LatentDomain:
    est = LatentDomain(grid=(_POINTS,), periodic=True, solver="ring", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the verdict says it
        return est.fit(rows)


def _evenly(angle: NDArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Cells that are spread evenly: of crowded parts of the ring as many as a sparse part has.

    Sparse is the first quartile along the ring, not over cells; parts that are emptier stay so.
    """
    turned = np.sort(np.mod(angle, 2 * np.pi))
    around = np.concatenate([turned - 2 * np.pi, turned, turned + 2 * np.pi])

    def crowd(at: NDArray) -> NDArray[np.float64]:
        half = np.pi * _WINDOW
        return (
            np.searchsorted(around, at + half, side="right") - np.searchsorted(around, at - half)
        ).astype(np.float64)

    sparse = np.percentile(crowd(np.linspace(0, 2 * np.pi, 120, endpoint=False)), 25)
    keep = sparse / np.maximum(crowd(np.mod(angle, 2 * np.pi)), 1.0)
    return np.flatnonzero(rng.random(len(angle)) < keep)


def _gene_phases(rows: NDArray, angle: NDArray) -> tuple[NDArray, NDArray]:
    """Where each gene is highest, and how much of its expression follows the phase."""
    expression = np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0))
    expression = expression - expression.mean(axis=0)
    wave = np.exp(1j * angle)
    wave = wave - wave.mean()
    basis = np.stack([wave.real, wave.imag], axis=1)
    beta = np.linalg.lstsq(basis, expression, rcond=None)[0]
    explained = np.sum((basis @ beta) ** 2, axis=0)
    total = np.maximum(np.sum(expression**2, axis=0), 1e-300)
    return np.arctan2(beta[1], beta[0]), np.sqrt(np.minimum(explained / total, 1.0))


def _oriented(
    angle: NDArray, at: NDArray, strength: NDArray, peaks: NDArray | None
) -> tuple[NDArray, NDArray]:
    """Turn and mirror phases so that genes are highest where ``peaks`` say."""
    if peaks is not None:
        ways = [np.sum(strength * np.exp(1j * (peaks - sense * at))) for sense in (1, -1)]
        sense, turn = (1, ways[0]) if abs(ways[0]) >= abs(ways[1]) else (-1, ways[1])
        angle, at = sense * angle + np.angle(turn), sense * at + np.angle(turn)
    return np.mod(angle, 2 * np.pi), np.mod(at, 2 * np.pi)


def _doubt(result: PhaseResult, key: str) -> str:
    diagnosis = result.diagnosis
    written = (
        f"obs[{key!r}] is NaN"
        if diagnosis.verdict is Verdict.ABSENT
        else f"obs[{key!r}] is one of several answers"
    )
    step = f": {diagnosis.next_steps[0].text}" if diagnosis.next_steps else ""
    return f"{diagnosis.verdict.words} (confidence {diagnosis.confidence:.2f}); {written}{step}"
