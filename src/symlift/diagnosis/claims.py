"""What a result claims, one by one, each with its probability: the domain, places on it,
neighbours, a symmetry; and how probable it is that there is something to find at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from symlift.diagnosis.confidence import ANGLES, Curve, features, kind_of
from symlift.diagnosis.contract import Claim, Test, Verdict
from symlift.diagnosis.measures import Measures
from symlift.diagnosis.settings import DEFAULT
from symlift.diagnosis.verdict import CLAIMING, DOUBTED, Further, passed_all
from symlift.solvers.contract import Contest

__all__ = ["CLOSE", "SOMETHING", "claims_of", "next_best", "something_of", "strongest"]

#: P(there is something to find), fitted to all families of `benchmarks/diagnosis.py`: 0.02, 0.17,
#: 0.39, 0.64, 0.86, 0.98 were 0.04, 0.28, 0.27, 0.24, 0.44, 1.00 with each family judged by a
#: curve without it
SOMETHING = {
    "places": Curve(-6.61, {"across": 3.12, "beyond": 1.20, "beside": 6.06, "stationary": 0.46}),
    "components": Curve(-7.98, {"local": 1.70, "nongaussian": 9.44, "stationary": 2.60}),
}
#: P(at least 70 % of the columns have their true neighbour among the six placed nearest) if any
#: structure is there, fitted to 17 real arrays with known layouts; with each judged by a curve
#: without it, 14 were on the right side
CLOSE = Curve(-14.0, {"with_partner": 17.5})


def something_of(measures: Measures, sure: float, among: Contest | None) -> float:
    """Probability that there is something to find: at least that of the result."""
    kind = kind_of(measures)
    if kind in ANGLES:
        other = None if among is None else among.probability
        if among is None or other is None:
            return sure
        return max(sure, other if among.domain else 1 - other)
    curve = SOMETHING["components" if kind == "components" else "places"]
    return max(sure, curve(features(measures)))


def claims_of(
    measures: Measures, tests: Sequence[Test], sure: float, something: float, among: Contest | None
) -> tuple[Claim, ...]:
    """What the result claims; a claim holds if it is probable and its tests are passed."""
    by_name = {test.name: test.passed for test in tests}
    certain = sure >= DEFAULT.confident

    def holds(names: Sequence[str]) -> bool:
        return certain and passed_all(by_name, names)

    rivals = [name for name in by_name if name.startswith("locality_on_")]
    domain = sure
    if among is not None and among.probability is not None:
        fitted = "ring" if measures.grid.ndim == 1 else "torus"
        domain = among.probability if among.domain == fitted else 1 - among.probability
    claims = [Claim("domain", round(domain, 4), holds(rivals) and domain >= DEFAULT.confident)]
    claims.append(Claim("places", round(sure, 4), holds([n for n in CLAIMING if n != "locality"])))
    if measures.places is not None:
        close = max(sure, something * CLOSE({"with_partner": measures.places.with_partner}))
        claims.append(Claim("neighbours", round(close, 4), close >= DEFAULT.confident))
    still = passed_all(by_name, (*CLAIMING, "stationarity"))
    symmetry = sure if still else min(sure, DOUBTED)
    return (*claims, Claim("symmetry", round(symmetry, 4), still and certain))


def strongest(verdict: Verdict, claims: Sequence[Claim]) -> Verdict:
    """The strongest verdict that holds: neighbours, where nothing more does."""
    close = any(claim.name == "neighbours" and claim.holds for claim in claims)
    if close and verdict in (Verdict.ABSENT, Verdict.UNIDENTIFIABLE):
        return Verdict.LOCAL
    return verdict


def next_best(further: Further, among: Contest | None) -> str:
    """The best other domain that the result was compared with, and how it did, in words."""
    if among is not None:
        return among.runner_up_words
    if not further.alternatives:
        return ""
    other = max(further.alternatives, key=lambda one: one.share - one.here)
    kind = (
        f"a {other.grid} grid"
        if other.grid.ndim > 1
        else ("a ring" if other.grid.is_ring else "a line")
    )
    return f"{kind}, which explains {other.share:.0%} where this result explains {other.here:.0%}"
