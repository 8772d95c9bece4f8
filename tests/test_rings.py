"""The committed records of the paper's training on rings, and the page that shows them."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from symlift.metrics import signal_recovery
from symlift_paper import EXPERIMENTS

ROOT = Path(__file__).parents[1]
RECORDS = sorted((ROOT / "benchmarks" / "results" / "rings").glob("*.json"))


@pytest.fixture(scope="module")
def rings():
    """The benchmark as a module."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("rings", ROOT / "benchmarks" / "rings.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["rings"] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)
        sys.modules.pop("rings", None)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_is_a_finished_run_of_the_queue_from_a_commit(path, rings):
    record = json.loads(path.read_text())
    (run,) = (run for run in rings.queue() if run.name == path.stem)
    assert record["finished"]
    assert record["steps_done"] == run.steps
    assert re.fullmatch(r"[0-9a-f]{40}", record["commit"])
    assert np.shape(record["map"]) == (15, 15)
    # made by code that the probes are of
    assert record["training_source"] in json.loads(rings.PROBES.read_text())


@pytest.mark.parametrize("number", range(4))
def test_the_trainings_of_the_records_are_those_of_this_code(number, rings):
    """A trained map stands as long as trainer and data do, whatever happens to other code.

    Other kernels of a processor move these maps by 0.002 of their norm, a weight of one term that
    is a tenth smaller by 0.07, and every single change of decision 0010 by more than 0.2.
    """
    preset, experiment = rings.PROBED[number]
    found = rings.probe(preset, experiment)
    known = json.loads(rings.PROBES.read_text())
    assert known
    for made in known.values():
        expected = np.asarray(made["maps"][f"{preset} {experiment}"])
        assert np.linalg.norm(found - expected) < 0.02 * np.linalg.norm(expected)


def test_the_numbers_of_a_record_are_those_of_its_map():
    record = json.loads(RECORDS[0].read_text())
    data = EXPERIMENTS[record["experiment"]].observe(record["seed"])
    rows = slice(0, 2_000)
    field = (data.X[rows] - data.X.mean(axis=0)) @ np.asarray(record["map"]).T
    r = signal_recovery(data.latent[rows], field, data.grid).r
    assert r == pytest.approx(record["trained"]["r"], abs=2e-3)


def test_the_page_shows_the_committed_records(rings):
    page = (ROOT / "docs" / "decisions" / "0010-as-printed.md").read_text(encoding="utf-8")
    shown = page.split("<!-- rings: begin -->\n")[1].split("\n<!-- rings: end -->")[0]
    assert shown == rings.table()


def test_names_of_runs_differ_and_the_queue_begins_with_the_printed_ones(rings):
    queue = rings.queue()
    assert len({run.name for run in queue}) == len(queue)
    assert {(run.preset, run.steps, run.change) for run in queue[:9]} == {("paper", 150_000, "")}
    assert {run.preset for run in queue[9:18]} == {"released"}
