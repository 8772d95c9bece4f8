"""Is the result real? An answer from the data alone: a verdict, the named tests that it rests on,
and what to do next.

The types are here; the measures and tests are imported only when a fit is examined, because they
import most of the fast solver.
"""

from symlift.diagnosis.contract import (
    Asked,
    Claim,
    Diagnosis,
    Level,
    NextStep,
    Refit,
    Test,
    Verdict,
)

__all__ = ["Asked", "Claim", "Diagnosis", "Level", "NextStep", "Refit", "Test", "Verdict"]


def __dir__() -> list[str]:
    return sorted(__all__)
