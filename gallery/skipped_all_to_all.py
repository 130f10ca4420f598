"""A rank without a token for any expert skips the exchange that others wait in."""

from datetime import timedelta

import torch
import torch.distributed as dist

WIDTH = 4
dist.init_process_group("gloo")
dist.group.WORLD.set_timeout(timedelta(seconds=4))
rank, ranks = dist.get_rank(), dist.get_world_size()
count = 3 if rank == 0 else 0  # padding was left out
tokens = torch.ones(count, WIDTH)
expert = torch.arange(len(tokens)) % ranks  # rank r has expert r


def dispatch(tokens: torch.Tensor) -> torch.Tensor:
    """Send each token to the rank of its expert, and get those for the own one."""
    sent = expert.bincount(minlength=ranks)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)  # every rank: counts first
    arrived = tokens.new_empty(int(received.sum()), WIDTH)
    sizes = received.tolist(), sent.tolist()
    dist.all_to_all_single(arrived, tokens[expert.argsort()], *sizes)
    return arrived


arrived = tokens
if len(tokens):
    arrived = dispatch(tokens)
print(f"rank {rank}: {len(arrived)} tokens for expert {rank}\n", end="", flush=True)
loss = arrived.sum()
dist.reduce(loss, dst=0)  # every rank, so that rank 0 can print it
dist.destroy_process_group()

# The cure: A rank without a token exchanges empty tensors with the others.
#
# -arrived = tokens
# -if len(tokens):
# -    arrived = dispatch(tokens)
# +arrived = dispatch(tokens)
