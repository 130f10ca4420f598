"""Accumulate with FSDP in three ways: what a step sends and holds, and how fast it is.

    torchrun --standalone --nproc-per-node=2 src/instruments/17_fsdp_accumulation.py 20

A line for each: every micro-batch reduces the gradients; only the last one does; and
the blocks stay whole until then, too. Rank 0 counts one step.
"""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Traffic, UnshardedBytes
from common.distributed import Parser, log, one_line_errors, positive_int
from common.gpt_training import make_optimizer, run_and_exit
from common.process_group import join_or_alone
from common.slow_pieces import SlowPieces

ALONE = "it holds every shard, so gathering and reducing send nothing"
SIZES = Sizes()
BATCH, MICRO_BATCHES = 4, 4  # a step of a rank: 4 micro-batches of 4 pieces
WAYS = ("nothing", "no-sync", "keep-whole")  # each with those before it

# harmless here: no code changes the scores in place
warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")


def build(keep_whole: bool, device: torch.device) -> FSDPModule:
    """The model; ``keep_whole``: blocks stay whole from forward to backward."""
    with torch.device("meta"):  # shapes, and no memory for the numbers
        model = ByteGPT(SIZES)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=not keep_whole)
    fully_shard(model, mesh=mesh)
    model.to_empty(device=device)  # memory for this rank's shards only
    for parameter in model.parameters():  # traffic does not depend on the numbers
        torch.nn.init.constant_(parameter, 0.01)
    return model


# [start accumulate]
def accumulate(model: FSDPModule, parts: list[torch.Tensor], no_sync: bool) -> None:
    """Add up the gradients of all micro-batches [B, T + 1] of this rank; every rank."""
    for number, tokens in enumerate(parts):
        last = number == len(parts) - 1
        if no_sync:
            model.set_requires_gradient_sync(last)
            # what backward gathered stays whole for the next forward
            model.set_reshard_after_backward(last)
        loss = next_byte_loss(model(tokens[:, :-1]), tokens[:, 1:])
        (loss / len(parts)).backward()


# [end accumulate]
def micro_batches(device: torch.device) -> list[torch.Tensor]:
    """This rank's micro-batches of every step, each [BATCH, T + 1]."""
    pieces, own = SlowPieces(SIZES.context), BATCH * MICRO_BATCHES
    first = own * dist.get_rank()
    every = torch.stack([pieces[first + number] for number in range(own)])
    return list(every.to(device).split(BATCH))


def count(step: Callable[[], None]) -> str:
    """What this rank calls, sends and holds of gathered parameters in a step."""
    with Traffic() as traffic, UnshardedBytes() as whole:
        step()
    calls = [call.op for call in traffic.calls]
    counts = calls.count("all_gather"), calls.count("reduce_scatter")
    sizes = traffic.wire_bytes() / 1e6, whole.peak_bytes / 1e6
    return "{:9}{:9}{:9.2f}{:10.2f}".format(*counts, *sizes)


def rate(step: Callable[[], None], steps: int) -> float:
    """Pieces of text per second, of all ranks together."""
    started = time.perf_counter()
    for _ in range(steps):
        step()
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    pieces = steps * MICRO_BATCHES * BATCH * dist.get_world_size()
    return pieces / (time.perf_counter() - started)


def train(way: str, steps: int, device: torch.device) -> tuple[float, str]:
    """(pieces of text per second, what was counted) of one of WAYS; all ranks."""
    model, parts = build(way == "keep-whole", device), micro_batches(device)
    optimizer = make_optimizer(model.parameters(), 3e-3)

    def step() -> None:
        optimizer.zero_grad()
        accumulate(model, parts, no_sync=way != "nothing")
        optimizer.step()

    step()  # the first one is no measure: FSDP learns the order of the layers
    counted = count(step)
    return rate(step, steps), counted


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    number = {"metavar": "STEPS", "type": positive_int}
    parser.add_argument("steps", **number, help="to time for a line")
    args = parser.parse_args()
    device = join_or_alone(ALONE)
    log("with        pieces/s  ratio  gathers  reduces  sent MB  whole MB")
    first = 0.0
    for way in WAYS:
        speed, counted = train(way, args.steps, device)
        first = first or speed
        log(f"{way:<12}{speed:8.1f}{speed / first:7.2f}{counted}")
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
