"""Ranks of test_common_measure.py: a fixed set of calls under both counters."""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

from common.cost.measure import Traffic
from common.process_group import join_partners
from workshop.grader.ledger.ledger import Ledger


def calls():
    """Everything that Traffic must know, by hand and by torch's own modules."""
    rank, n = dist.get_rank(), dist.get_world_size()
    whole, piece = torch.ones(12), torch.ones(12 // n)
    dist.all_reduce(whole)
    dist.broadcast(whole, src=1)
    dist.all_gather([torch.empty(12 // n) for _ in range(n)], piece)
    dist.all_gather_single(whole, piece)
    dist.reduce_scatter_single(piece, whole)
    dist.reduce_scatter(piece, list(whole.chunk(n)))
    if rank == 0:
        dist.send(whole, 1)
    if rank == 1:
        dist.recv(whole, 0)
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(whole, group=pair)
    ddp_model = DDP(nn.Linear(5, 3))
    ddp_model(torch.ones(2, 5)).sum().backward()
    del ddp_model
    sharded = fully_shard(nn.Linear(5, 3 * n), mesh=init_device_mesh("cpu", (n,)))
    sharded(torch.ones(2, 5)).sum().backward()


def main():
    join_partners("ranks_common_measure.py")
    with Ledger("nobody's file") as ledger, Traffic() as traffic:
        calls()
    rows = [[r.op, r.bytes, len(r.group)] for r in ledger.rows if r.op != "recv"]
    mine = [[c.op, c.bytes, c.group_size] for c in traffic.calls]
    found = {"ledger": rows, "traffic": mine, "wire": traffic.wire_bytes()}
    Path(sys.argv[1], f"{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
