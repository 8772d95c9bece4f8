"""Jobs are known by their content; what was run is kept, what was not is told."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from symlift import InputError
from symlift.solvers.registry import CHECKPOINT
from symlift_paper import EXPERIMENTS, experiments_with, get_experiment, run_baseline
from symlift_paper.jobs import (
    Job,
    baseline_jobs,
    ceiling_jobs,
    covariance_jobs,
    solver_jobs,
    training_jobs,
)
from symlift_paper.registry import AUTHORS, read_experiments
from symlift_paper.scheduler import by_turns, cluster, run_jobs
from symlift_paper.store import Archive, Cache, default_cache, source_digest

RING = EXPERIMENTS["gsn15-fft"].model_copy(update={"n": 400, "baseline_n": 400})
TIMING = {"cpu_seconds", "seconds", "peak_rss_mb"}


def job(**changes) -> Job:
    return Job(**({"experiment": RING, "kind": "solver", "method": "random"} | changes))


def figures(entry) -> dict:
    return {key: value for key, value in entry["result"].items() if key not in TIMING}


# -- the registry ----------------------------------------------------------------------------------


def test_the_registry_names_methods_that_exist():
    from symlift.solvers.registry import SOLVERS, canonical
    from symlift_paper.baselines import BASELINES

    for experiment in EXPERIMENTS.values():
        assert set(experiment.baselines) <= set(BASELINES)
        assert set(experiment.paper.baselines) <= set(experiment.baselines)
        assert canonical(experiment.solver) in SOLVERS
        assert len(experiment.seeds) >= 3
        assert {canonical(method) for method in experiment.cost} <= set(BASELINES) | set(SOLVERS)


def test_a_file_adds_experiments_of_ones_own(tmp_path):
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(50, 9))
    order = rng.permutation(9)
    np.savez(
        tmp_path / "mine.npz", X=latent[:, order], latent=latent, transform=np.eye(9)[:, order]
    )
    rows = tmp_path / "rows.yaml"
    rows.write_text(
        "- {name: mine, title: my array, source: file, shape: [9], options: {path:"
        f" {tmp_path / 'mine.npz'}}}}}\n- {{name: gsn21, title: a ring, source: gsn, shape: [21],"
        " periodic: true, seeds: [5],\n   baselines: {glasso: {alpha: [0.1]}}}\n"
    )
    known = experiments_with(rows)
    assert set(known) == set(EXPERIMENTS) | {"mine", "gsn21"}
    data = get_experiment("mine", rows).observe(seed=0, n=20)
    assert np.array_equal(data.X, latent[:20, order])
    assert data.grid.shape == (9,)
    assert known["gsn21"].observe(seed=5, n=12).X.shape == (12, 21)
    found = run_baseline(known["gsn21"], "glasso", seed=5, n=300)
    assert found["configurations"] == 1
    assert found["settings"] == {"alpha": 0.1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- {name: a, title: b, source: gsn, shape: [9], colour: red}", "colour"),
        ("- {name: a, title: b, source: magic, shape: [9]}", "source"),
        ("- {name: A B, title: b, source: gsn, shape: [9]}", "name"),
        ("- {name: a, title: b, source: gsn, shape: [9], seeds: []}", "seeds"),
        (
            (
                "- {name: a, title: b, source: gsn, shape: [9]}\n- {name: a, title: c, source: gsn,"
                " shape: [9]}"
            ),
            "two",
        ),
        ("name: a", "list"),
        ("- [", "not YAML"),
        ("- !!python/object/apply:os.getcwd []", "not YAML"),
    ],
)
def test_files_that_are_wrong_are_named(text, told):
    with pytest.raises(InputError, match=told) as error:
        read_experiments(text, "rows.yaml")
    assert "rows.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_papers_names_are_taken(tmp_path):
    rows = tmp_path / "rows.yaml"
    rows.write_text("- {name: gsn15-fft, title: b, source: gsn, shape: [9]}")
    with pytest.raises(InputError, match="another name"):
        experiments_with(rows)
    with pytest.raises(InputError, match=r"none\.yaml"):
        experiments_with(tmp_path / "none.yaml")
    broken = read_experiments(
        "- {name: a, title: b, source: file, shape: [9], options: {path: none.npz}}", "rows"
    )["a"]
    with pytest.raises(InputError, match=r"none\.npz"):
        broken.observe(0)
    np.savez(tmp_path / "x.npz", X=np.zeros((3, 9)))
    partial_file = broken.model_copy(update={"options": {"path": str(tmp_path / "x.npz")}})
    with pytest.raises(InputError, match="latent"):
        partial_file.observe(0)


# -- keys ------------------------------------------------------------------------------------------


def test_a_key_is_the_content_that_decides_a_result():
    told = {"title": "x", "cost": {"random": 5.0}, "seeds": (7,), "block": "own", "solver": "fast"}
    assert job(experiment=RING.model_copy(update=told)).key == job().key
    others = [
        job(seed=1),
        job(n=300),
        job(method="fast"),
        job(settings={"rate": 1.0}),
        job(steps=5),
        job(seconds=5.0),
        job(kind="baseline"),
        job(experiment=RING.model_copy(update={"options": {"shifts": "discrete"}})),
        job(experiment=RING.model_copy(update={"n": 401})),
        job(experiment=RING.model_copy(update={"shape": (17,)})),
    ]
    keys = [other.key for other in others]
    assert len({job().key, *keys}) == len(others) + 1
    # a search is part of what a baseline is, and of nothing else
    searched = RING.model_copy(update={"baselines": {"glasso": {"alpha": [0.5]}}})
    assert job(experiment=searched).key == job().key
    glasso = partial(job, kind="baseline", method="glasso")
    assert glasso(experiment=searched).key != glasso().key
    assert (
        glasso(experiment=searched, settings={"alpha": 1}).key == glasso(settings={"alpha": 1}).key
    )


def test_keys_outlive_releases_and_the_archive_is_found_by_them(monkeypatch):
    before = job().key
    monkeypatch.setattr("symlift.__version__", "99.0")
    assert job().key == before
    entries = Archive(Path(__file__).parents[1] / "benchmarks/results/experiments").entries()
    rows = EXPERIMENTS | {row.name: row for row in AUTHORS.values()}
    for key, entry in entries.items():
        again = Job.model_validate(entry["job"] | {"experiment": rows[entry["job"]["experiment"]]})
        assert again.key == key == entry["key"]


def test_jobs_of_an_experiment():
    assert [j.seed for j in solver_jobs(RING)] == [0, 1, 2]
    assert {j.method for j in solver_jobs(RING)} == {"fast"}
    assert {j.method for j in solver_jobs(EXPERIMENTS["neural-gratings"])} == {"homogeneous"}
    assert {j.method for j in baseline_jobs(RING, slow=True)} == {"liegan"}
    assert {j.method for j in baseline_jobs(RING, slow=False)} == set(RING.baselines) - {"liegan"}
    assert {j.method for j in training_jobs(RING)} == {"neural"}
    (from_covariance, *_) = covariance_jobs(EXPERIMENTS["gsn15-continuous"])
    assert from_covariance.settings == {"start": "covariance"}
    assert covariance_jobs(EXPERIMENTS["mnist27-bits"]) == []


def test_a_perfect_inverse_reads_what_the_noise_leaves():
    """Noise of 5 % of the signal's deviation: r = 1/√(1 + 0.05²) under one alignment."""
    found = job(kind="ceiling", method="inverse", n=4_000).run()
    assert found["r"] == pytest.approx(1 / np.sqrt(1 + 0.05**2), abs=2e-4)
    assert found["r_paper"] < found["r"]
    assert [j.seed for j in ceiling_jobs(RING)] == [0, 1, 2]
    assert ceiling_jobs(EXPERIMENTS["mnist15-bits"]) == []
    with pytest.raises(InputError, match="no transform"):
        job(experiment=EXPERIMENTS["mnist15-bits"], kind="ceiling", method="inverse", n=10).run()


# -- the cache -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [job(), job(method="fast", seed=2), job(kind="baseline", method="glasso")],
    ids=lambda j: j.method,
)
def test_a_deleted_result_comes_back_the_same(one, tmp_path):
    cache = Cache(tmp_path)
    first = cache.run(one)
    assert first["source"] == source_digest()
    assert first["machine"]["versions"]["torch"]
    cache.path(one).unlink()
    again = cache.run(one)
    assert figures(again) == figures(first)
    assert cache.get(one) == again


def test_what_was_run_is_not_run_again(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    first = cache.run(job())
    monkeypatch.setattr(Job, "run", lambda *_: pytest.fail("it was run again"))
    assert cache.run(job()) == first
    assert run_jobs([job(), job()], cache).entries == {job().key: first}


def test_other_code_is_measured_again(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache.run(job())
    monkeypatch.setattr("symlift_paper.store.source_digest", lambda: "0" * 16)
    assert cache.get(job()) is None


def test_forgotten_results_are_run_again(tmp_path):
    cache = Cache(tmp_path)
    cache.run(job())
    cache.forget([job(), job(seed=1)])
    assert cache.get(job()) is None


def test_a_damaged_result_is_named(tmp_path):
    cache = Cache(tmp_path)
    cache.run(job())
    cache.path(job()).write_text("{")
    with pytest.raises(InputError, match="delete it"):
        cache.get(job())


def test_a_training_that_was_stopped_goes_on(tmp_path, monkeypatch):
    """The checkpoint of a run that died is where the next one starts, and goes when there is a
    result.
    """
    one = job(method="neural", settings={"batch": 50, "dwell": 50}, steps=100)
    cache, whole = Cache(tmp_path / "a"), Cache(tmp_path / "b")
    training = cache.path(one).with_suffix(".training")
    monkeypatch.setattr("symlift.solvers.neural.trainer.SAVE", 1)
    one.model_copy(update={"steps": 50}).run(training)  # the first half, as far as it came
    assert (training / CHECKPOINT).is_file()
    (training / "spent.json").write_text('{"seconds": 1000.0}\n', encoding="utf-8")
    steps = []
    from symlift.solvers.neural.trainer import Trainer

    plain = Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self: (steps.append(1), plain(self))[1])
    entry = cache.run(one)
    assert len(steps) == 50
    assert not training.exists()
    assert entry["result"]["steps"] == 100
    # the first half counts
    assert min(entry["result"][key] for key in ("seconds", "cpu_seconds")) > 1000
    assert figures(entry) == figures(whole.run(one))


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("SYMLIFT_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("SYMLIFT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache() == tmp_path / "x" / "symlift" / "experiments"


def test_an_archive_keeps_entries_in_one_file_for_each_experiment(tmp_path):
    cache, archive = Cache(tmp_path / "cache"), Archive(tmp_path / "archive")
    entries = [cache.run(job(seed=seed)) for seed in (1, 0)]
    archive.add(entries)
    archive.add(entries[:1])
    assert [path.name for path in (tmp_path / "archive").iterdir()] == ["gsn15-fft.json"]
    assert archive.entries() == {entry["key"]: entry for entry in entries}
    lines = (tmp_path / "archive" / "gsn15-fft.json").read_text().splitlines()
    assert len(lines) == 4
    assert json.loads("\n".join(lines))[entries[0]["key"]]["job"]["seed"] == 1
    newer = entries[0] | {"date": "2030-01-01"}
    archive.add([newer])
    assert archive.entries()[newer["key"]]["date"] == "2030-01-01"
    (tmp_path / "archive" / "gsn15-fft.json").write_text("{")
    with pytest.raises(InputError, match="gsn15-fft"):
        archive.entries()


# -- many jobs -------------------------------------------------------------------------------------


def test_a_budget_says_what_it_left_out(tmp_path):
    dear = RING.model_copy(update={"cost": {"fast": 1000.0, "random": 1.0}})
    jobs = [job(experiment=dear, method="fast"), job(experiment=dear), job(experiment=dear, seed=1)]
    told = []
    outcome = run_jobs(
        jobs,
        Cache(tmp_path),
        budget=100.0,
        progress=lambda stage, share: told.append((stage, share)),
    )
    assert set(outcome.entries) == {jobs[1].key, jobs[2].key}
    assert list(outcome.left_out) == ["gsn15-fft, fast, seed 0"]
    assert "1000 s" in outcome.left_out["gsn15-fft, fast, seed 0"]
    assert told[0][1] == 0
    assert told[-1] == ("2 of 2 runs done", 1.0)
    # what is cached costs nothing
    assert len(run_jobs(jobs[1:], Cache(tmp_path), budget=0.1).entries) == 2


def test_a_budget_that_runs_out_begins_nothing_more(tmp_path, monkeypatch):
    cheap = RING.model_copy(update={"cost": {"random": 1.0}})
    moments = iter([0.0, 0.0, 9.5])  # the start, the first job, the second one
    monkeypatch.setattr("symlift_paper.scheduler.time", SimpleNamespace(time=lambda: next(moments)))
    outcome = run_jobs(
        [job(experiment=cheap, seed=s) for s in (0, 1)], Cache(tmp_path), budget=10.0
    )
    assert len(outcome.entries) == 1
    assert outcome.left_out == {
        "gsn15-fft, random, seed 1": "the budget was used up before its turn came"
    }


def test_one_that_fails_does_not_stop_the_others(tmp_path):
    outcome = run_jobs([job(n=9), job()], Cache(tmp_path))
    assert set(outcome.entries) == {job().key}
    assert "too few" in outcome.failed["gsn15-fft, random, seed 0"]


def test_data_that_are_not_here_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("SYMLIFT_DATA", str(tmp_path))
    outcome = run_jobs([job(experiment=EXPERIMENTS["neural-gratings"])], Cache(tmp_path / "cache"))
    assert not outcome.failed
    assert "SYMLIFT_DATA" in outcome.left_out["neural-gratings, random, seed 0"]


def test_seeds_take_turns():
    jobs = [j for e in ("gsn15-fft", "mnist27-shuffled") for j in solver_jobs(EXPERIMENTS[e])]
    order = [(j.experiment.name, j.seed) for j in by_turns(jobs)]
    assert order == [(e, s) for s in (0, 1, 2) for e in ("gsn15-fft", "mnist27-shuffled")]


def test_two_workers_find_what_one_does(tmp_path):
    jobs = [job(seed=seed, method="fast") for seed in (0, 1)]
    alone = run_jobs(jobs, Cache(tmp_path / "one"))
    both = run_jobs(jobs, Cache(tmp_path / "two"), workers=2)
    assert not both.failed
    assert {k: figures(e) for k, e in alone.entries.items()} == {
        k: figures(e) for k, e in both.entries.items()
    }


@pytest.mark.filterwarnings("ignore")
def test_the_same_jobs_run_on_a_dask_cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    here = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with here, cluster(here.scheduler_address):
        outcome = run_jobs([job(), job(seed=1)], Cache(tmp_path), workers=2)
    assert len(outcome.entries) == 2
    assert not outcome.failed


def test_no_cluster_is_told_in_one_line():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no Dask scheduler"), cluster("nowhere"):
        pass
