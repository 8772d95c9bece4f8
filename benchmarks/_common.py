"""What every benchmark shares: who measured, on what, and where the result is kept."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Processor, cores and the versions that matter."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    packages = ("symlift", "numpy", "scipy", "torch", "scikit-learn", "python-picard")
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in packages},
    }


def write(name: str, result: dict[str, Any]) -> Path:
    """Keep ``result`` as ``results/NAME.json``, with machine and date."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    stamped = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": machine(), **result}
    path.write_text(json.dumps(stamped, indent=1) + "\n")
    return path
