"""Independent fields behind one dense mixing: the subspace of each, found from its components.

Independent components lie inside one field each. Energies of components of one field depend on each
other, along a chain of neighbours, and those of two fields do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.linalg import polar
from symlift.errors import InputError
from symlift.search.links import ColumnLinks, column_links, level_of
from symlift.search.parts import FEWEST_IN_PART, numbered_parts, weakest_cut
from symlift.search.rows import score_rows
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.components import independent_components
from symlift.solvers.fast.settings import DEFAULT, FastSettings

__all__ = ["independent_subspaces"]

# controls in which two groups of components are independent
_CONTROLS = 8


def independent_subspaces(
    X: NDArray,
    parts: int | None,
    orthogonal: bool,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    settings: FastSettings = DEFAULT,
) -> list[NDArray[np.float64]]:
    """Maps (d, k) from centred rows X (n, d) to coordinates in which one field lies, one for each.

    Coordinates belong to an orthonormal basis of the field's subspace. ``parts``: how many there
    are; None leaves that to the data.
    """
    index = np.sort(rng.permutation(len(X))[: settings.fit_rows])
    rows = np.asarray(X[index], dtype=np.float64)
    progress("components", None)
    unmixing, _ = independent_components(rows, rng, settings)
    label = _component_parts(rows @ unmixing.T, unmixing, parts, rng, progress, settings)
    mixing = np.linalg.pinv(unmixing)
    mine = [np.flatnonzero(label == one) for one in range(int(label.max(initial=-1)) + 1)]
    if not mine:
        return []
    frames = [np.linalg.qr(mixing[:, group])[0] for group in mine]
    if orthogonal:  # subspaces of independent fields are orthogonal, up to sampling errors
        whole = polar(np.concatenate(frames, axis=1))
        return list(np.split(whole, np.cumsum([len(group) for group in mine])[:-1], axis=1))
    return [
        unmixing[group].T @ (mixing[:, group].T @ frame)
        for group, frame in zip(mine, frames, strict=True)
    ]


def _component_parts(
    S: NDArray,
    unmixing: NDArray,
    parts: int | None,
    rng: np.random.Generator,
    progress: Progress,
    settings: FastSettings,
) -> NDArray[np.int64]:
    """The part of each component; -1 for those whose energies depend on no others.

    All are one part at first, which is cut at its weakest link as long as what is left between the
    two sides is no more than between independent fields.
    """
    links = _energy_links(S, rng, settings)
    d = S.shape[1]
    linked = np.abs(links.z).max(axis=1) > level_of(d * (d - 1) / 2, settings.place.judge.chance)
    label = np.where(linked, 0, -1).astype(np.int64)
    whole: list[NDArray[np.int64]] = []
    if linked.sum() < FEWEST_IN_PART:
        label[:] = -1
    while parts is None or label.max(initial=-1) + 1 < parts:
        open_parts = np.where(np.isin(label, [label[group[0]] for group in whole]), -1, label)
        cut = weakest_cut(np.abs(links.z), open_parts)
        if cut is None:
            break
        side = np.flatnonzero(cut)
        one = np.flatnonzero(label == label[side[0]])
        progress(f"controls of {len(side)} and {len(one) - len(side)} components", None)
        if parts is None and not _independent(S, unmixing, links, one, side, rng, settings):
            whole.append(one)
            continue
        label = numbered_parts(np.where(cut, label.max() + 1, label))
    if parts is not None and label.max(initial=-1) + 1 != parts:
        raise InputError(
            f"parts={parts}: the components make {label.max(initial=-1) + 1} parts of at least"
            f" {FEWEST_IN_PART}: ask for fewer parts, or give more rows"
        )
    return label


def _energy_links(S: NDArray, rng: np.random.Generator, settings: FastSettings) -> ColumnLinks:
    return column_links(score_rows(np.abs(S), rng, settings.place))


def _independent(
    S: NDArray,
    unmixing: NDArray,
    links: ColumnLinks,
    one: NDArray[np.int64],
    side: NDArray[np.int64],
    rng: np.random.Generator,
    settings: FastSettings,
) -> bool:
    """Whether the energies of ``side`` depend on those of the rest of ``one`` no more than in
    controls.

    Components are not exact, so that a little of one field is left in those of another, and its
    energies with it: 20,000 rows of two independent lines read 28 standard errors, and so do rows
    of which one line was permuted and components were found again.
    """
    label = np.full(S.shape[1], 2, dtype=np.int64)
    label[one], label[side] = 0, 1
    seen = links.between(label)[0, 1]
    mixing = np.linalg.pinv(unmixing)
    controls = []
    for _ in range(_CONTROLS):
        apart = S.copy()
        apart[:, side] = S[rng.permutation(len(S))][:, side]
        rows = apart @ mixing.T
        again, _ = independent_components(rows, rng, settings, start=unmixing)
        controls.append(_energy_links(rows @ again.T, rng, settings).between(label)[0, 1])
    spread = max(float(np.std(controls, ddof=1)), 1.0)
    return bool(seen - np.mean(controls) < settings.place.judge.significant * spread)
