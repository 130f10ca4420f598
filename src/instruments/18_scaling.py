"""Time training steps on 1 to N ranks: strong and weak scaling.

    python src/instruments/18_scaling.py --csv scaling.csv --plot scaling.png
    python src/instruments/18_scaling.py --ranks 1 2 4 --batch-size 64 --blocks 8
    # or torchrun, mpirun:
    srun --ntasks=8 python src/instruments/18_scaling.py --csv scaling.csv
    python src/instruments/18_scaling.py scaling/*.csv --plot scaling.png  # compare

Strong scaling: the ranks share a batch. Weak scaling: each has a batch of its own. The
text is random bytes, because only the time matters.
"""

import os
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.byte_gpt import BYTES, ByteGPT, Sizes, next_byte_loss, sizes_of
from common.cost.scaling import Runs
from common.distributed import (
    BadInput,
    Parser,
    count_accelerators,
    describe_world,
    is_rank_0,
    log,
    one_line_errors,
    output_file,
    positive_int,
    prepare_spawn,
)
from common.launchers import find_master, get_dist_env
from common.process_group import join

WARM_UP = 3  # steps that are not measured: DDP lays out its buckets after the first
PLOTS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Config:
    """The command line."""

    files: list[Path]  # compare these, and run nothing
    ranks: list[int] | None  # numbers of ranks to measure; None: what there is
    batch_size: int  # sequences in a step: of all ranks (strong), of each (weak)
    width: int
    heads: int
    blocks: int
    context: int
    steps: int  # in a round
    rounds: int  # of all cases
    csv: Path | None
    plot: Path | None


def time_steps(
    group: dist.ProcessGroup, batch: int, config: Config, device: torch.device
) -> list[float]:
    """Milliseconds of each step of the ranks of a group, ``batch`` sequences on each.

    Every rank of the group must call it. One rank alone trains without DDP.
    """
    torch.manual_seed(0)
    model = ByteGPT(sizes_of(config)).to(device)
    alone = dist.get_world_size(group) == 1
    trained = model if alone else DDP(model, process_group=group)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    shape = 2, batch, config.context  # inputs and targets of this rank: [B, T] each
    inputs, targets = torch.randint(BYTES, shape, device=device)
    ends = []
    for _ in range(WARM_UP + config.steps):
        optimizer.zero_grad()
        # all ranks of the group: backward averages the gradients, P x 4 bytes
        next_byte_loss(trained(inputs), targets).backward()
        optimizer.step()
        if device.type != "cpu":
            torch.accelerator.synchronize()  # the step has only been queued until here
        ends.append(time.perf_counter())
    kept = ends[WARM_UP - 1 :]
    return [1000 * (b - a) for a, b in pairwise(kept)]


def measure(counts: list[int], config: Config, device: torch.device) -> dict:
    """(ranks, batch of a rank) -> milliseconds of its steps, as rank 0 saw them.

    Every rank must call it. The cases take turns, so that a slow minute of the machine
    slows all of them.
    """
    groups = {count: dist.new_group(range(count)) for count in counts}
    strong = {(count, config.batch_size // count) for count in counts}
    weak = {(count, config.batch_size) for count in counts}
    times: dict = {case: [] for case in sorted(strong | weak)}
    for turn in range(config.rounds):
        for count, batch in times:
            if dist.get_rank() < count:
                times[count, batch] += time_steps(groups[count], batch, config, device)
            dist.barrier()  # every rank: those that did not compute have waited here
        log(f"round {turn + 1} of {config.rounds} done")
    return times


@one_line_errors
def run_spawned(rank: int, size: int, counts: list[int], config: Config) -> None:
    """What ``mp.spawn`` starts on this machine: rank and local rank are equal."""
    run_rank(rank, rank, size, counts, config)


@one_line_errors
def run_rank(
    rank: int, local_rank: int, size: int, counts: list[int], config: Config
) -> None:
    """What each process does."""
    # every rank must reach this line
    device = join(local_rank, rank=rank, world_size=size)
    kind = describe_world(device).partition("each on ")[2]
    with torch.device("meta"):  # shapes only
        model = ByteGPT(sizes_of(config))
    numel = sum(parameter.numel() for parameter in model.parameters())
    log(f"{numel:,} parameters, {size} ranks, each on {kind}")
    times = measure(counts, config, device)
    if is_rank_0():
        report(Runs.measured(times, config.batch_size, numel, kind), config)
    dist.destroy_process_group()


def report(runs: Runs, config: Config) -> None:
    """Print the table, and write the files."""
    log(runs.table())
    if config.csv:
        runs.write(config.csv)
    if config.plot:
        log(runs.draw(config.plot))


def parse() -> Config:
    parser = Parser(__doc__)
    add, shown = parser.add_argument, " (default: %(default)s)"
    add("files", nargs="*", type=Path, metavar="CSV", help="compare these; run nothing")
    words = "numbers of ranks (default: 1, 2, 4, ... up to all devices, or all ranks)"
    add("--ranks", nargs="+", type=positive_int, metavar="N", help=words)
    batch = "sequences in a step: of all ranks (strong), of each (weak)"
    sizes = {k: (v, f"{k} of the GPT") for k, v in vars(Sizes()).items()}
    turns = {"steps": (10, "steps in a round"), "rounds": (3, "rounds of all cases")}
    for name, (value, help_) in ({"batch-size": (16, batch)} | sizes | turns).items():
        add(f"--{name}", type=positive_int, default=value, help=help_ + shown)
    add("--csv", type=output_file, metavar="FILE", help="write a row for each run")
    add("--plot", type=output_file, metavar="FILE", help=f"draw it: {', '.join(PLOTS)}")
    config = Config(**vars(parser.parse_args()))
    if config.plot and config.plot.suffix not in PLOTS:
        raise BadInput(
            f"--plot {config.plot} has no ending of {', '.join(PLOTS)}: add it"
        )
    if config.csv and config.csv == config.plot:
        raise BadInput(f"--csv and --plot are both {config.csv}: choose two files")
    return config


def count_cores() -> int:
    """Cores that this process may use: those of its job, not those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose_ranks(config: Config, most: int | None) -> list[int]:
    """The numbers of ranks to measure; a launcher has started ``most``."""
    if config.ranks and most and max(config.ranks) > most:
        raise BadInput(
            f"--ranks {max(config.ranks)}: only {most} were started: start more"
        )
    chosen = config.ranks
    if not chosen:
        limit = most or count_accelerators() or count_cores()
        chosen = [2**k for k in range(limit.bit_length())] + [limit]
    counts = sorted(set(chosen))
    for count in counts:
        if config.batch_size % count:
            given = f"--batch-size {config.batch_size} cannot be divided among"
            raise BadInput(f"{given} {count} ranks: choose a multiple")
    sizes_of(config)  # refuses heads that don't divide the width, before ranks start
    if config.steps * config.rounds < 2:
        raise BadInput("--steps 1 shows no spread: measure at least 2")
    return counts


@one_line_errors
def main() -> None:
    config = parse()
    if config.files:
        report(Runs.read(config.files), config)
        return
    env = get_dist_env()
    if env.launcher == "python":
        counts = choose_ranks(config, None)
        size = prepare_spawn(max(counts))
        mp.spawn(run_spawned, args=(size, counts, config), nprocs=size)
        return
    counts = choose_ranks(config, env.world_size)
    master = find_master(env)
    os.environ["MASTER_ADDR"] = master.address
    os.environ["MASTER_PORT"] = str(master.port)
    run_rank(env.rank, env.local_rank, env.world_size, counts, config)


if __name__ == "__main__":
    main()
