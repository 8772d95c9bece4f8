"""Phases of a ring: which of the all-pass copies of a stationary frame is the field itself.

On a ring every all-pass copy of a frame is as stationary as the frame, so no gap can choose; the
entropy of the shared marginal can, since a copy fills silent parts of the signal, but a search over
one mode at a time ends in wrong minima. The third moment gives a start: with E[y_j y_k ȳ_{j+k}] the
phases of the *innovations*, whose whitened spectrum has none left, follow one frequency after the
other. Of a field that a pulse of the measured spectrum makes from them, the pulse is one-sided (the
minimum phase of that spectrum, in either direction) or symmetric (phase zero): three starts for the
entropy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from symlift.solvers.fast.sharpen import pooled_entropy

__all__ = ["all_one_way", "innovation_phases", "minimum_phase", "sharpest_phase", "turned"]

# of a step, that starts are shifted by
_FRACTIONS = 8
# entropies of one optimum, reached from several starts (15 points: 1e-6 to 1e-4 apart)
_SAME = 1e-3


def innovation_phases(F: NDArray, n: int) -> NDArray[np.float64]:
    """Phases to add to the modes F (rows, n//2 + 1) of a ring of n so that triples of them agree:
    those of its innovations.
    """
    Z = F / np.sqrt(np.maximum(np.mean(np.abs(F) ** 2, axis=0), 1e-300))
    phase = np.zeros(Z.shape[1])
    for k in range(2, len(phase)):
        j = np.arange(1, k // 2 + 1)
        triples = np.mean(Z[:, j] * Z[:, k - j] * Z[:, [k]].conj(), axis=0)
        phase[k] = np.angle(np.sum(triples * np.exp(1j * (phase[j] + phase[k - j]))))
    # the mean's own sign: triples of it with a mode and its conjugate
    phase[0] = 0.0 if np.mean(Z[:, :1].real * np.abs(Z[:, 1:]) ** 2) > 0 else np.pi
    return _most_skewed(Z, phase, n)


def _most_skewed(Z: NDArray, phase: NDArray, n: int) -> NDArray[np.float64]:
    """From ``phase``, those of the largest third moment: all triples together instead of one
    frequency after the other.
    """

    def loss(phase: NDArray) -> tuple[float, NDArray]:
        turn = Z * _factors(phase, n)
        e = np.fft.irfft(turn, n, axis=1)
        square = e * e
        return -float(np.vdot(square, e)) / e.size, _by_phase(-3 / e.size * square, turn, n)

    return np.asarray(minimize(loss, phase, jac=True, method="L-BFGS-B", options={"maxiter": 30}).x)


def _by_phase(slope: NDArray, turn: NDArray, n: int) -> NDArray[np.float64]:
    """The gradient in the phases of modes ``turn`` of what has the gradient ``slope`` in the
    values; real modes have signs only.
    """
    gradient = 2 / n * np.sum(np.fft.rfft(slope, axis=1).conj() * 1j * turn, axis=0).real
    gradient[0] = 0.0
    if n % 2 == 0:
        gradient[-1] = 0.0
    return np.asarray(gradient)


def minimum_phase(spectrum: NDArray, n: int) -> NDArray[np.float64]:
    """Phase of the causal pulse with the power ``spectrum`` (n//2 + 1,) whose inverse is causal,
    too (by its cepstrum).
    """
    whole = np.concatenate([spectrum, spectrum[1 : (n + 1) // 2][::-1]])
    cepstrum = np.fft.ifft(0.5 * np.log(np.maximum(whole, 1e-12 * whole.max()))).real
    fold = np.zeros(n)
    fold[0] = 1.0
    fold[1 : (n + 1) // 2] = 2.0
    if n % 2 == 0:
        fold[n // 2] = 1.0
    return np.asarray(np.fft.fft(cepstrum * fold).imag[: n // 2 + 1])


def turned(W: NDArray, phase: NDArray) -> NDArray[np.float64]:
    """The all-pass copy of W (n, d) whose modes are turned by ``phase`` (n//2 + 1,); modes 0 and
    n/2 have only a sign.
    """
    return np.fft.irfft(_factors(phase, len(W))[:, None] * np.fft.rfft(W, axis=0), len(W), axis=0)


def _factors(phase: NDArray, n: int) -> NDArray:
    factor = np.exp(1j * phase)
    real = [0, -1] if n % 2 == 0 else [0]
    factor[real] = np.where(factor[real].real < 0, -1.0, 1.0)
    return factor


def sharpest_phase(
    W: NDArray, fit: NDArray, held: NDArray, rows: int, gain: float
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """The all-pass copy of W of least pooled entropy, if held-out rows gain at least ``gain`` by
    it; otherwise W.

    The trace notes the entropies before and after, and how well the copy agrees with the third
    moment's own start (1: the same).
    """
    n = len(W)
    Y, test = fit[:rows] @ W.T, held[:rows] @ W.T
    scale = np.sqrt(np.mean(Y**2))
    F, F_held = np.fft.rfft(Y / scale, axis=1), np.fft.rfft(test / scale, axis=1)
    spectrum = np.mean(np.abs(F) ** 2, axis=0)
    innovations, pulse = innovation_phases(F, n), minimum_phase(spectrum, n)

    def entropy(phase: NDArray) -> tuple[float, NDArray]:
        turn = F * _factors(phase, n)
        value, slope = pooled_entropy(np.fft.irfft(turn, n, axis=1))
        return value, _by_phase(slope, turn, n)

    def unseen(phase: NDArray) -> float:
        return pooled_entropy(np.fft.irfft(F_held * _factors(phase, n), n, axis=1))[0]

    # triples leave a shift undetermined, also by a fraction of a step, which blurs sharp signals
    step = 2 * np.pi / n * np.arange(n // 2 + 1)
    shifts = step * np.linspace(0, 1, _FRACTIONS, endpoint=False)[:, None]
    tried = []
    for phases in (innovations + pulse, innovations - pulse, innovations):
        start = min(phases + shifts, key=lambda one: entropy(one)[0])
        optimum = minimize(entropy, start, jac=True, method="L-BFGS-B", options={"maxiter": 150})
        same = float(np.sum(spectrum * np.cos(optimum.x - start)) / np.sum(spectrum))
        tried.append((unseen(optimum.x), optimum.x, same))
    before, (after, phase, _) = unseen(np.zeros(n // 2 + 1)), min(tried, key=lambda one: one[0])
    # several starts may end at the same optimum, and it agrees with the third moment if any does
    same = max(same for value, _, same in tried if value < after + _SAME)
    numbers = {
        "entropy_before": float(before),
        "entropy": float(min(before, after)),
        "agreement": same,
    }
    return (turned(W, phase) if after < before - gain else np.asarray(W, dtype=np.float64)), numbers


def all_one_way(W: NDArray, gap: Callable[[NDArray], tuple[float, NDArray]]) -> NDArray[np.float64]:
    """Ring: turn modes that run against the others round, one at a time, while that lowers the gap.

    Eigenvectors of a ring come in planes without an orientation; steps cannot turn one over. Any
    phase of the mode will do.
    """
    n = len(W)
    best = gap(W)[0]
    for k in range(1, (n + 1) // 2):
        wave = np.sin(2 * np.pi * k * np.arange(n) / n)[:, None] * np.sqrt(2 / n)
        other = W - 2 * wave @ (wave.T @ W)
        value = gap(other)[0]
        if value < best:
            W, best = other, value
    return np.asarray(W, dtype=np.float64)
