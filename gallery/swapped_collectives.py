"""Two all-reduces in another order on one rank add a loss to a count."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
loss_sum = torch.tensor([12.0, 8.0][rank])  # over this rank's samples
samples = torch.tensor([60.0, 40.0][rank])

sums = {"loss": loss_sum, "samples": samples}
order = ["loss", "samples"] if rank == 0 else ["samples", "loss"]
for name in order:
    dist.all_reduce(sums[name])  # every rank; the shapes match, so no error

mean = loss_sum / samples
said = f"rank {rank}: mean loss over all ranks {mean:.3f}, should be 0.200\n"
print(said, end="", flush=True)
dist.destroy_process_group()

# The cure: All-reduces in the same order on all ranks add losses to losses.
#
# -order = ["loss", "samples"] if rank == 0 else ["samples", "loss"]
# +order = ["loss", "samples"]
#  for name in order:
# -    dist.all_reduce(sums[name])  # every rank; the shapes match, so no error
# +    dist.all_reduce(sums[name])  # every rank, in the same order
