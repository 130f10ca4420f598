"""A rank that comes back gets a peer's weights, but not its outer momentum."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)  # each rank has its own data
weights = torch.nn.Parameter(torch.ones(4))


def train_alone() -> None:
    inner = torch.optim.AdamW([weights], lr=0.05)
    for _ in range(3):
        inner.zero_grad()
        (torch.randn(8, 4) @ weights).square().mean().backward()
        inner.step()


outer = torch.optim.SGD([weights], lr=0.7, momentum=0.9, nesterov=True)
for step in range(1, 6):
    if step == 4:  # rank 1 was lost, and joins again
        if rank == 1:
            outer.state.clear()  # a new process has a new optimizer
        if rank == 0:
            print("rank 1: joins before outer step 4, with the weights of rank 0")
        dist.broadcast(weights.data, src=0)
    agreed = weights.detach().clone()
    train_alone()
    weights.grad = (agreed - weights.detach()) / ranks
    dist.all_reduce(weights.grad)  # every rank: the mean of the differences
    weights.data = agreed
    outer.step()
    sums = [0.0] * ranks
    dist.all_gather_object(sums, weights.sum().item())  # every rank
    if rank == 0:
        for number, value in enumerate(sums):
            print(f"rank {number}: outer step {step}, sum of the weights {value:.6f}")
dist.destroy_process_group()

# The cure: A rank that joins gets the peer's outer momentum, too.
#
#          dist.broadcast(weights.data, src=0)
# +        state = outer.state[weights]
# +        state.setdefault("momentum_buffer", torch.zeros_like(weights))
# +        dist.broadcast(state["momentum_buffer"], src=0)
