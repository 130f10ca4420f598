"""Ranks meet through a file: no port, no name look-up, 3 ms."""

from __future__ import annotations

import datetime
import os
from typing import Any

import torch.distributed as dist

from workshop.grader.verdicts.outcome import Job


def join(job: Job, rank: int) -> None:
    """Join the group, or prepare for the learner's own ``init_process_group``."""
    store, world_size = job.store, job.world_size
    _keep_groups_alive()
    if not job.init:
        return _env_rendezvous_by_file(store, rank, world_size)
    # No rank begins, and perhaps ends, while another is still connecting to it.
    os.environ["TORCH_DIST_INIT_BARRIER"] = "1"
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(store, world_size),
        rank=rank,
        world_size=world_size,
        timeout=datetime.timedelta(seconds=300),
    )
    del os.environ["TORCH_DIST_INIT_BARRIER"]
    return None


_kept: list[Any] = []


def _keep_groups_alive() -> None:
    """Never let a destructor drop the last reference to a gloo group.

    A DDP object that outlives ``destroy_process_group`` would join gloo's threads
    while it holds the GIL, and hang; that must not look like a deadlock here.
    """
    module = dist.distributed_c10d
    helper = module._new_process_group_helper

    def keeping(*args, **kwargs):
        group = helper(*args, **kwargs)
        _kept.append(group)
        return group

    module._new_process_group_helper = keeping


def _env_rendezvous_by_file(store: str, rank: int, world_size: int) -> None:
    """Let the learner's own ``init_process_group("gloo")`` meet through a file."""
    handlers = dist.rendezvous.__globals__["_rendezvous_handlers"]
    count = 0

    def env(url, timeout=None, **kwargs):
        nonlocal count
        count += 1
        yield dist.FileStore(f"{store}.{count}", world_size), rank, world_size

    handlers["env"] = env
