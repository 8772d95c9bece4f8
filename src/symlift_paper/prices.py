"""What runs will cost, before they start: processor time per step times steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symlift_paper.registry import Experiment

if TYPE_CHECKING:  # a job asks here for its own price
    from symlift_paper.jobs import Job

__all__ = ["PRINTED_STEPS", "duration", "estimate", "printed_price", "steps_price"]

#: row → seconds of one core for one step of the training as printed, and the steps of the paper's
#: training table (docs/training.md); compiled on the ring, where that pays
PRINTED_STEPS = {
    "gsn15-fft": (0.0035, 450_000),
    "gsn15-discrete": (0.0035, 450_000),
    "gsn15-continuous": (0.0035, 450_000),
    "gsn63-gaussian-identity": (0.15, 1_000_000),
    "gsn63-legendre-identity": (0.15, 1_000_000),
    "gsn63-gaussian-dst": (0.15, 1_000_000),
    "gsn63-legendre-dst": (0.15, 1_000_000),
    "ising33-linear": (0.06, 1_000_000),
    "mnist15-shuffled": (0.45, 3_000_000),
    "mnist27-shuffled": (6.7, 7_000_000),
    "mnist15-bits": (0.85, 400_000),
    "mnist27-bits": (7.2, 1_500_000),
}
#: seconds of one core for one step of our training under the printed clock, by points; 63: compiled
STEP_BY_POINTS = {15: 0.008, 63: 0.0165}
#: seconds of one core for one step of LieGAN on 15 columns, with another run on the other core
LIEGAN_STEP = 0.0046


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> [duration(s) for s in (40, 1350, 4050, 57600, 1.5e5, 1.35e6, 4.55e7)]
    ['40 s', '22 min', '1.1 h', '16 h', '1.7 days', '16 days', '1.4 years']
    """
    for size, unit in ((365 * 86400, "years"), (86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.05 * size:
            count = seconds / size
            return f"{count:.1f} {unit}" if count < 10 and unit != "min" else f"{count:.0f} {unit}"
    return f"{seconds:.0f} s"


def printed_price(experiment: Experiment, tabled: bool = False) -> float | None:
    """Seconds of one core that the training as printed takes on a row; None if unknown.

    Over the steps that the experiment asks for, where it asks for it, otherwise, and if ``tabled``,
    over those of the paper's training table.
    """
    if experiment.name not in PRINTED_STEPS:
        return None
    step, steps = PRINTED_STEPS[experiment.name]
    return step * (steps if tabled or experiment.printed is None else experiment.printed.steps)


def steps_price(
    experiment: Experiment, method: str, preset: str | None, steps: int | None
) -> float | None:
    """Seconds of one core that so many steps of a method take; None if the price of a step is not
    known.

    >>> from symlift_paper import EXPERIMENTS
    >>> duration(steps_price(EXPERIMENTS["gsn15-fft"], "neural", "paper", 150_000))
    '9 min'
    """
    if method == "liegan":
        searched = experiment.baselines.get("liegan", {}).get("steps", [150_000])
        return LIEGAN_STEP * (steps or sum(searched))
    if method != "neural" or not steps:
        return None
    points = experiment.shape[0]
    if preset in ("paper", "released") and experiment.name in PRINTED_STEPS:
        return PRINTED_STEPS[experiment.name][0] * steps
    return STEP_BY_POINTS[points] * steps if points in STEP_BY_POINTS else None


def estimate(jobs: Sequence[Job], workers: int = 1) -> list[str]:
    """One line for each method with its runs and their price, and the sum last.

    Prices are seconds of one core of a server; a busy or slower machine takes longer.
    """
    groups: dict[str, list[float]] = {}
    for job in jobs:
        groups.setdefault(job.method_text, []).append(job.cost)
    lines = [
        f"{name}: {len(prices)} run{'s' * (len(prices) > 1)}, {duration(sum(prices))} of one core"
        for name, prices in sorted(groups.items(), key=lambda item: -sum(item[1]))
    ]
    total = sum(map(sum, groups.values()))
    longest = max((price for prices in groups.values() for price in prices), default=0.0)
    at_least = max(total / workers, longest)
    together = f"{len(jobs)} runs, {duration(total)} of one core"
    return [*lines, f"together: {together}, about {duration(at_least)} with {workers} at a time"]
