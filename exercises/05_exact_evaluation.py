"""Count the test images that all ranks together recognise: each image once.

A ``DistributedSampler`` pads: of 359 test images on 4 ranks it makes 360, and the
accuracy is a fraction of the wrong number. For training that is harmless. For a number
that goes into a table it is not.

So each rank takes a share of its own here. Shares are disjoint, their sizes differ by
at most one, nothing is padded; with fewer images than ranks, a rank has none. The
ranks may then have different numbers of *batches*, so nothing inside the loop may be
a collective. Beware: a forward pass of DDP can be one. If the model has buffers, as
BatchNorm does, DDP sends those of rank 0 to all before it computes.

    workshop check 05_exact_evaluation

The page is docs/lessons/05_ddp_spawn.rst.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset


def my_share(dataset: Dataset) -> Subset:
    """The images that this rank counts."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # TODO 1 of 2: a Subset; all of them together are the dataset, without repeats.
    raise NotImplementedError("TODO 1 of 2")


@torch.no_grad()
def evaluate(ddp_model: DDP, dataset: Dataset, batch_size: int) -> tuple[int, int]:
    """(images recognised, images) of the whole dataset; the same on every rank.

    The model is left in evaluation mode. Labels are int64.
    """
    ddp_model.eval()
    loader = DataLoader(my_share(dataset), batch_size)
    # TODO 2 of 2: count over this rank's batches, then once over the ranks.
    raise NotImplementedError("TODO 2 of 2")
