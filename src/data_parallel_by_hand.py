"""The algorithm of ``nn.DataParallel``, step by step, on one device.

    python src/data_parallel_by_hand.py                  # one step, and what it does
    python src/data_parallel.py 10 5 --by-hand 4         # a whole training

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

from command_line import say
from digits import load_digits_split, make_model


class DataParallelByHand(nn.Module):
    """Splits each batch over ``parts`` threads; gradients are those of the batch."""

    def __init__(self, module: nn.Module, parts: int):
        super().__init__()
        self.module = module
        # functional_call puts weights into a module for the time of the call: threads
        # that shared one module would take each other's. (In a tuple, because these
        # shells are no parts of this module: they have no weights of their own.)
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
        """The weights for each part, in every step anew: those of the last are old.

        Autograd knows of the copies: their gradients add up in the original.
        """
        weights = dict(self.module.named_parameters())
        buffers = dict(self.module.named_buffers())
        replicas = [
            {name: tensor.clone() for name, tensor in (weights | buffers).items()}
            for _ in range(parts)
        ]
        replicas[0] |= buffers  # what BatchNorm notes here stays, what others note not
        return replicas

    def parallel_apply(
        self, replicas: list[dict[str, torch.Tensor]], chunks: tuple[torch.Tensor, ...]
    ) -> list[torch.Tensor]:
        """Part ``i`` through the network with weights ``i``, each in a thread."""
        recording = torch.is_grad_enabled()  # a new thread does not know it

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
    """Says what comes in, and where."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        thread = threading.current_thread().name.split("_")[-1]
        say(f"  images {list(images.shape)} in process {os.getpid()}, thread {thread}")
        time.sleep(0.1)  # stands for the work of a device: all do it at the same time
        return images


def gradients(parallel_model: nn.Module, images, labels) -> list[torch.Tensor]:
    """One step without the optimizer: the gradient of each weight."""
    parallel_model.zero_grad()
    F.cross_entropy(parallel_model(images), labels).backward()
    return [w.grad.clone() for w in parallel_model.parameters()]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, labels = load_digits_split()[0][:30]
    model = nn.Sequential(Narrator(), make_model()).double()
    say("The whole batch:")
    whole = gradients(model, images.double(), labels)
    say("The batch in 4 parts:")
    split = gradients(DataParallelByHand(model, 4), images.double(), labels)
    off = max((a - b).abs().max() for a, b in zip(whole, split, strict=True))
    say(f"The two gradients are {'equal' if off < 1e-10 else 'different'} to 1e-10")


if __name__ == "__main__":
    main()
