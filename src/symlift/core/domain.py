"""The domains that signals can live on: regular grids, and the sphere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symlift.core.grid import Grid, grid_words
from symlift.core.sphere import Sphere
from symlift.errors import InputError

__all__ = ["Domain", "given_domain", "lattice_of", "words_for"]

Domain = Grid | Sphere


def given_domain(grid: Any, periodic: bool | Sequence[bool] = False) -> Domain | None:
    """The domain that is asked for; None for ``"auto"``.

    >>> str(given_domain("3x4")), str(given_domain("sphere5")), given_domain("auto")
    ('3x4', 'sphere of degree 5', None)
    """
    sphere = Sphere.given(grid)
    if sphere is None:
        return Grid.given(grid, periodic)
    if np.any(periodic):
        raise InputError(f"a sphere has no periodic axes, and periodic={periodic!r}: leave it out")
    return sphere


def lattice_of(domain: Domain) -> Grid:
    """The domain, if it is a grid; what is made for grids alone is refused on a sphere.

    >>> lattice_of(Grid((4, 6))).size
    24
    """
    if isinstance(domain, Sphere):
        raise InputError(
            f"this is made for grids, and the domain is a {domain}: use transform, shift and"
            " generators_, which work for both"
        )
    return domain


def words_for(domain: Domain) -> str:
    """Describe a domain in words, for sentences.

    >>> words_for(Sphere(5)), words_for(Grid((4, 6)))
    ('sphere of degree 5', '4 × 6 grid')
    """
    return str(domain) if isinstance(domain, Sphere) else grid_words(domain)
