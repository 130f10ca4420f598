"""Profile a small DDP run on all ranks, and say where each rank's time goes.

    torchrun --standalone --nproc-per-node=2 src/instruments/17_profile.py
    torchrun --standalone --nproc-per-node=2 src/instruments/17_profile.py --data-ms 20
    python src/instruments/17_profile.py --explain trace.json

The first two write trace.json: open it in https://ui.perfetto.dev, a lane for each
rank. The last one explains it, or any trace that torch.profiler has exported.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import profile, record_function
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.cost.trace import explain, load_trace
from common.distributed import (
    BadInput,
    Parser,
    is_rank_0,
    log,
    one_line_errors,
    output_file,
    positive_float,
    positive_int,
    write_json,
)
from common.process_group import join_or_alone

ALONE = "DDP has nothing to send, and no rank waits for another"
LAYERS, WIDTH, WARM_UP = 4, 512, 3
EXTRA = 5  # forward passes of a slow rank, in each step
MARK = "clock mark"  # all ranks are here at the same moment: just after a barrier


@dataclass(frozen=True)
class Config:
    """The command line."""

    steps: int  # to record
    batch_size: int  # of each rank
    data_ms: float  # to read a batch
    slow_rank: int | None  # a rank with more to compute
    bucket_mb: float  # of DDP
    memory: bool  # record each allocation as well
    output: Path
    explain: Path | None  # explain this trace, and record none


class SlowData(Dataset):
    """Random rows, each of which takes ``milliseconds`` to read."""

    def __init__(self, rows: int, milliseconds: float):
        self.rows, self.seconds = torch.randn(rows, WIDTH), milliseconds / 1000

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.seconds:
            time.sleep(self.seconds)
        return self.rows[index]


# [start record]
def record(config: Config, device: torch.device) -> profile:
    """Train a few steps unrecorded, then ``config.steps`` under the profiler."""
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).to(device)
    devices = None if device.type == "cpu" else [device]
    ddp_model = DDP(model, devices, bucket_cap_mb=config.bucket_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = (WARM_UP + config.steps) * config.batch_size
    dataset = SlowData(rows, config.data_ms / config.batch_size)
    batches = iter(DataLoader(dataset, config.batch_size))

    def step() -> None:
        inputs = next(batches).to(device)
        optimizer.zero_grad()
        if dist.get_rank() == config.slow_rank:
            for _ in range(EXTRA):
                model(inputs)  # work that the other ranks don't have
        loss = ddp_model(inputs).square().mean()
        loss.backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    # [start profile]
    # without activities: the CPU, and the accelerator where there is one
    with profile(profile_memory=config.memory) as profiler:
        dist.barrier()  # every rank leaves it when the last one has entered it
        with record_function(MARK):
            pass
        for number in range(config.steps):
            with record_function(f"step {number}"):
                step()
    # [end profile]
    return profiler


# [end record]
# [start merge]
def merge(traces: list[dict]) -> dict:
    """One trace with a lane for each rank, its process number, on rank 0's clock.

    Ranks of one host share its clock. Any other host is shifted as a whole, so that
    its first rank leaves the barrier when rank 0 does.
    """
    events, shifts = [], {}
    for rank, trace in enumerate(traces):
        host = trace.get("host_name", "")
        if host not in shifts:
            shifts[host] = mark_of(traces[0]) - mark_of(trace) if rank else 0.0
        shift = shifts[host] + start_of(trace) - start_of(traces[0])
        label = {"name": f"rank {rank} ({host})"}
        about = (("process_name", label), ("process_sort_index", {"sort_index": rank}))
        for name, values in about:
            events.append({"ph": "M", "name": name, "pid": rank, "args": values})
        for event in trace["traceEvents"]:
            if isinstance(event.get("pid"), int) and event["name"][:8] != "process_":
                events.append(event | {"pid": rank, "ts": event["ts"] + shift})
                if "id" in event:  # an arrow, forward to backward; a whole number
                    events[-1]["id"] += rank << 32  # for Perfetto, another on each rank
    first = traces[0]
    kept = {key: first[key] for key in ("schemaVersion", "displayTimeUnit")}
    return kept | {"mergedRanks": len(traces), "traceEvents": events}


def start_of(trace: dict) -> float:
    """Where the trace's own times begin, in microseconds of the host's clock."""
    return trace["baseTimeNanoseconds"] / 1000


def mark_of(trace: dict) -> float:
    """When this rank left the barrier, in microseconds of its host's clock."""
    events = trace["traceEvents"]
    marks = [event["ts"] for event in events if event["name"] == MARK]
    return start_of(trace) + min(marks)


# [end merge]
def gather(profiler: profile) -> list[dict]:
    """The traces of all ranks, on rank 0; no file system has to be shared."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        own = load_trace(path)
    everyone = [None] * dist.get_world_size() if is_rank_0() else None
    # every rank must reach this line: rank 0 receives some 100 kB from each
    dist.gather_object(own, everyone)
    return everyone or []


def parse_arguments() -> Config:
    parser = Parser(__doc__)
    add, number = parser.add_argument, {"type": positive_int}
    add("--steps", **number, default=5, help="to record (default: %(default)s)")
    add("--batch-size", **number, default=64, help="of each rank (default: 64)")
    add("--data-ms", type=positive_float, default=0, help="to read a batch")
    add("--slow-rank", type=int, metavar="RANK", help="a rank with more to compute")
    add("--bucket-mb", type=positive_float, default=2, help="of DDP (default: 2)")
    add("--memory", action="store_true", help="record each allocation as well")
    file, shown = {"metavar": "FILE"}, "default: %(default)s"
    add("--output", type=output_file, default="trace.json", help=shown, **file)
    add("--explain", type=Path, help="explain this trace; record none", **file)
    return Config(**vars(parser.parse_args()))


@one_line_errors
def main() -> None:
    config = parse_arguments()
    if config.explain:
        log(explain(config.explain))
        return
    device, ranks = join_or_alone(ALONE), dist.get_world_size()
    if config.slow_rank is not None and not 0 <= config.slow_rank < ranks:
        raise BadInput(
            f"--slow-rank {config.slow_rank}: choose one of 0 to {ranks - 1}"
        )
    traces = gather(record(config, device))
    if is_rank_0():
        trace = merge(traces)
        write_json(config.output, trace)
        log(f"{config.output}: {len(trace['traceEvents'])} events")
        log(explain(config.output))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
