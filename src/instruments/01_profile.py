"""Where the time of a training step goes: data, forward, backward, or optimizer?

Run from the folder of the workshop:

    python src/instruments/01_profile.py 10    # 10 epochs, 32 images in a step
    python src/instruments/01_profile.py 10 --batch-size 512
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common import data, distributed

Item = TypeVar("Item")


class StepTimer:
    """Adds up the seconds spent in each named phase.

    An accelerator computes while Python continues, so a stopwatch has to wait for it at
    both ends of a phase. That slows training down: measure apart from real runs.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Time the body of a ``with`` statement."""
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


def profile(timer: StepTimer, epochs: int, batch_size: int) -> str:
    """Train as 01_single_device.py does; the accuracy after the last epoch."""
    model = data.make_model(dropout=0.1, width=data.WIDTH).to(timer.device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    train_set, test_set = data.load_digits_split()
    loader = DataLoader(train_set, batch_size, shuffle=True)
    for _ in range(epochs):
        for images, labels in timer.each("data", loader):
            images, labels = images.to(timer.device), labels.to(timer.device)
            optimizer.zero_grad()
            with timer("forward"):
                loss = F.cross_entropy(model(images), labels)
            with timer("backward"):
                loss.backward()
            with timer("step"):
                optimizer.step()
    correct, total = data.count_correct(model, test_set, timer.device)
    return f"Test accuracy {correct / total:.2%} ({correct} of {total})"


@distributed.one_line_errors
def main() -> None:
    parser = distributed.Parser(__doc__)
    number = {"type": distributed.positive_int}
    parser.add_argument("epochs", metavar="EPOCHS", **number, help="epochs to train")
    parser.add_argument("--batch-size", **number, default=32, help="images per step")
    args = parser.parse_args()
    timer = StepTimer(distributed.choose_device())
    torch.manual_seed(0)
    distributed.log(profile(timer, args.epochs, args.batch_size))
    distributed.log(timer.table())


if __name__ == "__main__":
    main()
