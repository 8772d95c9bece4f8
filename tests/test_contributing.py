"""CONTRIBUTING: the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "file", sorted(set(re.findall(r"`((?:tests|docs|benchmarks)/[\w./-]+\.\w+)`", GUIDE)))
)
def test_files_that_the_guide_names_exist(file):
    assert (ROOT / file).is_file()
