"""Rank 1 connects to the port that rank 0 listens at."""

from datetime import timedelta

import torch.distributed as dist

limit = timedelta(seconds=2)
rank_0 = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
rank_0.set("greeting", "hello from rank 0")

port = rank_0.port  # MASTER_PORT, the same for all ranks
rank_1 = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=limit)
print(rank_1.get("greeting").decode(), flush=True)
