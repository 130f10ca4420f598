"""Rank 1 connects to another port than the one rank 0 listens at."""

from datetime import timedelta

import torch.distributed as dist

limit = timedelta(seconds=2)
rank_0 = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
rank_0.set("greeting", "hello from rank 0")

port = 1  # MASTER_PORT of a terminal that was never updated
rank_1 = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=limit)
print(rank_1.get("greeting").decode(), flush=True)

# The cure: Rank 1 connects to the port that rank 0 listens at.
#
# -port = 1  # MASTER_PORT of a terminal that was never updated
# +port = rank_0.port  # MASTER_PORT, the same for all ranks
