"""Twenty simulated neurons, each tuned to a direction of its own: the ring that they span, coloured
by the true direction.
"""

import numpy as np
from matplotlib.figure import Figure

from symlift import LatentDomain
from symlift.metrics import circular_correlation
from symlift.plotting import new_figure, plot_ring, plot_signals, styled


def main(n: int = 2000) -> Figure:
    """Simulate counts, decode the direction, draw the code and some signals."""
    rng = np.random.default_rng(3)
    direction, preferred = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 2 * np.pi, 20)
    X = rng.poisson(0.2 + 6 * np.exp(3 * (np.cos(direction[:, None] - preferred) - 1))).astype(
        float
    )

    est = LatentDomain(grid=(18,), periodic=True, solver="ring", random_state=0).fit(X)
    r = abs(circular_correlation(est.phase(X), direction))

    with styled():
        figure = new_figure(
            8.5, 3.6, f"direction from spike counts alone: circular correlation {r:.3f}"
        )
        left, right = figure.subplots(1, 2)
        plot_ring(est, X[:800], left, labels=direction[:800])
        plot_signals(est, X, right, count=6)
    return figure
