"""What every symmetry group of a model has in common, whether its elements commute or not.

A group acts on R^D by orthogonal matrices ρ(t) = exp(Σ_j t_j L_j).  A model evaluates the orbit of
one vector w₀ under it, y(t) = w₀ᵀ ρ(t)⁻¹ E x: at the points of a grid for translations, whose L_j
commute and share planes, and at the points of a sphere for rotations, whose L_j are blocks of
2l + 1 dimensions and do not commute.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["Representation", "along_orbit"]


def along_orbit(orbit: NDArray, E: NDArray, channels: int) -> NDArray:
    """The products of an orbit (points, D) with each channel's D rows of E, channels fastest."""
    blocks = orbit @ E.reshape(channels, orbit.shape[1], -1)
    return blocks.swapaxes(0, 1).reshape(len(orbit) * channels, -1)


class Representation(Protocol):
    """An orthogonal representation of a group, with its generators."""

    @property
    def dimension(self) -> int:
        """Dimension D of the space that the group acts on."""
        ...

    @property
    def axes(self) -> int:
        """Number P of generators."""
        ...

    @property
    def filter_size(self) -> int:
        """Number of weights r that describe w₀: one for each plane, or for each degree."""
        ...

    def act(self, Z: NDArray, t: ArrayLike) -> NDArray:
        """Apply ρ(t) to each row of Z (n, D)."""
        ...

    def derivative(self, Z: NDArray, axis: int) -> NDArray:
        """Apply L_axis to each row of Z (n, D): d/dt of `act` at 0."""
        ...

    def evaluate(self, E: Any, domain: Any, r: NDArray, channels: int) -> Any:
        """Rows w₀ᵀ ρ(t_n)⁻¹ E for the points t_n of a domain, (points · channels, d)."""
        ...

    def tensors(self) -> dict[str, NDArray]:
        """The arrays that describe the group, by the names under which they are stored."""
        ...

    def to(self, dtype: DTypeLike) -> Self:
        """The same group in another precision."""
        ...
