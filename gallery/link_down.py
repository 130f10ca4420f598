"""A cable is out for 6 s, and the ranks give up after 2 s."""

import subprocess
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def unplug_for_a_while() -> None:
    """Play somebody who moves the cable of this node."""
    for position in ("down", "up"):
        subprocess.run(["ip", "link", "set", "eth0", position], check=True)
        time.sleep(6)


dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=2))
rank = dist.get_rank()

for step in (1, 2, 3):
    if rank == 1 and step == 2:
        threading.Thread(target=unplug_for_a_while, daemon=True).start()
        time.sleep(1)
    gradient = torch.ones(1000)
    dist.all_reduce(gradient)
    print(f"rank {rank}: step {step}\n", end="", flush=True)
dist.destroy_process_group()

# The cure: A cable is out for 6 s, and the ranks wait for longer than that.
#
# -dist.group.WORLD.set_timeout(timedelta(seconds=2))
# +dist.group.WORLD.set_timeout(timedelta(seconds=30))
