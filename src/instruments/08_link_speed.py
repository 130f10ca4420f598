"""Time a tiny and a large all-reduce between these ranks.

    torchrun --standalone --nproc-per-node=2 src/instruments/08_link_speed.py
    srun --nodes=2 --ntasks-per-node=1 \\
        python src/instruments/08_link_speed.py  # or mpirun

On several nodes, use the launcher and the options of your training job. The tiny one
shows the delay of the network, the large one its rate.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import (
    Parser,
    describe_world,
    log,
    one_line_errors,
    positive_int,
)
from common.launchers import find_master, get_dist_env
from common.process_group import join

TINY, LARGE = 1, 4 * 1024 * 1024  # float32: 4 bytes and 16 MiB


def time_all_reduce(tensor: torch.Tensor, repeats: int) -> float:
    """The shortest of several times, in seconds: other programs only make it longer."""
    seconds = []
    for _ in range(repeats):
        dist.barrier()  # start the clocks together, after the last rank
        start = time.perf_counter()
        dist.all_reduce(tensor)  # [numel] -> [numel], 2(N-1)/N x 4 numel bytes each way
        if tensor.device.type != "cpu":
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
    # every rank must reach this line
    device = join(env.local_rank, rank=env.rank, world_size=env.world_size)
    log(f"all-reduce over {describe_world(device)}")
    for name, numel in (("4 bytes", TINY), ("16 MiB", LARGE)):
        # kept until the group is gone: gloo's threads may need it (PyTorch 2.6)
        tensor = torch.ones(numel, device=device)
        seconds = time_all_reduce(tensor, repeats)
        log(f"{name:>8}: {seconds * 1000:8.2f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
