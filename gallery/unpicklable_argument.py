"""mp.spawn sends its arguments by pickle, and a lambda can't be pickled."""

import torch
import torch.multiprocessing as mp


def run_rank(rank: int, scale) -> None:
    print(
        f"rank {rank}: {scale(torch.tensor(1.0 + rank)).item()}\n", end="", flush=True
    )


if __name__ == "__main__":
    mp.spawn(run_rank, args=(lambda value: value / 255,), nprocs=2)

# The cure: mp.spawn pickles a function at the top level of a module by its name.
#
#  import torch.multiprocessing as mp
# +
# +
# +def to_unit(value: torch.Tensor) -> torch.Tensor:
# +    return value / 255
# @@
# -    mp.spawn(run_rank, args=(lambda value: value / 255,), nprocs=2)
# +    mp.spawn(run_rank, args=(to_unit,), nprocs=2)
