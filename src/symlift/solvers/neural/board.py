"""Observers of a training: a function that is called at evaluations, and TensorBoard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from symlift.core.model import LiftedModel
from symlift.errors import InputError

__all__ = ["Watch", "board", "both"]

#: called with (step, model, values) at evaluations
Watch = Callable[[int, LiftedModel, dict[str, float]], None]


def both(first: Watch | None, second: Watch) -> Watch:
    """A watch function that calls two others."""

    def watch(step: int, model: LiftedModel, values: dict[str, float]) -> None:
        if first is not None:
            first(step, model, values)
        second(step, model, values)

    return watch


def board(folder: Path) -> Watch:
    """Write all numbers of an evaluation to TensorBoard event files in ``folder``."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "TensorBoard is not installed: `pip install tensorboard`, or leave it out"
        ) from None
    writer = SummaryWriter(str(folder))

    def watch(step: int, model: LiftedModel, values: dict[str, float]) -> None:  # noqa: ARG001
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return watch
