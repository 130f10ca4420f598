"""Write nn.DataParallel yourself: replicas, threads, and gradients that add up.

One process, several devices; here a thread stands for a device. In every forward pass
the batch is split, the network is copied once for each part, a thread takes each part
through its copy, and the outputs are joined again. The loss is that of the whole
batch, so after ``backward()`` the gradients lie in the copies, one share in each.
``reduce()`` brings them to where the optimizer looks::

    parallel_model = HandMadeDataParallel(model, 4)
    loss_of(parallel_model(inputs)).backward()
    parallel_model.reduce()
    optimizer.step()          # an optimizer of model.parameters()

What it leaves in ``model`` must be what ``loss_of(model(inputs)).backward()`` leaves.

A new thread starts with recording for autograd switched on, whatever the thread that
made it does: ``torch.no_grad()`` around a forward pass does not reach into it.

    workshop check 04_parallel_by_hand

The page is docs/lessons/04_data_parallel.rst.
"""

import copy
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


def parallel_apply(
    replicas: list[nn.Module], chunks: list[torch.Tensor]
) -> list[torch.Tensor]:
    """The outputs of ``replicas[i](chunks[i])`` in the order of i, by a thread each.

    An exception in a thread is raised here. Gradients are recorded in the threads if
    they are recorded where this is called, and not otherwise.
    """
    # TODO 1 of 3: all threads must be at work at the same time.
    # [start answer 1]
    recording = torch.is_grad_enabled()

    def apply(replica, chunk):
        with torch.set_grad_enabled(recording):
            return replica(chunk)

    with ThreadPoolExecutor(len(chunks)) as pool:
        # the list takes each result, and raises what a thread has raised
        return list(pool.map(apply, replicas, chunks))
    # [end answer 1]


class HandMadeDataParallel(nn.Module):
    """Takes each batch through copies of ``module``, one for each of ``parts``."""

    def __init__(self, module: nn.Module, parts: int):
        super().__init__()
        self.module = module
        self.parts = parts
        self.replicas: list[nn.Module] = []  # those of the last forward pass

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """[B, ...] -> [B, ...], what ``module(inputs)`` gives."""
        # TODO 2 of 3: scatter, replicate, parallel_apply, gather. A small batch may
        # give fewer than `parts` parts. Keep the copies for reduce().
        # [start answer 2]
        chunks = inputs.chunk(self.parts)
        # anew each time: since the last time the optimizer has changed the weights
        self.replicas = [copy.deepcopy(self.module) for _ in chunks]
        return torch.cat(parallel_apply(self.replicas, chunks))
        # [end answer 2]

    def reduce(self) -> None:
        """Add to each ``.grad`` of the module what backward left in the replicas."""
        # TODO 3 of 3: like backward(), add to a .grad that is already there. A
        # parameter that took no part in the loss keeps its None.
        # [start answer 3]
        for replica in self.replicas:
            pairs = zip(self.module.parameters(), replica.parameters(), strict=True)
            for parameter, share in pairs:
                if share.grad is None:
                    continue
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                parameter.grad += share.grad
        # [end answer 3]
