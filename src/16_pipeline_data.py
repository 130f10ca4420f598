"""Train the byte GPT on a grid of ranks: stages along one axis, shards along the other.

torchrun --standalone --nproc-per-node=4 src/16_pipeline_data.py 60
torchrun --standalone --nproc-per-node=4 src/16_pipeline_data.py 60 --schedule gpipe

It trains the model of src/13_train_gpt.py and gets the same losses. Each rank builds
the whole model on its device, not on ``meta``: rank 0 could send its own stage only.
"""

import argparse
import warnings
from dataclasses import dataclass

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from common.byte_gpt import next_byte_loss
from common.distributed import BadInput, log, one_line_errors, positive_int
from common.gpt_training import (
    Batches,
    Progress,
    TextConfig,
    check_divides,
    make_gpt,
    make_optimizer,
    parse_text_training,
    run_and_exit,
)
from common.parallel.pipeline import PipelineOptions, add_pipeline_options, cut
from common.process_group import join_or_alone, refuse_messages_between_shared

# No code changes the scores in place, which is what this warns of.
warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")
ALONE = "nothing is divided, and nothing is sent"
STAGES = 2  # unless --stages says otherwise
SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


@dataclass(frozen=True)
class Config(PipelineOptions, TextConfig):
    """The command line; the same on all ranks."""

    stages: int | None  # None: STAGES, or 1 for a single rank


# [start build]
def shard(stage: nn.Sequential, data: DeviceMesh) -> FSDPModule:
    """Shard in place along the data axis; each layer is a group of its own."""
    # With reshard_after_forward, each micro-batch would gather every layer again.
    for layer in stage:
        fully_shard(layer, mesh=data, reshard_after_forward=False)
    return fully_shard(stage, mesh=data, reshard_after_forward=False)


class Pipeline:
    """This rank's shards of one stage, and the schedule of its row of stages."""

    def __init__(self, config: Config, mesh: DeviceMesh):
        device = torch.device(mesh.device_type)
        model, stages = make_gpt(config, device), mesh["stage"].size()
        place = mesh.get_local_rank("stage")
        self.first, self.last = place == 0, place == stages - 1
        span = cut(model, stages)[place]
        layers = model.layers()[span.start : span.stop]
        self.stage = shard(nn.Sequential(*layers), mesh["data"])
        group = mesh.get_group("stage")  # sends to its neighbors in this group only
        of_torch = PipelineStage(self.stage, place, stages, device, group=group)
        how = {"loss_fn": next_byte_loss, "n_microbatches": config.micro_batches}
        self.schedule = SCHEDULES[config.schedule](of_torch, **how)

    # [end build]
    # [start step]
    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Leave gradients in ``.grad``; the mean loss of this row on its last rank."""
        losses: list[Tensor] = []
        given = [inputs] if self.first else []
        at_the_end = {"target": targets, "losses": losses} if self.last else {}
        # Every rank: micro-batches pass through the stages; with the last backward,
        # each stage averages its gradients over the data axis.
        self.schedule.step(*given, **at_the_end, return_outputs=False)
        if self.last:
            return torch.stack(losses).detach().mean()
        return torch.zeros((), device=inputs.device)


# [end step]
def make_mesh(config: Config, device: torch.device) -> DeviceMesh:
    """The grid: ``--stages`` rows; what that leaves is the data axis.

    Raises:
        BadInput: the stages do not divide the ranks, or the grid not the batch.
    """
    world, parts = dist.get_world_size(), config.micro_batches
    stages = config.stages or min(STAGES, world)
    if world % stages:
        raise BadInput(
            f"--stages {stages} does not divide a world of {world}: start a multiple "
            f"of {stages} ranks, or choose another number of stages"
        )
    data = world // stages
    pieces = "data ranks x micro-batches"
    check_divides(config.batch_size, data * parts, "--batch-size", pieces)
    if config.schedule == "1f1b" and parts < stages:
        raise BadInput(
            f"--micro-batches {parts} is fewer than the {stages} stages, which 1f1b "
            f"refuses: choose {stages} or more"
        )
    log(f"Grid: stage {stages} x data {data}, {parts} micro-batches")
    # Every rank: the ranks of a data group have consecutive numbers.
    sizes, names = (stages, data), ("stage", "data")
    return init_device_mesh(device.type, sizes, mesh_dim_names=names)


def part_of(batch: Tensor, mesh: DeviceMesh) -> Tensor:
    """This rank's pieces of the global batch, [B, T] -> [B / d, T]."""
    return batch.chunk(mesh["data"].size())[mesh.get_local_rank("data")].clone()


def train(config: Config, device: torch.device) -> None:
    mesh = make_mesh(config, device)
    batches = Batches(config, device)
    pipeline = Pipeline(config, mesh)
    optimizer = make_optimizer(pipeline.stage.parameters(), config.learning_rate)
    progress = Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = (part_of(batch, mesh) for batch in batches.of_step(step))
        optimizer.zero_grad()
        loss = pipeline.step(inputs, targets)
        optimizer.step()
        progress.note(step, loss / mesh["data"].size())
    progress.report()


def add_options(parser: argparse.ArgumentParser) -> None:
    add_pipeline_options(parser, SCHEDULES)
    how = {"metavar": "N", "type": positive_int}
    shown = f"(default: {STAGES}, or 1 for a single rank)"
    parser.add_argument("--stages", **how, help=f"stages {shown}")


@one_line_errors
def main() -> None:
    config = parse_text_training(__doc__, Config, add_options)
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    train(config, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
