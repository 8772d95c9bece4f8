"""The settings of placement, with the measurements that they are based on.

They were chosen on scikit-image's textures (brick, grass, gravel, coins, page, text), synthetic
shot noise and digits; photographs were reserved for evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from symlift.errors import InputError
from symlift.search.judge import Judge

__all__ = ["PlaceSettings"]


@dataclass(frozen=True)
class PlaceSettings:
    """Sizes, and how statistics are taken; ``judge`` decides.  All measurements were made with the
    defaults.
    """

    judge: Judge = field(default_factory=Judge)
    #: most rows used for statistics: with more, sampling noise no longer limits a placement
    rows: int = 20_000
    #: share of the rows that are held out
    held: float = 0.2
    #: share of the rows in the second of the two parts that are searched, each judged by the other
    parts: float = 0.5
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
    #: kurtosis of partial correlations below which columns are mixed, not points: 2.8 to 3.6 behind
    #: a rotation (normal: 3), 12 to 18 for images of 64 pixels
    few_partners: float = 4.5
    #: their skewness, below which columns may be mixed: at most 0.4 behind a rotation, 0.7 to 5 for
    #: points; and the share of them that must be real for that: 0.95 to 1 behind a rotation, 0.05
    #: and 0.14 for photographs 10 and 5 dB below their noise, which are as normal
    mostly_positive: float = 0.5
    mostly_real: float = 0.5
    #: starts of several channels, and the slots above which only two are tried on bits
    channel_starts: int = 7
    many_slots: int = 500
    #: columns supported by fewer rows (n over the kurtosis) are placed after the others
    thin_rows: float = 25.0
    #: rows below which the search is repeated with the held-out rows included
    few_rows: int = 1_500
    #: columns up to which the dense search runs; above, only local statistics are used
    dense: int = 1_200
    #: channels above that number of columns: all their orders are tried at each point
    wide_channels: int = 6
    #: slots up to which parts of a field far from stationary are moved as a whole: a move takes
    #: 4 ms at 64 slots
    slip_slots: int = 100

    def check_channels(self, columns: int, channels: str | int, given: bool = True) -> None:
        """Refuse more channels of very many columns than are distinguished, and to propose a grid
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
