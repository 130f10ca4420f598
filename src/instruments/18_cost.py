"""Predict a training step from the links between the ranks, then measure it.

    torchrun --standalone --nproc-per-node=2 src/instruments/18_cost.py
    torchrun --standalone --nproc-per-node=4 src/instruments/18_cost.py \\
        --batch-size 32 --rounds 5
    torchrun --standalone --nproc-per-node=2 src/instruments/18_cost.py --predict 8

Times a ping and all-reduces, fits the seconds of n bytes as alpha + beta n, and adds
what each method sends to the time of a step that sends nothing. The ranks compute that
step together, as in training, and again as FSDP and tensor parallel do it. The page
"What will it cost?" has the formulas. On a GPU it has run with one rank only, which has
no link.
"""

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common import distributed
from common.cost import formulas
from common.cost.formulas import Cluster, Layout, step_flops
from common.cost.layouts import GPT, layouts, make_step
from common.distributed import BadInput, Parser, log, one_line_errors, positive_int
from common.gpt_training import check_divides, run_and_exit
from common.process_group import join_or_alone, refuse_messages_between_shared

FLOAT32, SILENT, ONE = 4, ", silent", "one process"
ALONE = "there is no link to time, so only the step and its MFU are left"
MESSAGES = [4 * 8**k for k in range(8)]  # 4 bytes to 8 MiB
STEPS, WARM_UP = 4, 2  # of a round; those to warm up are not measured

# The scores are a view, which no code here changes in place
warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")


@dataclass(frozen=True)
class Config:
    """The command line."""

    batch_size: int  # sequences in a step of all ranks
    predict: int | None  # a number of ranks to predict a step of
    rounds: int  # in which everything is measured in turn


def seconds_of(action: Callable, device: torch.device, *given: torch.Tensor) -> float:
    """Seconds of an action that every rank calls."""
    dist.barrier()  # start the clocks together
    start = time.perf_counter()
    action(*given)
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - start


def ping(tensor: torch.Tensor) -> None:
    """Send it from rank 0 to rank 1 and back; other ranks do nothing."""
    rank = dist.get_rank()
    if rank < 2:
        for action in (dist.send, dist.recv)[:: 1 - 2 * rank]:  # rank 1 receives first
            action(tensor, 1 - rank)


def time_link(device: torch.device) -> list[float]:
    """The mean seconds of a ping and of each all-reduce, since a step adds them up."""
    found = []
    for action, size in (ping, MESSAGES[0]), *((dist.all_reduce, n) for n in MESSAGES):
        tensor = torch.zeros(size // FLOAT32, device=device)
        runs = 36 if size < 2**20 else 6  # few, where a link may be slow
        times = [seconds_of(action, device, tensor) for _ in range(runs)]
        found.append(statistics.fmean(times[1:]))
    return found


def fit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """(alpha, beta) of the line alpha + beta n that fits the logarithms of seconds."""
    n, t = torch.tensor([sizes, seconds], dtype=torch.float64)
    alpha, beta = t[0], t[-1] / n[-1]
    for _ in range(100):  # a message counts for beta by what its bytes take of its time
        line = alpha + beta * n
        share, error = beta * n / line, torch.log(t / line)
        for_alpha, for_beta = (1 - share) ** 2, share**2
        alpha = alpha * torch.exp(for_alpha @ error / for_alpha.sum())
        beta = beta * torch.exp(for_beta @ error / for_beta.sum())
    return float(alpha), float(beta)


# [start predict]
def cluster_of(alpha: float, beta: float, ranks: int, flops: float) -> Cluster:
    """The fitted link, and ranks that compute ``flops`` per second.

    A ring sends 2(N - 1) messages and 2(N - 1)/N n bytes per rank. The formulas count
    numbers of 16 bits. Ours have 32, so half as many of them fit through the link.
    """
    messages = 2 * (ranks - 1)
    bandwidth = messages / ranks / beta / 2
    latency = alpha / messages
    return Cluster(1, flops, 1.0, bandwidth, bandwidth, latency)


def predict(layout: Layout, cluster: Cluster, own: float = 0) -> float:
    """Seconds of a step; ``own`` of them are a method's work beside computing.

    On an accelerator, the data axis hides behind computation. The CPU hides nothing,
    because gloo needs the cores that compute.
    """
    given = GPT, layout, cluster
    hidden = min(formulas.data_seconds(*given), formulas.hiding_seconds(*given))
    more = own if distributed.count_accelerators() else own + hidden
    return formulas.step_seconds(*given) + more


# [end predict]
def peak_flops(device: torch.device) -> float:
    """FLOP/s of the best of ten products of two matrices, in 32 bits.

    The program trains in 32 bits, too. On a GPU that isn't its peak: without TF32, its
    tensor cores stay idle.
    """
    size = 512 if device.type == "cpu" else 8192  # a launch must not count
    a = torch.ones(size, size, device=device)
    return 2 * size**3 / min(seconds_of(lambda: a @ a, device) for _ in range(10))


def report(times: dict, link: list, peak: float, config: Config) -> None:
    """The fitted link, the table, MFU, and the ranks to predict; on rank 0."""
    there_and_back, *means = map(statistics.fmean, zip(*link, strict=True))
    log(f"a ping of 4 bytes, there and back: {1e6 * there_and_back:.0f} us")
    no_bytes = there_and_back * (dist.get_world_size() - 1)  # as a ring's 2(N - 1)
    alpha, beta = fit([0, *MESSAGES], [no_bytes, *means])
    log(f"all-reduce: alpha {1e6 * alpha:.0f} us, 1/beta {1e-6 / beta:.1f} MB/s")
    for size, t in zip(MESSAGES, means, strict=True):
        line = f"{size:9,} bytes {1e6 * t:9.0f} us"
        log(f"{line}, the line says {1e6 * (alpha + beta * size):9.0f}")
    measured = {name: statistics.median(steps) for name, steps in times.items()}
    base, ranks = measured.pop(ONE), dist.get_world_size()
    log(f"step that sends nothing: {1000 * base:.1f} ms")
    own = {k.removesuffix(SILENT): measured[k] - base for k in measured if SILENT in k}
    for name, seconds in own.items():
        log(f"{name} adds, without its messages: {1000 * seconds:.1f} ms")
    flops = step_flops(GPT, Layout(micro_batch=config.batch_size // ranks))
    cluster = cluster_of(alpha, beta, ranks, flops / base)
    log("ms per step   predicted   measured   error")
    for name, layout in layouts(ranks, config.batch_size).items():
        guess, real = predict(layout, cluster, own.get(name, 0)), measured[name]
        both = f"{1000 * guess:11.1f} {1000 * real:10.1f}"
        log(f"{name:11} {both} {guess / real - 1:+7.0%}")
    used = [flops / t / peak for t in (base, measured["DDP"])]
    log(f"a matrix product reaches {peak / 1e9:.1f} GFLOP/s on a rank")
    log(f"MFU against that: {used[0]:.0%} alone, {used[1]:.0%} with DDP")
    if config.predict:
        log(
            f"{config.predict} ranks, if each computes as fast as one of these {ranks}:"
        )
        for name, layout in layouts(config.predict, config.batch_size).items():
            known = sum(own.get(part, 0) for part in name.split(" x "))  # of a grid
            log(f"{name:11} {1000 * predict(layout, cluster, known):11.1f}")


def report_alone(steps: list[float], peak: float, config: Config) -> None:
    """What one rank can say: the time of its step, and MFU."""
    seconds = statistics.median(steps)
    log(f"step that sends nothing: {1000 * seconds:.1f} ms")
    log(f"a matrix product reaches {peak / 1e9:.1f} GFLOP/s")
    flops = step_flops(GPT, Layout(micro_batch=config.batch_size))
    log(f"MFU against that: {flops / seconds / peak:.0%}")


def methods_of(ranks: int, batch: int) -> dict[str, Layout]:
    """The methods to measure; none of them divides anything on one rank."""
    return layouts(ranks, batch) if ranks > 1 else {}


def parse() -> Config:
    parser, shown = Parser(__doc__), " (default: %(default)s)"
    batch = "sequences in a step of all ranks" + shown
    parser.add_argument("--batch-size", type=positive_int, default=16, help=batch)
    predicted = "also predict a step of N ranks, with the batch of --batch-size"
    parser.add_argument("--predict", type=positive_int, metavar="N", help=predicted)
    rounds = "rounds, in which everything is measured in turn" + shown
    parser.add_argument("--rounds", type=positive_int, default=4, help=rounds)
    return Config(**vars(parser.parse_args()))


@one_line_errors
def main() -> None:
    config, device = parse(), join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    ranks = dist.get_world_size()
    if ranks == 1 and config.predict:
        raise BadInput(
            f"--predict {config.predict} needs the time of a link: start two ranks or "
            "more with torchrun"
        )
    for count in (ranks, config.predict or 1):
        check_divides(config.batch_size, count, "--batch-size", "ranks")
    methods = {ONE: (Layout(micro_batch=config.batch_size // ranks), device)}
    for name, layout in methods_of(ranks, config.batch_size).items():
        methods[name] = layout, device
        if layout.stage or layout.tensor > 1:
            methods[name + SILENT] = layout, device, True
    times, link, peaks = {name: [] for name in methods}, [], []
    for turn in range(config.rounds):
        peaks.append(peak_flops(device))
        for name, method in methods.items():
            step, runs = make_step(*method), range(WARM_UP + STEPS)
            times[name] += [seconds_of(step, device) for _ in runs][WARM_UP:]
        if ranks > 1:
            link.append(time_link(device))
        log(f"round {turn + 1} of {config.rounds} done")
    if ranks > 1:
        report(times, link, max(peaks), config)
    else:
        report_alone(times[ONE], max(peaks), config)
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
