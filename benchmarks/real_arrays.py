"""Real arrays with known layouts: right or wrong, and what a line of scikit-learn would give.

    python benchmarks/real_arrays.py FOLDER [--seed 0] [--only das] [--baselines]

FOLDER holds the arrays (NAME.npz) and their yardstick, score.py, which says what counts as right.
The arrays belong to other people and are not in this repository; records are, in
results/real_arrays/. A record is written when its fits are done: a run that was interrupted goes on
with the next array.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from _common import RESULTS
from symlift_paper.store import machine

OUT = RESULTS / "real_arrays"


def yardstick(folder: Path) -> ModuleType:
    """The folder's own score.py."""
    spec = importlib.util.spec_from_file_location("score", folder / "score.py")
    if spec is None or spec.loader is None or not (folder / "score.py").is_file():
        raise SystemExit(f"{folder} holds no score.py: name the folder of the arrays")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(score: ModuleType, path: Path, seed: int, baselines: bool) -> list[dict[str, Any]]:
    """What the yardstick says of one array: of both ways to give the grid, or of the baselines."""
    if baselines:
        return [score.baselines(path)]
    return [score.fit(path, how, seed) for how in ("auto", "guess")]


def summary(records: list[dict[str, Any]], how: str) -> str:
    mine = [one for one in records if one.get("how") == how]
    right = sum(one["right"] for one in mine)
    false = sum(one["positive"] and not one["right"] for one in mine)
    seconds = sum(one.get("fit_cpu_s", 0.0) for one in mine)
    return (
        f"{how}: {right} of {len(mine)} right, {false} of"
        f" {sum(one['positive'] for one in mine)} positive verdicts false, {seconds:.0f} CPU s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--baselines", action="store_true")
    asked = parser.parse_args()
    score = yardstick(asked.folder)
    OUT.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    for path in sorted(one for one in asked.folder.glob("*.npz") if asked.only in one.stem):
        name = f"{path.stem}-{'baseline' if asked.baselines else asked.seed}"
        record = OUT / f"{name}.json"
        if not record.exists():
            fits = measure(score, path, asked.seed, asked.baselines)
            record.write_text(json.dumps({"fits": fits, "machine": machine()}, indent=1) + "\n")
        records += json.loads(record.read_text())["fits"]
        print(*(json.dumps(one) for one in records[-2:]), sep="\n", flush=True)
    for how in ("auto", "guess"):
        print(summary(records, how))


if __name__ == "__main__":
    main()
