"""One rank passes float64 to an all-reduce, and the other passes float32."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
losses = [0.5, 0.25] if rank == 0 else torch.tensor([0.5, 0.25]).double()
mean = torch.as_tensor(losses).mean()
print(f"rank {rank}: {mean.dtype}\n", end="", flush=True)
dist.all_reduce(mean)  # every rank
print(f"rank {rank}: sum {mean.item()}\n", end="", flush=True)
dist.destroy_process_group()

# The cure: All ranks pass the same dtype to an all-reduce.
#
# -mean = torch.as_tensor(losses).mean()
# +mean = torch.as_tensor(losses, dtype=torch.float32).mean()
