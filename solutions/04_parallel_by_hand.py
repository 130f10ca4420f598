"""Write nn.DataParallel yourself: replicas, threads, and gradients that add up.

One process uses several devices; here a thread stands for each. Every forward pass
splits the batch, copies the network for each part, runs each part through its copy in a
thread, and joins the outputs. The loss is that of the whole batch, so ``backward()``
leaves one share of the gradient in each copy. ``reduce()`` adds the shares up where the
optimizer looks for them::

    parallel_model = HandMadeDataParallel(model, 4)
    loss_of(parallel_model(inputs)).backward()
    parallel_model.reduce()
    optimizer.step()          # an optimizer of model.parameters()

The gradients that it leaves in ``model`` must be those that
``loss_of(model(inputs)).backward()`` leaves. A layer that mixes the images of a batch,
as BatchNorm does, is an exception: each copy sees only its own part.

A new thread starts with gradient recording on: ``torch.no_grad()`` around a forward
pass has no effect on the threads that it starts.

    workshop check 04_parallel_by_hand

The page is docs/lessons/04_data_parallel/1_one_step.rst.
"""

import copy
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


def parallel_apply(
    replicas: list[nn.Module], chunks: list[torch.Tensor]
) -> list[torch.Tensor]:
    """The outputs of ``replicas[i](chunks[i])`` in the order of i, each from a thread.

    An exception in a thread is raised here. The threads record gradients if, and only
    if, the caller does.
    """
    # TODO 1 of 3: all threads must work at the same time.
    # [start answer 1]
    recording = torch.is_grad_enabled()

    def apply(replica, chunk):
        with torch.set_grad_enabled(recording):
            return replica(chunk)

    with ThreadPoolExecutor(len(chunks)) as pool:
        # list() collects each result, and raises what a thread has raised
        return list(pool.map(apply, replicas, chunks))
    # [end answer 1]


class HandMadeDataParallel(nn.Module):
    """Runs each batch through copies of ``module``, one for each of ``parts``."""

    def __init__(self, module: nn.Module, parts: int):
        super().__init__()
        self.module = module
        self.parts = parts
        self.replicas: list[nn.Module] = []  # those of the last forward pass

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """[B, ...] -> [B, ...], equal to ``module(inputs)``."""
        # TODO 2 of 3: scatter, replicate, parallel_apply, gather. A small batch may
        # give fewer than `parts` parts. Keep the copies for reduce(), in a plain list:
        # they must not become part of state_dict().
        # [start answer 2]
        chunks = inputs.chunk(self.parts)
        # new copies each time: the optimizer has changed the weights since the last
        self.replicas = [copy.deepcopy(self.module) for _ in chunks]
        return torch.cat(parallel_apply(self.replicas, chunks))
        # [end answer 2]

    def reduce(self) -> None:
        """Add to each ``.grad`` of the module what backward left in the replicas."""
        # TODO 3 of 3: like backward(), add to a .grad that is already there. A
        # parameter that the loss doesn't depend on keeps its None.
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
