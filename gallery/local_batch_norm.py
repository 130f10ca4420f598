"""BatchNorm's running statistics are each rank's own, so each evaluates differently."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 1))  # equal on all ranks

torch.manual_seed(rank)
for _ in range(20):
    model(torch.randn(16, 1) + 3 * rank)  # rank 1's share of the data is another

model.eval()
with torch.no_grad():
    output = model(torch.ones(1, 1)).flatten()  # all ranks evaluate the same image
outputs = [torch.empty(1) for _ in range(ranks)]
dist.all_gather(outputs, output)  # every rank: [1] -> ranks x [1]
if rank == 0:
    for number, value in enumerate(outputs):
        print(f"rank {number}: the model's output for one image is {value.item():.4f}")
    equal = all(value == outputs[0] for value in outputs)
    found = "equal" if equal else "NOT equal"
    print(found)
dist.destroy_process_group()

# The cure: BatchNorm's running statistics are averaged before the ranks evaluate.
#
#      model(torch.randn(16, 1) + 3 * rank)  # rank 1's share of the data is another
#
# +for statistics in model[0].running_mean, model[0].running_var:
# +    dist.all_reduce(statistics, dist.ReduceOp.AVG)  # every rank
