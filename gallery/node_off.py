"""A node loses its power, and the whole job ends."""

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

NODES = ["--nnodes=2"]
MEET = ["--rdzv-backend=c10d", "--rdzv-id=1", "--rdzv-endpoint=n1:29500"]
MEET += ["--rdzv-conf=last_call_timeout=1"]


def lose_power() -> None:
    """Play the power supply of this node: nothing leaves it any more."""
    subprocess.run(["ip", "link", "set", "eth0", "down"], check=True)
    time.sleep(60)


def train() -> None:
    dist.init_process_group("gloo")
    dist.group.WORLD.set_timeout(timedelta(seconds=2))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in (1, 2, 3):
        if socket.gethostname() == "n2" and step == 2:
            lose_power()
        gradient = torch.ones(1000)
        dist.all_reduce(gradient)
        print(f"rank {rank} of {ranks}: step {step}\n", end="", flush=True)
    dist.destroy_process_group()


if "TORCHELASTIC_RUN_ID" in os.environ:
    train()
else:
    os.execvp("torchrun", ["torchrun", *NODES, "--nproc-per-node=1", *MEET, *sys.argv])

# The cure: A node loses its power, and torchrun continues with the nodes that are left.
#
# -NODES = ["--nnodes=2"]
# +NODES = ["--nnodes=1:2", "--max-restarts=1"]
