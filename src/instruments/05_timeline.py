"""Watch when DDP communicates: the gradients, buckets and end of one backward pass.

Run from the folder of the workshop:

    python src/instruments/05_timeline.py                  # rank 0's clock, in ms
    python src/instruments/05_timeline.py --bucket-mb 25   # everything in one bucket
    python src/instruments/05_timeline.py --json FILE      # all ranks, for a drawing
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import (
    Parser,
    is_rank_0,
    log,
    one_line_errors,
    output_file,
    positive_float,
    positive_int,
    prepare_spawn,
    write_json,
)
from common.process_group import join

LAYERS, WIDTH, BATCH_SIZE = 6, 512, 256
STEPS = 4  # only the last one is shown: DDP lays out its buckets after the first


@dataclass(frozen=True)
class Config:
    """The command line."""

    bucket_mb: float  # DDP's bucket_cap_mb, in MiB
    json: Path | None  # where the events are written
    nprocs: int | None  # ranks; None: one for each accelerator, or two on a CPU


class Timeline:
    """What happened when: by the host's clock, or in the queue of an accelerator."""

    def __init__(self, device: torch.device):
        self.device = device
        self.start()

    def start(self) -> None:
        """Forget everything, and set the clock to 0."""
        self.moments: list[tuple[float | torch.Event, str]] = []
        self.origin = self.now()

    def now(self) -> float | torch.Event:
        """This moment; the host only queues what an accelerator will do later."""
        if self.device.type == "cpu":
            return time.perf_counter()
        event = torch.Event(self.device, enable_timing=True)
        event.record()
        return event

    def note(self, what: str) -> None:
        self.moments.append((self.now(), what))

    def events(self) -> list[tuple[float, str]]:
        """(ms since the start, what happened), in the order of time."""
        if isinstance(self.origin, float):
            since = [1000 * (moment - self.origin) for moment, _ in self.moments]
        else:
            torch.accelerator.synchronize(self.device)
            since = [self.origin.elapsed_time(moment) for moment, _ in self.moments]
        return sorted(zip(since, (what for _, what in self.moments), strict=True))


def make_model() -> nn.Sequential:
    """Layers 1 to 6 of 1.05 MB each; backward goes from the last to the first."""
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    return nn.Sequential(*layers)


def watch_gradients(model: nn.Sequential, timeline: Timeline) -> None:
    """Note when both gradients of a layer, weight and bias, are complete."""
    for number, layer in enumerate(model, start=1):
        arrived = []

        def hook(_parameter, number=number, arrived=arrived):
            arrived.append(1)
            if len(arrived) % 2 == 0:
                timeline.note(f"gradients of layer {number} complete")

        for parameter in layer.parameters():
            parameter.register_post_accumulate_grad_hook(hook)


def watch_buckets(ddp_model: DDP, timeline: Timeline) -> None:
    """Do to each bucket what DDP does, and note when."""

    def average(_state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        gradients = bucket.buffer().div_(dist.get_world_size())
        name, megabytes = bucket.index(), gradients.nbytes / 1e6
        timeline.note(f"bucket {name} begins: all_reduce of {megabytes:.2f} MB")
        # every rank, in the order of the buckets; backward continues at once
        work = dist.all_reduce(gradients, async_op=True)
        assert work is not None  # None only on a rank outside of the group

        def done(future):
            timeline.note(f"bucket {name} averaged")
            return future.value()[0]

        return work.get_future().then(done)

    ddp_model.register_comm_hook(None, average)


def run_steps(bucket_mb: float, device: torch.device) -> list[tuple[float, str]]:
    """The events of the last of a few training steps."""
    torch.manual_seed(0)
    model, timeline = make_model().to(device), Timeline(device)
    device_ids = None if device.type == "cpu" else [device]
    watch_gradients(model, timeline)
    ddp_model = DDP(model, device_ids, bucket_cap_mb=bucket_mb)
    watch_buckets(ddp_model, timeline)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(BATCH_SIZE, WIDTH, device=device)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = ddp_model(inputs).square().mean()
        dist.barrier()  # only here, so that all ranks begin the picture together
        timeline.start()
        loss.backward()
        timeline.note("backward ends")
        optimizer.step()
        timeline.note("step ends")
    return timeline.events()


@one_line_errors
def run_rank(rank: int, world_size: int, config: Config) -> None:
    # every rank must reach this line; here, rank and local rank are equal
    device = join(rank, rank=rank, world_size=world_size)
    events = run_steps(config.bucket_mb, device)
    log(
        f"{LAYERS} layers, buckets of {config.bucket_mb:g} MiB, {world_size} ranks"
        f"\n      ms  what rank 0 sees, from the start of backward on"
    )
    for milliseconds, what in events:
        log(f"{milliseconds:8.2f}  {what}")
    everyone = [None] * world_size
    # every rank must reach this line
    dist.all_gather_object(everyone, events)
    if config.json and is_rank_0():
        write_events(config.json, config.bucket_mb, everyone)
    dist.destroy_process_group()


def write_events(path: Path, bucket_mb: float, events: list) -> None:
    """Write the events of all ranks, a list of [ms, what] for each."""
    rows = [[[round(ms, 3), what] for ms, what in rank] for rank in events]
    recorded = {"torch": torch.__version__, "bucket_mb": bucket_mb, "ranks": rows}
    write_json(path, recorded)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument(
        "--bucket-mb",
        type=positive_float,
        default=2.0,
        help="DDP's bucket_cap_mb, in MiB of 1,048,576 bytes (default: %(default)s)",
    )
    file = {"type": output_file, "metavar": "FILE"}
    parser.add_argument("--json", **file, help="write the events")
    parser.add_argument("--nprocs", type=positive_int, help="ranks to start")
    config = Config(**vars(parser.parse_args()))
    world_size = prepare_spawn(config.nprocs)
    mp.spawn(run_rank, args=(world_size, config), nprocs=world_size)


if __name__ == "__main__":
    main()
