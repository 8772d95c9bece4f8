"""Phases of single cells, and the verdict on them; anndata's own objects where it is installed."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from symlift import LatentDomain
from symlift.cells import CELL_CYCLE, CIRCADIAN, phase
from symlift.datasets import cycling_cells
from symlift.errors import FitWarning, InputError
from symlift.metrics import circular_correlation

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "cell-cycle.md"


def like_anndata(X, names=None, **layers) -> SimpleNamespace:
    """What an AnnData has, as far as it is looked at."""
    given = {} if names is None else {"var_names": names}
    return SimpleNamespace(X=X, obs={}, uns={}, layers=layers, **given)


@pytest.fixture(scope="module")
def cells():
    """Cells with the symbols of real genes, in lower case, and their true phase."""
    data = cycling_cells(700, cycling=len(CELL_CYCLE), others=60, random_state=1)
    names = [*map(str.capitalize, CELL_CYCLE), *(f"gene {i}" for i in range(60))]
    adata = like_anndata(csr_matrix(data.X), names)
    return adata, data.latent, phase(adata)


def test_cycling_cells_have_a_phase_that_runs_the_right_way(cells):
    adata, truth, result = cells
    assert result.believed
    assert circular_correlation(adata.obs["phase"], truth) > 0.85  # not the mirror image
    assert np.all((adata.obs["phase"] >= 0) & (adata.obs["phase"] < 2 * np.pi))
    # origin as well: S at 0, a third of a turn before G2 and M
    off = np.exp(1j * (adata.obs["phase"] - truth)).mean()
    assert abs(np.angle(off)) < 0.5
    assert result.oriented
    peaks = np.array([*CELL_CYCLE.values()])
    assert np.cos(result.gene_phase - peaks).mean() > 0.6


def test_the_verdict_is_kept_in_plain_types(cells):
    adata, _, result = cells
    kept = adata.uns["symlift"]
    assert kept["verdict"] == "present"
    assert kept["genes"] == list(map(str.capitalize, CELL_CYCLE))
    assert kept["not_passed"] == kept["next_steps"] == []
    assert kept["cells"] == result.cells < 700
    json.dumps({k: v for k, v in kept.items() if not isinstance(v, np.ndarray)})


def test_counts_may_be_a_layer_and_dense(cells):
    adata, _, result = cells
    dense = adata.X.toarray()
    other = like_anndata(np.log1p(dense), adata.var_names, counts=dense)
    assert np.array_equal(phase(other).phase, result.phase)
    assert np.array_equal(phase(other, layer="counts").phase, result.phase)


@pytest.mark.parametrize("kind", ["groups", "arc", "line", "nothing"])
def test_what_is_no_ring_is_not_believed(kind):
    rng = np.random.default_rng(2)
    n, d = 700, 50
    where, peak = rng.random(n), rng.random(d)
    if kind == "groups":
        rate = rng.normal(size=(3, d))[rng.integers(0, 3, n)]
    elif kind == "arc":
        rate = 1.2 * np.cos(2 * np.pi * (200 / 360 * where[:, None] - peak))
    elif kind == "line":
        rate = 2 * np.exp(-(((where[:, None] - peak) / 0.25) ** 2))
    else:
        rate = np.zeros((n, d))
    adata = like_anndata(rng.poisson(6 * np.exp(rate + 0.4 * rng.normal(size=(n, 1)))))
    with pytest.warns(FitWarning, match=r"obs\['phase'\] is"):
        result = phase(adata, genes=range(d))
    assert not result.believed
    assert adata.uns["symlift"]["believed"] is False
    assert adata.uns["symlift"]["not_passed"]
    absent = result.diagnosis.verdict.value == "absent"
    assert np.isnan(adata.obs["phase"]).all() == absent


def test_without_known_peaks_the_phase_may_run_either_way(cells):
    adata, _, result = cells
    again = phase(adata, genes=list(CELL_CYCLE), key="other")
    assert not again.oriented
    assert abs(circular_correlation(adata.obs["other"], result.phase)) > 0.999


def test_cells_without_counts_have_no_phase():
    data = cycling_cells(400, resting=0.0, random_state=3)
    X = data.X.copy()
    X[7, :60] = 0
    result = phase(like_anndata(X), genes=range(60))
    assert np.flatnonzero(np.isnan(result.phase)).tolist() == [7]


def refused() -> dict[str, tuple[SimpleNamespace, dict, str]]:
    X = np.ones((80, 20))
    names = [*list(CELL_CYCLE)[:5], *(f"g{i}" for i in range(15))]
    return {
        "unknown set": (like_anndata(X, names), {"genes": "cycle"}, "'cell_cycle' or 'circadian'"),
        "few genes": (like_anndata(X, names), {}, "5 of 96 genes are in the data"),
        "no names": (like_anndata(X), {}, r"genes=\[0, 1, …\]"),
        "outside": (like_anndata(X), {"genes": range(30)}, "gene 20 does not exist"),
        "no layer": (like_anndata(X), {"genes": range(9), "layer": "raw"}, "no layer 'raw'"),
        "scaled": (like_anndata(X - 2), {"genes": range(9)}, "negative numbers"),
        "NaN": (like_anndata(X * np.nan), {"genes": range(9)}, "NaN or infinity"),
        "few cells": (like_anndata(X[:20]), {"genes": range(9)}, "20 cells have counts"),
        "no AnnData": (SimpleNamespace(X=X), {"genes": range(9)}, r"has no \.obs"),
    }


@pytest.mark.parametrize("what", refused())
def test_what_cannot_be_used_is_refused_in_one_line(what):
    adata, options, words = refused()[what]
    with pytest.raises(InputError, match=words) as caught:
        phase(adata, **options)
    assert "\n" not in str(caught.value)
    assert getattr(adata, "obs", {}) == {}


def test_lists_of_genes_are_what_they_say():
    assert len(CELL_CYCLE) == 96
    assert set(CELL_CYCLE.values()) == {0.0, 2 * np.pi / 3}
    assert CIRCADIAN["ARNTL"] == CIRCADIAN["BMAL1"] == 0
    assert all(0 <= angle < 2 * np.pi for angle in CIRCADIAN.values())


# -- is a ring closed? -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")
@pytest.mark.parametrize("degrees", [200, 270])
def test_an_arc_is_not_called_a_ring(degrees):
    rng = np.random.default_rng(0)
    angle = np.deg2rad(degrees) * rng.random(1000)
    preferred = rng.uniform(0, 2 * np.pi, 32)
    X = rng.poisson(6 * np.exp(2 * (np.cos(angle[:, None] - preferred) - 1)) + 0.3)
    est = LatentDomain(grid=24, periodic=True, solver="ring", random_state=0).fit(X)
    diagnosis = est.diagnose(X)
    assert diagnosis.verdict.value != "present"
    assert "points of an open curve" in diagnosis.next_steps[0].text


@pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")
def test_a_track_is_not_called_a_ring():
    rng = np.random.default_rng(0)
    place, fields = rng.random(1000), rng.random(40)
    X = rng.poisson(8 * np.exp(-(((place[:, None] - fields) / 0.12) ** 2) / 2) + 0.2)
    est = LatentDomain(grid=24, periodic=True, solver="ring", random_state=0).fit(X)
    assert est.diagnose(X).verdict.value != "present"


# -- anndata ---------------------------------------------------------------------------------------


def test_the_page_runs_as_it_is_printed(tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    code = "\n".join(re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    names: dict = {}
    with warnings.catch_warnings():
        exec(code, names)  # noqa: S102 - our own page
    said = capsys.readouterr().out
    assert "an identifiable translation symmetry is present and stable" in said
    assert "\n0.96\n" in said
    assert re.search(r"^False \['\w+'", said, re.MULTILINE)
    adata = names["adata"]
    # names of cells that pandas makes from version 3 on
    anndata.settings.allow_write_nullable_strings = True
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert np.array_equal(again.obs["phase"], adata.obs["phase"])
    assert again.uns["symlift"]["verdict"] == adata.uns["symlift"]["verdict"]
    assert [*again.uns["symlift"]["genes"]] == [*adata.uns["symlift"]["genes"]]
    half = again[::2].copy()  # which may be too few cells to be believed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        phase(half)
    assert len(half.uns["symlift"]["not_passed"]) or half.uns["symlift"]["verdict"] == "present"
