"""Train in many processes, on many nodes, started by srun or mpirun: no torchrun.

Run from the folder of the workshop, inside a job. One task for each rank:

    srun --nodes=2 --ntasks-per-node=2 python src/multinode_srun.py 10 5
    mpirun -np 4 --map-by ppr:2:node python src/multinode_srun.py 10 5

The training is that of multinode_torchrun.py. Only the first lines differ: who am I,
and where do we meet?
"""

import dataclasses
import os
import socket

import torch.distributed as dist

from command_line import parse_training
from dist_env import DistEnv, get_dist_env
from multinode_torchrun import cleanup, setup, train_and_report
from one_voice import one_line_errors
from rendezvous import find_master
from resuming import add_save_options
from snapshots import check_saved


def set_meeting_point(env: DistEnv) -> None:
    """What torchrun sets for its processes, and ``init_process_group`` reads."""
    master = find_master(env)
    os.environ["MASTER_ADDR"] = master.address
    os.environ["MASTER_PORT"] = str(master.port)
    os.environ["RANK"] = str(env.rank)
    os.environ["WORLD_SIZE"] = str(env.world_size)


def with_node_rank(env: DistEnv) -> DistEnv:
    """Number the nodes in the order of their first ranks: mpirun does not."""
    hosts = [""] * env.world_size
    # every rank must reach this line; one host name from each to each
    dist.all_gather_object(hosts, socket.gethostname())
    nodes = list(dict.fromkeys(hosts))
    return dataclasses.replace(env, node_rank=nodes.index(hosts[env.rank]))


@one_line_errors
def main() -> None:
    """What each process does, on each node; srun or mpirun has started it."""
    args = parse_training(__doc__, add_save_options)
    env = get_dist_env()
    set_meeting_point(env)
    device = setup(env)
    # when it returns, DDP is gone
    not_saved = train_and_report(args, with_node_rank(env), device)
    cleanup()
    check_saved(not_saved)


if __name__ == "__main__":
    main()
