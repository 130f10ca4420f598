"""The algorithm of ``nn.DataParallel``, step by step, on one device.

    python src/data_parallel.py 10 5 --by-hand 4

Threads stand for devices: everything happens as on four GPUs, except that no copy
leaves the memory it is in.
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.func import functional_call


class DataParallelByHand(nn.Module):
    """Splits each batch over ``parts`` threads; gradients are those of the batch."""

    def __init__(self, module: nn.Module, parts: int):
        super().__init__()
        self.module = module
        # functional_call puts weights into a module for the time of the call: threads
        # that shared one module would take each other's. (In a tuple, because these
        # copies are no parts of this module: they have no weights of their own.)
        self.shells = tuple(copy.deepcopy(module) for _ in range(parts))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images [B, ...] to scores [B, C]."""
        # scatter: [B, ...] -> parts of [B / parts, ...]; the last may be smaller, and
        # a small batch gives fewer parts
        chunks = images.chunk(len(self.shells))
        # replicate, in every step anew: the weights of the last step are out of date
        replicas = [self.copy_weights() for _ in chunks]
        # parallel_apply: a thread for each part, one Python interpreter for them all
        with ThreadPoolExecutor(len(chunks)) as pool:
            scores = list(pool.map(functional_call, self.shells, replicas, chunks))
        # gather: parts of [B / parts, C] -> [B, C] on the device that has the loss
        return torch.cat(scores)

    def copy_weights(self) -> dict[str, torch.Tensor]:
        """Copies that autograd knows of: their gradients add up in the original."""
        return {name: w.clone() for name, w in self.module.named_parameters()}
