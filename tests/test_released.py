"""The presets "paper", "released" and "ours": each line of the table that compares them, read back
from trainers that run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from symlift.core.grid import Grid
from symlift.solvers.neural.data import split_held_out
from symlift.solvers.neural.network import EigenvectorNetwork, GeneratorNetwork
from symlift.solvers.neural.objective.critic import jensen_shannon
from symlift.solvers.neural.printed import PRINTED
from symlift.solvers.neural.released import RELEASED
from symlift.solvers.neural.trainer import Trainer
from symlift.solvers.neural.training import _settings, starting_model

PAGE = Path(__file__).parents[1] / "docs" / "training.md"
RING, LINE, IMAGE = Grid((15,), periodic=True), Grid((63,)), Grid((15, 15))
SPINS, RECORDINGS = Grid((33,)), Grid((30,), periodic=True)
BOTH = ("paper", "released")
ALL = (*BOTH, "ours")


def trainer_of(preset: str, grid: Grid, columns: int = 0, **settings: object) -> Trainer:
    if grid == SPINS:  # rows of noise are no spins
        preset = "ising33" if preset == "ours" else f"{preset}-ising33"
    d = columns or grid.size
    X = np.random.default_rng(0).normal(size=(80, d)).astype(np.float32) ** 3
    chosen = _settings(preset, dict(settings), grid, d)
    split = split_held_out(len(X), np.random.default_rng(0))
    trainer = Trainer(X, *split, starting_model(X, grid, chosen, 0), chosen, 0)
    trainer.rows_each = 40
    trainer._set_rates()
    return trainer


def spectrum_of(d: int) -> np.ndarray:
    return np.exp(np.linspace(1.0, -2.0, d))


def entropy_of(trainer: Trainer, rank: float) -> float:
    """What the running objective makes of a known covariance."""
    d = trainer.grid.size
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]
    covariance = torch.from_numpy(turn * spectrum_of(d) @ turn.T)
    return float(trainer.objective.entropy(covariance, torch.tensor(rank, dtype=torch.float64)))


def windowed(h: np.ndarray, slope: float, rank: float) -> float:
    window = 1 / (1 + np.exp(slope * (np.arange(1, len(h) + 1) - rank)))
    return float((window * h).sum() / window.sum())


def joint_entropy() -> None:
    """Far inside the window, where its slope does not matter, the code's is half of the text's."""
    logs = np.log(spectrum_of(15) + 1e-5)
    gaussian = 0.5 * (1 + math.log(2 * math.pi) + logs)
    for preset, h in zip(ALL, (logs, gaussian, gaussian), strict=True):
        assert math.isclose(entropy_of(trainer_of(preset, RING), 400.0), h.mean(), rel_tol=1e-9)


def window() -> None:
    logs = np.log(spectrum_of(15) + 1e-5)
    text = entropy_of(trainer_of("paper", RING), 4.0)
    assert math.isclose(text, windowed(logs, 3.3, 4.0), rel_tol=1e-9)
    gaussian = 0.5 * (1 + math.log(2 * math.pi) + logs)
    for preset, slope in (("released", 75 / 15), ("ours", 3.3)):
        found = entropy_of(trainer_of(preset, RING), 4.3)
        assert math.isclose(found, windowed(gaussian, slope, 4.3), rel_tol=1e-9)


def rank() -> None:
    text, code = (trainer_of(preset, RING) for preset in BOTH)
    done = 0.3
    share = (1 - 0.1**done) / (1 - 0.1)  # of the summed rate, which falls to a tenth
    for trainer, expected in ((text, math.ceil(15 * share)), (code, 15 * share)):
        now = trainer.clock.advance(trainer.settings, int(done * 450_000), 50, 0.0)
        assert math.isclose(now.rank, expected, rel_tol=1e-6)
    ours = trainer_of("ours", RING)
    assert ours.clock.rank == 1.5
    waits = ours.clock
    for step in range(50, 5_000, 50):  # what does not fit is waited for
        waits = waits.advance(ours.settings, step, 50, 1.0)
    assert waits.rank == waits.stop == 2.5


def updates() -> None:
    """Adam's first average is a tenth of the gradient. Estimators have the same in both ways; the
    map's is taken with the estimators as they have become.
    """
    averages: dict[str, list[torch.Tensor]] = {}
    for how in ("alternating", "simultaneous"):
        trainer = trainer_of("paper", RING, updates=how, estimator_rate=0.5)
        trainer.step()
        parts = (trainer.network, trainer.objective)
        optimisers = (trainer.learners.model_optimiser, trainer.learners.estimator_optimiser)
        averages[how] = [
            torch.cat([o.state[p]["exp_avg"].flatten() for p in part.parameters() if o.state[p]])
            for part, o in zip(parts, optimisers, strict=True)
        ]
    (model, estimators), (other, same) = averages["alternating"], averages["simultaneous"]
    assert torch.equal(estimators, same)
    assert float((model - other).norm()) > 1e-3 * float(model.norm())
    assert trainer_of("paper", RING).settings.updates == "alternating"
    for preset in ("released", "ours"):
        assert trainer_of(preset, RING).settings.updates == "simultaneous"


def estimators_see() -> None:
    y = 3.0 + 2.0 * torch.randn(50, 15, generator=torch.Generator().manual_seed(0))
    text, *others = (trainer_of(preset, RING) for preset in ALL)
    one = torch.tensor(1.0)
    assert torch.equal(text.objective.lifted(y, text.workers, one).z, y)
    for other in others:
        z = other.objective.lifted(y, other.workers, one).z
        assert torch.allclose(z.mean(), torch.tensor(0.0), atol=1e-5)
        assert torch.allclose(z.square().mean(), torch.tensor(1.0), atol=1e-5)


def offset() -> None:
    for preset, grid, moves in (
        ("paper", LINE, False),
        ("released", LINE, True),
        ("released", IMAGE, False),
        ("ours", LINE, True),
        ("ours", IMAGE, True),
    ):
        trainer = trainer_of(preset, grid)
        for _ in range(2):
            trainer.step()
        assert bool(trainer.network.displacement().abs().max() > 0) is moves


def embedding() -> None:
    for preset, divided in (("paper", False), ("released", True), ("ours", True)):
        trainer = trainer_of(preset, SPINS)
        for _ in range(10):
            trainer.step()
        mean = float(torch.linalg.svdvals(trainer.network.E.detach()).log().mean())
        assert (abs(mean) < 1e-6) is divided


def noise() -> None:
    steps = {"gsn15": 300, "gsn63": 100, "ising33": 100, "mnist15": 200, "mnist27": 200}
    for row, of_epoch in steps.items():
        assert PRINTED[f"paper-{row}"].noise_steps == 10 * of_epoch
        assert RELEASED[f"released-{row}"].noise_steps == 1_000
    # over the steps of 50,000 samples an epoch is shorter
    assert trainer_of("paper", RING, steps=150_000).settings.noise_steps == 1_000
    for preset, tau in (("paper", 3_000), ("released", 1_000), ("ours", 1_000)):
        trainer = trainer_of(preset, RING)
        trainer.step_count = 2_000
        seen: list[torch.Tensor] = []
        trainer.learners.update = lambda _, noise, *__, into=seen: (  # type: ignore[method-assign]
            into.append(noise) or torch.zeros(4)
        )
        for _ in range(300):
            trainer.step_count = 2_000
            trainer.step()
        deviation = float(torch.stack(seen).std())
        assert math.isclose(deviation, 0.1 * math.exp(-2_000 / tau), rel_tol=0.05)


def parametrisation() -> None:
    text, code, images = (
        trainer_of("paper", RING),
        trainer_of("released", RING),
        trainer_of("released", IMAGE),
    )
    assert type(text.network) is type(images.network) is EigenvectorNetwork
    assert type(code.network) is GeneratorNetwork
    assert {name for name, _ in code.network.named_parameters()} == {
        "rotation.skew",
        "filter",
        "offset",
    }
    ours = trainer_of("ours", RING).network
    assert {name for name, _ in ours.named_parameters()} >= {"rotation.skew", "theta", "filter"}
    assert type(ours) not in (EigenvectorNetwork, GeneratorNetwork)
    # entries N(0, 1e-3²) of a matrix that is then made antisymmetric
    A = (code.network.rotation.skew - code.network.rotation.skew.T).detach() / 2
    upper = A[torch.triu_indices(15, 15, 1).unbind()]
    assert 0.5e-3 < float(upper.std()) < 1e-3


def layers_of(preset: str, grid: Grid) -> list:
    return [
        list(critics.convolutions)
        for estimator in trainer_of(preset, grid).objective.critics
        for critics in estimator.critics
    ]


def last_layer() -> None:
    text, code, ours = (trainer_of(preset, RING).objective.critics for preset in ALL)
    assert all(critics.pooled for e in text for critics in e.critics)
    assert not any(critics.pooled for e in (*code, *ours) for critics in e.critics)
    # a linear layer of a field that is the same everywhere is that of its values
    last = code[0].critics[0].convolutions[-1]
    x = torch.randn(2, 6, 1, last.taps.shape[1] * last.weight.shape[1])
    doubled = [last.activate(c * x, None, 1) for c in (1.0, 2.0)]
    assert torch.allclose(2 * doubled[0], doubled[1], atol=1e-6)


def norms() -> None:
    root, share = (lambda n: 10 ** (1 / n)), (lambda n: 10 / n)
    for preset, bound in zip(ALL, (root, share, root), strict=True):
        for layers in layers_of(preset, RING):
            assert all(math.isclose(layer.bound, bound(len(layers))) for layer in layers)


def divergence() -> None:
    text, code, ours = (trainer_of(preset, RING) for preset in ALL)
    assert not any(e.either for t in (text, ours) for e in t.objective.critics)
    assert all(e.either for e in code.objective.critics)
    f = torch.randn(2, 3, 60, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    g = f.numpy()
    p, m = g[:, :2], g[:, ::2]

    def bound(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left.mean(axis=(1, 2)) - np.log(np.exp(right).mean(axis=(1, 2)))

    forward, back = bound(p, m), bound(m, p)
    assert math.isclose(float(jensen_shannon(f, text.workers)), forward.mean(), rel_tol=1e-9)
    either = float(jensen_shannon(f, code.workers, either=True))
    assert math.isclose(either, np.maximum(forward, back).mean(), rel_tol=1e-9)


def clipping() -> None:
    for name, settings in (PRINTED | RELEASED).items():
        both = (0.5, 0.5) if name == "released-gsn63" else (None, None)
        assert (settings.clip, settings.estimator_clip) == both
    for grid, clip in ((RING, None), (RECORDINGS, None), (LINE, 0.5), (SPINS, 0.5), (IMAGE, 0.5)):
        settings = trainer_of("ours", grid, 110 if grid == RECORDINGS else 0).settings
        assert (settings.clip, settings.estimator_clip) == (clip, None)
    trainer = trainer_of("released", LINE)
    trainer.step()
    for o in (trainer.learners.model_optimiser, trainer.learners.estimator_optimiser):
        norm = math.sqrt(sum(float(s["exp_avg"].square().sum()) for s in o.state.values()))
        assert norm <= 0.1 * 0.5 * (1 + 1e-4)


def weights() -> None:
    for preset in ("paper", "ours"):
        assert trainer_of(preset, LINE).objective.weights == (1.0, 1.0, 0.75)
    assert trainer_of("released", LINE).objective.weights == (1.0, 0.5, 0.5)
    assert trainer_of("released", RING).objective.weights == (1.5, 1.0, 0.75)


def batch_and_rates() -> None:
    numbers = (
        (5000, {1e-4}, {1e-3}),
        (2500, {2.5e-4}, {2.5e-3}),
        (1000, {1e-3, 2e-3, 4e-3}, {5e-3}),
    )
    for preset, expected in zip(ALL, numbers, strict=True):
        trainer = trainer_of(preset, LINE)
        rates = [
            {group["lr"] for group in optimiser.param_groups}
            for optimiser in (
                trainer.learners.model_optimiser,
                trainer.learners.estimator_optimiser,
            )
        ]
        assert (trainer.settings.batch, *rates) == expected


def strides() -> None:
    three = [2, 2, 2, 1, 1]
    for preset, expected in zip(ALL, ([1] * 5, three, three), strict=True):
        for layers in layers_of(preset, LINE):
            assert [layer.layer.stride for layer in layers] == expected
            pooled = [layer.layer.pool for layer in layers]
            assert pooled == [stride == 1 for stride in expected]


def recordings() -> None:
    for preset, most in zip(ALL, (3.0, 6.0, 3.0), strict=True):
        trainer = trainer_of(preset, RECORDINGS, 110)
        assert trainer.settings.rank_limit == most == trainer.clock.full


def steps() -> None:
    assert trainer_of("paper", IMAGE).settings.steps == 3_000_000
    assert trainer_of("released", IMAGE).settings.steps == 1_500_000
    for preset in BOTH:
        assert trainer_of(preset, RING).settings.steps == 450_000
        assert trainer_of(preset, LINE).settings.steps == 1_000_000
    for grid, most in ((RING, 200_000), (IMAGE, 200_000), (SPINS, 200_000), (LINE, 1_000_000)):
        ours = trainer_of("ours", grid).settings
        assert (ours.steps, ours.clock) == (most, "wait")


#: first cell of a line of the page → what reads it
LINES: dict[str, Callable[[], None]] = {
    "joint entropy of an eigenvalue λ": joint_entropy,
    "window of the rank k": window,
    "rank": rank,
    "updates": updates,
    "what estimators see": estimators_see,
    "window on open grids": offset,
    "learned embedding": embedding,
    "noise on the filter": noise,
    "planes and frequencies, one axis": parametrisation,
    "last layer of a critic": last_layer,
    "spectral norm of each of n layers": norms,
    "divergence": divergence,
    "clipping": clipping,
    "weights on 63 points": weights,
    "batch and rates on 63 points": batch_and_rates,
    "downsampling on 63 points": strides,
    "rank limit of recordings": recordings,
    "steps": steps,
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_table_is_what_trainers_do(line):
    LINES[line]()


def test_the_page_has_these_lines_and_no_other():
    table = PAGE.read_text().split("| what | the paper's text")[1].split("\n\n")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:]] == list(LINES)


def test_the_texts_objective_is_the_codes_with_another_weight_of_infomax():
    """α R + β I of log λ have the gradient of α R + (α + 2β) I of ½ log λ."""
    text = trainer_of("paper", RING, precision="float64")
    code = trainer_of("paper", RING, precision="float64", entropy="gaussian", infomax=2.5)
    assert (text.objective.weights[1], text.objective.weights[2]) == (1.0, 0.75)
    for trainer in (text, code):
        trainer.step()
    of_text, of_code = (
        torch.cat([s["exp_avg"].flatten() for s in t.learners.model_optimiser.state.values()])
        for t in (text, code)
    )
    assert torch.allclose(of_text, of_code, rtol=1e-9, atol=1e-12)
