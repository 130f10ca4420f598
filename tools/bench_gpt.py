"""Bytes per second of the byte GPT under each scheme of lessons 13 to 16.

    python tools/bench_gpt.py                # on 2 and on 4 ranks
    python tools/bench_gpt.py --only tensor  # only the schemes whose name begins so

Each scheme is run by hand, with our script around PyTorch's module, and as a bare loop
around the same module that does what a step needs and no more. All have one thread per
rank and the same global batch of 16 pieces of 64 bytes, and all are run in turn: what
else runs on the machine only ever slows a run down, so the best of each are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from bench_ddp import ROOT, python

STEPS = 8  # the median of which is the speed of a run
MICRO_BATCHES = 4

BARE = """
import statistics, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, parallelize_module)
from common.byte_gpt import ByteGPT, Sizes, next_byte_loss

kind, steps, micro_batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sizes = Sizes()
torch.manual_seed(0)
model = ByteGPT(sizes)
rank, world_size = 0, 1
if kind != "one process":
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
tokens = torch.randint(256, (steps, 16, sizes.context))
if kind == "tensor":
    mesh = init_device_mesh("cpu", (world_size,))
    for block in model.blocks:
        names = ("attention.query", "attention.key", "attention.value", "mlp.up")
        plan = dict.fromkeys(names, ColwiseParallel())
        plan |= dict.fromkeys(("attention.out", "mlp.down"), RowwiseParallel())
        parallelize_module(block, mesh, plan)
if kind == "sharded":
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
if kind == "pipeline":
    layers = model.layers()
    first, last = (len(layers) * r // world_size for r in (rank, rank + 1))
    model = nn.Sequential(*layers[first:last])
    stage = PipelineStage(model, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, micro_batches, loss_fn=next_byte_loss)
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
seconds = []
for batch in tokens:
    if kind == "sharded":
        batch = batch.chunk(world_size)[rank]
    start = time.perf_counter()
    optimizer.zero_grad()
    if kind == "pipeline":
        inputs = [batch] if rank == 0 else []
        target = {"target": batch} if rank == world_size - 1 else {}
        schedule.step(*inputs, **target)
    else:
        next_byte_loss(model(batch), batch).backward()
    optimizer.step()
    seconds.append(time.perf_counter() - start)
if rank == 0:
    print(16 * sizes.context / statistics.median(seconds), flush=True)
if kind != "one process":
    dist.destroy_process_group()
"""

# scheme -> name of a run -> script and its options
SCHEMES: dict[str, dict[str, list[object]]] = {
    "pipeline": {
        "by hand, GPipe": ["13_pipeline_by_hand.py", "--schedule", "gpipe"],
        "by hand, 1F1B": ["13_pipeline_by_hand.py", "--schedule", "1f1b"],
        "torch's 1F1B": ["13_pipeline.py", "--schedule", "1f1b"],
    },
    "tensor": {
        "by hand": ["14_tensor_by_hand.py"],
        "parallelize_module": ["14_tensor_parallel.py"],
    },
    "sharded": {
        "by hand, ZeRO-1": ["15_zero_by_hand.py", "--stage", 1],
        "by hand, ZeRO-3": ["15_zero_by_hand.py", "--stage", 3],
        "fully_shard": ["15_fsdp.py"],
    },
    "two dimensions": {"FSDP x 2 tensor ranks": ["16_fsdp_tensor_parallel.py"]},
}


def ranks_of(number: int) -> list[object]:
    """The beginning of a command that starts so many ranks."""
    start = ["-m", "torch.distributed.run", "--standalone"]
    return [*start, f"--nproc-per-node={number}"] if number > 1 else []


def script(name: object, options: list[object], ranks: int) -> float:
    """Bytes per second of one of our scripts, by its own account."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = Path(folder) / "metrics.json"
        end = [STEPS, "--metrics", metrics, *options]
        python(Path(folder), *ranks_of(ranks), ROOT / "src" / str(name), *end)
        return float(json.loads(metrics.read_text())["tokens_per_s"])


def bare(kind: str, ranks: int) -> float:
    """Bytes per second of the bare loop around a module of PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bare.py"
        program.write_text(BARE)
        words = [*ranks_of(ranks), program, kind, STEPS, MICRO_BATCHES]
        return float(python(Path(folder), *words).split()[-1])


def runs(kind: str, ranks: int) -> dict[str, tuple]:
    """Title -> function and arguments, for one scheme on so many ranks."""
    found = {}
    for title, (name, *options) in SCHEMES[kind].items():
        if kind == "pipeline":
            options += ["--micro-batches", MICRO_BATCHES]
        found[title] = script, name, options, ranks
    if kind != "two dimensions":
        found["bare loop"] = bare, kind, ranks
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, help="runs of each")
    parser.add_argument("--only", default="", help="beginning of a scheme's name")
    args = parser.parse_args(argv)
    plan: dict[tuple[str, int, str], tuple] = {
        ("one process", 1, "13_train_gpt.py"): (script, "13_train_gpt.py", [], 1),
        ("one process", 1, "bare loop"): (bare, "one process", 1),
    }
    for ranks in (2, 4):
        for kind in SCHEMES:
            if kind.startswith(args.only) and (ranks == 4 or kind != "two dimensions"):
                for title, run in runs(kind, ranks).items():
                    plan[kind, ranks, title] = run
    best = dict.fromkeys(plan, 0.0)
    for _ in range(args.rounds):  # in turn, so that a busy moment hits all of them
        for key, (function, *arguments) in plan.items():
            best[key] = max(best[key], function(*arguments))
    one = best["one process", 1, "13_train_gpt.py"]
    head = f"{'scheme':<15} {'ranks':>5}  {'run':<22} {'bytes/s':>8}"
    print(f"{head} {'to one process':>15} {'to bare loop':>13}")
    for (kind, ranks, title), rate in best.items():
        other = best.get((kind, ranks, "bare loop"))
        beside = f"{rate / other:13.2f}" if other and title != "bare loop" else ""
        line = f"{kind:<15} {ranks:>5}  {title:<22} {rate:8,.0f} {rate / one:15.2f}"
        print(f"{line} {beside}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
