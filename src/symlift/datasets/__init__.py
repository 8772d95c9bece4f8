"""Data with a known truth: shot noise, Ising spins, image crops, and hiding transforms.

>>> from symlift.datasets import gsn
>>> data = gsn(1000, 63, transform="dst1", random_state=0)
>>> data.X.shape, str(data.grid), data.name
((1000, 63), '63', 'gsn-63-gaussian-dst1')
"""

from __future__ import annotations

from symlift.datasets.bits import ScrambledBits, bit_planes, from_bit_planes, scrambled_bits
from symlift.datasets.cycling import cycling_cells
from symlift.datasets.images import (
    Digits,
    fetch_mnist,
    image_crops,
    load_mnist,
)
from symlift.datasets.nwb_gratings import load_nwb_gratings
from symlift.datasets.observations import Observations
from symlift.datasets.populations import plane_population, torus_population
from symlift.datasets.recordings import (
    load_recording,
    mix_samples,
    ring_population,
    z_scores,
)
from symlift.datasets.shot_noise import gsn
from symlift.datasets.sphere import sphere_noise
from symlift.datasets.spins import ising
from symlift.datasets.transforms import (
    dst1,
    identity,
    random_linear,
    random_orthogonal,
    random_permutation,
)

__all__ = [
    "Digits",
    "Observations",
    "ScrambledBits",
    "bit_planes",
    "cycling_cells",
    "dst1",
    "fetch_mnist",
    "from_bit_planes",
    "gsn",
    "identity",
    "image_crops",
    "ising",
    "load_mnist",
    "load_nwb_gratings",
    "load_recording",
    "mix_samples",
    "plane_population",
    "random_linear",
    "random_orthogonal",
    "random_permutation",
    "ring_population",
    "scrambled_bits",
    "sphere_noise",
    "torus_population",
    "z_scores",
]


def __dir__() -> list[str]:
    return sorted(__all__)
