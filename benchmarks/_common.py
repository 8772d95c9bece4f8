"""Shared by all benchmarks: a record of the machine and versions, and where results are written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from symlift_paper.store import machine, source_commit

RESULTS = Path(__file__).parent / "results"


def write(name: str, result: dict[str, Any]) -> Path:
    """Keep ``result`` as ``results/NAME.json``, with machine and date."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    stamped = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": machine(), **result}
    path.write_text(json.dumps(stamped, indent=1) + "\n")
    return path


def made() -> dict[str, Any]:
    """When, where and by which commit an entry was made, in files whose entries are made at
    different times; the commit is None where the source was not that of one.
    """
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    return {"date": date, "processor": machine()["processor"], "commit": source_commit()}
