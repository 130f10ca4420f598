"""Rank 0 listens at a port that another program has."""

import os
import socket
from datetime import timedelta

import torch.distributed as dist

other_job = socket.create_server(("127.0.0.1", 0))  # any free port
port = other_job.getsockname()[1]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
limit = timedelta(seconds=3)
dist.init_process_group("gloo", timeout=limit, world_size=1, rank=0)
print(f"connected, {dist.get_world_size()} rank", flush=True)
dist.destroy_process_group()

# The cure: Rank 0 listens at a port that the system chose because it is free.
#
# -port = other_job.getsockname()[1]
# +port = 0  # any free one again; with several ranks, let torchrun --standalone choose
