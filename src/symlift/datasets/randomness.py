"""Seeds: everything random here comes from one local generator, never from numpy's global state."""

from __future__ import annotations

import numpy as np

from symlift.errors import InputError

__all__ = ["RandomState", "generator"]

RandomState = int | np.random.Generator | None


def generator(random_state: RandomState) -> np.random.Generator:
    """A generator for a seed, the generator itself if one is given, a fresh one for ``None``.

    >>> int(generator(0).integers(100)) == int(generator(0).integers(100))
    True
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state {random_state!r} is no seed: give a whole number ≥ 0, a numpy Generator or None"
        ) from None
