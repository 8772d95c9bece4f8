"""Random generators: all randomness comes from one local generator, never from global state."""

from __future__ import annotations

import numpy as np

from symlift.errors import InputError

__all__ = ["RandomState", "generator"]

RandomState = int | np.random.Generator | None


def generator(random_state: RandomState) -> np.random.Generator:
    """Generator of a seed; a generator is returned as it is, and None gives a fresh one.

    >>> int(generator(0).integers(100)) == int(generator(0).integers(100))
    True
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state {random_state!r} is not a seed: give a whole number ≥ 0, a numpy"
            " Generator or None"
        ) from None
