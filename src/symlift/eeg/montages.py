"""Montages checked against the data, and channels without labels placed on a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

from symlift.eeg.covariance import CovarianceCriterion, recorded
from symlift.eeg.exchanges import Swaps, improved_sites, swaps_of
from symlift.eeg.placing import placed_on_sites
from symlift.eeg.recordings import Labelled, labelled, sites_of
from symlift.eeg.results import MontageCheck, MontageMatch
from symlift.eeg.turned import Turned, turned_cap
from symlift.errors import InputError
from symlift.maps.faults import Fault, Kind
from symlift.maps.judge import Judgement, judge_map, price
from symlift.maps.verdict import CONVINCED, MapFault, named_faults

__all__ = ["check_montage", "match_montage"]

# half of a confidence, as of swaps; and what is left of it where another start ended as low, or
# where an anchor is elsewhere
_HALF, _RIVAL = 5.0, 0.3
# channels of a bank at least. Four neighbours in another order can gain 50 on a
# true montage, where a field is not as alike everywhere as is assumed; and no bank is so small:
# what is wrong with a few channels are swaps
_BANK = 8


def check_montage(
    raw: Any,
    positions: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    names: Sequence[str] | None = None,
    anchors: Mapping[str, str | ArrayLike] | None = None,
) -> MontageCheck:
    """Check whether the channels of a cap are where their labels say.

    Parameters
    ----------
    raw : Raw, Epochs or array_like, (n, d)
        A recording of MNE, of which the EEG channels that are not bad are used, or samples in the
        order of time. Band-pass filtered, from 1 to 40 Hz or so.
    positions : array_like, (d, 2 or 3), or mapping, optional
        Where channels are said to be; the montage of ``raw`` without it.
    names : sequence of str, optional
        Labels of the columns of an array.
    anchors : mapping, optional
        Channels whose place is known: the label of a channel, and the label of the channel whose
        place it truly has, or a position. Two or more settle whether the cap is turned.

    Returns
    -------
    MontageCheck
        Channels that are swapped, banks that are exchanged, labels that are shifted, caps that are
        turned or mirrored; and what the data cannot tell.

    Examples
    --------
    >>> from symlift.eeg import check_montage
    >>> check_montage(raw, anchors={"Fz": "Fz", "T7": "T7"}).verdict  # doctest: +SKIP
    """
    data = labelled(raw, positions, names)
    if data.positions is None:
        raise InputError("the recording has no montage: set one, or give positions or a template")
    criterion = _criterion(data)
    d = len(data.names)
    known = _anchors(anchors, data.names, data.positions)
    one_group = np.zeros(d, dtype=np.int64)
    judged = judge_map(criterion, data.positions, one_group, fewest=_BANK)
    swaps = swaps_of(criterion, judged.positions)
    if judged.faults:
        alone = swaps_of(criterion, data.positions)
        repairs = len(swaps.groups) + len(judged.faults)
        if price(alone.cost, len(alone.groups)) <= price(swaps.cost, repairs):
            judged, swaps = _nothing(data.positions, judged), alone
    placed = judged.positions[swaps.to]
    turned = turned_cap(placed, data.positions, *known)
    return _check(data, criterion, judged, swaps, turned)


def _criterion(data: Labelled) -> CovarianceCriterion:
    criterion = CovarianceCriterion(recorded(data.samples))
    if len(criterion.living) < 4:
        raise InputError(
            f"{len(criterion.living)} channels go with another one: give a recording with more"
        )
    return criterion


def _nothing(positions: NDArray, judged: Judgement) -> Judgement:
    return replace(
        judged, faults=(), undecided=(), positions=positions, to=np.arange(len(positions))
    )


def _anchors(
    anchors: Mapping[str, str | ArrayLike] | None,
    names: tuple[str, ...],
    positions: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Columns whose places are known, and these."""
    columns, places = [], []
    for name, place in (anchors or {}).items():
        for label in (name, place) if isinstance(place, str) else (name,):
            if label not in names:
                raise InputError(f"anchor {label}: there is no such channel")
        columns.append(names.index(name))
        at = positions[names.index(place)] if isinstance(place, str) else place
        places.append(np.asarray(at, dtype=np.float64))
        if places[-1].shape != positions.shape[1:] or not np.isfinite(places[-1]).all():
            raise InputError(f"anchor {name}: its position has to have the form of the others")
    shape = (len(places), positions.shape[1])
    return np.array(columns, dtype=np.int64), np.array(places).reshape(shape)


def _check(
    data: Labelled,
    criterion: CovarianceCriterion,
    judged: Judgement,
    swaps: Swaps,
    turned: Turned,
) -> MontageCheck:
    names, source = data.names, criterion.data

    def labels(reason: str) -> tuple[str, ...]:
        return tuple(names[i] for i in source.which(reason))

    faults = named_faults(judged.faults, names)
    if turned.words:
        every = np.arange(len(names))
        fault = Fault(Kind.TURNED, every, (every,), words=(turned.words,))
        sentence = f"the cap is {turned.words}"
        faults += (MapFault(fault.kind.value, sentence, names, turned.probability, 0.0),)
    undecided = named_faults(judged.undecided, names)
    return MontageCheck(
        ok=not (faults or swaps.groups or undecided) and swaps.confidence >= CONVINCED,
        names=names,
        positions=turned.positions,
        swapped=tuple(tuple(names[i] for i in group) for group, _ in swaps.groups),
        swap_confidence=tuple(sure for _, sure in swaps.groups),
        faults=faults,
        cannot_tell=undecided,
        whole=turned.open_to,
        confidence=swaps.confidence,
        dead=labels("dead"),
        noise=labels("noise"),
        duplicated=tuple((names[i], names[source.twin[i]]) for i in source.which("duplicate")),
    )


def match_montage(
    raw: Any,
    template: Any,
    *,
    names: Sequence[str] | None = None,
    anchors: Mapping[str, str] | None = None,
) -> MontageMatch:
    """Place channels without labels on the sites of a template, by the data alone.

    Parameters
    ----------
    raw : Raw, Epochs or array_like, (n, d)
        As for `check_montage`; labels are not used.
    template : DigMontage, str or mapping
        A montage of MNE, the name of a standard one, or positions by name: as many sites as
        channels, or a few more.
    names : sequence of str, optional
        Labels of the columns of an array.
    anchors : mapping, optional
        Channels whose site is known: the label of a channel and the name of a site.

    Returns
    -------
    MontageMatch
        The site of each channel, up to rotations and mirrorings of the cap that anchors do not
        rule out.

    Examples
    --------
    >>> from symlift.eeg import match_montage
    >>> match = match_montage(raw, "standard_1020", anchors={"1": "Fz"})  # doctest: +SKIP
    >>> match.sites  # doctest: +SKIP
    """
    data = labelled(raw, None, names, labels_only=True)
    criterion = _criterion(data)
    labels, sites = sites_of(template)
    living, known = criterion.living, dict(anchors or {})
    if len(living) > len(sites):
        raise InputError(f"{len(living)} channels, but {len(sites)} sites: give a larger template")
    for name, site in known.items():
        if name not in data.names or site not in labels:
            raise InputError(f"anchor {name}: there is no such channel, or no site {site}")
    ends = placed_on_sites(criterion, sites, np.random.default_rng(0))
    cost, on = ends[0]
    columns = np.array([data.names.index(name) for name in known], dtype=np.int64)
    places = np.array([sites[labels.index(site)] for site in known.values()])
    places = places.reshape(len(known), sites.shape[1])
    placed = np.full((len(data.names), sites.shape[1]), np.nan)
    placed[living] = sites[on]
    rank = np.searchsorted(living, columns)
    turned = turned_cap(sites[on], sites, rank, places)
    if turned.words:
        apart = cdist(turned.positions, sites)
        on = np.asarray(linear_sum_assignment(apart)[1], dtype=np.int64)
        on, cost = improved_sites(criterion, sites, on)
        placed[living] = sites[on]
    confidence = np.zeros(len(data.names))
    change = criterion.swaps(np.nan_to_num(placed))
    np.fill_diagonal(change, np.inf)
    margin = np.maximum(change.min(axis=1), 0.0)
    confidence[living] = margin / (margin + _HALF)
    # another start that ended nearly as low, elsewhere: neither is sure
    rivals = [other for least, other in ends if least < cost + _HALF]
    if any(_elsewhere(sites, on, other) for other in rivals):
        confidence *= _RIVAL
    names_of = [""] * len(data.names)
    for column, site in zip(living.tolist(), on.tolist(), strict=True):
        names_of[column] = labels[site]
    if any(names_of[data.names.index(name)] not in ("", site) for name, site in known.items()):
        # no motion of the cap brings the anchors where they are known to be
        confidence *= _RIVAL
    return MontageMatch(tuple(names_of), placed, data.names, confidence, turned.open_to)


def _elsewhere(sites: NDArray, on: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether two results differ by more than a motion of the cap."""
    apart = np.abs(pdist(sites[on]) - pdist(sites[other]))
    return bool(np.quantile(apart, 0.9) > pdist(sites).min())
