"""Where the time of a training step goes: stopwatches for its phases."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

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
