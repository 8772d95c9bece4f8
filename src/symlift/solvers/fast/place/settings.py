"""Every threshold of the placement engine, in one place, with the measurement that set it.

Set on scikit-image's textures (brick, grass, gravel, coins, page, text), synthetic shot noise and digits; photographs were kept
for judging.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PlaceSettings"]


@dataclass(frozen=True)
class PlaceSettings:
    """Thresholds and sizes.  Defaults are what all measurements were made with."""

    #: statistics are taken from at most this many rows: beyond, sampling noise no longer limits a placement
    rows: int = 20_000
    #: share of the rows that only judge
    held: float = 0.2
    #: columns up to which values become normal scores; above, they are only clipped (ranking 4096 columns takes 8 s)
    rank_columns: int = 1_024
    #: clipping of robust deviations where values are not ranked
    clip: float = 4.0
    #: rows whose mean clipped deviation exceeds that of the median row so many times are dropped
    wild_row: float = 8.0
    #: |rank correlation| with the row number from which a column is an index, and the rows that it takes to say so
    index: float = 0.99
    index_rows: int = 20
    #: a twin is so many times nearer (in 1 - |c|) than the nearest other column; neighbours on natural textures: 0.3 and more
    twin: float = 0.05
    #: 1 - |c| above which nothing is called a duplicate
    twin_apart: float = 0.02
    #: chance that one stranger among all columns is taken for a living one
    noise: float = 0.01
    #: ridges of the two partial correlations
    ridges: tuple[float, float] = (0.03, 0.3)
    #: ridge of a third that only gives a start
    start_ridge: float = 0.1
    #: partial correlation below which no edge is drawn in a start
    edge: float = 0.05
    #: pairs that every lag class is taken to have seen at zero: classes that few pairs fall in must not fit them
    prior_pairs: float = 4.0
    #: lag models are smoothed over displacements, ever less, while columns settle
    widths: tuple[float, ...] = (0.7, 0.5, 0.0)
    #: annealed restarts at 81 slots and fewer (larger grids: in proportion to 1/slots²), and the slots above which there are none
    restarts: int = 100
    restart_slots: int = 300
    #: starts that are tried at most, None: all there are
    starts: int | None = None
    #: starts that must end at the same optimum to stop the search
    agreeing: int = 2
    #: share of what is real in held-out statistics that a placement must account for to be believed.  Right ones: 0.89 to 0.96 on
    #: textures, 0.77 on faces, 0.6 to 0.8 on whole digits; dense mixings up to 0.41 (DST-I, where modes of
    #: neighbouring frequency go together), noise 0.08 or less
    believed: float = 0.5
    #: the same where plain correlations carry it: rotations of images reach 0.39, sine transforms 0.46
    believed_lags: float = 0.6
    #: the share from which no other statistic is tried
    convinced: float = 0.55
    #: part of a column that its neighbours predict, from which locality is beyond doubt
    predicted: float = 0.3
    #: the share below which restarts are not tried: random rotations and noise leave less
    hopeless: float = 0.15
    #: held-out pairs' correlation with fitted ones, in deviations of chance
    significant: float = 5.0
    #: bits: the share of the ceiling that ends the search (right ones 0.93, wrong ones less than 0.5)
    channels_convinced: float = 0.7
    #: starts of several channels, and the slots above which only two are tried on bits
    channel_starts: int = 7
    many_slots: int = 500
    #: share of the occupied points that must hold all channels, for there to be several
    full_points: float = 0.8
    #: columns that rest on fewer rows (n over the kurtosis) come after the others
    thin_rows: float = 25.0
    #: rows below which those that judged are used once more for the placement itself
    few_rows: int = 1_500
    #: columns up to which the dense mechanism runs; above, everything is local, and held-out prediction must reach this
    #: to mean anything
    dense: int = 1_200
    least_ceiling: float = 0.02
    #: share of the ceiling from which nobody asks whether columns sit between the points
    on_grid: float = 0.9
    #: columns at places of their own: the part of plain correlations that must be real (sensors 0.99; photographs from 100
    #: rows 0.3, where noise bends distances until they explain everything), the share of it that distances must explain (random
    #: places 0.994 and more, from 100 rows 0.93; faces 0.95, whose distances are bent to fit), how much more than displacements
    #: on the grid do (0.25 to 0.38; lattices, also with a third of their points missing, 0.02, faces 0.07), and the spread of
    #: distances to the nearest column (0.41 to 1.2; lattices 0.03 to 0.27, and more where few rows blur them)
    scattered_ceiling: float = 0.6
    scattered: float = 0.96
    scattered_gain: float = 0.1
    irregular: float = 0.3
    #: share of what is real in plain correlations that displacements explain, below which a field is far from stationary, so
    #: that only near displacements judge (digits 0.4 to 0.5; faces 0.66 to 0.7; stationary with a third of the points missing 0.8
    #: and more), and the slots up to which parts are moved as a whole: a slip takes 4 ms at 64
    far_from_stationary: float = 0.55
    slip_slots: int = 100
