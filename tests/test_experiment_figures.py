"""The paper's figures: drawn whole or not at all, the same for the same seed, and with the figures
that were measured.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from symlift import InputError, LatentDomain
from symlift.core.grid import Alignment, Grid
from symlift.datasets import load_mnist, ring_population
from symlift.errors import FitWarning
from symlift.metrics import (
    align,
    bit_structure,
    circular_correlation,
    generator_similarity,
    signal_recovery,
)
from symlift.plotting import STYLE, save_figure, styled
from symlift.solvers.contract import no_progress
from symlift.solvers.neural.full_batch import Closing
from symlift.solvers.neural.presets import PRESETS
from symlift.solvers.neural.training import solve
from symlift_paper import EXPERIMENTS, get_experiment
from symlift_paper.figures import FIGURES, bit_training, draw
from symlift_paper.figures import bits as bits_module
from symlift_paper.figures import neural as neural_module
from symlift_paper.figures import waveforms as waveforms_module
from symlift_paper.figures.request import Fit, Request, aligned_map

# so few rows are nothing to be trusted, and the fits say so
pytestmark = pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")

SEED = 1
N_OF = {
    "waveforms": 2_000,
    "bits": 900,
    "lifting-map": 900,
    "neural": 400,
    "neural-gratings": 400,
    "neural-synthetic": 400,
    "transport": 400,
    "gsn-samples": 300,
}
SHORT = {"batch": 40, "full_batch_at": 1.5, "full_batch_every": 100}
FILES = {
    "neural-head-direction": "head_direction_mouse28.npz",
    "neural-gratings": "allen_732592105_drifting_gratings.npz",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The experiments on small grids, few digits, and a synthetic population in the recordings'
    place.
    """
    folder = tmp_path_factory.mktemp("data")
    digits = load_mnist()
    parts = {"x_train": digits.images[::10], "x_test": digits.images[1::100]}
    labels = {"y_train": digits.labels[::10], "y_test": digits.labels[1::100]}
    np.savez(folder / "mnist.npz", **parts, **labels)
    population = ring_population(500, 36, random_state=0)
    for file in FILES.values():
        np.savez(
            folder / file,
            X=population.X,
            angles=np.degrees(np.ravel(population.latent)),
            period=360.0,
        )
    with pytest.MonkeyPatch.context() as patch:
        for name, shape in (
            ("gsn63-gaussian-identity", (9,)),
            ("gsn63-gaussian-dst", (9,)),
            ("mnist15-bits", (5, 5)),
        ):
            patch.setitem(EXPERIMENTS, name, EXPERIMENTS[name].model_copy(update={"shape": shape}))
        patch.setattr(bits_module, "COUNTS", (30, 60))
        patch.setattr(bit_training, "SHAPE", (5, 5))
        # whether a search arrives is not what is tested here: the first one ends a training
        patch.setattr(Closing, "agrees", lambda closing, before: True)
        for name in ("mnist7-bits", "visual-coding"):
            patch.setitem(PRESETS, name, PRESETS[name].model_copy(update=SHORT))
        patch.setenv("SYMLIFT_DATA", str(folder))
        yield


@pytest.fixture(scope="module")
def drawn(small, tmp_path_factory):
    """Every figure once: its two files."""
    out = tmp_path_factory.mktemp("figures") / "deeper"
    return {name: draw_small(name, out) for name in FIGURES}


def draw_small(name: str, folder: Path, seed: int = SEED, **options) -> list[Path]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # so few rows are nothing to be trusted
        return draw(name, folder, seed=seed, n=N_OF[name], **options)


def texts(path: Path) -> str:
    """All that is written in an SVG: letters are drawn as paths, and what they say stands beside
    them as a comment.
    """
    return "\n".join(re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_written_in_both_formats_and_says_where_it_comes_from(name, drawn):
    vector, picture = drawn[name]
    assert (vector.name, picture.name) == (f"{name}.svg", f"{name}.png")
    assert len(list(vector.parent.iterdir())) == 2 * len(FIGURES)
    assert vector.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("L"))
    assert pixels.shape[1] > 900
    assert pixels.std() > 10
    assert (pixels < 128).mean() > 0.005
    said = texts(vector)
    assert f"seed {SEED}" in said
    unseen = N_OF[name] // 10 if name == "bits" else 0
    assert f"n = {N_OF[name] - unseen:,}" in said


@pytest.mark.parametrize("name", ["waveforms", "bits", "lifting-map", "neural", "gsn-samples"])
def test_the_same_seed_gives_the_same_file(name, drawn, tmp_path):
    for before, again in zip(drawn[name], draw_small(name, tmp_path), strict=True):
        assert before.read_bytes() == again.read_bytes()


def test_another_seed_gives_another_file_and_pdf_is_repeatable_too(drawn, tmp_path):
    first, second = (
        draw_small("gsn-samples", tmp_path / part, seed=2, formats=("pdf", "svg")) for part in "ab"
    )
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[1].read_bytes() != drawn["gsn-samples"][0].read_bytes()


# -- what the figures say is what is measured ------------------------------------------------------


def fitted(name: str, seed: int, n: int):
    experiment = get_experiment(name)
    data = experiment.observe(seed, n)
    est = LatentDomain(
        experiment.shape,
        periodic=experiment.periodic,
        solver=experiment.solver,
        random_state=seed,
    ).fit(data.X)
    return data, est


def test_waveforms_carry_their_recovery_and_similarity(drawn):
    said = texts(drawn["waveforms"][0])
    for name in ("gsn63-gaussian-identity", "gsn63-gaussian-dst"):
        data, est = fitted(name, SEED, N_OF["waveforms"])
        assert f"r = {signal_recovery(data.latent, est.transform(data.X), data.grid).r:.4f}" in said
        for truth, digits in (("difference", 3), ("exact", 4)):
            S = generator_similarity(est.generators_, data.transform, data.grid, truth=truth)[0]
            assert f"{S:.{digits}f}" in said


@pytest.fixture(scope="module")
def trained(small):
    """The training that figures of bits show."""
    return bit_training.train_on_bits(bit_request())


def bit_request(seconds: float | None = None) -> Request:
    return Request((get_experiment("mnist15-bits"),), SEED, N_OF["bits"], seconds, no_progress)


def recovery(run, shot, rows: slice) -> float:
    recovered = (run.data.X[rows] - shot.mean) @ shot.W.T
    return signal_recovery(run.data.latent[rows], recovered, run.data.grid).r


def test_the_training_that_is_shown_is_that_of_the_solver(trained):
    data = trained.data
    solution = solve(data.X[trained.judges :], data.grid, np.random.default_rng(SEED), device="cpu")
    assert solution.trace.training.preset == "mnist7-bits"
    assert solution.trace.training.ended == "finished"
    assert solution.trace.training.steps == trained.steps
    np.testing.assert_array_equal(solution.model.lifting_map(), trained.model.lifting_map())


def test_snapshots_go_from_a_start_through_modes_to_bits_at_points(trained):
    assert [step for step, _ in trained.draw] == [0, 50, 100]
    assert (trained.steps, trained.draws) == (100, 1)
    shots = trained.snapshots()
    assert [shot.label.split()[0] for shot in shots] == ["0", "50", "100", "closed", "closed"]
    assert not np.array_equal(shots[0].W, shots[1].W)
    # modes are an isometry of so many points; then every column of the map has one weight
    modes, last = (shot.W for shot in shots[-2:])
    np.testing.assert_allclose(modes @ modes.T, np.eye(25), atol=1e-9)
    weights = np.abs(last) > 1e-4 * np.abs(last).max()  # a network keeps them in single precision
    assert (weights.sum(axis=0) == 1).all()


def test_a_draw_that_is_lost_is_not_shown(small):
    """Two draws whose search does not arrive, and a third that counts."""
    ends = iter([False, False, True])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Closing, "agrees", lambda closing, before: next(ends))
        patch.setattr(Closing, "arrived", False)
        run = bit_training.train_on_bits(bit_request())
    assert (run.steps, run.draws) == (300, 3)
    assert [step for step, _ in run.draw] == [0, 50, 100]


@pytest.mark.slow
def test_digits_appear_in_the_training_of_the_figure():
    figure = FIGURES["bits"]
    request = Request((get_experiment(*figure.experiments),), 0, figure.n, None, no_progress)
    run = bit_training.train_on_bits(request)
    r = [recovery(run, shot, slice(0, run.judges)) for shot in run.snapshots()]
    assert max(r[:-2]) < 0.8 < r[-2] < 0.95
    assert r[-1] > 0.98
    order, b = run.data.order, run.data.bits_per_pixel
    assert 1.3 < bit_structure(run.model.lifting_map(), order, b).base < 2.2


def test_a_training_that_a_budget_stops_is_shown_as_far_as_it_went(small, tmp_path):
    run = bit_training.train_on_bits(bit_request(seconds=1e-9))
    assert (run.steps, run.draws, run.modes) == (0, 1, None)
    assert [shot.label for shot in run.snapshots()] == ["0 steps\nof critics"]
    vector = draw_small("lifting-map", tmp_path, seconds=1e-9, formats=("svg",))[0]
    assert "0 steps of critics" in texts(vector)
    assert "closed form" not in texts(vector)


def test_lifting_map_carries_recovery_and_base_of_every_row(drawn, trained):
    said = texts(drawn["lifting-map"][0])
    for shot in trained.snapshots()[-2:]:
        r = recovery(trained, shot, slice(trained.judges, None))
        assert f"{' '.join(shot.label.split())}: r = {r:.4f}" in said
    data, est = fitted("mnist15-bits", SEED, N_OF["lifting-map"])
    r = signal_recovery(data.latent, est.transform(data.X), data.grid).r
    assert r > 0.8
    assert f"r = {r:.4f}" in said
    bases = [float(value) for value in re.findall(r"number system of base (\d\.\d+)", said)]
    order, b = trained.data.order, trained.data.bits_per_pixel
    assert bases[1] == round(bit_structure(trained.model.lifting_map(), order, b).base, 3)
    assert len(bases) == 3
    assert said.count("powers of two") == 3


def test_neural_carries_both_correlations_and_the_verdict(drawn):
    said = texts(drawn["neural"][0])
    data, est = fitted("neural-head-direction", SEED, N_OF["neural"])
    angles = np.ravel(data.latent)
    r = abs(circular_correlation(angles, est.phase(data.X)))
    assert f"ring solver: circular correlation {r:.3f}; " in said
    assert est.diagnose(data.X).verdict.words in said
    X = neural_module.standard_scores(data.X)
    options = {"preset": "visual-coding", "device": "cpu"}
    ours = LatentDomain(data.grid, solver="neural", random_state=SEED, solver_options=options)
    r = abs(circular_correlation(angles, ours.fit(X).phase(X)))
    assert r > 0.8
    assert f"{ours.trace_.training.steps:,} steps: circular correlation {r:.3f}" in said


def test_samples_carry_the_noise_that_is_in_them(drawn):
    said = texts(drawn["gsn-samples"][0])
    found = [float(value) for value in re.findall(r"noise (\d\.\d+) of the deviation", said)]
    assert len(found) == 7
    np.testing.assert_allclose(found, 0.05, atol=0.002)


def test_bits_carry_steps_and_recovery_of_every_snapshot(drawn, trained):
    said = texts(drawn["bits"][0])
    assert f"the last of {trained.draws} draws, {trained.steps:,} steps in all" in said
    judged = slice(0, trained.judges)
    shots = trained.snapshots()
    for shot in shots:
        assert f"{shot.label}\nr = {recovery(trained, shot, judged):.3f}" in said
    assert len(re.findall(r"r = \d\.\d{3}", said)) == len(shots) + 3
    data = get_experiment("mnist15-bits").observe(SEED, N_OF["bits"])
    est = LatentDomain(data.grid.shape, random_state=SEED).fit(data.X[trained.judges :])
    r = signal_recovery(data.latent[judged], est.transform(data.X[judged]), data.grid).r
    assert f"r = {r:.3f}" in said


def test_windows_of_a_digit_have_the_bits_of_the_data(trained):
    """The latent images, observed again, are the rows of the data; windows join to what was cut."""
    values = np.rint(255 * trained.data.latent).astype(np.uint8)
    np.testing.assert_array_equal(bits_module.observed_bits(values, trained.data), trained.data.X)
    images = load_mnist().images[:2]
    windows = bits_module.windows_of(images, (5, 5))
    assert windows.shape == (2, 5, 5, 5, 5)
    np.testing.assert_array_equal(bits_module.joined(windows), images[:, 1:26, 1:26])


def test_aligned_map_lifts_onto_the_truth(rng):
    """Aligning the map is aligning its output, for any orientation and shift."""
    grid = Grid((4, 4))
    W, x = rng.normal(size=(16, 7)), rng.normal(size=(5, 7))
    alignment = Alignment(axes=(1, 0), flips=(True, False), shift=(1.0, -1.0), sign=-1)
    np.testing.assert_allclose(
        x @ aligned_map(W, alignment, grid).T, align(x @ W.T, alignment, grid), atol=1e-12
    )


def test_the_composition_is_the_identity_where_the_recovery_is_perfect(small):
    """Of the exact inverse of DST-I, seen in a mirror and upside down."""
    experiment = get_experiment("gsn63-gaussian-dst")
    fit = Fit.of(Request((experiment,), 0, 2_000, None, no_progress), experiment)
    fit.estimator.lifting_map_ = -np.linalg.inv(fit.data.transform.T)[::-1]
    recovered = (fit.data.X - fit.estimator.mean_) @ fit.estimator.lifting_map_.T
    alignment = signal_recovery(fit.data.latent, recovered, fit.data.grid).alignment
    exact = waveforms_module.composition(Fit(fit.data, fit.estimator, 1.0, alignment))
    np.testing.assert_allclose(exact, np.eye(9), atol=1e-10)
    assert waveforms_module.diagonal_share(exact) == pytest.approx(1)


# -- what is refused, and what is left behind ------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"name": "waveform"},
            "bits, lifting-map, neural, neural-gratings, neural-synthetic, transport, gsn-samples",
        ),
        ({"name": "bits", "formats": ("gif",)}, "'gif'.*svg, png, pdf"),
        ({"name": "bits", "formats": ()}, "none"),
        ({"name": "bits", "n": 0}, "at least one sample"),
        ({"name": "bits", "seconds": -1.0}, "more than 0 seconds"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_runs(arguments, message, tmp_path):
    with pytest.raises(InputError, match=message):
        draw(folder=tmp_path / "new", **arguments)
    assert not (tmp_path / "new").exists()


def test_nothing_is_left_where_a_recording_is_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("SYMLIFT_DATA", raising=False)
    with pytest.raises(InputError, match="SYMLIFT_DATA"):
        draw("neural", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_is_left_where_the_second_format_fails(small, tmp_path, monkeypatch):
    from symlift import plotting

    old = draw_small("gsn-samples", tmp_path, formats=("svg",))[0]
    before = old.read_bytes()
    write = plotting.write_figure

    def fails(figure, path, kind):
        if kind == "png":
            path.write_bytes(b"half")
            raise OSError("disk full")
        write(figure, path, kind)

    monkeypatch.setattr(plotting, "write_figure", fails)
    with pytest.raises(OSError, match="disk full"):
        draw_small("gsn-samples", tmp_path, seed=5)
    assert [path.name for path in tmp_path.iterdir()] == ["gsn-samples.svg"]
    assert old.read_bytes() == before


# -- one style, loaded late ------------------------------------------------------------------------


def test_the_style_is_the_projects_whatever_the_user_has_set(drawn, tmp_path):
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 20, "lines.linewidth": 9, "svg.hashsalt": None}):
        again = draw_small("gsn-samples", tmp_path)[0].read_bytes()
        assert mpl.rcParams["font.size"] == 20
    assert again == drawn["gsn-samples"][0].read_bytes()
    assert STYLE.is_file()
    with styled():
        colours = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    assert len(set(colours)) == len(colours) >= 6


def test_the_demos_figures_have_the_same_style(tmp_path, rng):
    from symlift.plotting import gallery

    figure = gallery({"row": rng.normal(size=(2, 9))}, Grid((9,)), columns=2, title="all")
    assert figure.axes[0].lines[0].get_color() == "C0"
    save_figure(figure, tmp_path / "a.svg")
    save_figure(figure, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_naming_figures_does_not_import_matplotlib():
    code = "import sys, symlift_paper, symlift_paper.figures; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_figure_is_on_the_page_with_its_command():
    docs = Path(__file__).parent.parent / "docs"
    page = (docs / "figures.md").read_text(encoding="utf-8")
    for name, figure in FIGURES.items():
        assert f"symlift experiment figure {name}\n" in page
        assert f"images/figures/{name}.png" in page
        assert (docs / "images" / "figures" / f"{name}.png").stat().st_size < 200_000
        assert set(figure.experiments) <= set(EXPERIMENTS)
