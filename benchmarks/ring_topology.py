"""Persistent cohomology and spectral seriation on the cases of `ring_question.py`.

    python benchmarks/ring_topology.py [cases|noise]…

Needs ``ripser`` and ``dreimac`` in an environment of its own, and nothing of symlift. Counts are
stabilised by square roots; all methods see the first six principal components. Scores, larger for a
ring: *dreimac*, the persistence of the class whose circular coordinates DREiMac would return
(400 landmarks), as a share of the median distance of landmarks; *ripser*, the same of 400 random
rows, each the mean of its twenty nearest; *ratio*, death over birth of the class of DREiMac;
*seriation*, the ratio of the first two eigenvalues of the Laplacian that a multidimensional
spectral ordering ends with, 1 on a circle and 1/4 on a line.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _ring_cases import NULLS, POSITIVES, draw, noisy_ring

FOLDER = Path(__file__).parent / "results" / "ring_question"
NULL_SEEDS, RING_SEEDS, NOISE_SEEDS = range(3_000, 3_050), range(3_000, 3_015), range(3_000, 3_020)
NOISE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
_COMPONENTS, _LANDMARKS, _AROUND = 6, 400, 20


def components(X: NDArray) -> NDArray[np.float64]:
    """The first principal components, of square roots where rows are counts."""
    rows = np.sqrt(X) if (X >= 0).all() and np.array_equal(X, np.round(X)) else X
    centred = rows - rows.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:_COMPONENTS].T


def scores(X: NDArray) -> dict[str, float]:
    """Every score of one set of rows."""
    from dreimac import CircularCoords
    from ripser import ripser

    rng, points = np.random.default_rng(0), components(np.asarray(X, dtype=np.float64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coordinates = CircularCoords(points, min(_LANDMARKS, len(points)), prime=41)
        drawn = rng.permutation(len(points))[:_LANDMARKS]
        away = distances(points[drawn], points)
        near = np.argsort(away, axis=1)[:, :_AROUND]
        smooth = points[near].mean(axis=1)
        calm = ripser(smooth, maxdim=1)["dgms"][1]
    diagram, landmarks = coordinates._dgms[1], points[coordinates._idx_land]
    birth, death = longest(diagram)
    first, last = longest(calm)
    return {
        "dreimac": (death - birth) / median(landmarks),
        "ratio": death / max(birth, 1e-12) if death > birth else 1.0,
        "ripser": (last - first) / median(smooth),
        "seriation": seriation(smooth),
    }


def longest(diagram: NDArray) -> tuple[float, float]:
    """Birth and death of the class that lasts longest."""
    if not len(diagram):
        return 0.0, 0.0
    birth, death = diagram[np.argmax(diagram[:, 1] - diagram[:, 0])]
    return float(birth), float(death)


def median(points: NDArray) -> float:
    return float(np.median(distances(points, points)))


def distances(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    return np.sqrt(np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0))


def seriation(points: NDArray, around: int = 15, dimensions: int = 8) -> float:
    """A spectral embedding in several dimensions; similarities from distances along its local
    directions; the ratio of the first two eigenvalues of their Laplacian.
    """
    away = distances(points, points)
    width = np.sort(away, axis=1)[:, around][:, None]
    embedded = laplacian(np.exp(-(away**2) / (width * width.T)))[1][:, 1 : dimensions + 1]
    apart = distances(embedded, embedded)
    similar = np.zeros_like(apart)
    for row in np.argsort(apart, axis=1)[:, : around + 1]:
        local = embedded[row] - embedded[row].mean(axis=0)
        along = local @ np.linalg.svd(local, full_matrices=False)[2][0]
        steps = np.abs(along[:, None] - along)
        block = np.ix_(row, row)
        similar[block] = np.maximum(similar[block], np.exp(-steps / max(steps.max(), 1e-12) * 3))
    values = laplacian(similar)[0]
    return float(values[1] / max(values[2], 1e-12))


def laplacian(similar: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues and eigenvectors of the symmetric normalised Laplacian."""
    root = 1 / np.sqrt(similar.sum(axis=1))
    return np.linalg.eigh(np.eye(len(similar)) - root[:, None] * similar * root)


def recorded(path: Path, cases: list[tuple[Any, ...]], make: Any) -> None:
    """One line for each case; those that are there are not made again."""
    path.parent.mkdir(exist_ok=True, parents=True)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {tuple(record["case"]) for record in done}
    with path.open("a") as file:
        for case in cases:
            if case in known:
                continue
            record = {"case": list(case), **{k: round(v, 4) for k, v in scores(make(case)).items()}}
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(record, flush=True)


def main(names: list[str]) -> None:
    if "cases" in (names or ["cases"]):
        cases = [(family, seed) for seed in RING_SEEDS for family in POSITIVES | NULLS]
        cases += [(family, seed) for seed in NULL_SEEDS[len(RING_SEEDS) :] for family in NULLS]
        recorded(FOLDER / "topology.jsonl", cases, lambda case: draw(*case).X)
    if "noise" in (names or ["noise"]):
        noisy = [(level, seed) for level in NOISE for seed in NOISE_SEEDS]
        recorded(FOLDER / "topology_noise.jsonl", noisy, lambda case: noisy_ring(*case))


if __name__ == "__main__":
    main(sys.argv[1:])
