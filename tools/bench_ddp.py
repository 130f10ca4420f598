"""The throughput of 05_ddp_spawn.py, as ratios of one run.

    python tools/bench_ddp.py

Beside it: one process (01_single_device.py), and a bare loop around DDP that does
what a step needs and no more. Each takes batches of 32 on one thread per rank; all are
run in turn, several times, and the best of each are compared: what else runs on the
machine only ever slows a run down.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAUNCHED = re.compile(r"^(RANK|LOCAL_|WORLD_SIZE|GROUP_|MASTER_|TORCHELASTIC)")
EPOCHS = 8  # the median of which is the speed of a run

BARE = """
import pathlib, statistics, sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from common.data import WIDTH, load_digits_split, make_model

def train(epochs):
    torch.manual_seed(0)
    train_set, _ = load_digits_split()
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, 32, sampler=sampler)
    ddp_model = DDP(make_model(0.1, WIDTH))
    optimizer = torch.optim.SGD(ddp_model.parameters(), 0.05, momentum=0.9)
    seconds = []
    for epoch in range(epochs):
        start = time.perf_counter()
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            scores = ddp_model(images)
            F.cross_entropy(scores, labels).backward()
            optimizer.step()
        seconds.append(time.perf_counter() - start)
    return len(train_set) / statistics.median(seconds)

def run_rank(rank, world_size, epochs):
    store = pathlib.Path("store").resolve().as_uri()  # no port: a file in a new folder
    dist.init_process_group("gloo", store, rank=rank, world_size=world_size)
    samples_per_s = train(epochs)
    if rank == 0:
        print(samples_per_s, flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    world_size, epochs = int(sys.argv[1]), int(sys.argv[2])
    mp.spawn(run_rank, (world_size, epochs), nprocs=world_size)
"""


def python(folder: Path, *command: object) -> str:
    """Run a Python program on the CPU, one thread for each rank; its output."""
    kept = {k: v for k, v in os.environ.items() if not LAUNCHED.match(k)}
    hidden = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=kept | hidden | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"bench: {command} failed: {done.stderr}")
    return done.stdout


def script(name: str, *options: object) -> float:
    """Images per second of one of our scripts, by its own account."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = Path(folder) / "metrics.json"
        end = [EPOCHS, EPOCHS, "--metrics", metrics]
        python(Path(folder), ROOT / "src" / name, *end, *options)
        return float(json.loads(metrics.read_text())["samples_per_s"])


def bare(ranks: int) -> float:
    """Images per second of the bare loop."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bare.py"  # ranks that are spawned import the file
        program.write_text(BARE)
        return float(python(Path(folder), program, ranks, EPOCHS))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    rounds = parser.parse_args(argv).rounds
    name = "05_ddp_spawn.py"
    programs: dict[str, Callable[[], float]] = {
        "one process": lambda: script("01_single_device.py"),
        "bare DDP loop, 1 rank": lambda: bare(1),
        "our DDP script, 1 rank": lambda: script(name, "--nprocs", 1),
        "bare DDP loop, 2 ranks": lambda: bare(2),
        "our DDP script, 2 ranks": lambda: script(name, "--nprocs", 2),
    }
    rates: dict[str, list[float]] = {title: [] for title in programs}
    for _ in range(rounds):  # in turn, so that a busy moment hits all of them
        for title, program in programs.items():
            rates[title].append(program())
    best = {title: max(values) for title, values in rates.items()}
    one = best["one process"]
    print(f"{'':<24} {'samples/s':>10} {'to one process':>15} {'to bare loop':>13}")
    for title, rate in best.items():
        ratio = f"{rate / one:15.2f}"
        other = best.get(title.replace("our DDP script", "bare DDP loop"))
        beside = f"{rate / other:13.2f}" if other and other != rate else ""
        print(f"{title:<24} {rate:10,.0f} {ratio} {beside}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
