"""Several processes that train one model, as torchrun starts them."""

from __future__ import annotations

import atexit
import os
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["add_up", "is_follower", "join_processes", "said_by_first", "wait_for_all"]

# What the last exchanges moved. A thread of the group may hold it a little longer than the call; if
# that thread were the last to let it go, it would need an interpreter that may be ending by then,
# and the process would abort after its work. The group has two threads with one exchange each.
_KEPT: deque[Tensor] = deque(maxlen=8)
# the longest thing that the first process says
_SAID = 64


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


def add_up(values: Tensor) -> None:
    """Replace ``values`` by their sum over all processes."""
    from torch import distributed

    _KEPT.append(values)
    distributed.all_reduce(values)


def said_by_first(text: str | None) -> str | None:
    """What the first process says, wherever this is called."""
    import torch
    from torch import distributed

    where = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    letters = (text or "").encode().ljust(_SAID, b"\0")
    sent = torch.tensor(list(letters), dtype=torch.uint8, device=where)
    _KEPT.append(sent)
    distributed.broadcast(sent, src=0)
    return bytes(sent.tolist()).rstrip(b"\0").decode() or None


def wait_for_all() -> None:
    """Return when all processes of this training have come here."""
    if join_processes()[1] > 1:
        from torch import distributed

        distributed.barrier()
