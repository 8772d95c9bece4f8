"""Three new users with a file each, from the file to the right answer: by commands alone, and from
Python in ten lines.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from symlift import Grid, LatentDomain, load, read
from symlift.datasets import gsn, ring_population
from symlift.metrics import circular_correlation
from symlift.metrics.placement import placement_agreement

sys.path.insert(0, str(Path(__file__).parent / "attack"))
from commands import run_command

SENSORS = 16


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(run: str) -> dict[str, dict[str, str]]:
    with Path(run, "placement.csv").open(newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


# -- a researcher with shuffled images -------------------------------------------------------------


def shuffled_images() -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 48) whose pixels were shuffled, and where each column was."""
    data = gsn(1500, (6, 8), random_state=3)
    order = np.random.default_rng(7).permutation(48)
    return data.latent[:, order] + 0.02 * np.random.default_rng(8).normal(size=(1500, 48)), order


def test_a_researcher_with_shuffled_images(here):
    images, order = shuffled_images()
    np.save("images.npy", images)
    code, out, err = run_command(
        "recover", "images.npy", "--grid", "6x8", "--json", "--exit-code", "--no-report"
    )
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["verdict"], answer["grid"]) == ("present", [6, 8])
    point = np.array([int(row["point"]) for row in places("images-symlift").values()])
    assert placement_agreement(order, point, Grid((6, 8))) == 1
    assert run_command("transform", "images-symlift", "images.npy", "--out", "signals.csv")[0] == 0
    assert Path("signals.csv").read_text().startswith("r0c0,r0c1,")
    # from Python
    est = LatentDomain(grid=(6, 8), random_state=0).fit(np.load("images.npy"))
    fields = est.to_grid(est.transform(images))
    assert fields.shape == (1500, 6, 8)
    assert placement_agreement(order, est.placement_.point, est.grid_) == 1


# -- a neuroscientist with spike counts ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mat", "csv"])
def test_a_neuroscientist_with_spike_counts(here, kind):
    data = ring_population(1500, 32, random_state=2)
    if kind == "mat":
        savemat(
            "session.mat",
            {"counts": data.X, "trial": np.arange(1500.0)[:, None], "animal": "m28"},
            do_compression=True,
        )
        code, out, err = run_command(
            "recover", "session.mat", "--grid", "32", "--periodic", "--solver", "ring"
        )
        assert code == 2
        assert "choose one with --key, from counts, trial, animal" in err
        arguments = ["recover", "session.mat", "--key", "counts"]
    else:  # numbers of the channels above the counts
        header = ",".join(str(i) for i in range(1, 33))
        Path("session.csv").write_text(
            f"{header}\n" + "\n".join(",".join(str(int(v)) for v in row) for row in data.X)
        )
        arguments = ["recover", "session.csv"]
    code, out, err = run_command(
        *arguments,
        "--grid",
        "32",
        "--periodic",
        "--solver",
        "ring",
        "--signals",
        "--no-check",
        "--no-report",
        "--json",
    )
    assert code == 0, err
    assert kind == "mat" or "the first line (1, 2, 3 …) is taken as a header" in err
    assert json.loads(out)["n"] == 1500
    est = load("session-symlift")
    rows = read(f"session.{kind}", key="counts" if kind == "mat" else None).to_frame()
    assert abs(circular_correlation(est.phase(rows), data.latent)) > 0.8
    # from Python
    table = read(f"session.{kind}", key="counts" if kind == "mat" else None)
    est = LatentDomain(grid=32, periodic=True, solver="ring", random_state=0).fit(table.rows)
    assert abs(circular_correlation(est.phase(table.rows), data.latent)) > 0.8


# -- an engineer with a sensor log -----------------------------------------------------------------


def sensor_log(path: Path) -> list[str]:
    """A log with a header, timestamps, gaps, semicolons and decimal commas; returns the sensors in
    their true order.
    """
    data = gsn(2500, (SENSORS,), random_state=11)
    rng = np.random.default_rng(4)
    names = [f"T{i:02d}" for i in range(1, SENSORS + 1)]
    order = rng.permutation(
        SENSORS
    )  # column k of the log is sensor names[k], which sits at order[k]
    rows = 20 + data.latent[:, order] + 0.02 * rng.normal(size=(2500, SENSORS))
    gaps = rng.random(2500) < 0.09
    where = rng.integers(0, SENSORS, 2500)
    with path.open("w", encoding="latin-1") as file:
        file.write("Gerät: Logger 7\nZeit;" + ";".join(names) + ";Status\n")
        for i, row in enumerate(rows):
            cells = [f"{v:.4f}".replace(".", ",") for v in row]
            if gaps[i]:
                cells[where[i]] = ""
            file.write(
                f"{1 + i // 1440:02d}.03.2024 {i // 60 % 24:02d}:{i % 60:02d};"
                + ";".join(cells)
                + ";ok\n"
            )
    return [names[k] for k in np.argsort(order)]


def test_an_engineer_with_a_sensor_log(here):
    truth = sensor_log(Path("log.csv"))
    code, out, err = run_command("inspect", "log.csv", "--json")
    assert code == 0
    seen = json.loads(out)
    assert (seen["rows"], seen["columns"], seen["fit"]) == (2500, SENSORS, False)
    assert seen["command"].startswith("symlift recover log.csv --nan ")
    assert any("'Zeit' (dates)" in note and "'Status' (text)" in note for note in seen["notes"])
    code, out, err = run_command("recover", "log.csv")
    assert code == 2
    assert f"{seen['gaps']:,} of 2,500 rows have gaps" in err
    assert f"--nan drop keeps {2500 - seen['gaps']:,}" in err
    code, out, err = run_command(
        "recover", "log.csv", "--grid", str(SENSORS), "--nan", "drop", "--json", "--no-report"
    )
    assert code == 0, err
    assert "note: 2 columns are left out: 'Zeit' (dates), 'Status' (text)" in err
    answer = json.loads(out)
    assert (answer["n"], answer["verdict"]) == (2500 - seen["gaps"], "present")
    rows = places("log-symlift")
    assert (rows["Zeit"]["reason"], rows["Status"]["reason"]) == ("dates", "text")
    line = sorted(
        (name for name in rows if int(rows[name]["point"]) >= 0),
        key=lambda name: float(rows[name]["axis0"]),
    )
    assert line in (truth, truth[::-1])
    # another file of the same kind is read as that one was
    assert run_command("transform", "log-symlift", "log.csv", "--out", "signals.parquet")[0] == 0
    assert pd.read_parquet("signals.parquet").shape == (answer["n"], SENSORS)
    # from Python, with gaps and all
    table = read("log.csv")
    est = LatentDomain(grid=SENSORS, mixing="shuffled", random_state=0).fit(
        table.rows, names=table.names
    )
    placed = est.placement_.to_frame().sort_values("axis0").name.tolist()
    assert placed in (truth, truth[::-1])


def test_frames_with_dates_and_text_are_refused_with_a_remedy(here):
    import polars as pl

    sensor_log(Path("log.csv"))
    frame = read("log.csv", nan="drop").to_frame()[:300]
    with_time = frame.assign(time=pd.date_range("2024-01-01", periods=len(frame), freq="min"))
    est = LatentDomain(grid=SENSORS, solver="random", random_state=0)
    with pytest.raises(
        ValueError,
        match=r"column 'time' holds dates, not numbers: leave it out, X.drop\(columns=\['time'\]\)",
    ):
        est.fit(with_time)
    with pytest.raises(
        ValueError, match=r"2 columns hold no numbers, 'time' \(dates\), 'city' \(text\)"
    ):
        est.fit(with_time.assign(city="Bonn"))
    est.fit(with_time.drop(columns=["time"]))
    with pytest.raises(ValueError, match=r"column 'city' holds text.*X.drop\(\['city'\]\)"):
        est.fit(pl.from_pandas(frame).with_columns(city=pl.lit("Bonn")))
    est.fit(pl.from_pandas(frame).with_columns(city=pl.lit("Bonn")).drop(["city"]))


def test_columns_are_named_in_messages_and_results(here):
    rng = np.random.default_rng(0)
    X = gsn(400, (6,), random_state=1).latent + 0.05 * rng.normal(size=(400, 6))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(dead=1.0, id=np.arange(400))
    frame.to_csv("x.csv", index=False)
    code, _, err = run_command(
        "recover", "x.csv", "--grid", "6", "--mixing", "shuffled", "--no-check", "--no-report"
    )
    assert code == 0
    assert "column 'dead'" in err
    rows = places("x-symlift")
    assert list(rows) == [*"abcdef", "dead", "id"]
    assert (rows["dead"]["reason"], rows["id"]["reason"]) == ("dead", "index")
    code, _, err = run_command(
        "recover",
        "x.csv",
        "--grid",
        "6",
        "--mixing",
        "shuffled",
        "--no-check",
        "--no-report",
        "--keep",
        "--overwrite",
    )
    assert places("x-symlift")["id"]["reason"] != "index"
    # what was said is kept: a bare --resume goes on with it, and another one is refused
    record = json.loads(Path("x-symlift/run.json").read_text())
    assert record["input"]["reading"]["keep"] is True
    code, _, err = run_command("recover", "x.csv", "--resume", "--drop", "id")
    assert code == 2
    assert "leave out --drop, or give --overwrite" in err
