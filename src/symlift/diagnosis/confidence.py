"""The probability that a result is right: a logistic curve of a few cheap numbers, fitted to data
with a known truth.

Right means: at least half of the columns in their places, or signals that correlate with the true
ones by at least 0.5. One curve for each kind of result, with weights that are not negative, so that
more evidence never makes a result less likely. `python benchmarks/diagnosis.py calibrate` fits them
to the families of the seen half, and prints the values of `CURVES`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from symlift.diagnosis.measures import Measures
from symlift.solvers.contract import Contest

__all__ = [
    "ANGLES",
    "BEYOND",
    "CLOSING",
    "CURVES",
    "Curve",
    "contest_of",
    "features",
    "kind_of",
    "probability",
]


# share of best partners that are neighbours above which more of them carry no information: 0.76 to
# 1 if columns are in place
_BESIDE = 0.85


@dataclass(frozen=True)
class Curve:
    """P(right) = 1 / (1 + exp(-(constant + Σ weight · feature)))."""

    constant: float
    weights: Mapping[str, float]

    def __call__(self, values: Mapping[str, float]) -> float:
        logit = self.constant + sum(weight * values[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-min(max(logit, -30.0), 30.0)))


CURVES = {
    "places": Curve(
        -11.75,
        {
            "across": 1.64,
            "settled": 2.53,
            "beyond": 3.70,
            "neighbours": 1.51,
            "beside": 5.96,
            "stationary": 3.52,
        },
    ),
    "scattered": Curve(
        -9.0, {"agreement": 8.0, "across": 1.0, "beyond": 1.0, "neighbours": 1.0, "beside": 2.0}
    ),
    "components": Curve(-8.21, {"local": 4.61, "nongaussian": 7.75, "stationary": 1.44}),
    "a ring": Curve(
        -12.44,
        {"won": 4.51, "agreement": 3.86, "closing": 1.84, "beyond": 1.0, "plain": 5.66},
    ),
    "the domain": Curve(-0.10, {"margin": 3.85}),
    # models that were saved before domains competed
    "angles": Curve(-11.04, {"agreement": 6.27, "ahead": 4.32, "round": 7.22}),
    "two angles": Curve(-9.0, {"agreement": 4.0, "ahead": 20.0, "round": 7.0}),
}
#: kinds of results that are angles
ANGLES = ("angles", "a ring", "two angles")
# standard errors at which more of them carry no further information
CLOSING, BEYOND, _MARGIN = 6.0, 8.0, 6.0


def kind_of(measures: Measures) -> str:
    """What carries a result: columns on points or between them, independent components, or one
    angle or two of a tuned population.
    """
    if measures.places is not None:
        return "scattered" if measures.evidence.carried_by == "distances" else "places"
    if measures.evidence.agreement is None:
        return "components"
    if measures.grid.ndim > 1:
        return "two angles"
    return "angles" if measures.evidence.contest is None else "a ring"


def features(measures: Measures) -> dict[str, float]:
    """The inputs of a curve, each between 0 and 1, larger for more evidence."""
    kind, evidence = kind_of(measures), measures.evidence
    if kind == "a ring":
        among = evidence.contest
        assert among is not None  # noqa: S101 - what kind_of says
        return {
            "won": float(among.domain == "ring"),
            "agreement": _clip(evidence.agreement or 0.0),
            "closing": _clip((among.closing or 0.0) / CLOSING),
            "beyond": _clip((among.beyond or 0.0) / BEYOND),
            "plain": _clip(2 * (among.plain or 0.0) - 1),
        }
    if kind in ANGLES:
        return {
            "agreement": _clip(evidence.agreement or 0.0),
            "ahead": _clip(evidence.ahead if evidence.ahead is not None else 1.0),
            "round": _clip(2.0 - (evidence.roundness if evidence.roundness is not None else 2.0)),
        }
    # 1 where moments are stationary, 0 where a tenth of them is not
    stationary = _clip(1 - max(measures.stationarity, 0.0) / 0.1)
    if kind == "components":
        return {
            "local": _clip(evidence.explained or 0.0),
            "nongaussian": _clip(abs(evidence.nongaussianity or 0.0) / 10),
            "stationary": stationary,
        }
    places = measures.places
    assert places is not None  # noqa: S101 - what kind_of says
    agreement = {"agreement": _clip((places.settled - 0.6) / 0.35)} if kind == "scattered" else {}
    return agreement | {
        # below five deviations no part is known to be real, and a share of it is meaningless
        "across": _clip(places.across) * _clip((places.z - 2) / 3),
        "settled": _clip((places.settled - 0.6) / 0.4),
        "beyond": _clip((places.fitted - places.control) / 0.5),
        "neighbours": _clip(
            2 * (max(places.predicted, 0.0) + 0.02) / (max(places.partners, 0.0) + 0.02) - 1
        ),
        "beside": _clip((places.partners_near - places.by_chain) / (_BESIDE - places.by_chain)),
        "stationary": stationary,
    }


def probability(measures: Measures) -> float:
    """The probability that a result is right, without other fits."""
    return CURVES[kind_of(measures)](features(measures))


def contest_of(measures: Measures, sure: float) -> Contest | None:
    """The contest of domains with the probability of its winner: of a ring, that of the result."""
    among = measures.evidence.contest
    if among is None:
        return None
    if among.domain != "ring" or measures.grid.ndim > 1:
        sure = CURVES["the domain"]({"margin": _clip((among.margin + 2) / (_MARGIN + 2))})
    return replace(among, probability=round(sure, 4))


def _clip(value: float) -> float:
    return min(max(float(value), 0.0), 1.0)
