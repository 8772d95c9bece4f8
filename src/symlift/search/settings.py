"""All thresholds of the placement engine, with the measurements that they are based on.

They were chosen on scikit-image's textures (brick, grass, gravel, coins, page, text), synthetic
shot noise and digits; photographs were reserved for evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

from symlift.errors import InputError

__all__ = ["PlaceSettings"]


@dataclass(frozen=True)
class PlaceSettings:
    """Thresholds and sizes.  All measurements were made with the defaults."""

    #: most rows used for statistics: with more, sampling noise no longer limits a placement
    rows: int = 20_000
    #: share of the rows that are held out
    held: float = 0.2
    #: share of the rows in the second of the two parts that are searched, each judged by the other
    parts: float = 0.5
    #: share of the columns that two parts of the rows put in the same places, from which they agree
    alike: float = 0.95
    #: columns up to which values become normal scores; above, they are only clipped (ranking 4096
    #: columns takes 8 s)
    rank_columns: int = 1_024
    #: clipping of robust deviations where values are not ranked
    clip: float = 4.0
    #: rows whose mean clipped deviation exceeds that of the median row by this factor are dropped
    wild_row: float = 8.0
    #: |rank correlation| with the row number above which a column is an index, and the fewest rows
    #: for that decision
    index: float = 0.99
    index_rows: int = 20
    #: largest distance 1 - |c| to a twin, relative to the nearest other column; neighbours on
    #: natural textures: 0.3 and more
    twin: float = 0.05
    #: 1 - |c| above which no column is called a duplicate
    twin_apart: float = 0.02
    #: probability that any unrelated column passes as a related one
    noise: float = 0.01
    #: ridges of the two partial correlations
    ridges: tuple[float, float] = (0.03, 0.3)
    #: ridge of a third that is only used for starts
    start_ridge: float = 0.1
    #: partial correlation below which no edge is drawn in a start
    edge: float = 0.05
    #: pseudo-pairs of value zero in every lag class, so that classes with few pairs do not fit them
    #: exactly
    prior_pairs: float = 4.0
    #: widths, in steps, by which lag models are smoothed over displacements in successive rounds
    widths: tuple[float, ...] = (0.7, 0.5, 0.0)
    #: annealed restarts at 81 slots and fewer (larger grids: proportional to 1/slots²), and the
    #: slots above which there are none
    restarts: int = 100
    restart_slots: int = 300
    #: most starts that are tried, None for all
    starts: int | None = None
    #: starts that must end at the same optimum to stop the search
    agreeing: int = 2
    #: share of what is real in held-out statistics that a placement must explain to be accepted.
    #: Correct placements: 0.89 to 0.96 on textures, 0.77 on faces, 0.6 to 0.8 on whole digits;
    #: dense mixings up to 0.41 (DST-I, where modes of neighbouring frequency are correlated), noise
    #: 0.08 or less
    believed: float = 0.5
    #: the same for placements by plain correlations: rotations of images reach 0.39, sine
    #: transforms 0.46
    believed_lags: float = 0.6
    #: the share above which no other statistic is tried
    convinced: float = 0.55
    #: share of a column predicted by its neighbours above which the placement counts as local
    predicted: float = 0.3
    #: the share below which restarts are not tried: random rotations and noise reach less
    hopeless: float = 0.15
    #: kurtosis of partial correlations below which columns are mixed, not points: 2.8 to 3.6 behind
    #: a rotation (normal: 3), 12 to 18 for images of 64 pixels
    few_partners: float = 4.5
    #: their skewness, below which columns may be mixed: at most 0.4 behind a rotation, 0.7 to 5 for
    #: points; and the share of them that must be real for that: 0.95 to 1 behind a rotation, 0.05
    #: and 0.14 for photographs 10 and 5 dB below their noise, which are as normal
    mostly_positive: float = 0.5
    mostly_real: float = 0.5
    #: least z score of the correlation between held-out and fitted statistics
    significant: float = 5.0
    #: bits: the share of the ceiling that ends the search (correct placements 0.93, wrong ones
    #: below 0.5)
    channels_convinced: float = 0.7
    #: starts of several channels, and the slots above which only two are tried on bits
    channel_starts: int = 7
    many_slots: int = 500
    #: share of the occupied points that must have all channels for a result with several channels
    full_points: float = 0.8
    #: columns supported by fewer rows (n over the kurtosis) are placed after the others
    thin_rows: float = 25.0
    #: rows below which the search is repeated with the held-out rows included
    few_rows: int = 1_500
    #: columns up to which the dense search runs; above, only local statistics are used, and the
    #: ceiling of held-out prediction must reach ``least_ceiling``
    dense: int = 1_200
    #: channels above that number of columns: all their orders are tried at each point
    wide_channels: int = 6
    least_ceiling: float = 0.02
    #: share of the ceiling above which places between the grid points are not tried
    on_grid: float = 0.9
    #: columns between grid points: least agreement of the places that two parts of the rows give,
    #: for places to be believed, and the standard errors by which they must be ahead of the grid
    scattered: float = 0.85
    errors: float = 2.0
    #: share of what is real in plain correlations that displacements explain, below which a field
    #: is far from stationary and judged by near displacements only (digits 0.4 to 0.5; faces 0.66
    #: to 0.7; stationary fields with a third of the points missing 0.8 and more), and the slots up
    #: to which parts are moved as a whole: a move takes 4 ms at 64 slots
    far_from_stationary: float = 0.55
    slip_slots: int = 100

    def check_channels(self, columns: int, channels: str | int, given: bool = True) -> None:
        """Refuse more channels of very many columns than can be told apart, and to propose a grid
        for several.
        """
        if channels not in ("auto", 1) and not given and columns > self.dense:
            raise InputError(
                f"no grid is proposed for channels={channels} of {columns:,} columns, at most"
                f" {self.dense:,}: give the grid"
            )
        if channels != "auto" and int(channels) > self.wide_channels and columns > self.dense:
            raise InputError(
                f"channels={channels} cannot be placed for {columns:,} columns, at most"
                f" {self.wide_channels} above {self.dense:,}: fit the columns of a part of the"
                " grid, or some channels alone"
            )
