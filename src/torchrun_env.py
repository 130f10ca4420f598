"""What torchrun tells a rank, and what it should have been told itself."""

from __future__ import annotations

import os

import torch.distributed as dist

from command_line import BadInput
from dist_env import DistEnv, get_dist_env
from one_voice import say


def get_torchrun_env() -> DistEnv:
    """The place of this process in the world.

    Raises:
        BadInput: torchrun did not start this process.
    """
    env = get_dist_env()
    if env.launcher != "torchrun":
        raise BadInput(
            f"torchrun did not start this process (it was {env.launcher}): "
            "torchrun --standalone --nproc-per-node=2 SCRIPT ..."
        )
    return env


def warn_of_shared_store() -> None:
    """Say so if ranks that torchrun starts again could not meet.

    By default the ranks meet in the key-value store of torchrun itself, which
    outlives them: with gloo, new ranks then now and then find the addresses of dead
    ones. The variable must be set before torchrun starts, so a rank can only warn.
    """
    may_restart = os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if may_restart and shared and dist.get_backend() == "gloo":
        say(
            "Warning: with gloo, restarts may fail (Connection refused): "
            "export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 before torchrun"
        )
