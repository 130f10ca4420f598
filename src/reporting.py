"""The numbers at the end of a training, of all ranks together."""

from __future__ import annotations

import argparse
import statistics

import torch.distributed as dist
from torch.utils.data import Dataset

from command_line import write_metrics
from digits import count_correct, count_correct_together
from one_voice import is_rank_0, say, world_size


def report(trainer, test_set: Dataset, args: argparse.Namespace) -> None:
    """Print the numbers of the run, and write them where ``--metrics`` says.

    ``trainer`` is the Trainer of the script. All ranks call this together.
    """
    count = count_correct_together if dist.is_initialized() else count_correct
    correct, total = count(trainer.model, test_set, trainer.device)
    loss = trainer.losses[-1] if trainer.losses else None
    # the median: the first epoch of a process also pays for what starts lazily; an
    # epoch that was resumed at its very end had nothing left to do
    rates = [rate for rate in trainer.rates if rate]
    samples_per_s = statistics.median(rates) * world_size() if rates else None
    if loss is None:
        say(f"Nothing to train: {trainer.epochs_run} epochs are already run")
    else:
        speed = f" | {samples_per_s:,.0f} samples/s" if samples_per_s else ""
        say(f"Loss {trainer.losses[0]:.4f} -> {loss:.4f}{speed}")
    say(f"Test accuracy {correct / total:.2%} ({correct} of {total})")
    if args.profile and trainer.losses:
        say(trainer.timer.table())
    if args.metrics and is_rank_0():
        write_metrics(
            args.metrics,
            loss=loss,
            correct=correct,
            total=total,
            samples_per_s=samples_per_s,
            world_size=world_size(),
            epochs=trainer.epochs_run,
        )
