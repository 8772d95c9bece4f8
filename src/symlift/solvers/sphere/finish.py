"""From a rotation to the map: signs of degrees, their scales, and a frame by rule."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from symlift.core.harmonics import degree_blocks, degrees_of, gaunt_tensor, rotation_vector
from symlift.core.linalg import polar
from symlift.core.rotations import RotationGroup
from symlift.solvers.sphere.invariants import Invariants

__all__ = ["framed", "least_distortion", "skewest_signs"]


def skewest_signs(beta: NDArray, part: Invariants, with_mean: bool = False) -> NDArray[np.float64]:
    """Sign of each degree, by which the field at a point is most skewed, (L + 1,).

    A change of the sign of a whole degree leaves every moment invariant, so that only the shape of
    the field can decide: the skewest field has the sharpest positive pulses.  Its third moment at a
    point is a sum over triples of degrees, each with the product of its three signs.  Changing all
    odd degrees is a reflection through the centre; degree 1 keeps its sign.  Of moments
    ``with_mean`` the sign of degree 0 is a factor.
    """
    L = part.degree
    G, pole = gaunt_tensor(L), np.sqrt((2 * np.arange(L + 1) + 1) / (4 * math.pi))
    a, b, c = part.triples.T
    zonal = np.arange(L + 1) * (np.arange(L + 1) + 1)
    orders = [len(set(itertools.permutations(triple))) for triple in part.triples.tolist()]
    weight = beta * G[zonal[a], zonal[b], zonal[c]] * pole[a] * pole[b] * pole[c] * orders
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=L + 1)))
    signs = signs[signs[:, 1] > 0]
    skewness = (signs[:, a] * signs[:, b] * signs[:, c]) @ weight
    return signs[np.argmax(skewness * signs[:, 0] if with_mean else skewness)]


def least_distortion(unmixed: NDArray, degree: int) -> NDArray[np.float64]:
    """Scale of each degree for which the columns of the mixing have length 1 on average, (L + 1,).

    ``unmixed`` (D, d) gives coefficients of unit variance.  A linear mixing leaves the scale of
    each degree open; the mixing nearest to an isometry is taken.
    """
    mixing = np.linalg.pinv(unmixed)
    lengths = np.square(mixing).sum(axis=0)
    return np.array([math.sqrt(lengths[block].mean()) for block in degree_blocks(degree)])


def framed(E: NDArray, degree: int) -> NDArray[np.float64]:
    """E in a frame by rule, so that it does not depend on how a processor rounds.

    The degree-1 part of the first column points north, that of the second lies on the meridian of
    x, and that of the third has a positive y.
    """
    # degree 1 is (y, z, x)
    first, second, third = E[[3, 1, 2], :3].T
    north = first / max(float(np.linalg.norm(first)), 1e-300)
    along = second - (second @ north) * north
    along /= max(float(np.linalg.norm(along)), 1e-300)
    across = np.cross(north, along)
    R = polar(np.stack([along, across, north]))
    turned = RotationGroup(degree).act(E.T, rotation_vector(R)).T
    odd = (degrees_of(degree) % 2 == 1)[:, None]
    if third @ across < 0:
        # a reflection through the centre, and half a turn about y to keep the first two rules
        turned = np.where(odd, -turned, turned)
        turned = RotationGroup(degree).act(turned.T, [0.0, math.pi, 0.0]).T
    return turned
