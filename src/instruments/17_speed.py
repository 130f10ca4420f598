"""Make a slow training run fast, one measured change at a time.

    OMP_NUM_THREADS=1 python src/instruments/17_speed.py 20 --with workers checkpoint
    torchrun --standalone --nproc-per-node=2 src/instruments/17_speed.py 20 \\
        --with no-sync bf16

It trains a byte GPT without any option, then with the first, then with the first two,
and so on: a line for each, with its speed and what rank 0 counted in one step.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, DistributedSampler
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common import distributed
from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.cost.measure import Activations, Traffic
from common.distributed import BadInput, log, positive_int
from common.process_group import join_or_alone
from common.slow_pieces import SlowPieces

CONTEXT, BATCH, MICRO_BATCHES = 64, 4, 4  # a step: 4 micro-batches of 4 pieces
OPTIONS = {  # the first seven change what DDP does
    "no-sync": "reduce gradients in the last micro-batch only",
    "one-bucket": "DDP buckets of 25 MiB instead of 0.25",
    "bucket-view": "gradients are views of DDP's buckets, not copies",
    "static-graph": "tell DDP that each backward uses the same parameters",
    "fp16-hook": "DDP sends gradients in float16",
    "bf16-hook": "DDP sends gradients in bfloat16",
    "powersgd": "DDP sends a column and a row per matrix, with one large bucket",
    "workers": "two processes load ahead while this one computes",
    "bf16": "multiply in bfloat16, by autocast",
    "fp16": "multiply in float16, by autocast, with a GradScaler",
    "compile": "compile each block; it needs DDP buckets of 1 MiB or more, too",
    "checkpoint": "save only the input of each block, recompute the rest in backward",
}
ON_RANKS = list(OPTIONS)[:7]
ALONE = "DDP has no rank to send to, and changes only how it keeps gradients"
RIVALS = "bf16 fp16, fp16 powersgd, no-sync static-graph, bf16-hook fp16-hook powersgd"


def micro_batches(chosen: set[str], device: torch.device) -> Iterator[torch.Tensor]:
    """[BATCH, CONTEXT + 1] tokens of this rank, endlessly."""
    pieces, rank = SlowPieces(CONTEXT), dist.get_rank() if dist.is_initialized() else 0
    sampler = DistributedSampler(pieces, distributed.world_size(), rank)
    more: dict = {"sampler": sampler, "num_workers": 2 if "workers" in chosen else 0}
    loader = DataLoader(pieces, BATCH, pin_memory=device.type != "cpu", **more)
    while True:
        sampler.set_epoch(sampler.epoch + 1)  # another order
        yield from (batch.to(device, non_blocking=True) for batch in loader)


def average_in(dtype: torch.dtype, bucket: dist.GradBucket) -> Future[torch.Tensor]:
    """Do what torch's hooks do; its bfloat16 hook refuses builds without CUDA."""
    short = bucket.buffer().to(dtype).div_(dist.get_world_size())
    work = dist.all_reduce(short, async_op=True)  # every rank, in the order of buckets
    assert work is not None  # None only on a rank outside of the group
    return work.get_future().then(lambda sent: bucket.buffer().copy_(sent.value()[0]))


def save_input_only(forward: Callable) -> Callable:
    """The same function, whose backward computes it again from its input.

    A function of this file, as the compiler skips torch's own ones.
    """

    def recomputed(inputs: torch.Tensor) -> torch.Tensor:
        return checkpoint(forward, inputs, use_reentrant=False)

    return recomputed


def build(chosen: set[str], device: torch.device) -> torch.nn.Module:
    """The model. The order matters: checkpoint, compile, then DDP."""
    torch.manual_seed(0)
    model: torch.nn.Module = ByteGPT(Sizes(context=CONTEXT)).to(device)
    for block in model.blocks:
        if "checkpoint" in chosen:
            block.forward = save_input_only(block.forward)
        if "compile" in chosen:
            block.compile()
    if dist.is_initialized():
        # the compiler refuses buckets below 1 MiB; with several, powersgd can hang
        large = chosen & {"one-bucket", "compile", "powersgd"}
        devices = None if device.type == "cpu" else [device]
        bucket_mib = 25 if large else 0.25
        model = DDP(
            model,
            devices,
            bucket_cap_mb=bucket_mib,
            gradient_as_bucket_view="bucket-view" in chosen,
            static_graph="static-graph" in chosen,
        )
        short = {"fp16-hook": torch.float16, "bf16-hook": torch.bfloat16}
        for name in short.keys() & chosen:
            model.register_comm_hook(short[name], average_in)
        if "powersgd" in chosen:  # of rank 1; its first two reductions send everything
            state = power_sgd.PowerSGDState(None, 1, start_powerSGD_iter=2)
            model.register_comm_hook(state, power_sgd.powerSGD_hook)
    return model


class Training:
    """A model, its optimizer and its data, and how a step is taken."""

    def __init__(self, chosen: set[str], device: torch.device):
        self.chosen, self.model = chosen, build(chosen, device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 3e-3)
        self.batches = micro_batches(chosen, device)
        short = torch.float16 if "fp16" in chosen else torch.bfloat16
        wanted = bool(chosen & {"fp16", "bf16"})
        self.autocast = partial(torch.autocast, device.type, short, wanted)
        self.scaler = torch.amp.GradScaler(device.type, enabled="fp16" in chosen)

    def step(self) -> None:
        """Add up the gradients of all micro-batches, then step; every rank."""
        self.optimizer.zero_grad()
        for number, tokens in zip(range(MICRO_BATCHES), self.batches, strict=False):
            # before the last one, backward only adds to this rank's own gradients
            local = "no-sync" in self.chosen and number < MICRO_BATCHES - 1
            without_sending = self.model.no_sync() if local else nullcontext()
            with without_sending:
                with self.autocast():
                    scores = self.model(tokens[:, :-1])
                loss = next_byte_loss(scores.float(), tokens[:, 1:]) / MICRO_BATCHES
                self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)  # skipped if a gradient is not finite
        self.scaler.update()


def count(training: Training) -> str:
    """What this rank calls, sends, saves and computes in a step."""
    operations = FlopCounterMode(display=False)
    with Traffic() as traffic, Activations(training.model) as saved, operations:
        training.step()
    if "compile" in training.chosen:  # the counters run its Python instead
        return "  not counted"
    sizes = traffic.wire_bytes() / 1e6, saved.peak_bytes / 1e6
    every = len(traffic.calls), *sizes, operations.get_total_flops() / 1e9
    return "{:6}{:9.2f}{:10.2f}{:7.2f}".format(*every)


def rate(training: Training, steps: int) -> float:
    """Pieces of text per second, of all ranks together."""
    for several in (2, steps):  # two to warm up: DDP lays out its buckets after one
        started = time.perf_counter()
        for _ in range(several):
            training.step()
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()
    seconds = time.perf_counter() - started
    return steps * MICRO_BATCHES * BATCH * distributed.world_size() / seconds


@distributed.one_line_errors
def main() -> None:
    parser = distributed.Parser(__doc__)
    parser.add_argument("steps", metavar="STEPS", type=positive_int, help="for a line")
    more: dict = {"nargs": "+", "choices": OPTIONS, "default": [], "dest": "chosen"}
    words = "one or more of: " + "; ".join(map(": ".join, OPTIONS.items()))
    parser.add_argument("--with", metavar="OPTION", help=words, **more)
    args = parser.parse_args()
    chosen, alone = set(args.chosen), os.environ.get("WORLD_SIZE", "1") == "1"
    for_ranks = sorted(chosen & set(ON_RANKS))
    for rivals in (*RIVALS.split(", "), *OPTIONS):  # one option twice is refused, too
        pair = sorted(name for name in args.chosen if name in rivals.split())[:2]
        if len(pair) == 2:
            raise BadInput(f"--with {' '.join(pair)}: choose one of the two")
    if "compile" in chosen and not shutil.which(os.environ.get("CXX", "g++")):
        raise BadInput("--with compile needs a C++ compiler: install g++")
    if alone and not for_ranks:
        device = distributed.choose_device()  # without DDP
    else:
        device = join_or_alone(ALONE)
    log("with           pieces/s  ratio calls  sent MB  saved MB  GFLOP")
    rates = []
    for end, name in enumerate(["nothing", *args.chosen]):
        training = Training(set(args.chosen[:end]), device)
        rates.append(rate(training, args.steps))
        log(f"{name:<15}{rates[-1]:8.1f}{rates[-1] / rates[0]:7.2f}{count(training)}")
        del training  # DDP must be gone before its group is
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
