"""Count what FSDP sends in a step of several micro-batches.

    torchrun --standalone --nproc-per-node=2 src/17_fsdp_accumulation.py 4
    torchrun --standalone --nproc-per-node=2 src/17_fsdp_accumulation.py 4 --no-sync
    torchrun --standalone --nproc-per-node=2 src/17_fsdp_accumulation.py 4 --no-sync \\
        --keep-whole
"""

import argparse
import warnings
from collections import Counter

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule, fully_shard

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.distributed import Parser, log, one_line_errors, positive_int
from common.gpt_training import local_batch, run_and_exit
from common.measure import Traffic
from common.process_group import join
from common.slow_pieces import SlowPieces

SIZES = Sizes()
BATCH = 4  # pieces of a micro-batch on a rank

# harmless here: no code changes the scores in place
warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")


def build(args: argparse.Namespace, device: torch.device) -> FSDPModule:
    with torch.device("meta"):  # shapes, and no memory for the numbers
        model = ByteGPT(SIZES)
    for block in model.blocks:
        fully_shard(block, reshard_after_forward=not args.keep_whole)
    fully_shard(model).to_empty(device=device)  # memory for this rank's shards only
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
            # with --keep-whole: blocks that stay whole need not be gathered again
            model.set_reshard_after_backward(last)
        loss = next_byte_loss(model(tokens[:, :-1]), tokens[:, 1:])
        (loss / len(parts)).backward()


# [end accumulate]
def micro_batches(count: int, device: torch.device) -> list[torch.Tensor]:
    """This rank's part of each global micro-batch, [BATCH, T + 1]."""
    pieces, size = SlowPieces(SIZES.context, wait=0), BATCH * dist.get_world_size()
    every = torch.stack([pieces[number] for number in range(count * size)])
    return [local_batch(part).to(device) for part in every.split(size)]


def parse_arguments() -> argparse.Namespace:
    parser = Parser(__doc__)
    add, yes = parser.add_argument, {"action": "store_true"}
    add("micro_batches", metavar="MICRO_BATCHES", type=positive_int, help="in a step")
    add("--no-sync", **yes, help="reduce gradients in the last micro-batch only")
    add("--keep-whole", **yes, help="keep blocks whole from forward to backward")
    return parser.parse_args()


@one_line_errors()
def main() -> None:
    args = parse_arguments()
    device = join("17_fsdp_accumulation.py")
    model = build(args, device)
    parts = micro_batches(args.micro_batches, device)
    with Traffic() as traffic:
        accumulate(model, parts, args.no_sync)
    for op, calls in sorted(Counter(call.op for call in traffic.calls).items()):
        log(f"{op:<15}{calls:>4} calls{traffic.wire_bytes(op):>12,} bytes sent")
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
