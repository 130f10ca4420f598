"""Show in which order each rank of a pipeline by hand computes, and when.

    torchrun --standalone --nproc-per-node=3 src/instruments/13_timeline.py \\
        src/13_pipeline_by_hand.py 2 --schedule gpipe
    torchrun --standalone --nproc-per-node=4 src/instruments/13_timeline.py \\
        --json timeline.json src/13_pipeline_by_hand.py 2

It runs two steps of the program and shows what each rank did in the second one.
"""

import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.cost.counting import load_program
from common.distributed import log, one_line_errors, write_json
from common.gpt_training import TextConfig
from common.parallel.pipeline import Action, bubble, most_live
from common.process_group import join_or_alone, refuse_messages_between_shared

ALONE = "the pipeline is one stage, the whole model, and sends nothing"
STEPS = 2  # the first also pays for what starts lazily
Events = list[dict]  # of one rank: what, micro_batch, begin, end


def now() -> float:
    """Seconds; on a device, after all queued work is done."""
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return time.time()


class Recorder:
    """Records when a rank computes; waiting for a neighbor doesn't count."""

    def __init__(self, pipeline):
        self.events: Events = []
        for what in ("forward", "backward"):
            setattr(pipeline, what, self.timed(what, getattr(pipeline, what)))
        for channel in (pipeline.activations, pipeline.gradients):
            channel.receive = self.received(channel.receive)
            channel.send = self.sending(channel.send)

    def timed(self, what: str, run: Callable) -> Callable:
        def recorded(k: int) -> None:
            self.begin, self.end = now(), None
            run(k)
            end = self.end or now()
            moments = {"begin": self.begin, "end": end}
            self.events.append({"what": what, "micro_batch": k} | moments)

        return recorded

    def received(self, receive: Callable) -> Callable:
        def recorded(tensor: torch.Tensor) -> torch.Tensor:
            received = receive(tensor)
            self.begin = now()
            return received

        return recorded

    def sending(self, send: Callable) -> Callable:
        def recorded(tensor: torch.Tensor) -> None:
            self.end = now()
            send(tensor)

        return recorded


def record(
    program: SimpleNamespace, config: TextConfig, device: torch.device
) -> list[Events]:
    """The events of every rank in the last step, on every rank."""
    batches = program.Batches(config, device)
    pipeline, _ = program.build(config, device)
    stage = pipeline.stage.parameters()
    optimizer = program.make_optimizer(stage, config.learning_rate)
    recorder = Recorder(pipeline)
    for step in range(STEPS):
        recorder.events.clear()
        inputs, targets = batches.of_step(step)
        program.train_step(pipeline, optimizer, inputs, targets)
    everyone: list[Events] = [[] for _ in range(dist.get_world_size())]
    # every rank must reach this line; some hundred bytes from each
    dist.all_gather_object(everyone, recorder.events)
    return everyone


def describe(ranks: list[Events], micro_batches: int) -> str:
    """The order of each rank, what it held, and how much of the slots is idle."""
    orders = [[Action(e["what"], e["micro_batch"]) for e in own] for own in ranks]
    lines = []
    for rank, order in enumerate(orders):
        names = " ".join(f"{what[0].upper()}{k}" for what, k in order)
        held = f"micro-batches held {most_live(order)}"
        lines.append(f"rank {rank}, {held}: {names}")
    share = f"(p-1)/m = {len(ranks) - 1}/{micro_batches}"
    return "\n".join([*lines, f"Idle over useful slots {bubble(orders)}, {share}"])


def write_timeline(path: Path, schedule: str, ranks: list[Events]) -> None:
    """Write the events of all ranks, in ms since the first one began."""
    zero = min(event["begin"] for events in ranks for event in events)
    for event in (event for events in ranks for event in events):
        for moment in ("begin", "end"):
            event[moment] = round(1e3 * (event[moment] - zero), 3)
    write_json(path, {"schedule": schedule, "ranks": ranks})


@one_line_errors
def main() -> None:
    names: Collection[str] = ("13_pipeline_by_hand.py",)
    program = load_program(__doc__, names, json="write the events of all ranks")
    config = program.parse_arguments()
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    events = record(program, config, device)
    log(describe(events, config.micro_batches))
    if program.json:
        write_timeline(program.json, config.schedule, events)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
