"""The algorithm of ``nn.DataParallel``, step by step, on one device.

    python src/04_data_parallel_by_hand.py           # one step, and what it does
    python src/04_data_parallel_by_hand.py --time    # many steps, and how fast

Threads stand for devices: everything happens as on four GPUs, except that no copy
leaves the memory it is in.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from common.data import load_digits_split, make_model
from common.distributed import Parser, log, one_line_errors


class DataParallelByHand(nn.Module):
    """Splits each batch over ``parts`` threads; gradients equal those of the batch."""

    def __init__(self, module: nn.Module, parts: int):
        super().__init__()
        self.module = module
        # functional_call puts weights into a module during the call: threads that
        # shared one module would overwrite each other's. (A tuple, so that nn.Module
        # does not register the shells: they have no weights of their own.)
        self.shells = tuple(copy.deepcopy(module) for _ in range(parts))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images [B, ...] to scores [B, C]."""
        chunks = self.scatter(images)
        replicas = self.replicate(len(chunks))
        scores = self.parallel_apply(replicas, chunks)
        return self.gather(scores)

    def scatter(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """[B, ...] to one part for each device; small batches give fewer parts."""
        return images.chunk(len(self.shells))

    def replicate(self, parts: int) -> list[dict[str, torch.Tensor]]:
        """The weights for each part, copied in every step: the last copies are old.

        Autograd records the copies, so their gradients add up in the original.
        """
        weights = dict(self.module.named_parameters())
        buffers = dict(self.module.named_buffers())
        replicas = [
            {name: tensor.clone() for name, tensor in (weights | buffers).items()}
            for _ in range(parts)
        ]
        replicas[0] |= buffers  # only the first replica's BatchNorm statistics are kept
        return replicas

    def parallel_apply(
        self, replicas: list[dict[str, torch.Tensor]], chunks: tuple[torch.Tensor, ...]
    ) -> list[torch.Tensor]:
        """Part ``i`` through the network with weights ``i``, one thread each."""
        recording = torch.is_grad_enabled()  # always True in a new thread

        def apply(shell, weights, chunk):
            torch.set_grad_enabled(recording)
            shell.train(self.module.training)
            return functional_call(shell, weights, chunk)

        with ThreadPoolExecutor(len(chunks)) as pool:
            return list(pool.map(apply, self.shells, replicas, chunks))

    def gather(self, scores: list[torch.Tensor]) -> torch.Tensor:
        """Parts of [B / parts, C] to [B, C], on the device that has the loss."""
        return torch.cat(scores)


class Narrator(nn.Module):
    """Prints the shape of its input, and the thread it runs in."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        thread = threading.current_thread().name.split("_")[-1]
        log(f"  images {list(images.shape)} in process {os.getpid()}, thread {thread}")
        time.sleep(0.1)  # stands for the work of a device: all run at the same time
        return images


def gradients(parallel_model: nn.Module, images, labels) -> list[torch.Tensor]:
    """One step without the optimizer: the gradient of each weight."""
    parallel_model.zero_grad()
    F.cross_entropy(parallel_model(images), labels).backward()
    return [w.grad.clone() for w in parallel_model.parameters()]


def show_a_step() -> None:
    """The gradients of a batch of 30, whole and in 4 parts."""
    images, labels = load_digits_split()[0][:30]
    model = nn.Sequential(Narrator(), make_model()).double()
    log("The whole batch:")
    whole = gradients(model, images.double(), labels)
    log("The batch in 4 parts:")
    split = gradients(DataParallelByHand(model, 4), images.double(), labels)
    off = max((a - b).abs().max() for a, b in zip(whole, split, strict=True))
    verdict = "equal" if off < 1e-10 else "different"
    log(f"The two gradients are {verdict} to 1e-10")


def time_steps(parts: int) -> float:
    """How many images per second go forward and backward, 32 in a batch."""
    images, labels = load_digits_split()[0][:1280]
    model = make_model()
    parallel_model = DataParallelByHand(model, parts) if parts > 1 else model
    start = time.perf_counter()
    for batch in zip(images.split(32), labels.split(32), strict=True):
        gradients(parallel_model, *batch)
    return len(images) / (time.perf_counter() - start)


@one_line_errors
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--time", action="store_true", help="show how fast it is")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if args.time:
        time_steps(1)  # pays for what starts lazily
        for parts in (1, 2, 4):
            log(f"{parts} part{'s'[: parts - 1]:1} {time_steps(parts):>8,.0f} images/s")
    else:
        show_a_step()


if __name__ == "__main__":
    main()
