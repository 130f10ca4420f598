"""Time a step of two experts on two ranks, while ever more tokens choose the first one.

torchrun --standalone --nproc-per-node=2 docs/examples/22_pace.py
"""

import time

import torch
import torch.distributed as dist
from torch import nn

TOKENS, WIDTH = 1024, 512  # tokens of each rank, numbers of a token
TIMES = 40  # the shortest step counts: other programs disturb the longer ones

dist.init_process_group("gloo")
torch.set_num_threads(1)
rank = dist.get_rank()
expert = nn.Sequential(
    nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
)


# [start pace]
def step(share: float) -> float:
    """Seconds of forward and backward if this share of all tokens goes to rank 0."""
    to_first = round(share * TOKENS)
    sent = [to_first, TOKENS - to_first]
    arriving = [sent[rank], sent[rank]]  # both ranks send alike
    tokens, returned = torch.randn(TOKENS, WIDTH), torch.empty(TOKENS, WIDTH)
    inputs = torch.empty(sum(arriving), WIDTH)
    dist.barrier()
    start = time.perf_counter()
    dist.all_to_all_single(inputs, tokens, arriving, sent)
    outputs = expert(inputs)
    dist.all_to_all_single(returned, outputs.detach(), sent, arriving)
    outputs.sum().backward()
    dist.barrier()  # as the next collective of a real step would
    return time.perf_counter() - start


# [end pace]
shares = (0.5, 0.625, 0.75, 1.0)
shortest = dict.fromkeys(shares, float("inf"))
for _ in range(TIMES):
    for share in shares:
        shortest[share] = min(shortest[share], step(share))
if rank == 0:
    print("load of rank 0   time of a step")
    for share, seconds in shortest.items():
        print(f"{share / 0.5:14.2f} {seconds / shortest[0.5]:16.2f}")
dist.destroy_process_group()
