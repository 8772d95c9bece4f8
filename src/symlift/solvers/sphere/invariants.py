"""Third moments of fields on a sphere, and the part of them that rotations leave as it is.

For a field whose statistics no rotation changes, E[c_a c_b c_c] of the coefficients of spherical
harmonics is β(l₁, l₂, l₃) G_abc: one number for each triple of degrees (the bispectrum) times the
Gaunt tensor.  For x = A c with A orthogonal, the third moment of V x has that form at V = Aᵀ.
Rotations keep its norm, so the distance from the form is least where the projection is largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from symlift.core.harmonics import degrees_of, gaunt_tensor
from symlift.solvers.fast.triples import unpacked

__all__ = ["Invariants", "invariants", "moment_with", "rotated", "third_moment"]

# products of pairs of columns are formed for so many numbers at a time
_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Invariants:
    """Tensors (D, D, D) that rotations leave as they are, up to a degree.

    Parameters
    ----------
    degree : int
        Highest degree.
    triples : ndarray of shape (k, 3)
        Degrees l₁ ≤ l₂ ≤ l₃ whose Gaunt tensor is not zero.
    place, which, value : ndarray
        Flat index, triple and value of the entries of the Gaunt tensor that are not zero.
    size : ndarray of shape (k,)
        Squared norm of each triple's tensor, over all orders of its indices.
    """

    degree: int
    triples: NDArray[np.int64]
    place: NDArray[np.int64]
    which: NDArray[np.int64]
    value: NDArray[np.float64]
    size: NDArray[np.float64]

    @property
    def dimension(self) -> int:
        """Number D of coefficients."""
        return (self.degree + 1) ** 2

    def bispectrum(self, tensor: NDArray) -> NDArray[np.float64]:
        """β of each triple for the nearest invariant tensor."""
        at = tensor.reshape(-1)[self.place] * self.value
        return np.bincount(self.which, at, len(self.size)) / self.size

    def project(self, tensor: NDArray) -> NDArray[np.float64]:
        """The nearest invariant tensor."""
        out = np.zeros(tensor.size)
        out[self.place] = self.bispectrum(tensor)[self.which] * self.value
        return out.reshape(tensor.shape)

    def energy(self, V: NDArray, packed: NDArray) -> tuple[float, NDArray[np.float64]]:
        """‖Π V^{⊗3} T‖² and a sixth of its gradient in V (D, d), for T as `pack` gives it."""
        D, d = V.shape
        pairs = (V @ (V @ packed)[:, unpacked(d)].reshape(D, d, d)).reshape(-1, d)
        beta = self.bispectrum(pairs @ V.T)
        inside = np.zeros(D**3)
        inside[self.place] = beta[self.which] * self.value
        return float(np.sum(beta**2 * self.size)), inside.reshape(-1, D).T @ pairs


@lru_cache(maxsize=4)
def invariants(degree: int) -> Invariants:
    """The invariant tensors up to a degree."""
    G, ell = gaunt_tensor(degree), degrees_of(degree)
    place = np.flatnonzero(G)
    at = np.sort(ell[np.stack(np.unravel_index(place, G.shape))], axis=0)
    code = np.ravel_multi_index(tuple(at), (degree + 1,) * 3)
    names, which = np.unique(code, return_inverse=True)
    value = G.reshape(-1)[place]
    triples = np.stack(np.unravel_index(names, (degree + 1,) * 3), axis=1)
    size = np.bincount(which, value**2).astype(np.float64)
    return Invariants(degree, triples, place, which, value, size)


def third_moment(Z: NDArray, weights: NDArray | None = None) -> NDArray[np.float64]:
    """E[w z ⊗ z ⊗ z] of rows (n, d), each pair of columns multiplied once; w is 1 if not given.

    >>> third_moment(np.array([[1.0, 2.0]]))[1]
    array([[2., 4.],
           [4., 8.]])
    """
    n, d = Z.shape
    first, second = np.triu_indices(d)
    sums = np.zeros((len(first), d))
    step = max(1, _BLOCK // len(first))
    for start in range(0, n, step):
        rows = np.asarray(Z[start : start + step], dtype=np.float64)
        last = rows if weights is None else rows * weights[start : start + step, None]
        sums += (rows[:, first] * rows[:, second]).T @ last
    out = np.empty((d, d, d))
    out[first, second] = out[second, first] = sums / max(n, 1)
    return out


def moment_with(Z: NDArray, u: NDArray) -> NDArray[np.float64]:
    """The fourth cumulant of rows Z (n, d) with one of its directions, u: E[(u z) z ⊗ z ⊗ z] less
    what rows of the same covariance have that are Gaussian.

    Rotations leave degree 0 as it is. With u its direction, this is a third moment of the field as
    it is upright or upside down, and of the form that third moments have.
    """
    out = third_moment(Z, Z @ u)
    C = Z.T @ Z / max(len(Z), 1)
    along = C @ u
    for axis in range(3):
        out -= np.moveaxis(np.multiply.outer(along, C), 0, axis)
    return out


def rotated(V: NDArray, tensor: NDArray) -> NDArray[np.float64]:
    """V ⊗ V ⊗ V applied to a tensor (d, d, d), for V (D, d)."""
    for _ in range(3):  # each time the first index is turned and goes last
        tensor = np.tensordot(tensor, V, axes=(0, 1))
    return tensor
