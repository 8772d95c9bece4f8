"""LieGAN (Yang et al. 2023): train L until a discriminator cannot distinguish exp(zL)x from x."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift_paper.baselines.protocol import BaselineResult

__all__ = ["exponentials", "fit"]

#: of the discriminator's rectifiers below 0
_SLOPE = 0.2


def _layers(sizes: Sequence[int], generator: torch.Generator) -> list[Tensor]:
    """Weights and biases of a perceptron, with torch's default distribution."""
    parameters = []
    for fan_in, fan_out in pairwise(sizes):
        for shape in ((fan_out, fan_in), (fan_out,)):
            values = (2 * torch.rand(shape, generator=generator) - 1) / math.sqrt(fan_in)
            parameters.append(values.requires_grad_())
    return parameters


def _discriminate(
    x: Tensor, parameters: list[Tensor]
) -> tuple[Tensor, Tensor, Callable[[Tensor], list[Tensor]]]:
    """Logits (b, 1), their gradients with respect to x, and a function from weights (b, 1) of rows
    to the parameters' gradients of the weighted sum of logits.

    A row has one logit, so what generator and discriminator need differs by a factor for each row:
    one pass forward and one backward serve both.
    """
    weights, biases = parameters[::2], parameters[1::2]
    inputs = [x]
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        inputs.append(F.leaky_relu(F.linear(inputs[-1], weight, bias), _SLOPE))
    logit = F.linear(inputs[-1], weights[-1], biases[-1])
    slopes = [torch.ones_like(logit)]  # of the logit by each layer's sums, the last layer's first
    for weight, active in zip(weights[:0:-1], inputs[:0:-1], strict=True):
        slope = slopes[-1] @ weight
        slopes.append(torch.ops.aten.leaky_relu_backward(slope, active, _SLOPE, True))

    def gradients(rows: Tensor) -> list[Tensor]:
        weighted = [rows * slope for slope in reversed(slopes)]
        return [
            gradient
            for slope, entered in zip(weighted, inputs, strict=True)
            for gradient in (slope.T @ entered, slope.sum(dim=0))
        ]

    return logit, slopes[-1] @ weights[0], gradients


def exponentials(z: Tensor, L: Tensor) -> Tensor:
    """``exp(z_b L)`` for every number z_b, (b, d, d), with shared powers of L.

    A Taylor series to order 16 of ``zL/2^s``, of norm at most 2, squared s times: faster than
    ``torch.matrix_exp``, which treats a batch as unrelated matrices.
    """
    size = float((z.abs().max() * torch.linalg.matrix_norm(L)).detach())
    squarings = min(40, max(0, math.ceil(math.log2(size)) - 1)) if 0 < size < math.inf else 0
    scaled = L / 2**squarings
    powers = scaled[None]
    for _ in range(4):  # 1, 2, 4, 8, 16 powers
        powers = torch.cat([powers, powers @ powers[-1]])
    coefficients = (z[:, None] / torch.arange(1, 17, dtype=L.dtype)).cumprod(dim=1)
    series = (coefficients @ powers.flatten(1)).unflatten(1, L.shape)
    out = torch.eye(len(L), dtype=L.dtype) + series
    for _ in range(squarings):
        out = out @ out
    return out


def fit(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    rate: float = 1e-3,
    discriminator_rate: float = 2e-4,
    penalty: float = 1.0,
    steps: int = 150_000,
    batch: int = 64,
    hidden: int = 512,
    checkpoints: int = 15,
    skip: float = 0.0,
) -> BaselineResult:
    """min_L max_D ``E log D(x) + E log(1 − D(exp(zL) x)) + λ |E cos(x, exp(zL) x)|``, z ~ N(0, 1).

    The generator minimises the non-saturating form −E log D(exp(zL) x); Adam, β = (0.5, 0.999), for
    both.  At each of ``checkpoints`` evenly spaced steps L is saved, with the generator's loss
    (adversarial and penalty, averaged over the last tenth of the interval, since single batches are
    noisy); the checkpoint of least loss is returned, without using the truth and without the
    first share ``skip`` of the run (the authors leave out a fifth).

    X is divided by one scalar.  As in the released LieGAN: a discriminator of two hidden layers of
    512 leaky rectifiers, a start of N(0, 2/d²), the cosine penalty against the identity.  Its
    learned deviation of z is left out: it only rescales L.  One axis; ``steps`` is the training
    budget (the paper's is the default).
    """
    if steps < checkpoints or checkpoints < 1:
        raise InputError(f"{steps} steps hold no {checkpoints} checkpoints: give more steps")
    if not 0 <= skip < 1:
        raise InputError(f"skip {skip!r} leaves no checkpoint: give a share from 0 to below 1")
    if grid.ndim != 1:
        raise InputError(f"LieGAN is set up for one generator: a {grid} grid has {grid.ndim}")
    random = torch.Generator().manual_seed(int(rng.integers(2**31)))
    data = torch.as_tensor(X / max(float(np.sqrt(np.mean(X**2))), 1e-300), dtype=torch.float32)
    d = data.shape[1]
    L = (torch.randn(d, d, generator=random) * math.sqrt(2) / d).requires_grad_()
    critic = _layers((d, hidden, hidden, 1), random)
    groups = [{"params": [L], "lr": rate}, {"params": critic, "lr": discriminator_rate}]
    optimiser = torch.optim.Adam(groups, betas=(0.5, 0.999), fused=True)
    side = torch.tensor([-1.0] * batch + [1.0] * batch)[:, None]  # of x, and of what was moved
    every = steps // checkpoints
    losses: list[float] = []
    checkpoints_seen: list[tuple[float, NDArray[np.float64]]] = []
    for step in range(1, every * checkpoints + 1):
        x = data[torch.randint(len(data), (batch,), generator=random)]
        z = torch.randn(batch, generator=random)
        moved = torch.einsum("bij,bj->bi", exponentials(z, L), x)
        similar = penalty * F.cosine_similarity(moved, x).mean().abs()
        with torch.no_grad():
            logit, by_input, gradients = _discriminate(torch.cat([x, moved]), critic)
            # how -E log D(moved) changes with ``moved``, and the discriminator's loss with logits
            by_moved = -torch.sigmoid(-logit[batch:]) / batch * by_input[batch:]
            by_logit = side * torch.sigmoid(side * logit) / (2 * batch)
            loss = F.softplus(-logit[batch:]).mean() + similar
        (L.grad,) = torch.autograd.grad(similar + (moved * by_moved).sum(), [L])
        for parameter, gradient in zip(critic, gradients(by_logit), strict=True):
            parameter.grad = gradient
        optimiser.step()
        if step % every > 0.9 * every or step % every == 0:
            losses.append(loss.item())
        if step % every == 0:
            checkpoints_seen.append(
                (
                    float(np.nan_to_num(np.mean(losses), nan=np.inf)),
                    L.detach().double().numpy().copy(),
                )
            )
            losses = []
    best = min(range(int(skip * checkpoints), checkpoints), key=lambda c: checkpoints_seen[c][0])
    trace = {
        "losses": [loss for loss, _ in checkpoints_seen],
        "checkpoint": best,
        "checkpoints": np.stack([G for _, G in checkpoints_seen]),
    }
    return BaselineResult(generators=checkpoints_seen[best][1][None], trace=trace)
