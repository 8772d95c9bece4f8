"""Single cells on a ring: cell cycle and circadian phase, and whether there is one  (extra
``cells``)
"""

from symlift.cells.genes import CELL_CYCLE, CIRCADIAN
from symlift.cells.phases import PhaseResult, phase

__all__ = ["CELL_CYCLE", "CIRCADIAN", "PhaseResult", "phase"]
