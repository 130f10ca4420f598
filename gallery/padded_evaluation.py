"""A sampler that pads the last share counts some samples twice in the accuracy."""

import torch
import torch.distributed as dist
from torch.utils.data import TensorDataset
from torch.utils.data.distributed import DistributedSampler

RIGHT = torch.tensor([1, 0, 0, 1, 0])  # for each sample, whether the model is right

dist.init_process_group("gloo")
sampler = DistributedSampler(TensorDataset(RIGHT), shuffle=False)
indices = list(sampler)
count = torch.tensor([int(RIGHT[indices].sum()), len(indices)])
dist.all_reduce(count)  # every rank: [right, seen] of all ranks
if dist.get_rank() == 0:
    right, seen = count.tolist()
    print(f"accuracy {right / seen:.1%}: {right} of {seen} samples are right")
    print(f"there are {len(RIGHT)} samples: {RIGHT.float().mean():.1%}")
dist.destroy_process_group()

# The cure: Shares of unequal size count each sample once in the accuracy.
#
# -from torch.utils.data import TensorDataset
# -from torch.utils.data.distributed import DistributedSampler
# @@
# -sampler = DistributedSampler(TensorDataset(RIGHT), shuffle=False)
# -indices = list(sampler)
# -count = torch.tensor([int(RIGHT[indices].sum()), len(indices)])
# +indices = range(dist.get_rank(), len(RIGHT), dist.get_world_size())
# +count = torch.tensor([int(RIGHT[list(indices)].sum()), len(indices)])
