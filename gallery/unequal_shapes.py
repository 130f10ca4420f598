"""The last batch of one rank is smaller, and all_gather wants equal shapes."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=3))
rank, ranks = dist.get_rank(), dist.get_world_size()
predictions = torch.full((5 - rank,), float(rank))  # 5 on rank 0, 4 on rank 1

gathered = [torch.empty_like(predictions) for _ in range(ranks)]
dist.all_gather(gathered, predictions)  # every rank
if rank == 0:
    print(f"gathered {torch.cat(gathered).tolist()}")
dist.destroy_process_group()

# The cure: The last batch of one rank is padded, and cut again after all_gather.
#
# -gathered = [torch.empty_like(predictions) for _ in range(ranks)]
# -dist.all_gather(gathered, predictions)  # every rank
# +sizes = [0] * ranks
# +dist.all_gather_object(sizes, len(predictions))  # every rank
# +padded = torch.zeros(max(sizes))
# +padded[: len(predictions)] = predictions
# +gathered = [torch.empty_like(padded) for _ in range(ranks)]
# +dist.all_gather(gathered, padded)  # every rank
#  if rank == 0:
# -    print(f"gathered {torch.cat(gathered).tolist()}")
# +    cut = [part[:size] for part, size in zip(gathered, sizes, strict=True)]
# +    print(f"gathered {torch.cat(cut).tolist()}")
