"""srun starts two tasks, and each of them is a launcher that starts two ranks."""

import os
import tempfile

import torch.distributed as dist
import torch.multiprocessing as mp


def run_rank(rank, world_size, store):
    url = f"file://{store}"
    dist.init_process_group("gloo", init_method=url, rank=rank, world_size=world_size)
    dist.barrier()
    print(f"process {os.getpid()} is rank {rank} of {world_size}\n", end="", flush=True)
    dist.destroy_process_group()


def task(number, folder):  # what the job script runs on each of srun's tasks
    arguments = (2, f"{folder}/store-{number}")
    mp.start_processes(run_rank, arguments, nprocs=2, start_method="fork")


if __name__ == "__main__":
    folder = (tempfile.mkdtemp(),)
    mp.start_processes(task, folder, nprocs=2, daemon=False, start_method="fork")

# The cure: srun starts two tasks, and each of them is a rank.
#
# -    arguments = (2, f"{folder}/store-{number}")
# -    mp.start_processes(run_rank, arguments, nprocs=2, start_method="fork")
# +    run_rank(number, 2, f"{folder}/store")
