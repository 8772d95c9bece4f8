"""Genes that are known to follow the cell cycle or the time of day, and when each is highest.

Symbols are those of human genes; they are compared without regard to case, which finds the genes
of mice as well.  Only the origin and the direction of a phase are taken from here: neither a ring
nor its verdict depends on when a gene is said to be highest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

__all__ = ["CELL_CYCLE", "CIRCADIAN"]

_S = """
    MCM5 PCNA TYMS FEN1 MCM2 MCM4 RRM1 UNG GINS2 MCM6 CDCA7 DTL PRIM1 UHRF1 CENPU HELLS RFC2
    RPA2 NASP RAD51AP1 GMNN WDR76 SLBP CCNE2 UBR7 POLD3 MSH2 ATAD2 RAD51 RRM2 CDC45 CDC6
    EXO1 TIPIN DSCC1 BLM CASP8AP2 USP1 CLSPN POLA1 CHAF1B BRIP1 E2F8
""".split()  # noqa: SIM905 - a table
_G2M = """
    HMGB2 CDK1 NUSAP1 UBE2C BIRC5 TPX2 TOP2A NDC80 CKS2 NUF2 CKS1B MKI67 TMPO CENPF TACC3
    PIMREG SMC4 CCNB2 CKAP2L CKAP2 AURKB BUB1 KIF11 ANP32E TUBB4B GTSE1 KIF20B HJURP CDCA3
    CDC20 TTK CDC25C KIF2C RANGAP1 NCAPD2 DLGAP5 CDCA2 CDCA8 ECT2 KIF23 HMMR AURKA PSRC1
    ANLN LBR CKAP5 CENPE CTCF NEK2 G2E3 GAS2L3 CBX5 CENPA
""".split()  # noqa: SIM905 - a table
#: hour at which the transcript of a clock gene is highest, counted from the peak of ARNTL
_HOURS = {
    "ARNTL": 0, "BMAL1": 0, "NPAS2": 0, "CLOCK": 1, "NFIL3": 23, "NR1D1": 8, "NR1D2": 10,
    "DBP": 10, "TEF": 12, "HLF": 12, "CIART": 11, "USP2": 12, "PER1": 13, "PER3": 12, "PER2": 15,
    "BHLHE41": 14, "CRY2": 14, "RORC": 19, "CRY1": 20, "RORA": 21,
}  # fmt: skip

#: genes of the cell cycle: 0 at the middle of S, a third of a turn later at that of G2 and M
CELL_CYCLE: Mapping[str, float] = MappingProxyType(
    {**dict.fromkeys(_S, 0.0), **dict.fromkeys(_G2M, 2 * np.pi / 3)}
)
#: genes of the circadian clock: 0 at the peak of BMAL1 (ARNTL), a whole turn is a day
CIRCADIAN: Mapping[str, float] = MappingProxyType(
    {gene: 2 * np.pi * hour / 24 for gene, hour in _HOURS.items()}
)
