"""Waveforms behind an unknown rotation of all channels: the symmetry that is found is a derivative,
once mapped to its grid.
"""

from matplotlib.figure import Figure

from symlift import LatentDomain
from symlift.datasets import gsn
from symlift.plotting import new_figure, plot_generators, plot_signals, styled


def main(n: int = 6000) -> Figure:
    """Unmix, and draw the generator as it came, on the grid, and some signals."""
    X = gsn(n, 15, periodic=True, transform="orthogonal", random_state=0).X

    est = LatentDomain(grid=(15,), periodic=True, random_state=0).fit(X)

    with styled():
        figure = new_figure(10.5, 3.2)
        first, second, third = figure.subplots(1, 3)
        plot_generators(est, ax=first, on_grid=False)
        plot_generators(est, ax=second)
        plot_signals(est, X, third, count=6)
    return figure
