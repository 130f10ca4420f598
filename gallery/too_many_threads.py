"""Each rank computes with as many threads as the machine has cores."""

import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
cores = os.cpu_count()
torch.set_num_threads(cores)  # as OMP_NUM_THREADS=$(nproc) in a job script does

matrix, start = torch.randn(256, 256), time.perf_counter()
for _ in range(100):
    matrix @ matrix
milliseconds = 10 * (time.perf_counter() - start)
threads = torch.tensor(torch.get_num_threads())
dist.all_reduce(threads)  # every rank
if rank == 0:
    print(f"{ranks} ranks with {threads.item()} threads in all on {cores} cores")
    print(f"{threads.item() / cores:.1f} threads for each core")
    print(f"a product of matrices took {milliseconds:.2f} ms")
dist.destroy_process_group()

# The cure: The ranks share the cores of the machine.
#
# -torch.set_num_threads(cores)  # as OMP_NUM_THREADS=$(nproc) in a job script does
# +torch.set_num_threads(max(1, cores // ranks))
