"""A parameter outside the DDP model is trained on each rank's own data only."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)

    def forward(self, inputs):
        return self.body(inputs)


def train() -> dict[str, float]:
    torch.manual_seed(0)
    model = DDP(Classifier())
    scale = nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.1)
    torch.manual_seed(dist.get_rank())  # each rank has its own data
    for _ in range(5):
        optimizer.zero_grad()
        outputs = model(torch.randn(8, 4)) * scale
        outputs.square().mean().backward()
        optimizer.step()
    return {"body": model.module.body.weight.sum().item(), "scale": scale.item()}


dist.init_process_group("gloo")
weights = [{} for _ in range(dist.get_world_size())]
dist.all_gather_object(weights, train())  # every rank
if dist.get_rank() == 0:
    for number, of_rank in enumerate(weights):
        sums = ", ".join(f"{name} {value:.6f}" for name, value in of_rank.items())
        print(f"rank {number}: step 5, sums of the weights: {sums}")
    for name in weights[0]:
        values = [f"{of_rank[name]:.6f}" for of_rank in weights]
        same = "equal on all ranks" if len(set(values)) == 1 else "DIFFERS"
        print(f"{name}: {', '.join(values)}: {same}")
dist.destroy_process_group()

# The cure: A parameter inside the DDP model is trained on all ranks' data.
#
# +        self.scale = nn.Parameter(torch.ones(()))
#
#      def forward(self, inputs):
# -        return self.body(inputs)
# +        return self.body(inputs) * self.scale
# @@
# -    scale = nn.Parameter(torch.ones(()))
# -    optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.1)
# +    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# @@
# -        outputs = model(torch.randn(8, 4)) * scale
# +        outputs = model(torch.randn(8, 4))
#          outputs.square().mean().backward()
#          optimizer.step()
# -    return {"body": model.module.body.weight.sum().item(), "scale": scale.item()}
# +    trained = model.module
# +    return {"body": trained.body.weight.sum().item(), "scale": trained.scale.item()}
