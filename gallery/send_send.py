"""Both ranks send first, so neither receives."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
rank = dist.get_rank()
outgoing, incoming = torch.full((4,), float(rank)), torch.empty(4)

dist.send(outgoing, 1 - rank)
dist.recv(incoming, 1 - rank)
print(f"rank {rank}: received {incoming[0]:.0f}", flush=True)
dist.destroy_process_group()

# The cure: Both ranks start their send and their receive before they wait for either.
#
# -dist.send(outgoing, 1 - rank)
# +sent = dist.isend(outgoing, 1 - rank)
#  dist.recv(incoming, 1 - rank)
# +sent.wait()
