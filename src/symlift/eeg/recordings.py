"""Samples, labels and positions: of arrays, and of MNE's objects without importing MNE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.errors import InputError

__all__ = ["Labelled", "labelled", "sites_of", "with_positions"]


@dataclass(frozen=True)
class Labelled:
    """Samples (n, d), the labels of channels, and where each is said to be (d, P), if anywhere."""

    samples: NDArray
    names: tuple[str, ...]
    positions: NDArray[np.float64] | None


def labelled(
    raw: Any,
    positions: ArrayLike | Mapping[str, ArrayLike] | None,
    names: Sequence[str] | None,
    labels_only: bool = False,
) -> Labelled:
    """An array (n, d), or MNE's Raw, Epochs or Evoked: of these the EEG channels that are not
    marked as bad; with ``labels_only`` without their positions.
    """
    if hasattr(raw, "get_data") and hasattr(raw, "ch_names"):
        return _of_mne(raw, positions, labels_only)
    X = np.asarray(raw)
    if X.ndim != 2 or X.shape[1] < 4 or len(X) < 20:
        raise InputError(
            f"an array of shape {X.shape} is no recording: give rows of time, and four columns or"
            " more"
        )
    if X.dtype.kind not in "iuf" or not np.isfinite(X).all():
        raise InputError("the samples hold NaN, infinity or what is no number: cut them out")
    labels = tuple(str(i) for i in range(X.shape[1])) if names is None else tuple(names)
    if len(labels) != X.shape[1] or len(set(labels)) < len(labels):
        raise InputError(f"{len(labels)} names for {X.shape[1]} channels: one for each, none twice")
    if positions is None or not isinstance(positions, Mapping):
        at = None if positions is None else _checked(np.asarray(positions), labels)
        return Labelled(X, labels, at)
    return Labelled(X, labels, _looked_up(positions, labels))


def _of_mne(
    raw: Any, positions: ArrayLike | Mapping[str, ArrayLike] | None, labels_only: bool
) -> Labelled:
    kinds = raw.get_channel_types()
    bad = set(raw.info["bads"])
    chosen = [
        name
        for name, kind in zip(raw.ch_names, kinds, strict=True)
        if kind == "eeg" and name not in bad
    ]
    if len(chosen) < 4:
        raise InputError(f"{len(chosen)} EEG channels that are not bad: four have an order")
    data = np.asarray(raw.get_data(picks=chosen))
    if data.ndim == 3:  # epochs, one after the other
        data = data.transpose(1, 0, 2).reshape(len(chosen), -1)
    if not np.isfinite(data).all():
        raise InputError("the samples hold NaN or infinity: cut them out")
    if labels_only:
        return Labelled(data.T, tuple(chosen), None)
    if positions is None:
        montage = raw.get_montage()
        positions = {} if montage is None else montage.get_positions()["ch_pos"]
    if not isinstance(positions, Mapping):
        return Labelled(data.T, tuple(chosen), _checked(np.asarray(positions), tuple(chosen)))
    if not positions:
        return Labelled(data.T, tuple(chosen), None)
    return Labelled(data.T, tuple(chosen), _looked_up(positions, tuple(chosen)))


def _looked_up(positions: Mapping[str, ArrayLike], names: tuple[str, ...]) -> NDArray[np.float64]:
    missing = [name for name in names if name not in positions]
    if missing:
        raise InputError(
            f"no position for {', '.join(missing[:3])}: give one for each channel, or drop it"
        )
    return _checked(np.stack([np.asarray(positions[name]) for name in names]), names)


def _checked(at: NDArray, names: tuple[str, ...]) -> NDArray[np.float64]:
    if at.ndim != 2 or len(at) != len(names) or at.shape[1] not in (2, 3):
        raise InputError(
            f"positions of shape {at.shape} for {len(names)} channels: give (d, 2 or 3)"
        )
    wrong = [name for name, ok in zip(names, np.isfinite(at).all(axis=1), strict=True) if not ok]
    if wrong:
        raise InputError(f"the position of {wrong[0]} is NaN or infinite: give one, or drop it")
    if len(np.unique(np.round(at, 9), axis=0)) < len(at):
        raise InputError("two channels are said to be at the same position: give each its own")
    return np.asarray(at, dtype=np.float64)


def sites_of(template: Any) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names and positions (M, 3) of a template: MNE's montage or the name of one, or a mapping."""
    if isinstance(template, str):
        try:
            from mne.channels import make_standard_montage
        except ImportError as error:
            raise InputError(
                "templates by name need MNE: pip install 'symlift[eeg]', or give positions by name"
            ) from error
        try:
            template = make_standard_montage(template)
        except ValueError as error:
            raise InputError(f"MNE has no montage {template!r}: see mne.channels") from error
    if hasattr(template, "get_positions"):
        template = template.get_positions()["ch_pos"]
    if not isinstance(template, Mapping) or len(template) < 4:
        raise InputError("a template has four sites or more: a montage, or positions by name")
    names = tuple(str(name) for name in template)
    at = _checked(np.stack([np.asarray(at) for at in template.values()]), names)
    return names, at


def with_positions(raw: Any, names: Sequence[str], positions: NDArray) -> Any:
    """A copy of an MNE object with the channels ``names`` at ``positions`` (d, 3)."""
    if positions.shape[1] != 3:
        raise InputError("positions in a plane are no montage of MNE: give them in space")
    from mne.channels import make_dig_montage

    known: dict[str, Any] = {}
    marks: dict[str, Any] = {}
    frame = "head"
    montage = raw.get_montage()
    if montage is not None:
        given = montage.get_positions()
        known, frame = dict(given["ch_pos"]), given["coord_frame"]
        marks = {key: given[key] for key in ("nasion", "lpa", "rpa")}
    known |= dict(zip(names, positions, strict=True))
    changed = raw.copy()
    changed.set_montage(
        make_dig_montage(known, coord_frame=frame, **marks), on_missing="ignore", verbose="error"
    )
    return changed
