"""One long sample makes rank 1's padded batch larger than the memory it may use."""

import resource
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.utils.rnn import pad_sequence

WIDTH, BATCH, MEMORY = 64, 64, 800_000_000  # bytes that a rank may add


def limit_memory() -> None:
    """Let this process, and no other, run out of memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (soft, soft))


dist.init_process_group("gloo")
rank = dist.get_rank()
limit_memory()
lengths = [100] * BATCH
if rank == 1:
    lengths[7] = 100_000  # one sample of the whole data set
samples = [torch.zeros(length, WIDTH) for length in lengths]
batch = pad_sequence(samples, batch_first=True)
total = torch.tensor(batch.numel())
dist.all_reduce(total)  # every rank
print(f"rank {rank}: batch {list(batch.shape)}\n", end="", flush=True)
dist.destroy_process_group()

# The cure: Samples are cut to a length, so that no padded batch outgrows the memory.
#
#  WIDTH, BATCH, MEMORY = 64, 64, 800_000_000  # bytes that a rank may add
# +LONGEST = 512
# @@
# -samples = [torch.zeros(length, WIDTH) for length in lengths]
# +samples = [torch.zeros(length, WIDTH)[:LONGEST] for length in lengths]
