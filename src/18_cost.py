"""Predict a training step from the links between the ranks, then measure it.

    torchrun --standalone --nproc-per-node=2 src/18_cost.py
    torchrun --standalone --nproc-per-node=4 src/18_cost.py --batch-size 32 --rounds 5

Times all-reduces of several sizes, fits the seconds of n bytes as alpha + beta n, and
adds what each method sends to the time of a step that sends nothing. The ranks compute
that step at the same time, so that they share the machine as they do in training.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss
from common.distributed import Parser, log, one_line_errors, positive_int
from common.formulas import Layout, Model, step_flops
from common.gpt_training import check_divides, make_optimizer, run_and_exit
from common.process_group import join

FLOAT32, MIB = 4, 1024 * 1024  # bytes
MESSAGES = [4 * 8**k for k in range(8)]  # 4 bytes to 8 MiB
STEPS, WARM_UP = 6, 2  # of a round; those to warm up are not measured

# The scores are a view, which no code here changes in place
warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")


def seconds_of(action: Callable[[], object], device: torch.device) -> float:
    """Seconds of an action that every rank calls."""
    dist.barrier()  # start the clocks together
    start = time.perf_counter()
    action()
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - start


def time_link(device: torch.device, repeats: int = 6) -> list[float]:
    """The median seconds of an all-reduce of each size, without the first repeat."""
    found = []
    for size in MESSAGES:
        tensor = torch.zeros(size // FLOAT32, device=device)
        share = partial(dist.all_reduce, tensor)
        times = [seconds_of(share, device) for _ in range(repeats)]
        found.append(statistics.median(times[1:]))
    return found


def fit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """(alpha, beta) of the line with the least squares of *relative* errors."""
    n, t = torch.tensor([sizes, seconds], dtype=torch.float64)
    rows = torch.stack([1 / t, n / t], dim=1)
    alpha, beta = torch.linalg.lstsq(rows, torch.ones_like(t)[:, None]).solution
    return float(alpha), float(beta)


def messages(model: nn.Module) -> dict[str, list[tuple[float, float]]]:
    """What each method sends in a step: (share of an all-reduce, bytes), each."""
    block = FLOAT32 * sum(p.numel() for p in model.blocks[0].parameters())
    whole = FLOAT32 * sum(p.numel() for p in model.parameters())
    first = min(whole, MIB)  # DDP's first bucket is small, so that it leaves early
    rest = [min(25 * MIB, whole - at) for at in range(first, whole, 25 * MIB)]
    # a gather is one half of an all-reduce, a reduce-scatter the other: FSDP gathers
    # each block twice, and the root, which stays whole, once
    blocks = len(model.blocks)
    return {
        "DDP": [(1, first)] + [(1, size) for size in rest],
        "FSDP": blocks * [(1.5, block)] + [(1, whole - blocks * block)],
    }


def predict(alone: float, sent: list, alpha: float, beta: float) -> float:
    """Seconds of a step: computation, then every message. Nothing is hidden.

    On the CPU, gloo needs the cores that compute, so there is nothing to hide behind.
    """
    return alone + sum(share * (alpha + beta * size) for share, size in sent)


def sharded(model: ByteGPT) -> nn.Module:
    for layer in [*model.blocks, model]:
        fully_shard(layer)
    return model


METHODS = {"nothing sent": nn.Sequential, "DDP": DDP, "FSDP": sharded}


def time_steps(method: str, batch: int, device: torch.device) -> list[float]:
    """Seconds of each measured step of this rank, ``batch`` sequences on each."""
    torch.manual_seed(0)
    model = METHODS[method](ByteGPT(Sizes()).to(device))
    optimizer = make_optimizer(model.parameters(), 1e-3)
    shape = 2, batch, Sizes().context  # inputs and targets: [B, T] each
    inputs, targets = torch.randint(BYTES, shape, device=device)

    def step() -> None:
        optimizer.zero_grad()
        next_byte_loss(model(inputs), targets).backward()
        optimizer.step()

    return [seconds_of(step, device) for _ in range(WARM_UP + STEPS)][WARM_UP:]


def peak_flops(device: torch.device, size: int = 512) -> float:
    """FLOP/s of the best of ten products of two matrices, in 32 bits."""
    a = torch.ones(size, size, device=device)
    return 2 * size**3 / min(seconds_of(lambda: a @ a, device) for _ in range(10))


def report(times: dict, link: list, peak: float, batch: int) -> None:
    """The fitted link, the table, and MFU; on rank 0."""
    seconds = [statistics.median(repeats) for repeats in link]
    alpha, beta = fit(MESSAGES, seconds)
    log(f"all-reduce: alpha {1e6 * alpha:.0f} us, 1/beta {1e-9 / beta:.2f} GB/s")
    for size, t in zip(MESSAGES, seconds, strict=True):
        line = f"{size:9,} bytes {1e6 * t:9.0f} us"
        log(f"{line}, the line says {1e6 * (alpha + beta * size):9.0f}")
    measured = {name: statistics.median(steps) for name, steps in times.items()}
    base = measured.pop("nothing sent")
    log(f"step that sends nothing: {1000 * base:.1f} ms")
    log("ms per step   predicted   measured   error")
    for name, sent in messages(ByteGPT(Sizes())).items():
        guess, real = predict(base, sent, alpha, beta), measured[name]
        both = f"{1000 * guess:11.1f} {1000 * real:10.1f}"
        log(f"{name:11} {both} {guess / real - 1:+7.0%}")
    sizes, ranks = Sizes(), dist.get_world_size()
    gpt = Model(sizes.blocks, sizes.width, sizes.heads, sizes.context, BYTES)
    flops = step_flops(gpt, Layout(data=ranks, micro_batch=batch)) / ranks
    used = [flops / t / peak for t in (base, measured["DDP"])]
    log(f"a matrix product reaches {peak / 1e9:.1f} GFLOP/s on a rank")
    log(f"MFU against that: {used[0]:.0%} alone, {used[1]:.0%} with DDP")


def parse() -> argparse.Namespace:
    parser, shown = Parser(__doc__), " (default: %(default)s)"
    batch = "sequences in a step of all ranks" + shown
    parser.add_argument("--batch-size", type=positive_int, default=16, help=batch)
    rounds = "rounds, in which everything is measured in turn" + shown
    parser.add_argument("--rounds", type=positive_int, default=4, help=rounds)
    return parser.parse_args()


@one_line_errors()
def main() -> None:
    args = parse()
    device = join("18_cost.py")
    ranks = dist.get_world_size()
    check_divides(args.batch_size, ranks, "--batch-size", "ranks")
    batch = args.batch_size // ranks
    times: dict = {method: [] for method in METHODS}
    link, peaks = [[] for _ in MESSAGES], []
    for turn in range(args.rounds):
        peaks.append(peak_flops(device))
        for method in METHODS:
            times[method] += time_steps(method, batch, device)
        for repeats, seconds in zip(link, time_link(device), strict=True):
            repeats.append(seconds)
        log(f"round {turn + 1} of {args.rounds} done")
    report(times, link, max(peaks), batch)
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
