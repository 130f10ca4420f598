"""Each rank counts the positions of its part of a sequence from 0."""

import torch
import torch.distributed as dist
from torch import nn

TOKENS, WIDTH = 8, 16
torch.manual_seed(0)
text = torch.randint(5, (TOKENS + 1,))
token, place = nn.Embedding(5, WIDTH), nn.Embedding(TOKENS, WIDTH)
out = nn.Linear(WIDTH, 5)


def loss_of(part: slice, positions: torch.Tensor) -> torch.Tensor:
    """The mean loss of the next tokens of a part of the text."""
    scores = out(token(text[:-1][part]) + place(positions))
    return nn.functional.cross_entropy(scores, text[1:][part]).detach()


dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
length = TOKENS // ranks
first = rank * length
positions = torch.arange(length)
said = f"rank {rank}: tokens {first} to {first + length - 1}, positions {positions}\n"
print(said.replace("tensor(", "").replace(")", ""), end="", flush=True)
loss = loss_of(slice(first, first + length), positions)
dist.all_reduce(loss)  # every rank: the sum of equally many tokens' mean losses
if rank == 0:
    alone = loss_of(slice(None), torch.arange(TOKENS))
    verdict = "the same" if abs(loss / ranks - alone) < 1e-6 else "NOT the same"
    print(f"loss on {ranks} ranks: {loss / ranks:.4f}, in one process: {alone:.4f}")
    print(f"{verdict} model")
dist.destroy_process_group()

# The cure: Each rank counts the positions of its part from the first one's place.
#
# -positions = torch.arange(length)
# +positions = torch.arange(first, first + length)
