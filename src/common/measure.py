"""What a run measures: where the time of a step goes, and the numbers at its end."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist
from torch.utils.data import Dataset

from common.cli import write_metrics
from common.data import count_correct, count_correct_together
from common.logging import is_rank_0, log, world_size

Item = TypeVar("Item")


class StepTimer:
    """Adds up the seconds spent in each named phase; does nothing if not enabled.

    An accelerator works on while Python goes on, so a stopwatch has to wait for
    it at both ends of a phase. That slows the training down: hence the switch.
    """

    def __init__(self, device: torch.device, enabled: bool):
        self.device = device
        self.enabled = enabled
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Time the body of a ``with`` statement."""
        if not self.enabled:
            yield
            return
        start = self._now()
        yield
        self._add(phase, self._now() - start)

    def each(self, phase: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of a loop, timing only the wait for each next one."""
        iterator = iter(items)
        while True:
            try:
                with self(phase):
                    item = next(iterator)
            except StopIteration:
                return
            yield item

    def table(self) -> str:
        """One line per phase: seconds, milliseconds per step, share of the whole."""
        whole = sum(self.seconds.values())
        lines = [f"{'phase':<10} {'seconds':>8} {'ms/step':>8} {'share':>7}"]
        for phase, seconds in self.seconds.items():
            per_step = 1000 * seconds / self.counts[phase]
            share = seconds / whole
            lines.append(f"{phase:<10} {seconds:8.3f} {per_step:8.3f} {share:7.1%}")
        return "\n".join(lines)

    def _now(self) -> float:
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)
        return time.perf_counter()

    def _add(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        self.counts[phase] = self.counts.get(phase, 0) + 1


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
        log(f"Nothing to train: {trainer.epochs_run} epochs are already run")
    else:
        speed = f" | {samples_per_s:,.0f} samples/s" if samples_per_s else ""
        log(f"Loss {trainer.losses[0]:.4f} -> {loss:.4f}{speed}")
    log(f"Test accuracy {correct / total:.2%} ({correct} of {total})")
    if args.profile and trainer.losses:
        log(trainer.timer.table())
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
