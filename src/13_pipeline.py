"""Train a byte GPT in stages, with the schedules of torch.distributed.pipelining.

    torchrun --standalone --nproc-per-node=3 src/13_pipeline.py 100
    torchrun --standalone --nproc-per-node=4 src/13_pipeline.py 100 \\
        --schedule gpipe --batch-size 32 --micro-batches 16
    torchrun --standalone --nproc-per-node=2 src/13_pipeline.py 100 \\
        --schedule interleaved          # two stages on each rank

It trains the model of src/13_pipeline_by_hand.py and gets the same losses.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

from common.byte_gpt import BYTES, next_byte_loss
from common.distributed import BadInput, log, one_line_errors
from common.gpt_training import (
    Batches,
    Progress,
    TextConfig,
    check_divides,
    make_gpt,
    make_optimizer,
    parse_text_training,
)
from common.parallel.pipeline import PipelineOptions, add_pipeline_options, cut
from common.process_group import join_or_alone, refuse_messages_between_shared

ALONE = "the pipeline is one stage, the whole model, and sends nothing"
STAGES_PER_RANK = {"gpipe": 1, "1f1b": 1, "interleaved": 2}


@dataclass(frozen=True)
class Config(PipelineOptions, TextConfig):
    """The command line; the same on all ranks."""


def build(config: Config, device: torch.device) -> tuple[Pipeline, list[range]]:
    """This rank's stages, cut from the model that one device would train."""
    pipeline = Pipeline(config, device)
    return pipeline, pipeline.spans


def train_step(
    pipeline: Pipeline,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B, T]; the mean loss on the last rank, else 0."""
    optimizer.zero_grad()
    loss = pipeline.step(inputs, targets)
    optimizer.step()
    return loss.detach()


# [start build]
class Pipeline:
    """This rank's stages of a model, and torch's schedule that runs them."""

    def __init__(self, config: Config, device: torch.device):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        model = make_gpt(config, device)
        count = ranks * STAGES_PER_RANK[config.schedule]  # of all stages
        indices = range(rank, count, ranks)  # with two stages on a rank: r and r + p
        self.spans = [cut(model, count)[index] for index in indices]
        self.first, self.last = rank == 0, rank == ranks - 1  # has such a stage
        layers = model.layers()
        self.stage = nn.ModuleList(
            nn.Sequential(*layers[span.start : span.stop]) for span in self.spans
        )
        stages = [
            PipelineStage(module, index, count, device)
            for module, index in zip(self.stage, indices, strict=True)
        ]
        how = {"loss_fn": next_byte_loss, "n_microbatches": config.micro_batches}
        if config.schedule == "interleaved":
            self.schedule = ScheduleInterleaved1F1B(stages, **how)
        elif config.schedule == "1f1b":
            self.schedule = Schedule1F1B(stages[0], **how)
        else:
            self.schedule = ScheduleGPipe(stages[0], **how)

    # [end build]
    # [start step]
    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Leave gradients in ``.grad``; the batch's mean loss on the last rank."""
        losses: list[Tensor] = []
        given = [inputs] if self.first else []
        at_the_end = {"target": targets, "losses": losses} if self.last else {}
        # every rank must reach this line; a rank with neither end passes nothing
        self.schedule.step(*given, **at_the_end, return_outputs=False)
        if self.last:
            return torch.stack(losses).mean()  # of equally large micro-batches
        return torch.zeros((), device=inputs.device, dtype=self.dtype())

    # [end step]
    def score(self, inputs: Tensor) -> Tensor:
        """The model's scores [B, T, 256] for inputs [B, T], on every rank."""
        # eval also computes a loss, and wants targets for it; it is not used here
        targets = inputs if self.last else None
        given = [inputs] if self.first else []
        scores = self.schedule.eval(*given, target=targets)
        if not self.last:
            shape = *inputs.shape, BYTES
            scores = torch.empty(shape, device=inputs.device, dtype=self.dtype())
        # every rank must reach this line: [B, T, 256] from the last one
        dist.broadcast(scores, src=dist.get_world_size() - 1)
        return scores

    def dtype(self) -> torch.dtype:
        return next(self.stage.parameters()).dtype


# [start refuse]
def check_micro_batches(config: Config, ranks: int) -> None:
    """Refuse what torch's schedules refuse, or fail at halfway through a step.

    Raises:
        BadInput: the micro-batches are unequal, or too few; or both stages of the
            interleaved schedule are on one rank.
    """
    count = config.micro_batches
    if config.schedule == "interleaved" and ranks == 1:
        raise BadInput(
            "--schedule interleaved fails in torch if one rank has all stages: start "
            "two ranks or more, or choose 1f1b"
        )
    check_divides(config.batch_size, count, "--batch-size", "micro-batches")
    if config.schedule == "1f1b" and count < ranks:
        raise BadInput(
            f"--micro-batches {count} is fewer than the {ranks} stages of this "
            f"pipeline, which 1f1b refuses: choose {ranks} or more"
        )
    rounds = max(1, count // ranks)
    if config.schedule == "interleaved" and count % rounds:
        raise BadInput(
            f"--micro-batches {count} cannot be divided into {rounds} equal rounds, "
            f"which the interleaved schedule needs: choose a multiple of {ranks}"
        )


# [end refuse]
def parse_arguments() -> Config:
    return parse_text_training(
        __doc__, Config, lambda parser: add_pipeline_options(parser, STAGES_PER_RANK)
    )


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    refuse_messages_between_shared(device)
    check_micro_batches(config, dist.get_world_size())
    batches = Batches(config, device)
    pipeline, _ = build(config, device)
    optimizer = make_optimizer(pipeline.stage.parameters(), config.learning_rate)
    log(f"{config.schedule} with {config.micro_batches} micro-batches")
    progress = Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        progress.note(step, train_step(pipeline, optimizer, inputs, targets))
    progress.report(batches.test_loss(pipeline.score))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
