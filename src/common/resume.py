"""What a run needs to resume bit for bit, beside weights, optimizer and sampler.

Random numbers and sums that differ from rank to rank, the buckets of DDP, and a request
to stop on which all ranks agree.
"""

from __future__ import annotations

import argparse
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from common.distributed import is_rank_0, positive_int
from common.snapshot import get_random_state, set_random_state


def add_save_options(parser: argparse.ArgumentParser) -> None:
    """The option of a script that can save inside an epoch."""
    parser.add_argument(
        "--save-every-steps",
        metavar="STEPS",
        type=positive_int,
        help="save inside epochs, too, after this many steps (default: never)",
    )


def gather_states(device: torch.device, loss_sum: torch.Tensor) -> list[dict] | None:
    """What differs from rank to rank: on rank 0 that of all ranks, elsewhere None."""
    mine = {"random": get_random_state(device), "loss_sum": loss_sum.item()}
    states: list | None = [None] * dist.get_world_size() if is_rank_0() else None
    # every rank must reach this line: about 5 kB of each go to rank 0
    dist.gather_object(mine, states)
    return states


def restore_state(
    states: list[dict], device: torch.device, loss_sum: torch.Tensor, seed: int
) -> None:
    """Give this rank back what it had when :func:`gather_states` was called.

    On another world size nobody has a state to take: the random numbers start anew
    from ``seed``, which should be new at every step, and from the rank.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    sums = [state["loss_sum"] for state in states]
    if len(states) == world_size:
        set_random_state(states[rank]["random"], device)
        loss_sum.fill_(sums[rank])
    else:
        torch.manual_seed(seed * world_size + rank)
        loss_sum.fill_(sum(sums) / world_size)


def settle_buckets(ddp_model: DDP, images: torch.Tensor) -> None:
    """Let DDP arrange its buckets, as it does once, after the first backward.

    The sum over three or more ranks is rounded in an order that depends on where
    in a bucket a gradient lies. Without this, the first step of a resumed run
    would not be bit-equal to the same step of a run that never stopped.
    """
    ddp_model.eval()  # draws no random numbers
    ddp_model(images).sum().backward()
    ddp_model.train()


class StopRequest:
    """Whether one of the signals has come, to this rank or to another one."""

    def __init__(self, *signals: signal.Signals):
        self.asked = False
        for number in signals:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        # nothing else: the step under way, and its collectives, must end as ever
        self.asked = True

    def agreed(self, device: torch.device) -> bool:
        """True on all ranks as soon as one was asked; all must call it together."""
        asked = torch.tensor([int(self.asked)], device=device)
        # every rank must reach this line; [1] -> [1], 8 bytes, waits for the device
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        return bool(asked.item())
