"""Handwritten digits whose 784 pixels were shuffled, in the same way in every image, and what is
found of them.

Only the numbers are known. Pixels that are always black cannot be placed: they are left out, and
filled in. No blind method can know which way up a picture was, so what is found is turned as the
truth is, for us to read.
"""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from symlift import LatentDomain
from symlift.datasets import load_mnist
from symlift.metrics import align, signal_recovery
from symlift.plotting import gallery


def main(n: int = 5000) -> Figure:
    """Shuffle, recover, draw both."""
    rng = np.random.default_rng(0)
    digits = load_mnist()
    chosen = rng.permutation(len(digits.images))[:n]
    images = digits.images[chosen].reshape(n, -1).astype(np.float32)
    X = images[:, rng.permutation(784)]  # what one has: vectors of 784 numbers

    est = LatentDomain(grid=(28, 28), mixing="shuffled", random_state=0).fit(X)

    Y = X @ est.lifting_map_.T  # as est.transform(X), but with the mean
    recovery = signal_recovery(images, Y, est.grid_)
    assert recovery.alignment is not None
    one_each = [int(np.flatnonzero(digits.labels[chosen] == digit)[0]) for digit in range(10)]
    upright = align(Y[one_each], recovery.alignment, est.grid_)
    rows: dict[str, NDArray] = {"shuffled": X[one_each], "found": upright}
    return gallery(
        rows, est.grid_, columns=10, title=f"784 pixels put back in place: r = {recovery.r:.3f}"
    )
