"""How long does an all-reduce take between these ranks, a tiny one and a large one?

    torchrun --standalone --nproc-per-node=2 src/08_link_speed.py
    srun --nodes=2 --ntasks-per-node=1 python src/08_link_speed.py    # or mpirun

On several nodes, use the launcher and the options of your training. The tiny one costs
the way there and back; the large one costs what the network can carry.
"""

import os
import time

import torch
import torch.distributed as dist

from common.distributed import (
    Parser,
    choose_backend,
    choose_device,
    describe_world,
    log,
    one_line_errors,
    positive_int,
)
from common.launchers import find_master, get_dist_env

TINY, LARGE = 1, 4 * 1024 * 1024  # float32: 4 bytes and 16 MiB


def time_all_reduce(numel: int, repeats: int, device: torch.device) -> float:
    """The shortest of several, in seconds: whatever else runs here only adds."""
    tensor = torch.ones(numel, device=device)
    seconds = []
    for _ in range(repeats):
        dist.barrier()  # nobody's clock runs while he waits for a late rank
        start = time.perf_counter()
        dist.all_reduce(tensor)  # [numel] -> [numel], 2(W-1)/W x 4 numel bytes each way
        if device.type != "cpu":
            torch.accelerator.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=positive_int, default=10)
    repeats = parser.parse_args().repeats
    env = get_dist_env()
    master = find_master(env)
    os.environ["MASTER_ADDR"] = master.address
    os.environ["MASTER_PORT"] = str(master.port)
    device = choose_device(env.local_rank)
    backend = choose_backend(device)
    gpu = None if device.type == "cpu" else device  # NCCL connects to it at once
    # every rank must reach this line
    dist.init_process_group(
        backend, rank=env.rank, world_size=env.world_size, device_id=gpu
    )
    log(f"all-reduce over {describe_world(device)}")
    for name, numel in (("4 bytes", TINY), ("16 MiB", LARGE)):
        seconds = time_all_reduce(numel, repeats, device)
        log(f"{name:>8}: {seconds * 1000:8.2f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
