"""Shared fixtures: seeded generators, both precisions, one, two and three axes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import settings

from pages.browser import Browser, find_chromium

settings.register_profile("symlift", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=2_000, derandomize=False)
settings.load_profile("fuzz" if "SYMLIFT_FUZZ_SECONDS" in os.environ else "symlift")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture
def tolerance(dtype: torch.dtype) -> float:
    """A few hundred roundings of the precision under test."""
    return 5e-5 if dtype == torch.float32 else 1e-11


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def precision(request: pytest.FixtureRequest) -> type[np.floating]:
    """The same precisions, for what is numpy."""
    return request.param


@pytest.fixture
def roundings(precision: type[np.floating]) -> float:
    """A few hundred roundings of the numpy precision under test."""
    return 5e-5 if precision is np.float32 else 1e-11


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's cache of experiments."""
    monkeypatch.setenv("SYMLIFT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed: the page is not looked at in a browser")
    browser = Browser(program, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
