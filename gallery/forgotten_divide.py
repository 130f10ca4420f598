"""Gradients that are summed over the ranks, not averaged, take too long a step."""

import torch
import torch.distributed as dist
from torch import nn

ROWS, STEPS = 8, 5
inputs = torch.linspace(-1, 1, ROWS).unsqueeze(1)
targets = 3 * inputs + 1


def train(rows: slice, ranks: int) -> float:
    """Train on these rows, beside as many ranks; the loss over all rows."""
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.7)
    for step in range(STEPS):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs[rows]), targets[rows]).backward()
        for parameter in model.parameters():
            if ranks > 1:
                dist.all_reduce(parameter.grad)  # every rank; the default is SUM
        if step == 0 and dist.get_rank() == 0:
            norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
            print(f"step 0 on {ranks} rank{'s'[: ranks - 1]}: gradient norm {norm:.3f}")
        optimizer.step()
    return nn.functional.mse_loss(model(inputs), targets).item()


dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
loss = train(slice(rank, None, ranks), ranks)
if rank == 0:
    alone = train(slice(None), 1)
    verdict = "the same" if abs(loss - alone) < 1e-6 else "NOT the same"
    print(
        f"loss after {STEPS} steps: {ranks} ranks {loss:.4f}, one process {alone:.4f}"
    )
    print(f"{verdict} training run")
dist.destroy_process_group()

# The cure: Gradients that are averaged over the ranks take the step of one process.
#
# -                dist.all_reduce(parameter.grad)  # every rank; the default is SUM
# +                dist.all_reduce(parameter.grad)  # every rank
# +                parameter.grad /= ranks
