"""Lifting map, forward and backward: the 2-plane form against a complex eigendecomposition of the
same map.

    python benchmarks/lifting_map.py

The same family of maps is computed four ways: orthogonal planes by the Cayley map (what symlift
uses), by Householder reflections, by the matrix exponential, and as the eigenvectors of one
antisymmetric matrix (`eigh`, complex), which is how the paper does it. Median of alternating
repetitions in one process, so that the ratios survive a busy machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from _common import write
from symlift.core.differentiable import lifting_map
from symlift.solvers.neural.network import cayley_rotation

SIZES = {63: 15, 225: 9, 729: 3}


def _finish(Q: Tensor, d: int) -> Tensor:
    theta = torch.linspace(0.1, 3.0, d // 2)[None]
    r = torch.full((d // 2 + d % 2,), d**-0.5)
    points = torch.arange(d, dtype=torch.float32)[:, None] - (d - 1) / 2
    return lifting_map(torch.eye(d), Q, theta, r, points)


def by_cayley(A: Tensor) -> Tensor:
    return _finish(cayley_rotation(A), len(A))


def by_householder(A: Tensor) -> Tensor:
    reflectors = torch.tril(A, -1) + torch.eye(len(A))
    tau = 2 / (reflectors**2).sum(dim=0)
    return _finish(torch.linalg.householder_product(reflectors, tau), len(A))


def by_matrix_exponential(A: Tensor) -> Tensor:
    return _finish(torch.linalg.matrix_exp((A - A.T) / 2), len(A))


def by_complex_eigh(A: Tensor) -> Tensor:
    """y = w₀ᵀ U e^{-tD} U† x with U, D from i(A - Aᵀ)/2, shifted by 1e-5 as the authors do."""
    d = len(A)
    hermitian = 1j * ((A - A.T) / 2).to(torch.complex64) + 1e-5 * torch.eye(d)
    values, U = torch.linalg.eigh(hermitian)
    points = torch.arange(d, dtype=torch.float32) - (d - 1) / 2
    w = torch.ones(d, dtype=torch.complex64) / d**0.5
    return ((torch.exp(-1j * points[:, None] * values) * (w @ U.conj())) @ U.mH).real


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "cayley": by_cayley,
    "householder": by_householder,
    "matrix_exp": by_matrix_exponential,
    "complex_eigh": by_complex_eigh,
}


def seconds(way: Callable[[Tensor], Tensor], d: int) -> float:
    """One forward and backward pass."""
    A = (0.3 * torch.randn(d, d)).requires_grad_()
    start = time.perf_counter()
    way(A).square().sum().backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - start


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table: dict[str, dict[str, float]] = {}
    for d, repeats in SIZES.items():
        for way in WAYS.values():
            seconds(way, d)
        runs: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(repeats):
            for name, way in WAYS.items():
                runs[name].append(seconds(way, d))
        row = {name: 1e3 * statistics.median(times) for name, times in runs.items()}
        row["speedup over complex_eigh"] = row["complex_eigh"] / row["cayley"]
        table[str(d)] = {name: round(value, 3) for name, value in row.items()}
        print(
            f"d = {d:4}: "
            + ", ".join(f"{name} {value:.3g}" for name, value in table[str(d)].items())
            + " (ms)"
        )
    print(
        write(
            "lifting_map", {"unit": "ms, forward and backward, float32, one thread", "table": table}
        )
    )


if __name__ == "__main__":
    main()
