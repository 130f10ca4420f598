"""One step of a pipeline in which each rank has one layer.

torchrun --standalone --nproc-per-node=2 docs/examples/13_two_stages.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def run_step(layer, inputs, targets):
    """Leave the gradients of one step in ``layer``; return the last rank's losses."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(layer, rank, ranks, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    losses = []
    if rank == 0:
        schedule.step(inputs)  # cuts them into 4 micro-batches
    elif rank < ranks - 1:
        schedule.step()
    else:
        schedule.step(target=targets, losses=losses)
    return losses


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    losses = run_step(nn.Linear(4, 4), torch.ones(8, 4), torch.zeros(8, 4))
    if losses:
        print(f"losses of the micro-batches: {[round(x.item(), 4) for x in losses]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
