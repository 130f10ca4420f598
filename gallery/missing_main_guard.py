"""Each process that mp.spawn starts imports this file, and would start its own."""

import torch.multiprocessing as mp

RANKS = 2


def run_rank(rank: int) -> None:
    print(f"rank {rank} of {RANKS}\n", end="", flush=True)


mp.spawn(run_rank, nprocs=RANKS)

# The cure: Only the process that you start yourself starts others.
#
# -mp.spawn(run_rank, nprocs=RANKS)
# +if __name__ == "__main__":
# +    mp.spawn(run_rank, nprocs=RANKS)
