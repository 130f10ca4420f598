"""Count the test images that all ranks together recognize: each image once.

A ``DistributedSampler`` pads: of 359 test images it makes 360 on 4 ranks, and the
accuracy is a fraction of the wrong number. That's harmless in training, but not in a
number that you publish.

So give each rank a share of its own. Shares are disjoint, their sizes differ by at most
one, and nothing is padded; with fewer images than ranks, some ranks have none. The
ranks may then have different numbers of *batches*, so nothing inside the loop may be a
collective. A forward pass of DDP can be one: if the model has buffers, as BatchNorm
does, DDP sends those of rank 0 to all ranks before it computes.

    workshop check 05_exact_evaluation

The page is docs/lessons/05_ddp_spawn/4_measure.rst.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset


def my_share(dataset: Dataset) -> Subset:
    """The images that this rank counts.

    It may run between two epochs, so leave torch's global random numbers as they are.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    # TODO 1 of 2: a Subset; together, the ranks' subsets are the dataset, no repeats.
    raise NotImplementedError("TODO 1 of 2")


@torch.no_grad()
def evaluate(ddp_model: DDP, dataset: Dataset, batch_size: int) -> tuple[int, int]:
    """(images recognized, images) of the whole dataset; the same on every rank.

    Leave the model in evaluation mode and otherwise unchanged, including all settings
    of DDP. Labels are int64.
    """
    ddp_model.eval()
    loader = DataLoader(my_share(dataset), batch_size)
    # TODO 2 of 2: count over this rank's batches, then once over the ranks.
    raise NotImplementedError("TODO 2 of 2")
