"""docs/paper.md: each equation's code can be imported, each row's command and measure exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import symlift
from symlift.cli import app
from symlift_paper import EXPERIMENTS, runner
from test_docstrings import resolve

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
EQUATIONS = re.findall(r"^\| \((\d+)\)(?:–\((\d+)\))? \| .+ \| `([\w.]+)` \|$", PAGE, re.MULTILINE)
NAMES = sorted(set(re.findall(r"`(symlift(?:_paper)?\.[\w.]+)`", PAGE)))
ROWS = re.findall(
    r"^\| .+ \| `symlift experiment run ([\w-]+)` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE
)


def test_every_numbered_equation_has_its_code():
    numbers = [
        number
        for first, last, _ in EQUATIONS
        for number in range(int(first), int(last or first) + 1)
    ]
    assert numbers == list(range(1, 29))


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_an_equation_can_be_imported(name):
    assert resolve(name).__doc__


def test_every_row_of_the_first_table_is_there_in_its_order():
    blocks = ("generators", "waveforms", "images")
    of_paper = [e.name for e in EXPERIMENTS.values() if e.block in blocks and e.paper.gpu_hours]
    assert sorted(name for name, *_ in ROWS) == sorted(of_paper)


@pytest.mark.parametrize(("name", "similarity", "recovery"), ROWS)
def test_a_rows_measures_are_printed_where_the_paper_has_a_number(name, similarity, recovery):
    paper = EXPERIMENTS[name].paper
    for cell, number in (
        (recovery, paper.r),
        (similarity, paper.similarity or paper.similarity_exact),
    ):
        measures = re.findall(r"`(\w+)`", cell)
        assert bool(measures) == bool(number)
        assert set(measures) <= set(runner._FIGURES)
    assert ("`similarity_exact`" in similarity) == bool(paper.similarity_exact)


def test_its_other_names_are_experiments_and_studies():
    listed = CliRunner().invoke(app, ["experiment", "list"], env={"COLUMNS": "200"}).stdout
    for name in ("mnist15-bits", "mnist27-bits", "neural-gratings", "ablation", "morris", "tica"):
        assert f"`{name}`" in PAGE or name in PAGE
        assert name in listed


def test_the_citation_is_that_of_the_citation_file():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    paper = citation["preferred-citation"]
    assert f"{{{paper['title']}}}" in PAGE
    assert (
        " and ".join(f"{a['family-names']}, {a['given-names']}" for a in paper["authors"]) in PAGE
    )
    assert f"version = {{{symlift.__version__}}}" in PAGE
