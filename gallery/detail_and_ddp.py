"""TORCH_DISTRIBUTED_DEBUG=DETAIL, which finds mismatches, breaks DDP on gloo."""

import tempfile

import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

RANKS = 2


def run_rank(rank: int, folder: str) -> None:
    store = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=RANKS)
    DDP(nn.Linear(2, 1))
    print(f"rank {rank}: the model is wrapped\n", end="", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run_rank, args=(folder,), nprocs=RANKS)

# The cure: DDP gets a group that was made without DETAIL; all other groups keep it.
#
# -    DDP(nn.Linear(2, 1))
# +    dist.set_debug_level(dist.DebugLevel.OFF)
# +    plain = dist.new_group()  # every rank
# +    dist.set_debug_level(dist.DebugLevel.DETAIL)
# +    DDP(nn.Linear(2, 1), process_group=plain)
