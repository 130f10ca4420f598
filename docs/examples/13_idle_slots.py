"""Count the idle slots of torch's schedules with two stages on each rank.

torchrun --standalone --nproc-per-node=4 docs/examples/13_idle_slots.py 8
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules

# Forward and both halves of a backward take one slot each; sending takes no time.
SLOTS = {"FORWARD": 1, "FULL_BACKWARD": 2, "BACKWARD_INPUT": 1, "BACKWARD_WEIGHT": 1}


def needs(kind, stage, part, last):
    """What must be finished before: ("forward", stage, micro-batch), or "backward"."""
    if kind == "FORWARD":
        return [("forward", stage - 1, part)] if stage else []
    if kind == "BACKWARD_WEIGHT":
        return [("backward", stage, part)]
    after = [("backward", stage + 1, part)] if stage < last else []
    return [("forward", stage, part), *after]


def finished(orders, last):
    """The slot at which each rank ends, if it does each action as soon as it can."""
    waiting = {rank: list(order) for rank, order in orders.items()}
    ends, now = {}, dict.fromkeys(orders, 0)
    while any(waiting.values()):
        for rank, order in waiting.items():
            while order:
                kind, stage, part = order[0]
                before = needs(kind, stage, part, last)
                if not all(action in ends for action in before):
                    break
                start = max([now[rank], *(ends[action] for action in before)])
                now[rank] = start + SLOTS[kind]
                if kind != "BACKWARD_WEIGHT":
                    name = "forward" if kind == "FORWARD" else "backward"
                    ends[name, stage, part] = now[rank]
                order.pop(0)
    return now


def count(kind, parts):
    """(slots of a step, idle slots of each rank, the actions of rank 0)"""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    last = 2 * ranks - 1
    second = last - rank if "ZBV" in kind.__name__ else rank + ranks  # a V, or a row
    layer, device = nn.Linear(1, 1), torch.device("cpu")
    stages = [PipelineStage(layer, k, 2 * ranks, device) for k in (rank, second)]
    schedule = kind(stages, parts, loss_fn=nn.functional.mse_loss)
    orders = {
        rank: [(a[1].name, a[0], a[2]) for a in order if a and a[1].name in SLOTS]
        for rank, order in schedule.pipeline_order.items()
    }
    useful = [sum(SLOTS[a[0]] for a in order) for order in orders.values()]
    slots = max(finished(orders, last).values())
    first = " ".join(str(action or ".") for action in schedule.pipeline_order[0][:20])
    return slots, [slots - own for own in useful], first


def main():
    dist.init_process_group("gloo")
    for name in ("Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"):
        kind = getattr(schedules, f"Schedule{name}")
        slots, idle, first = count(kind, int(sys.argv[1]))
        if dist.get_rank() == 0:
            print(f"{name}: {slots} slots, idle {idle}\n  {first} ...")
    dist.barrier()  # a rank that left early would fail those that still connect
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
