"""What a fit will take is said before it begins, and what cannot be is refused at once."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded import bounded
from commands import everything, refused, run_command

from symlift import Grid, LatentDomain, LatentDomains, Scattered, Sphere, propose
from symlift.core.lags import LagClasses
from symlift.datasets import gsn
from symlift.errors import CostWarning, FitWarning, InputError
from symlift.runs.record import open_run
from symlift.solvers.plan import plan_domain, plan_fit, plan_parts
from symlift.statistics.kriging import falling_with_distance, weights_from
from symlift.statistics.moments import stationarity
from symlift.storage import free_memory

GB = 1 << 30


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 40 MB were free: a fit of 300 x 225 is expected to take 30 MB."""
    monkeypatch.setattr("symlift.solvers.plan.available_memory", lambda: 40 << 20)
    monkeypatch.setattr("symlift.solvers.plan.free_swap", lambda: 0)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.save(tmp_path / "x.npy", gsn(300, (15, 15), transform="permutation", random_state=0).X)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_small_fits_are_not_announced() -> None:
    for n, d in ((100, 20), (2_000, 225), (20_000, 225), (500, 1_500)):
        assert plan_fit(n, d, d, mixing="shuffled").say(free=4 * GB) == ""


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((200, 20_000), "20,000 columns may take about 27.4 GB of memory, and 32.0 GB are free"),
        ((200, 20_000), "minutes on one core: give the grid, whose columns then need no matrix"),
        ((200, 20_000), "or fewer columns (at most about"),
        ((50_000, 900), "900 columns may take about 41 minutes on one core"),
        ((50_000, 900), 'give mixing "shuffled" if columns are points, fewer columns'),
    ],
)
def test_large_fits_are_one_line_with_what_would_do(shape: tuple[int, int], words: str) -> None:
    line = plan_fit(*shape, None).say(free=32 * GB)
    assert words in line
    assert "\n" not in line


def test_what_would_do_would_do() -> None:
    """The number of columns that a line names is neither announced itself nor far too small."""
    for columns, given in ((20_000, False), (3_000_000, True)):
        line = plan_fit(200, columns, columns if given else None).say(free=32 * GB)
        most = int(line.split("at most about ")[1].split(")")[0].replace(",", ""))
        for less in (most, 2 * most):
            again = plan_fit(200, less, less if given else None).say(free=32 * GB)
            assert (again == "") == (less == most)


def test_near_pairs_of_a_given_grid_take_little() -> None:
    """Photographs of 256x256, 4,000 rows: 45 s and 2.1 GB beyond the imports."""
    plan = plan_fit(4_000, 256 * 256, 256 * 256, mixing="shuffled")
    assert plan.say(free=8 * GB) == ""
    assert 1.5 * GB < plan.memory < 3.2 * GB
    assert 30 < plan.seconds < 90
    with pytest.raises(InputError, match="give fewer columns"):
        plan.say(free=GB)


@pytest.mark.parametrize(
    ("shape", "points", "words"),
    [
        ((10, 1_000_000), None, "1,000,000 columns take about 66.2 TB of memory"),
        ((10, 10_000_000), 10_000_000, "10,000,000 columns take about 74.9 GB"),
        ((100, 50_000), None, "50,000 columns take about 169.8 GB"),
        ((100, 50), 10**9, "a grid of 1,000,000,000 points and 50 columns take"),
    ],
)
def test_what_cannot_be_is_refused(shape: tuple[int, int], points: int | None, words: str) -> None:
    with pytest.raises(InputError, match="are free: give") as caught:
        plan_fit(*shape, points).say(free=32 * GB)
    assert words in str(caught.value)


def test_estimates_grow_with_everything() -> None:
    base = plan_fit(5_000, 300, 300)
    for other in (plan_fit(10_000, 300, 300), plan_fit(5_000, 600, 300), plan_fit(5_000, 300, 290)):
        assert other.memory >= base.memory * 0.9
    assert plan_fit(5_000, 300, 300, mixing="shuffled").seconds < base.seconds
    assert not plan_fit(5_000, 300, 300, gaps=True).unmixes
    assert not plan_fit(200, 300, 300).unmixes


def test_third_moments_on_a_sphere_count() -> None:
    """Tensors of d³ numbers, whatever the degree: 300 columns took 1.5 GB, 200 columns 0.45 GB."""
    for rows, columns, measured in ((800, 200, 445), (1_200, 300, 1_503)):
        plan = plan_domain(rows, columns, Sphere(2), mixing="linear")
        assert measured / 1.5 < plan.memory / 2**20 < measured * 1.5
    with pytest.raises(InputError, match=r"2,000 columns take about 448\.0 GB") as caught:
        plan_domain(20_000, 2_000, Sphere(5), mixing="linear").say(free=32 * GB)
    assert "the grid" not in str(caught.value)
    line = plan_domain(4_000, 800, Sphere(5), mixing="linear").say(free=32 * GB)
    most = int(line.split("at most about ")[1].split(")")[0].replace(",", ""))
    assert plan_domain(4_000, most, Sphere(5), mixing="linear").say(free=32 * GB) == ""


@pytest.mark.parametrize("domain", [Scattered(), Scattered(3), Sphere()])
def test_what_is_said_of_places_without_a_grid_can_help(domain: Any) -> None:
    """No grid is offered, and no number of columns that is refused anywhere."""
    for rows, columns in ((200, 20_000), (10, 1_000_000)):
        for free in (8, 32, 256):
            try:
                line = plan_domain(rows, columns, domain, mixing="shuffled").say(free=free * GB)
            except InputError as error:
                line = str(error)
            assert "the grid" not in line
            assert line.endswith("give fewer columns (at most 1,200)")
    assert plan_domain(1_000, 1_000, domain, mixing="shuffled").say(free=4 * GB) == ""


@pytest.mark.parametrize(
    ("rows", "columns", "measured"), [(20_000, 100, 78), (80_000, 100, 78), (4_000, 1_000, 145)]
)
def test_rings_take_rows_and_not_pairs(rows: int, columns: int, measured: float) -> None:
    """20,000 rows are used, and no columns are placed: 1,000 columns were planned as 396 MB."""
    plan = plan_fit(rows, columns, 30, "ring")
    assert measured / 1.5 < plan.memory / 2**20 < measured * 1.5


def test_a_map_of_the_field_is_made_piece_by_piece() -> None:
    """Weights of 4,000 points took 691 MB at once, those of a map of 200x200 7 GB."""
    rng = np.random.default_rng(0)
    at, points = 20 * rng.random((200, 2)), 20 * rng.random((3_000, 2))
    apart = np.linalg.norm(at[:, None] - at, axis=-1)
    correlation = falling_with_distance(np.exp(-(apart**2) / 2), apart)
    settings = (np.ones(len(at)), np.zeros(2))
    with bounded(memory=200 << 20):
        found = weights_from(correlation, at, points, *settings)
    some = weights_from(correlation, at, points[-5:], *settings)
    assert np.array_equal(found.near[-5:], some.near)
    assert np.allclose(found.weight[-5:], some.weight)
    assert np.allclose(found.error[-5:], some.error)
    assert weights_from(correlation, at, points[:0], *settings).weight.shape == (0, 24)


def test_moments_of_a_window_are_not_all_kept() -> None:
    """Eight folds of three moments and their residuals took 278 MB for a window of 32x32."""
    Y, lags = np.random.default_rng(0).normal(size=(64, 1_024)), LagClasses(Grid((32, 32)))
    with bounded(memory=150 << 20):
        stationarity(Y, lags)


def test_parts_are_planned_before_they_are_looked_for() -> None:
    """Eighteen matrices of all pairs: 600 columns took 54 MB, 1,200 took 200 MB."""
    for columns, measured in ((600, 54), (1_200, 200)):
        plan = plan_parts(500, columns)
        assert measured / 1.5 < plan.memory / 2**20 < measured * 1.5
    with pytest.raises(InputError, match="parts of 20,000 columns take about 59"):
        plan_parts(200, 20_000).say(free=32 * GB)


def test_what_parts_cost_is_said_before_they_are_fitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [gsn(300, (6,), transform="permutation", random_state=seed).X for seed in (0, 1)]
    monkeypatch.setattr("symlift.solvers.plan.available_memory", lambda: 20 << 20)
    monkeypatch.setattr("symlift.solvers.plan.free_swap", lambda: 0)
    said: list[str] = []
    seen: list[list[str]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        warnings.simplefilter("always", CostWarning)
        warnings.showwarning = lambda message, *_, **__: said.append(str(message))
        LatentDomains([0] * 6 + [1] * 6, solver="random", grid=6).fit(
            np.hstack(lines), progress=lambda *_: seen.append([*said])
        )
        assert [line.split(" may")[0] for line in said] == [f"part {k}: 6 columns" for k in (0, 1)]
        assert 1 in map(len, seen)  # of the second part nothing is said yet
        said.clear()
        LatentDomains(2, solver="random", grid=6).fit(np.hstack(lines))
        assert said[0].startswith("parts of 12 columns may take about")


def test_a_proposal_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symlift.solvers.plan.available_memory", lambda: 20 << 20)
    monkeypatch.setattr("symlift.solvers.plan.free_swap", lambda: 0)
    X = gsn(300, (6,), transform="permutation", random_state=0).X
    with pytest.warns(CostWarning, match="6 columns may take"):
        propose(X, random_state=0)


@pytest.mark.usefixtures("little")
def test_a_fit_warns_before_it_works(rows: Path) -> None:
    X, seen = np.load(rows / "x.npy"), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LatentDomain((15, 15), solver="random", random_state=0).fit(
            X,
            progress=lambda *_: seen.append(sum(w.category is CostWarning for w in caught)),
        )
    assert seen[0] == seen[-1] == 1
    line = next(str(w.message) for w in caught if w.category is CostWarning)
    assert line.startswith("225 columns may take about ")
    assert "40.0 MB are free" in line


@pytest.mark.usefixtures("little")
def test_a_run_says_it_and_does_not_keep_it(rows: Path) -> None:
    options = ("--grid", "15x15", "--solver", "random", "--no-check", "--no-report")
    code, _, err = run_command("recover", rows / "x.npy", "--out", rows / "run", *options)
    assert code == 0
    assert err.count("note: 225 columns may take about") == 1
    assert not any("may take" in line for line in open_run(rows / "run").record.warnings)
    code, _, err = run_command(
        "recover", rows / "x.npy", "--out", rows / "quiet", "--quiet", *options
    )
    assert (code, err) == (0, "")


def test_a_run_that_cannot_be_leaves_nothing(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symlift.solvers.plan.available_memory", lambda: 4 << 20)
    monkeypatch.setattr("symlift.solvers.plan.free_swap", lambda: 0)
    said = refused(rows, "225 columns take about", "recover", "x.npy", "--grid", "15x15")
    assert "4.0 MB are free" in said
    assert "--resume" not in said


_PEAK = """
import sys
from pathlib import Path
from typing import Any
from symlift.cli import main
sys.argv = ["symlift", *sys.argv[1:]]
try:
    main()
finally:
    # the program's own: getrusage would include its parent
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read in /proc")
def test_noise_on_a_long_line_takes_what_its_size_explains(rows: Path) -> None:
    """Coordinates that diverge are not counted: once they asked for 22 to 52 GiB."""
    np.save(rows / "long.npy", np.random.default_rng(0).normal(size=(500, 1_500)))
    options = ("--grid", "1500", "--no-report", "--out", "run")
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, "recover", "long.npy", *options],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert "no evidence" in done.stdout
    assert int(done.stdout.splitlines()[-1]) < 1_000_000  # kB


def test_a_million_columns_are_refused_at_once(rows: Path) -> None:
    np.save(rows / "wide.npy", np.random.default_rng(0).normal(size=(10, 1_000_000)).astype("f4"))
    before, start = everything(rows), time.process_time()
    code, out, err = run_command("recover", "wide.npy", "--out", "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "1,000,000 columns take about" in err
    assert "where each row is a channel, give --transpose" in err
    assert "--resume" not in err
    assert everything(rows) == before
    assert time.process_time() - start < 10


def group(folder: Path, limit: object, used: int, cached: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\nactive_file 7\n")


def test_limits_of_a_container_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = free_memory._text
    monkeypatch.setattr(free_memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(
        free_memory,
        "_text",
        lambda path: "0::/a/b" if str(path) == "/proc/self/cgroup" else text(path),
    )
    free = free_memory.available_memory()
    group(tmp_path / "a/b", "max", 1000)
    assert free_memory.available_memory() > free / 2
    group(tmp_path / "a", 5000, 4000)
    assert free_memory.available_memory() == 1000
    group(tmp_path / "a", 5000, 4000, cached=500)  # files that were read are given up first
    assert free_memory.available_memory() == 1500
    group(tmp_path / "a/b", 3000, 2900)
    assert free_memory.available_memory() == 100


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_a_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    text = free_memory._text
    monkeypatch.setattr(
        free_memory, "_text", lambda path: "9 1" if path.name == "statm" else text(path)
    )
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64 << 20, -1))
    assert free_memory.available_memory() == (64 << 20) - 9 * resource.getpagesize()
