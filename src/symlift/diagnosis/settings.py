"""Every threshold of the diagnosis; set on the seen half of the families of
``benchmarks/verdicts``, and on no others.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "DiagnosisSettings"]


@dataclass(frozen=True)
class DiagnosisSettings:
    """Thresholds; `python benchmarks/diagnosis.py calibrate` prints the numbers behind them."""

    #: probability of a right result from which one is called present or ordered
    confident: float = 0.5
    #: moments of signals that are right, behind a dense mixing, lay within 0.003 of 0, those of the
    #: ranks of columns in place within 0.011 (fields that are not stationary: 0.025 and more); few
    #: independent rows scatter more
    stationarity: float = 0.004
    stationarity_of_ranks: float = 0.02
    stationarity_rows: float = 8.0
    stationarity_of_ranks_rows: float = 1.0
    #: 2x2, 2x3 and lines up to 7 points have fewer pairs than this beyond one for each
    #: displacement: anything fits them
    freedom: int = 18
    #: copies of one column have an effective rank of 1, spectra over one baseline 1.03, small
    #: patches of photographs 1.15
    rank: float = 1.01
    #: least number of independent rows for any test
    independent_rows: float = 12.0
    #: the same for places of their own, for each of the two or three numbers of a column
    independent_rows_between: float = 20.0
    #: least z score for statistics to count as real
    significant: float = 5.0
    #: of what is real in columns' correlations, the part that other pairs at the same displacement
    #: predict: 0.9 to 1 where columns are points of the grid; from ``clearly_local`` on a symmetry
    #: may be spoken of even where it is not identifiable
    local: float = 0.7
    clearly_local: float = 0.9
    #: share of the columns that keep their places on held-out rows: nearly all if they are right;
    #: below the second number the data support no order at all
    settled: float = 0.8
    hardly_settled: float = 0.5
    #: least share of the columns that keep their places when the gaps of a line or ring are moved
    #: to where plain correlations put them
    gaps: float = 0.5
    #: share of real statistics from which another grid is a rival
    rival: float = 0.5
    #: how much better a line must be than the ring that it is cut from
    cut_ring: float = 0.02
    #: what displacements explain beyond a control in which correlations are assigned to other pairs
    beyond_control: float = 0.1
    #: the same of components under a dense mixing
    components_local: float = 0.5
    #: components: independent ones that are not Gaussian show no locality at all, mixtures of
    #: Gaussians a little (0.55 at most)
    components_claim: float = 0.1
    components_confident: float = 0.6
    #: angles: correlation of the phases of two halves of the columns, and the lead of their plane
    #: over the next best (head directions 0.48, made populations 0.8 and more, eleven sharply tuned
    #: cells 0.06; four gratings, which determine no ring,
    #: 0.02)
    angles_local: float = 0.25
    ahead: float = 0.05
    #: two halves of the rows must agree on so many columns, or signals must correlate so well
    agreement: float = 0.9


DEFAULT = DiagnosisSettings()
