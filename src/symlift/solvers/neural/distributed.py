"""Several processes that train one model, as torchrun starts them."""

from __future__ import annotations

import atexit
import os

__all__ = ["is_follower", "join_processes", "wait_for_all"]


def is_follower() -> bool:
    """Whether another process of this training keeps its files and reports its progress."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and int(os.environ.get("RANK", "0")) > 0


def join_processes() -> tuple[int, int]:
    """(rank, number) of this process among those that torchrun started, after joining them; (0, 1)
    where there are no others.

    >>> join_processes()
    (0, 1)
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return 0, 1
    import torch
    from torch import distributed

    if not distributed.is_available():
        return 0, 1
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        # threads of the group that outlive the interpreter can end a finished process with SIGABRT
        atexit.register(_leave)
    return distributed.get_rank(), distributed.get_world_size()


def _leave() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()


def wait_for_all() -> None:
    """Return when all processes of this training have come here."""
    if join_processes()[1] > 1:
        from torch import distributed

        distributed.barrier()
