"""Ranks that all set the same seed draw the same random noise for their images."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)  # so that all ranks begin with the same weights
model = torch.nn.Linear(4, 4)

noise = torch.randn(3)  # of this rank's first image
everyone = [torch.empty(3) for _ in range(ranks)]
dist.all_gather(everyone, noise)  # every rank: [3] -> ranks x [3]
if rank == 0:
    for number, values in enumerate(everyone):
        print(f"rank {number} adds the noise {[round(v, 3) for v in values.tolist()]}")
    different = len({tuple(values.tolist()) for values in everyone})
    print(f"{different} different augmentations on {ranks} ranks")
dist.destroy_process_group()

# The cure: Ranks that set different seeds draw different noise for their images.
#
#  model = torch.nn.Linear(4, 4)
#
# +torch.manual_seed(1 + rank)  # from here on, each rank draws numbers of its own
