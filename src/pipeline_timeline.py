"""What each rank of a pipeline did in a step, and when: gathered and written as JSON.

ranks = gather_events(pipeline.events)      # all ranks together
bubble(orders_of(ranks))                    # from what really happened
write_timeline(path, "1f1b", ranks)         # docs/figures/13_schedules.py draws it
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import torch.distributed as dist

from command_line import BadInput
from schedules import Action

Events = list[dict]  # of one rank: what, micro_batch, begin, end


def gather_events(mine: Iterable[tuple[Action, float, float]]) -> list[Events]:
    """The events of every rank, on every rank; each gives its own, in their order."""
    events = [
        {"what": what, "micro_batch": k, "begin": begin, "end": end}
        for (what, k), begin, end in mine
    ]
    everyone: list[Events] = [[] for _ in range(dist.get_world_size())]
    # every rank must reach this line; some hundred bytes from each
    dist.all_gather_object(everyone, events)
    return everyone


def orders_of(ranks: list[Events]) -> list[list[Action]]:
    """What each rank did, first to last."""
    return [[Action(e["what"], e["micro_batch"]) for e in events] for events in ranks]


def write_timeline(path: Path, schedule: str, ranks: list[Events]) -> None:
    """Write the events of all ranks, in ms since the first one began.

    Raises:
        BadInput: the file cannot be written.
    """
    zero = min(event["begin"] for events in ranks for event in events)
    for event in (event for events in ranks for event in events):
        for moment in ("begin", "end"):
            event[moment] = round(1e3 * (event[moment] - zero), 3)
    text = json.dumps({"schedule": schedule, "ranks": ranks}, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write --timeline {path}: {error.strerror}") from error
