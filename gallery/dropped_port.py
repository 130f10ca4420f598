"""A firewall drops what other nodes send to the master's port."""

import os
import subprocess
from datetime import timedelta

import torch.distributed as dist

PORT = 29500
RULES = """rule add pref 10 lookup local
rule add pref 5 iif eth0 ipproto tcp dport 29500 blackhole
rule del pref 0
"""


def drop_port_29500() -> None:
    """Play the firewall of this node."""
    subprocess.run(["ip", "-batch", "-"], input=RULES, text=True, check=True)


rank = int(os.environ["RANK"])
if rank == 0:
    drop_port_29500()
limit = timedelta(seconds=5)
master = f"tcp://n1:{PORT}"
dist.init_process_group("gloo", master, limit, world_size=2, rank=rank)
print(f"rank {rank}: connected\n", end="", flush=True)
dist.barrier()  # leave together, or one ends while the other still connects
dist.destroy_process_group()

# The cure: The ranks connect at a port that the firewall lets through.
#
# -PORT = 29500
# +PORT = 29501
