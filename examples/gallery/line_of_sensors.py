"""Twenty-five channels along a line, in unknown order, one of them dead: the place of each, and
whether to trust it.
"""

import numpy as np
from matplotlib.figure import Figure

from symlift import LatentDomain
from symlift.datasets import gsn
from symlift.plotting import new_figure, plot_diagnosis, plot_placement, styled


def main(n: int = 3000) -> Figure:
    """Place the sensors, and draw the map next to the evidence."""
    X = gsn(n, 24, transform="permutation", random_state=1).X
    X = np.column_stack([X, np.full(n, 0.25)])  # a channel that says nothing

    est = LatentDomain(grid=(24,), random_state=0).fit(X)
    est.diagnose(X)

    with styled():
        figure = new_figure(9.5, 3.2)
        left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
        plot_placement(est, left)
        plot_diagnosis(est, right)
    return figure
