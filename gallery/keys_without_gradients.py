"""The gathered keys have no gradients, so those of other ranks' queries are lost."""

import torch
import torch.distributed as dist

TOKENS, WIDTH = 6, 4
torch.manual_seed(0)
tokens = torch.randn(TOKENS, WIDTH)
weight = torch.randn(WIDTH, WIDTH, requires_grad=True)  # makes a token's key


def key_gradient(own: slice, gather) -> torch.Tensor:
    """The gradient of the keys' weight, from these tokens' queries."""
    keys = gather(tokens[own] @ weight)
    weights = (tokens[own] @ keys.T).softmax(-1)
    return torch.autograd.grad((weights @ keys).square().sum(), weight)[0]


def gather(own: torch.Tensor) -> torch.Tensor:
    pieces = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(pieces, own)  # every rank; autograd doesn't see it
    pieces[dist.get_rank()] = own
    return torch.cat(pieces)


dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
length = TOKENS // ranks
gradient = key_gradient(slice(rank * length, (rank + 1) * length), gather)
dist.all_reduce(gradient)  # every rank: the sum of all queries' losses
if rank == 0:
    alone = key_gradient(slice(None), lambda whole: whole)
    print(f"{ranks} ranks, weight of the keys: gradient norm {gradient.norm():.3f}")
    print(f"one process, weight of the keys: gradient norm {alone.norm():.3f}")
    same = gradient.allclose(alone, rtol=1e-4)
    answer = "the same" if same else "NOT the same"
    print(answer)
dist.destroy_process_group()

# The cure: A gather with a backward pass returns the gradients of gathered keys.
#
# -def gather(own: torch.Tensor) -> torch.Tensor:
# -    pieces = [torch.empty_like(own) for _ in range(dist.get_world_size())]
# -    dist.all_gather(pieces, own)  # every rank; autograd doesn't see it
# -    pieces[dist.get_rank()] = own
# -    return torch.cat(pieces)
# +class Gather(torch.autograd.Function):
# +    @staticmethod
# +    def forward(ctx, own):
# +        pieces = [torch.empty_like(own) for _ in range(dist.get_world_size())]
# +        dist.all_gather(pieces, own)  # every rank
# +        return torch.cat(pieces)
# +
# +    @staticmethod
# +    def backward(ctx, gradient):
# +        total = gradient.clone()
# +        dist.all_reduce(total)  # every rank: from the queries of all ranks
# +        return total.chunk(dist.get_world_size())[dist.get_rank()]
# @@
# -gradient = key_gradient(slice(rank * length, (rank + 1) * length), gather)
# +gradient = key_gradient(slice(rank * length, (rank + 1) * length), Gather.apply)
