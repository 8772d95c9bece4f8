"""What to do if the verdict is not the best one: in words, as parameters, as a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid, grid_words
from symlift.core.linalg import of_one_direction
from symlift.core.rows import column_of
from symlift.diagnosis.contract import Asked, NextStep, Test, Verdict
from symlift.diagnosis.measures import measure, take_sample
from symlift.diagnosis.verdict import Further, better, make_tests, verdict_of
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import Placement, Solution
from symlift.solvers.ring.closing import ENOUGH

__all__ = ["looks_tuned", "next_steps"]

# counts of so few spikes at most, and so many rows, are looked at for a tuned population
_LARGEST_COUNT, _TUNED_ROWS = 10_000, 2_000
_RING, _TORUS = 30, 20
_MOST_GAPS = 4
# share of best partners that are neighbours from which the grid is taken to be the right one
_MOSTLY = 0.7


def next_steps(
    verdict: Verdict,
    tests: Sequence[Test],
    solution: Solution,
    further: Further,
    rows: NDArray,
    asked: Asked,
    names: Sequence[str] | None = None,
    gaps: Sequence[tuple[int, int]] = (),
) -> tuple[NextStep, ...]:
    """Next steps, the most promising first; none for the best verdict, at least one for all others.

    ``gaps``: pairs of columns that have missing points of a line between them, by their plain
    correlations.
    """
    if verdict is Verdict.PRESENT:
        return ()
    by_name = {test.name: test for test in tests}
    grid = solution.model.grid
    # too few independent rows carry no information on other grids either
    steps = _grids(further) if _passed(by_name, "independent_rows") else []
    if verdict is Verdict.ORDERED:
        text = (
            "use the places (est.placement_), and not est.shift: the order of the columns holds,"
            " translation is no symmetry"
        )
        return (NextStep(text),)
    if verdict is Verdict.LOCAL:
        steps.append(
            NextStep(
                "take what is near a column (the six columns placed nearest to it), and not"
                " distances or the map as a whole: those are not known to be right"
            )
        )
    if not _passed(by_name, "effective_rank") and _passed(by_name, "independent_rows"):
        return (
            NextStep(
                "the columns are all but copies of one another: drop copies, and give columns that"
                " differ"
            ),
        )
    if not _passed(by_name, "displacements"):
        return (
            NextStep(
                f"a grid of {grid} has too few displacements to be tested: give more columns, for a"
                " line at least 8"
            ),
        )
    if not _passed(by_name, "gaps"):
        steps.append(_gaps(gaps, names))
    steps += _columns(solution.placement, names)
    steps += _enough_rows(by_name, further, len(rows))
    if asked.solver == "ring":
        steps += _other_domain(solution)
    tuned = looks_tuned(rows) if asked.solver == "fast" else ""
    if tuned:
        steps.append(_fit_angles(tuned, "the columns are counts of a population tuned to"))
    if (
        not steps
        and asked.mixing == "shuffled"
        and rows.shape[1] >= grid.size
        and len(rows) > rows.shape[1]
    ):
        steps.append(NextStep(
            "the columns do not behave like points of this grid: let a mixing of points be tried",
            {"mixing": "auto"}, "symlift recover DATA --mixing auto",
        ))  # fmt: skip
    if solution.placement is None and _only_uneven(by_name):
        steps.append(
            NextStep(
                "what was unmixed differs from point to point"
                f" ({by_name['stationarity'].value:.3f}, at most"
                f" {by_name['stationarity'].threshold:.3f}): if rows were cut out of larger"
                " signals, cut them anywhere, margins included, so that all points see the same;"
                " else the mixing was not undone, and more rows may help"
            )
        )
    repeated = solution.evidence.repeated
    if repeated is not None and not _passed(by_name, "found") and _passed(by_name, "stationarity"):
        steps.append(
            NextStep(
                "another attempt, from other rows and another start, ended at other signals"
                f" (correlation {repeated:.2f}): these data do not determine them; more rows may"
                " help, or another random_state"
            )
        )
    if (
        asked.mixing == "auto"
        and solution.placement is None
        and not _passed(by_name, "stationarity")
    ):
        steps.append(NextStep(
            "no mixing of points was found; if each column is a point, say so",
            {"mixing": "shuffled"}, f"symlift recover DATA --grid {grid} --mixing shuffled",
        ))  # fmt: skip
    # a ring or torus was compared with all domains: no other grid is left to be proposed
    compared = asked.solver == "ring" and bool(steps)
    if asked.grid_given and not compared and not any("grid" in step.params for step in steps):
        steps.append(
            NextStep(
                "check the grid's shape and periodicity, or let it be proposed",
                {"grid": "auto"},
                "symlift recover DATA",
            )
        )
    if not steps:
        steps.append(
            NextStep(
                "these data show no domain: give more rows, or columns that are measured at places"
            )
        )
    return tuple(steps)


def _other_domain(solution: Solution) -> list[NextStep]:
    """The domain of a tuned population, if it is not the one that was fitted."""
    fitted, domain = "ring" if solution.model.grid.is_ring else "torus", solution.evidence.domain
    if domain == "plane":
        return [
            NextStep(
                "the rows are points of an open plane, such as places in a room, rather than"
                " angles: no translation closes on it; place the columns on a grid instead",
                {"grid": "auto", "periodic": False, "solver": "fast", "mixing": "shuffled"},
                "symlift recover DATA --mixing shuffled",
            )
        ]
    if domain in ("arc", "line", "clusters"):
        return [_open_or_apart(solution)]
    if domain in ("", fitted):
        return []
    return [_fit_angles(domain, "the rows are points of")]


def _open_or_apart(solution: Solution) -> NextStep:
    """What an open curve and clusters can be used for."""
    among, domain = solution.evidence.contest, solution.evidence.domain
    if domain == "clusters":
        return NextStep(
            "the rows are a few clusters, and any closed curve can be drawn through those: take"
            " them as classes, or record states between them"
        )
    lead = 0.0 if among is None else among.closing or 0.0
    # no arc is likelier than a ring, or hardly
    if among is not None and among.runner_up == "ring" and lead > 1:
        rows = (ENOUGH / lead) ** 2
        return NextStep(
            "the rows may be points of a ring, but a part of it is hardly visited, as on an arc:"
            f" give at least {max(2.0, rows):.0f} times as many rows, from all directions"
        )
    return NextStep(
        "the rows are points of an open curve, so no translation closes on it: take est.phase(X) as"
        " the position along it, from the part without rows, and leave out est.shift; if it should"
        " be a ring, record rows in the part that is missing"
    )


def _fit_angles(domain: str, subject: str) -> NextStep:
    grid = (_RING,) if domain == "ring" else (_TORUS, _TORUS)
    words = "one angle: fit a ring" if domain == "ring" else "two angles: fit a torus"
    size = "x".join(map(str, grid))
    return NextStep(
        f"{subject} {words}",
        {"grid": grid, "periodic": True, "solver": "ring"},
        f"symlift recover DATA --grid {size} --periodic --solver ring",
    )


def _grids(further: Further) -> list[NextStep]:
    """The best other grid, if one is better than the grid in use."""
    rivals = [other for other in further.alternatives if better(other)]
    if not rivals:
        return []
    best = max(rivals, key=lambda other: other.share).grid
    return [
        NextStep(
            f"the {grid_words(best)} explains the columns better than the grid in use: fit that"
            " instead",
            {"grid": best.shape, "periodic": any(best.periodic)},
            f"symlift recover DATA --grid {best}{' --periodic' if any(best.periodic) else ''}",
        )
    ]


def _columns(placement: Placement | None, names: Sequence[str] | None) -> list[NextStep]:
    """Columns that do not belong: row numbers."""
    if placement is None:
        return []
    index = np.flatnonzero(placement.reason == "index")
    if not len(index):
        return []
    return [NextStep(f"{column_of(int(index[0]), names)} is a row number: drop it")]


def _gaps(between: Sequence[tuple[int, int]], names: Sequence[str] | None) -> NextStep:
    """Where the missing points of a line are; ends of it have no two columns."""
    shown = [f"{column_of(i, names)} and {column_of(j, names)}" for i, j in between[:_MOST_GAPS]]
    where = f"between {'; '.join(shown)}" if shown else "at the ends"
    return NextStep(
        "take the order of the columns, not their distances: their correlations have the missing"
        f" points {where}"
    )


def _enough_rows(tests: Mapping[str, Test], further: Further, n: int) -> list[NextStep]:
    worth = tests["independent_rows"]
    if not worth.passed:
        times = (worth.threshold or 0.0) / max(worth.value or 0.0, 1.0)
        return [
            NextStep(
                f"the {n:,} rows are worth about {worth.value:.0f} independent ones, because"
                f" neighbours in time are alike: record at least {max(2, round(4 * times))} times"
                " as long, or take rows further apart"
            )
        ]
    if further.rows_needed is not None:
        return [
            NextStep(
                f"two halves of the rows disagree: about {further.rows_needed:,.0f} rows would be"
                " enough"
            )
        ]
    if not _passed(tests, "agreement_of_halves"):
        return [
            NextStep(
                f"two halves of the rows disagree: give at least {2 * n:,} rows, or check the grid"
            )
        ]
    if not _passed(tests, "replicated") and _passed(tests, "locality"):
        return [
            NextStep(
                "attempts on parts of the rows or of the grid end at other places: give at least"
                f" {2 * n:,} rows, or check the grid"
            )
        ]
    if not _passed(tests, "settled") and _passed(tests, "locality"):
        return [
            NextStep(
                f"held-out rows would rather have columns elsewhere: give at least {2 * n:,} rows"
            )
        ]
    beside = tests.get("partners_beside")
    if (
        beside is not None
        and (beside.value or 0.0) >= _MOSTLY
        and not _passed(tests, "stationarity")
    ):
        return [
            NextStep(
                f"{beside.value:.0%} of the columns' best partners are neighbours on this grid, but"
                f" the order is not sure yet: give at least {2 * n:,} rows, or leave columns out"
                " that hardly vary"
            )
        ]
    return []


def looks_tuned(rows: NDArray) -> str:
    """The closed domain, "ring" or "torus", that the ring solver finds in rows of counts, and would
    call present; else "".
    """
    if rows.shape[1] > PlaceSettings().dense:  # no population is so large
        return ""
    some = np.asarray(rows[:_TUNED_ROWS], dtype=np.float64)
    if some.shape[1] < 8 or len(some) < 100 or not np.isfinite(some).all() or (some < 0).any():
        return ""
    if not np.array_equal(some, np.round(some)) or some.max() > _LARGEST_COUNT or some.max() < 2:
        return ""
    from symlift.solvers.ring.pipeline import solve

    varies = some.std(axis=0) > 0
    if varies.sum() < 8:
        return ""
    some = some[:, varies]
    if of_one_direction(some):
        return ""
    ring = solve(some, Grid((15,), periodic=True), np.random.default_rng(0))
    if ring.evidence.domain != "ring":
        return "torus" if ring.evidence.domain == "torus" else ""
    tests = make_tests(measure(ring, take_sample(some), None), ring.model, Further())
    return "ring" if verdict_of(tests, placed=True) is Verdict.PRESENT else ""


def _only_uneven(tests: Mapping[str, Test]) -> bool:
    """Whether only stationarity, and with it the confidence, fails."""
    return {name for name in tests if not _passed(tests, name)} - {
        "confidence",
        "found",
    } == {"stationarity"}


def _passed(tests: Mapping[str, Test], name: str) -> bool:
    return name not in tests or tests[name].passed is not False
