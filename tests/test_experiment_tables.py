"""The tables' arithmetic on fixed inputs, and the commands that fill them."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from symlift import Grid, InputError
from symlift.cli import app
from symlift.solvers.neural.printed import PRINTED
from symlift.solvers.neural.training import _settings
from symlift_paper import EXPERIMENTS
from symlift_paper.first_table import table1, table1_jobs
from symlift_paper.jobs import (
    Job,
    baseline_jobs,
    closing_jobs,
    covariance_jobs,
    printed_jobs,
    released_jobs,
    solver_jobs,
    tabled_jobs,
    training_jobs,
)
from symlift_paper.prices import PRINTED_STEPS, estimate, printed_price
from symlift_paper.results import fill_tables, one_experiment, results_page
from symlift_paper.store import Archive, source_commit
from symlift_paper.studies import (
    MORRIS,
    PAPER_MORRIS,
    STUDIES,
    ablation_jobs,
    ablation_table,
    chosen_liegan_jobs,
    effects_table,
    liegan_jobs,
    liegan_table,
    morris_design,
    morris_jobs,
    morris_table,
    tica_jobs,
    tica_table,
)
from symlift_paper.tables import ResultTable, Spread, spread

runner = CliRunner()
FIGURES = (
    "r",
    "r_per_sample",
    "r_paper",
    "similarity",
    "similarity_exact",
    "similarity_half",
    "circular_correlation",
)
MACHINE = {"processor": "abacus", "cores": 2, "python": "3.11", "versions": {"symlift": "0.1.0"}}


def entry(job: Job, seconds: float = 2.0, **figures) -> dict:
    result = {**dict.fromkeys(FIGURES), **figures, "seconds": seconds}
    told = job.model_dump(mode="json", exclude={"experiment"}) | {"experiment": job.experiment.name}
    return {"key": job.key, "job": told, "result": result, "date": "2026-01-02", "machine": MACHINE}


def entries(jobs, figures) -> dict:
    """Entries of ``jobs`` with the figures that ``figures(index, job)`` tells."""
    return {job.key: entry(job, **figures(index, job)) for index, job in enumerate(jobs)}


# -- spreads and writers ---------------------------------------------------------------------------


def test_a_spread_is_a_median_and_the_worst_seed():
    found = spread([0.9, 0.2, 0.5, 0.7])
    assert found is not None
    assert found.median == pytest.approx(0.6)
    assert found.worst == 0.2
    assert repr(found) == "0.600 (0.200)"
    assert repr(spread([0.25], digits=2)) == "0.25"
    # two axes of one seed are one figure, their mean
    assert spread([[0.8, 0.6], [0.9, 0.9]]) == Spread((pytest.approx(0.7), pytest.approx(0.9)))
    assert spread([None, None]) is None
    assert spread([]) is None


TABLE = ResultTable(
    "t",
    "a title",
    ("what", "here", "count"),
    [
        {"what": "a|b", "here": Spread((0.5, 0.25, 1.0)), "count": 3},
        {"what": "c", "here": None, "count": 0.123456},
    ],
    ["a note"],
)


def test_a_table_as_markdown_csv_and_json(tmp_path):
    assert (
        TABLE.markdown()
        == "| what | here | count |\n|---|---|---|\n| a\\|b | 0.500 (0.250) | 3 |\n| c |  | 0.1235"
        " |\n\n- a note\n"
    )
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert rows[0] == {
        "what": "a|b",
        "here": "0.5",
        "here: worst": "0.25",
        "here: seeds": "3",
        "count": "3",
    }
    assert rows[1] == {
        "what": "c",
        "here": "",
        "here: worst": "",
        "here: seeds": "",
        "count": "0.123456",
    }
    stored = json.loads(TABLE.json())
    assert stored["rows"][0]["here"] == {"median": 0.5, "worst": 0.25, "values": [0.5, 0.25, 1.0]}
    assert stored["notes"] == ["a note"]
    assert {p.name for p in TABLE.write(tmp_path / "new")} == {"t.md", "t.csv", "t.json"}
    assert (tmp_path / "new" / "t.md").read_text() == TABLE.markdown()


# -- Table 1 ---------------------------------------------------------------------------------------


def test_table_1_has_a_row_for_each_figure_and_each_baseline():
    experiment = EXPERIMENTS["gsn63-gaussian-dst"]
    found = entries(
        solver_jobs(experiment),
        lambda i, _: {
            "r": 0.7 + i / 10,
            "r_paper": 0.8 + i / 10,
            "similarity": [0.9],
            "seconds": 10.0 + i,
        },
    ) | entries(
        [j for j in baseline_jobs(experiment, slow=False) if j.method == "glasso"],
        lambda i, _: {"r": 0.1, "r_paper": 0.3 - i / 10, "seconds": 4.0},
    )
    table = table1([experiment], found)
    assert [(row["measure"], row["paper"]) for row in table.rows] == [
        ("r", "0.982"),
        ("r, one alignment", None),
        ("S", "0.97"),
        ("r, glasso", 0.352),
    ]
    ours, pooled, similarity, glasso = table.rows
    assert repr(ours["fast"]) == "0.9000 (0.8000)"
    assert repr(pooled["fast"]) == "0.8000 (0.7000)"
    # empty cells say why
    assert ours["ours, trained"] == ours["ours, closed"] == "not run"
    assert ours["as printed, trained"] == "not run: 1.7 days"
    assert ours["as released, trained"] == "not run: 1.7 days"
    assert ours["as printed, steps of its table, trained"] == "not run: 1.7 days"
    assert (ours["seeds"], ours["seconds"]) == ("0 / 0 / 0 / 0 / 0 / 3", "– / – / – / – / – / 11")
    assert repr(similarity["fast"]) == "0.9000 (0.9000)"
    assert repr(glasso["one alignment"]) == "0.100 (0.100)"
    assert repr(glasso["baseline here"]) == "0.200 (0.100)"
    assert glasso["seconds"] == "4"
    (note,) = table.notes
    assert "gsn63-gaussian-dst / covariance" in note
    assert "gsn63-gaussian-dst / glasso" not in note
    assert "gsn63-gaussian-dst / fast" not in note


def trained(similarity: float, r: float, before: float | None = None) -> dict:
    """Figures of a training with r before a closed form ended it, or without one."""
    earlier = r if before is None else before
    figures = {"similarity_exact": [similarity], "r_paper": r, "r": r}
    return figures | {"r_before_closing": earlier, "r_paper_before_closing": earlier}


def test_table_1_puts_training_beside_the_fast_solver():
    ring, images = EXPERIMENTS["gsn15-continuous"], EXPERIMENTS["mnist15-shuffled"]
    found = (
        entries(
            solver_jobs(ring), lambda *_: {"similarity_exact": [1.0], "r_paper": 0.99, "r": 0.98}
        )
        | entries(training_jobs(ring)[:3], lambda i, _: trained(0.99 + i / 1000, 0.9, 0.6))
        | entries(covariance_jobs(ring)[:1], lambda *_: trained(0.98, 0.9, 0.7))
        | entries(closing_jobs(ring)[:2], lambda i, _: {"share": (i + 1) / 20, "starts": 20})
        | entries(printed_jobs(ring)[:2], lambda i, _: trained(0.5 + i / 10, 0.4))
        | entries(released_jobs(ring)[:1], lambda *_: trained(0.97, 0.4))
        | entries(tabled_jobs(ring)[:1], lambda *_: trained(0.95, 0.4))
        | entries(
            solver_jobs(images)[:1], lambda *_: {"similarity": [0.8, 0.6], "r_paper": 1.0, "r": 1.0}
        )
        | entries(baseline_jobs(ring, slow=True)[:1], lambda *_: {"similarity_exact": [0.4]})
    )
    rows = {(row["experiment"], row["measure"]): row for row in table1([ring, images], found).rows}
    assert rows["mnist15-shuffled", "S"]["as printed, trained"] == "not run: 16 days"
    assert rows["mnist15-shuffled", "S"]["ours, from the covariance, closed"] == "other rows only"
    first = rows["gsn15-continuous", "S exact"]
    assert repr(first["ours, closed"]) == "0.9910 (0.9900)"
    assert repr(first["fast"]) == "1.0000 (1.0000)"
    assert (first["paper"], first["seeds"]) == ("0.9862", "2 / 1 / 1 / 3 / 1 / 3")
    assert repr(first["ours, from the covariance, closed"]) == "0.9800"
    assert repr(first["as printed, trained"]) == "0.5500 (0.5000)"
    assert repr(first["as released, trained"]) == "0.9700"
    assert repr(first["as printed, steps of its table, trained"]) == "0.9500"
    for measure in ("r", "r, one alignment"):
        row = rows["gsn15-continuous", measure]
        assert repr(row["ours, trained"]) == "0.6000 (0.6000)"
        assert repr(row["ours, closed"]) == "0.9000 (0.9000)"
        assert row["closed form alone"] == "3 of 40"
    assert repr(rows["gsn15-continuous", "S exact, liegan"]["baseline here"]) == "0.400"
    assert rows["gsn15-continuous", "S exact, liegan"]["paper"] == 0.4533
    assert repr(rows["mnist15-shuffled", "S"]["fast"]) == "0.7000"
    assert rows["mnist15-shuffled", "S"]["paper"] == "0.921 / 0.949"


def test_table_1_takes_no_training_that_does_not_say_what_was_closed():
    ring = EXPERIMENTS["gsn15-fft"]
    said, unsaid, *_ = training_jobs(ring)
    found = entries([said], lambda *_: trained(0.9, 0.9, 0.5) | {"cpu_seconds": 3.0})
    found |= entries([unsaid], lambda *_: {"similarity_exact": [0.1], "cpu_seconds": 3.0})
    # nor one of a seed that nobody asked for
    found |= entries([said.model_copy(update={"seed": 77})], lambda *_: trained(0.1, 0.1))
    row = table1([ring], found).rows[0]
    assert repr(row["ours, closed"]) == "0.9000"
    assert (row["seeds"], row["seconds"]) == ("0 / 0 / 0 / 1 / 0 / 0", "– / – / – / 3 / – / –")
    # what was not run has its price, over 150,000 steps and over those of the paper's table
    assert row["as printed, trained"] == row["as released, trained"] == "not run: 9 min a seed"
    assert row["as printed, steps of its table, trained"] == "not run: 26 min a seed"


def test_every_trained_row_of_the_committed_tables_has_its_number_before_closing():
    root = Path(__file__).parents[1]
    entries_of = Archive(root / "benchmarks" / "results" / "experiments").entries()
    table = table1(list(EXPERIMENTS.values()), entries_of)
    closed = [row for row in table.rows if isinstance(row.get("ours, closed"), Spread)]
    assert closed
    with_r = [row for row in closed if row["measure"] in ("r", "r, one alignment")]
    assert {row["experiment"] for row in with_r} == {row["experiment"] for row in closed}
    for row in with_r:
        assert isinstance(row["ours, trained"], Spread)
        assert len(row["ours, trained"].values) == len(row["ours, closed"].values)
        assert " of " in row["closed form alone"]


def test_table_1_forgets_results_of_other_definitions():
    experiment = EXPERIMENTS["mnist15-bits"]
    other = experiment.model_copy(update={"n": 77})
    found = entries(solver_jobs(other), lambda *_: {"r": 1.0, "r_paper": 1.0})
    assert table1([experiment], found).rows == []


def test_the_released_training_differs_from_the_printed_one_in_its_preset_alone():
    ring = EXPERIMENTS["gsn15-fft"]
    for plain, released in zip(printed_jobs(ring), released_jobs(ring), strict=True):
        assert released.key != plain.key
        assert released.model_copy(update={"preset": "paper"}) == plain
    (tabled,) = tabled_jobs(ring)
    assert tabled.settings == {"steps": 450_000}


def test_the_full_table_is_the_cheap_one_and_more():
    ring = [EXPERIMENTS["gsn15-fft"]]
    cheap, full = ({job.method for job in table1_jobs(ring, full)} for full in (False, True))
    assert full - cheap == {"neural", "closed form", "liegan"}


def test_prices_are_those_of_the_printed_steps():
    for name, (step, steps) in PRINTED_STEPS.items():
        row = EXPERIMENTS[name]
        columns = 8 * math.prod(row.shape) if row.source == "mnist-bits" else math.prod(row.shape)
        grid = Grid(row.shape, row.periodic)
        named = (
            "paper-ising33" if row.source == "ising" else "paper"
        )  # spins are told by their rows
        assert _settings(named, {}, grid, columns).steps == steps
        assert printed_price(row) == step * (row.printed.steps if row.printed else steps)
        assert printed_price(row, tabled=True) == step * steps
        assert row.tabled is None or row.tabled.steps == steps


def test_an_estimate_adds_up_and_says_what_is_longest():
    ring = EXPERIMENTS["gsn15-fft"]
    lines = estimate([*solver_jobs(ring), *printed_jobs(ring)], workers=2)
    assert lines == [
        "neural, as printed: 3 runs, 26 min of one core",
        "fast: 3 runs, 3 s of one core",
        "together: 6 runs, 26 min of one core, about 13 min with 2 at a time",
    ]
    # the longest run cannot be shared
    assert estimate(printed_jobs(ring)[:1], 8)[-1].endswith("about 9 min with 8 at a time")
    (searched,) = baseline_jobs(ring, slow=True)[:1]
    assert searched.cost == pytest.approx(69)
    (ablated, *_) = [j for j in ablation_jobs() if j.experiment.name.startswith("gsn63")]
    assert ablated.cost == pytest.approx(990)


# -- studies ---------------------------------------------------------------------------------------


def test_the_ablation_removes_each_term_once():
    jobs = ablation_jobs()
    assert len(jobs) == 4 * 3 + 4 + 4
    assert jobs[:3] == printed_jobs(EXPERIMENTS["gsn15-continuous"])
    # variants of a row differ in the one weight only: one start, one clock, one number of steps, no
    # jump, the last model
    for row in {job.experiment.name for job in jobs}:
        own = [job for job in jobs if job.experiment.name == row]
        bare = {
            (
                job.method,
                job.preset,
                job.steps,
                job.seconds,
                tuple((k, v) for k, v in job.settings.items() if v != 0.0),
            )
            for job in own
        }
        assert len(bare) == 1
        for job in own:
            grid = Grid(job.experiment.shape, job.experiment.periodic)
            chosen = _settings(job.preset or "ours", job.settings, grid, grid.size)
            assert (chosen.clock, chosen.keep, chosen.steps) == (
                "paper",
                "last",
                job.settings["steps"],
            )
    found = entries(
        jobs,
        lambda i, job: {
            "similarity": [0.5],
            "similarity_exact": [0.6],
            "r_paper": 0.1 + 0.1 * job.seed,
            "r": 0.3,
            "steps": 4000,
        },
    )
    table = ablation_table(found)
    assert len(table.rows) == 3 * 4 * 3
    assert table.notes == []
    assert repr(table.rows[0]["here"]) == "0.600 (0.600)"
    without = [
        row
        for row in table.rows
        if row["removed"] == "resolution" and row["experiment"].startswith("gsn63-leg")
    ]
    assert [(row["measure"], row["paper"]) for row in without] == [
        ("S", 0.058),
        ("r", 0.010),
        ("r, one alignment", None),
    ]
    assert [repr(row["here"]) for row in without[1:]] == ["0.100", "0.300"]
    gaussian = [
        row for row in table.rows if row["removed"] == "infomax" and "gaussian" in row["experiment"]
    ]
    assert [row["paper"] for row in gaussian] == [0.992, 0.932, None]


def test_elementary_effects_of_a_linear_model_are_its_coefficients():
    """r = Σ a_j (x_j - low_j)/(high_j - low_j): μ = a, μ* = |a|, σ = 0, in the units in which SALib
    counts (the whole range).
    """
    coefficients = dict(zip(MORRIS, (0.1, -0.2, 0.0, 0.3, -0.05), strict=True))

    def r(job: Job) -> float:
        return sum(
            a * (job.settings[k] - MORRIS[k][0]) / (MORRIS[k][1] - MORRIS[k][0])
            for k, a in coefficients.items()
        )

    found = entries(morris_jobs(), lambda _, job: {"r": r(job), "similarity_exact": [0.5]})
    rows = {(row["setting"], row["measure"]): row for row in effects_table(found).rows}
    for name, value in coefficients.items():
        assert rows[name, "r"]["μ"] == pytest.approx(value, abs=1e-3)
        assert rows[name, "r"]["μ*"] == pytest.approx(abs(value), abs=1e-3)
        assert rows[name, "r"]["σ"] == pytest.approx(0, abs=1e-3)
        assert rows[name, "S exact"]["μ*"] == 0
    assert rows["resolution", "r"]["paper μ*"] == 0.0059
    assert rows["stationarity", "S exact"]["paper μ*"] == 0.0052
    assert effects_table(found).notes == []
    # with a run missing its trajectory does not count, and that is said
    missing = dict(list(found.items())[1:])
    assert len(morris_table(missing).rows) == 35
    assert effects_table(missing).rows == effects_table(found).rows
    assert effects_table(missing).notes[0] == "From 5 of 6 trajectories."
    assert "1 of 36" in effects_table(missing).notes[1]
    # of one trajectory there is no deviation
    single = dict(list(found.items())[:11])
    assert effects_table(single).rows == []


def test_the_morris_runs_are_those_of_the_paper():
    for job in morris_jobs():
        assert job.preset == "paper"
        assert job.settings["steps"] == 150_000
        assert "clip" not in job.settings
        # a budget of minutes starts none of them
        assert job.cost == pytest.approx(525)
    # the bounds enclose the settings of its training table
    settings = PRINTED["paper-gsn15"]
    for name, (low, high) in MORRIS.items():
        assert low < getattr(settings, name) < high


#: the paper's 36 runs: five settings, r, S
PAPER_RUNS = """
0.0039 0.0007 1.5657 1.1786 0.7232 0.9851 0.9975
0.0039 0.0007 1.5657 0.8929 0.7232 0.9869 0.9990
0.0068 0.0007 1.5657 0.8929 0.7232 0.9872 0.9951
0.0068 0.0007 1.1886 0.8929 0.7232 0.9869 0.9986
0.0068 0.0007 1.1886 0.8929 0.9375 0.9856 0.9970
0.0068 0.0004 1.1886 0.8929 0.9375 0.9857 0.9985
0.0061 0.0003 1.2829 0.9643 0.5625 0.9845 0.9961
0.0032 0.0003 1.2829 0.9643 0.5625 0.9849 0.9985
0.0032 0.0006 1.2829 0.9643 0.5625 0.9849 0.9992
0.0032 0.0006 1.6600 0.9643 0.5625 0.9845 0.9992
0.0032 0.0006 1.6600 1.2500 0.5625 0.9836 0.9991
0.0032 0.0006 1.6600 1.2500 0.7768 0.9846 0.9967
0.0068 0.0004 1.4714 1.2500 0.9375 0.9849 0.9977
0.0068 0.0004 1.4714 1.2500 0.7232 0.9848 0.9897
0.0068 0.0004 1.0943 1.2500 0.7232 0.9848 0.9991
0.0068 0.0007 1.0943 1.2500 0.7232 0.9852 0.9973
0.0068 0.0007 1.0943 0.9643 0.7232 0.9868 0.9953
0.0039 0.0007 1.0943 0.9643 0.7232 0.9862 0.9991
0.0039 0.0008 1.2829 1.0357 0.6696 0.9851 0.9990
0.0068 0.0008 1.2829 1.0357 0.6696 0.9853 0.9949
0.0068 0.0005 1.2829 1.0357 0.6696 0.9862 0.9977
0.0068 0.0005 1.6600 1.0357 0.6696 0.9854 0.9987
0.0068 0.0005 1.6600 1.0357 0.8839 0.9831 0.9987
0.0068 0.0005 1.6600 0.7500 0.8839 0.9682 0.9973
0.0075 0.0006 1.0943 0.8214 0.7768 0.9883 0.9988
0.0075 0.0003 1.0943 0.8214 0.7768 0.9839 0.9969
0.0046 0.0003 1.0943 0.8214 0.7768 0.9881 0.9993
0.0046 0.0003 1.0943 1.1071 0.7768 0.9851 0.9967
0.0046 0.0003 1.4714 1.1071 0.7768 0.9852 0.9979
0.0046 0.0003 1.4714 1.1071 0.5625 0.9825 0.9968
0.0025 0.0008 1.1886 1.1786 0.6161 0.9842 0.9990
0.0025 0.0008 1.1886 0.8929 0.6161 0.9854 0.9968
0.0025 0.0008 1.1886 0.8929 0.8304 0.9873 0.9987
0.0025 0.0005 1.1886 0.8929 0.8304 0.9843 0.9974
0.0054 0.0005 1.1886 0.8929 0.8304 0.9869 0.9935
0.0054 0.0005 1.5657 0.8929 0.8304 0.9847 0.9991
"""


def test_the_papers_effects_follow_from_its_runs_with_four_levels_not_the_eight_it_states():
    """SALib divides by Δ = levels / (2 (levels - 1)): 2/3 by its default of 4 levels, 4/7 of the 8;
    the ratio is 7/6.
    """
    from SALib.analyze.morris import analyze

    runs = np.array([[float(v) for v in line.split()] for line in PAPER_RUNS.strip().splitlines()])
    low, high = np.array(
        [(0.0025, 0.0075), (0.00025, 0.00075), (1.0, 1.66), (0.75, 1.25), (0.5625, 0.9375)]
    ).T
    # printed settings are rounded: their levels are not
    levels = np.round((runs[:, :5] - low) / (high - low) * 7)
    for trajectory in levels.reshape(
        6, 6, 5
    ):  # a rate printed with one digit can be off by a level
        for before, after in itertools.pairwise(trajectory):
            moved = np.argmax(np.abs(after - before))
            after[np.arange(5) != moved] = before[np.arange(5) != moved]
            after[moved] = before[moved] + 4 * np.sign(after[moved] - before[moved])
    design = low + levels / 7 * (high - low)
    problem = {
        "num_vars": 5,
        "names": list(MORRIS),
        "bounds": np.stack([low, high], axis=1).tolist(),
    }
    for place in (0, 1):
        four, eight = (
            analyze(problem, design, runs[:, 5 + place], num_levels=k, seed=0) for k in (4, 8)
        )
        for index, name in enumerate(MORRIS):
            printed = PAPER_MORRIS[name][3 * place : 3 * place + 3]
            for value, kind in zip(printed, ("mu", "mu_star", "sigma"), strict=True):
                assert (
                    abs(four[kind][index] - value) < 1.6e-4
                )  # figures with four digits on both sides
                assert np.isclose(eight[kind][index], 7 / 6 * four[kind][index])


def test_the_morris_design_changes_one_setting_at_a_time():
    design = morris_design()
    assert design.shape == (36, 5)
    low, high = np.array(list(MORRIS.values())).T
    assert np.all((design >= low - 1e-12) & (design <= high + 1e-12))
    levels = (design - low) / (high - low) * 7
    assert np.allclose(levels, np.round(levels), atol=1e-6)
    for trajectory in design.reshape(6, 6, 5):
        changed = np.diff(trajectory, axis=0) != 0
        assert (changed.sum(axis=1) == 1).all()
        assert (changed.sum(axis=0) == 1).all()


def test_the_tica_table_has_all_24_configurations():
    jobs = tica_jobs()
    assert len({job.key for job in jobs}) == 2 * 24
    found = entries(jobs, lambda i, _: {"r_paper": i / 100, "r": 0.0})
    fast = solver_jobs(jobs[0].experiment)
    rows = tica_table(found | entries(fast, lambda *_: {"r_paper": 0.9, "r": 0.9})).rows
    assert len(rows) == 24
    assert all(row["paper"] is not None for row in rows)
    assert repr(rows[0]["fast"]) == "0.9000 (0.9000)"
    assert rows[3]["baseline here"] == 0.03
    assert rows[3]["authors' scoring"] == 0.27


def test_the_liegan_table_marks_what_loss_and_truth_choose():
    jobs = liegan_jobs()
    assert len({job.key for job in jobs}) == 9
    assert {job.settings["steps"] for job in jobs} == {150_000}
    assert jobs[0].cost == pytest.approx(690)
    # the loss falls along the list; the truth prefers the fifth
    found = entries(
        jobs, lambda i, _: {"loss": 1 - i / 10, "similarity_exact": [0.9 if i == 4 else 0.1]}
    )
    table = liegan_table(found)
    assert [row["chosen by"] for row in table.rows] == ["", "", "", "", "truth", "", "", "", "loss"]
    # both are wanted on the two other regimes
    wanted = chosen_liegan_jobs(found)
    assert table.notes == [
        "Not run: gsn15-discrete / liegan (2 of 2), gsn15-fft / liegan (2 of 2)."
    ]
    assert {job.experiment.name for job in wanted} == {"gsn15-fft", "gsn15-discrete"}
    assert [job.settings for job in wanted] == 2 * [jobs[8].settings, jobs[4].settings]
    all_of_them = found | entries(wanted, lambda *_: {"loss": 0.5, "similarity_exact": [0.7]})
    last = liegan_table(all_of_them)
    assert last.notes == []
    assert [(row["chosen by"], row["paper"]) for row in last.rows[9:]] == [
        ("loss", 0.9999),
        ("truth", 0.9999),
        ("loss", 0.4277),
        ("truth", 0.4277),
    ]
    assert liegan_table({}).rows == []
    # a search with a run missing has no best
    assert chosen_liegan_jobs(dict(list(found.items())[1:])) == []


def test_a_search_goes_on_with_its_best_on_other_rows(monkeypatch, tmp_path):
    ran = []

    def run(self, folder=None):
        ran.append(self)
        figures = {"loss": self.settings["penalty"], "similarity_exact": [self.settings["penalty"]]}
        return entry(self, **figures)["result"]

    monkeypatch.setattr(Job, "run", run)
    filled = fill_tables(["liegan"], cache=tmp_path)
    assert [job.experiment.name for job in ran].count("gsn15-continuous") == 9
    assert len(ran) == 9 + 4
    assert len(filled.tables[0].rows) == 13
    assert fill_tables(["liegan"], cache=tmp_path).outcome == filled.outcome
    assert len(ran) == 13
    fill_tables(["liegan"], cache=tmp_path, fresh=True)
    assert len(ran) == 26


def test_a_liegan_run_leaves_out_its_beginning(rng):
    from symlift_paper.baselines.liegan import fit

    X, grid = rng.normal(size=(80, 5)), Grid(5, True)
    options = {"steps": 20, "checkpoints": 5, "batch": 8, "hidden": 8}
    run = fit(X, grid, np.random.default_rng(0), skip=0.8, **options)
    assert run.trace["checkpoint"] == 4
    with pytest.raises(InputError, match="skip"):
        fit(X, grid, np.random.default_rng(0), skip=1.0, **options)


def test_the_price_of_everything_is_printed_before_anything_runs(tmp_path):
    done = runner.invoke(app, ["experiment", "price", "--jobs", "2", "--cache", str(tmp_path)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert "neural, as printed" in done.stdout
    assert lines[-1].startswith("together: ")
    assert lines[-1].endswith("with 2 at a time")
    assert list(tmp_path.iterdir()) == []


def test_the_page_names_machine_versions_and_what_was_not_run():
    experiment = EXPERIMENTS["mnist15-bits"]
    found = entries(solver_jobs(experiment), lambda *_: {"r": 0.9, "r_paper": 0.9})
    page = results_page([experiment], found)
    assert (
        "| mnist15-bits | r | 0.944 | not run: 3.9 days | not run: 3.9 days | not run: 3.9 days"
        " | not run | not run |  | other rows only | 0.9000" in page
    )
    assert "abacus, 2 cores, Python 3.11, symlift 0.1.0: 3 runs, 2026-01-02 to 2026-01-02" in page
    assert page.count("Not run:") == len(STUDIES) + 2  # every study, the effects, our training
    assert "| unknown | unknown | 3 | 2026-01-02 to 2026-01-02 |" in page


@pytest.mark.parametrize(
    ("failing", "changed", "commit"),
    [("", "", "abc123"), ("", " M store.py", None), ("ls-files", "", None)],
)
def test_a_run_knows_its_commit_only_where_its_source_is_committed(
    monkeypatch, failing, changed, commit
):
    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if words[3] == failing:
            raise subprocess.CalledProcessError(1, words)
        told = {"status": changed, "rev-parse": "abc123\n"}.get(words[3], "")
        return subprocess.CompletedProcess(words, 0, stdout=told)

    monkeypatch.setattr("symlift_paper.store.subprocess.run", run)
    monkeypatch.setattr("symlift_paper.store.shutil.which", lambda name: name)
    source_commit.cache_clear()
    assert source_commit() == commit
    source_commit.cache_clear()


# -- commands --------------------------------------------------------------------------------------

SMALL = """
- name: small
  title: a small ring
  source: gsn
  shape: [9]
  periodic: true
  n: 300
  baseline_n: 300
  seeds: [0, 1]
  solver: random
  baselines: {glasso: {alpha: [0.1]}, random: {}}
  cost: {random: 1, glasso: 3}
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def test_a_table_of_ones_own_rows(small, tmp_path):
    out, archive, page = tmp_path / "out", tmp_path / "archive", tmp_path / "results.md"
    arguments = [
        "experiment",
        "table",
        "small",
        "--file",
        str(small),
        "--out",
        str(out),
        "--archive",
        str(archive),
    ]
    done = runner.invoke(app, [*arguments, "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "| small | r, glasso |" in done.output
    assert {p.name for p in out.iterdir()} == {"table1.md", "table1.csv", "table1.json"}
    assert (archive / "small.json").is_file()
    assert "| small | r, glasso |" in page.read_text()
    # everything comes from the cache now, and is the same to the letter
    before = page.read_bytes()
    told = runner.invoke(app, [*arguments, "--page", str(page), "--json"])
    assert json.loads(told.stdout)["name"] == "table1"
    assert page.read_bytes() == before


def test_a_table_with_too_small_a_budget_says_so(small):
    done = runner.invoke(
        app, ["experiment", "table", "small", "--file", str(small), "--budget", "2s"]
    )
    assert done.exit_code == 0
    assert "left out" in done.output
    assert "glasso" in done.output
    assert "Not run: small / glasso" in done.output
    assert "| small | r, glasso |" not in done.output


def test_failures_are_told_and_end_with_1(small):
    small.write_text(SMALL.replace("n: 300", "n: 5"))
    done = runner.invoke(app, ["experiment", "table", "small", "--file", str(small)])
    assert done.exit_code != 0
    assert "failed" in done.output
    assert "too few" in done.output


def test_one_experiment_with_its_baselines(small):
    arguments = ["experiment", "run", "small", "--file", str(small), "--baselines", "--json"]
    result = json.loads(runner.invoke(app, arguments).stdout)
    assert [b["baseline"] for b in result["baselines"]] == ["random", "glasso"]
    assert all(
        b["tuned_with_truth"] is False for b in result["baselines"]
    )  # one configuration each
    assert result["left_out"] == {}
    assert json.loads(runner.invoke(app, arguments).stdout) == result
    shown = runner.invoke(app, [*arguments[:-1], "--fresh", "--quiet"])
    assert "glasso" in shown.output


def test_a_budget_of_one_experiment_leaves_out_baselines(small):
    from symlift_paper import get_experiment

    experiment = get_experiment("small", small)
    result = one_experiment(experiment, baselines=True, budget=2.0)
    assert [b["baseline"] for b in result["baselines"]] == ["random"]
    assert list(result["left_out"]) == ["small, glasso, seed 0"]


def test_a_budget_stops_a_training(small):
    from symlift_paper import get_experiment

    result = one_experiment(get_experiment("small", small), "neural", budget=0.5)
    assert result["ended"] == "seconds"
    assert result["r"] is not None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["table", "nothing"], "nothing"),
        (["table", "--page", "x.md", "gsn15-fft"], "archive"),
        (["run", "morris", "--seed", "3"], "study"),
        (["table", "gsn15-fft", "--budget", "soon"], "soon"),
        (["figure", "nothing"], "nothing"),
    ],
)
def test_bad_usage_is_one_line(arguments, told):
    done = runner.invoke(app, ["experiment", *arguments])
    assert done.exit_code != 0
    assert isinstance(done.exception, InputError)
    assert told in str(done.exception)


def test_a_study_is_an_experiment_like_any_other(monkeypatch, tmp_path):
    """`experiment run tica` runs its jobs and prints its table."""
    monkeypatch.setattr(
        Job,
        "run",
        lambda self, folder=None: entry(self, r=0.1, r_paper=0.2, similarity_exact=[0.5])["result"],
    )
    done = runner.invoke(app, ["experiment", "run", "tica", "--quiet", "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["rows"]) == 24
    filled = fill_tables(["morris"], cache=tmp_path)
    assert [table.name for table in filled.tables] == ["morris", "morris-effects"]


# -- what is committed -----------------------------------------------------------------------------

ROOT = Path(__file__).parent.parent
COMMITTED = Archive(ROOT / "benchmarks" / "results" / "experiments")


def test_the_committed_page_is_made_from_the_committed_results():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == results_page(list(EXPERIMENTS.values()), COMMITTED.entries())


def test_every_committed_run_names_its_commit_except_short_ones_of_liegan():
    """Those were made before a run knew its commit; the page of results lists them."""
    unknown = [entry for entry in COMMITTED.entries().values() if not entry.get("commit")]
    assert {entry["job"]["method"] for entry in unknown} <= {"liegan"}
    assert {entry["job"]["kind"] for entry in unknown} <= {"baseline"}
    for file in ("fast_solver_rows", "baselines"):
        record = json.loads((ROOT / "benchmarks" / "results" / f"{file}.json").read_text())
        parts = [part for name, part in record.items() if name in ("table", "rows", "why", "tica")]
        made = {name: entry["made"] for part in parts for name, entry in part.items()}
        assert parts
        # data of these rows have changed since the others were made
        for name in (name for name in made if name.startswith(("legendre", "gsn63-legendre"))):
            assert made[name]["commit"], name


@pytest.mark.portable
@pytest.mark.parametrize(
    ("kind", "method", "figure"),
    [
        ("solver", "fast", "r"),
        ("solver", "fast", "similarity_exact"),
        ("baseline", "glasso", "r_paper"),
    ],
)
def test_a_committed_result_comes_out_again(kind, method, figure):
    """To the third digit: another machine may round otherwise."""
    job = Job(experiment=EXPERIMENTS["gsn15-fft"], kind=kind, method=method, seed=1)
    assert job.run()[figure] == pytest.approx(
        COMMITTED.entries()[job.key]["result"][figure], abs=1e-3
    )


def test_the_committed_table_has_every_cheap_run_and_what_was_asked_of_the_dear_ones():
    kept = COMMITTED.entries()
    wanted = table1_jobs(list(EXPERIMENTS.values())) + [
        job
        for name in ("gsn15-fft", "gsn15-discrete", "gsn15-continuous")
        for job in training_jobs(EXPERIMENTS[name])
    ]
    missing = [job.label for job in wanted if job.key not in kept]
    assert missing == []
