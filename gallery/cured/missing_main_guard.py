"""Only the process that you start yourself starts others."""

import torch.multiprocessing as mp

RANKS = 2


def run_rank(rank: int) -> None:
    print(f"rank {rank} of {RANKS}\n", end="", flush=True)


if __name__ == "__main__":
    mp.spawn(run_rank, nprocs=RANKS)
