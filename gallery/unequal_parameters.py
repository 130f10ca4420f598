"""Each rank sizes its model by the words in its own text."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

TEXTS = ["to be or not to be", "that is the question to ask"]

dist.init_process_group("gloo")
torch.manual_seed(0)
vocabulary = set(TEXTS[dist.get_rank()].split())
model = nn.Embedding(len(vocabulary), 8)
ddp_model = DDP(model)
print(f"{ddp_model.module.num_embeddings} words on each rank")
del ddp_model
dist.destroy_process_group()

# The cure: Each rank sizes its model by the words in the texts of all ranks.
#
# -vocabulary = set(TEXTS[dist.get_rank()].split())
# +vocabulary = set(" ".join(TEXTS).split())
