"""Experts spread over ranks: tokens go to their experts and back.

    grid = make_grid(expert_ranks=2)        # 4 ranks: data 2 x experts 2
    spread_experts(model, grid)             # E/2 experts of each mixture on each rank
    average_gradients(model, grid)          # after backward

Every rank computes on its own part of the batch. ``e`` ranks, which have consecutive
numbers, hold all experts together; each of the ``d`` groups of e ranks holds a copy.
Lepikhin et al., 2020, "GShard", section 3.2: the two all-to-alls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from common.distributed import BadInput, is_rank_0
from common.gpt_training import check_divides
from common.mixture import Experts, mixtures


@dataclass(frozen=True)
class ExpertGrid:
    """The ranks that hold all experts together, and those that hold the same ones."""

    ranks: int  # e, between which tokens are exchanged
    rank: int  # this one's number among them
    group: dist.ProcessGroup | None  # of these e ranks; None: all ranks
    copies: dist.ProcessGroup | None  # the d ranks with the same experts; None: alone

    def own(self, whole: Tensor) -> Tensor:
        """This rank's experts: [E, ...] -> [E/e, ...]."""
        return whole.chunk(self.ranks)[self.rank].clone()


def make_grid(expert_ranks: int = 0) -> ExpertGrid:
    """Data x experts; 0 expert ranks: all of them. Every rank calls this.

    Raises:
        BadInput: the expert ranks do not divide the number of ranks.
    """
    world_size, rank = dist.get_world_size(), dist.get_rank()
    e = expert_ranks or world_size
    if world_size % e:
        given = f"--expert-ranks {e} do not divide a world of {world_size}"
        raise BadInput(f"{given}: choose a divisor, or start a multiple of {e} ranks")
    if e == world_size:
        return ExpertGrid(e, rank, None, None)
    grid = torch.arange(world_size).view(-1, e)  # [d, e]
    # Every rank makes every group, also those that it isn't in.
    groups, _ = dist.new_subgroups_by_enumeration(grid.tolist())
    copies, _ = dist.new_subgroups_by_enumeration(grid.T.tolist())
    return ExpertGrid(e, rank % e, groups, copies)


class Exchange(torch.autograd.Function):
    """Rows to other ranks, and rows from them: [sum(sent), H] -> [sum(received), H].

    ``sent[r]`` of the rows, in order, go to rank r, and ``received[r]`` are from it.
    """

    @staticmethod
    def forward(ctx, rows, sent, received, group):
        ctx.sent, ctx.received, ctx.group = sent, received, group
        return exchange(rows, sent, received, group)

    @staticmethod
    def backward(ctx, gradient):
        # What was sent is received now: each row's gradient returns to its sender.
        returned = exchange(gradient, ctx.received, ctx.sent, ctx.group)
        return returned, None, None, None


def exchange(
    rows: Tensor,
    sent: list[int],
    received: list[int],
    group: dist.ProcessGroup | None,
) -> Tensor:
    """An all-to-all of uneven parts, without gradients."""
    arrived = rows.new_empty(sum(received), *rows.shape[1:])
    # Every rank, also one without any row: others wait for its empty parts, too.
    dist.all_to_all_single(arrived, rows.contiguous(), received, sent, group=group)
    return arrived


class SpreadExperts(Experts):
    """This rank's E/e experts, for the tokens of all e ranks."""

    def __init__(self, whole: Experts, grid: ExpertGrid):
        nn.Module.__init__(self)
        self.grid = grid
        for name, parameter in whole.named_parameters():
            self.register_parameter(name, nn.Parameter(grid.own(parameter.detach())))

    def forward(self, tokens: Tensor, counts: Tensor) -> Tensor:
        """As one process: tokens [m, H] by expert, counts [E] -> outputs [m, H]."""
        e, group = self.grid.ranks, self.grid.group
        asked = counts.view(e, -1).contiguous()  # row r: for each expert of rank r
        arriving = torch.empty_like(asked)
        # Counts first: [e, E/e] -> row r: rank r's tokens for each own expert.
        dist.all_to_all_single(arriving, asked, group=group)
        sent, received = asked.sum(1).tolist(), arriving.sum(1).tolist()
        # Dispatch: [m, H] -> [tokens for own experts, H], by sender, then by expert
        arrived = Exchange.apply(tokens, sent, received, group)
        order = by_expert(arriving)
        outputs = super().forward(arrived[order], arriving.sum(0))
        # Combine: the same rows, in the order in which they arrived, back to senders
        return Exchange.apply(outputs[order.argsort()], received, sent, group)


def by_expert(arriving: Tensor) -> Tensor:
    """The order that sorts rows by expert; they are by sender: [e, E/e] -> [rows]."""
    senders, experts = arriving.shape
    cycle = torch.arange(experts, device=arriving.device).repeat(senders)
    expert = cycle.repeat_interleave(arriving.flatten())
    return expert.argsort(stable=True)


def spread_experts(model: nn.Module, grid: ExpertGrid) -> None:
    """Leave each rank E/e experts of every mixture; before the optimizer is made.

    Raises:
        BadInput: the e ranks do not divide the experts.
    """
    for layer in mixtures(model):
        check_divides(layer.mixture.experts, grid.ranks, "--experts", "expert ranks")
        layer.experts = SpreadExperts(layer.experts, grid)


def average_gradients(model: nn.Module, grid: ExpertGrid) -> None:
    """The gradients of the mean of all ranks' losses, from each rank's own.

    An expert has already computed on the tokens of e ranks, so its gradient is a sum
    over e losses. The copies' sums are added to it. Any other parameter has seen the
    tokens of one rank. All are divided by the number of ranks.
    """
    experts = expert_parameters(model)
    own = set(experts)
    others = [parameter for parameter in model.parameters() if parameter not in own]
    world_size = dist.get_world_size()
    _add_up(others, None, world_size)
    if world_size > grid.ranks:
        _add_up(experts, grid.copies, world_size)
    else:
        for parameter in experts:
            parameter.grad /= world_size  # no rank has a copy: nothing to send


def expert_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Those that differ between the ranks of an expert group."""
    spread = [part for part in model.modules() if isinstance(part, SpreadExperts)]
    return [parameter for part in spread for parameter in part.parameters()]


def _add_up(
    parameters: list[nn.Parameter], group: dist.ProcessGroup | None, divisor: int
) -> None:
    """The sum of the group's gradients, divided by ``divisor``."""
    owners = [parameter for parameter in parameters if parameter.grad is not None]
    together = torch.cat([parameter.grad.flatten() for parameter in owners])
    # Every rank of the group. [parameters] -> the same, 2(n-1)/n x their bytes.
    dist.all_reduce(together, group=group)
    parts = (together / divisor).split([parameter.numel() for parameter in owners])
    for parameter, part in zip(owners, parts, strict=True):
        parameter.grad.copy_(part.view_as(parameter))


# [start whole]
@torch.no_grad()
def whole_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, grid: ExpertGrid
) -> dict:
    """Model and optimizer as one process has them, on rank 0; {} on the others.

    All ranks call this together: they gather the experts of their group.
    """

    def gather(own: Tensor) -> Tensor:
        pieces = [torch.empty_like(own) for _ in range(grid.ranks)]
        # Every rank of the group. [E/e, ...] -> [E, ...], (e-1) x the bytes of a piece.
        dist.all_gather(pieces, own.contiguous(), group=grid.group)
        # one tensor at a time is whole: a rank may have no memory for the whole model
        return torch.cat([piece.cpu() for piece in pieces]) if is_rank_0() else own

    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    whole = _change_experts(state, model, optimizer, gather)
    return whole if is_rank_0() else {}


def load_whole_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, state: dict, grid: ExpertGrid
) -> None:
    """Continue from a whole state that every rank has read, on any number of ranks."""
    own = _change_experts(state, model, optimizer, grid.own)
    model.load_state_dict(own["model"])
    optimizer.load_state_dict(own["optimizer"])


# [end whole]
def _change_experts(
    state: dict,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    change: Callable[[Tensor], Tensor],
) -> dict:
    """``state`` with each tensor that has a row for each expert changed."""
    experts = set(expert_parameters(model))
    names = {name for name, p in model.named_parameters() if p in experts}
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    indices = {index for index, p in enumerate(trained) if p in experts}
    weights = {
        name: change(tensor) if name in names else tensor
        for name, tensor in state["model"].items()
    }
    moments = {
        # a step counter has no dimension
        index: {
            key: change(value) if index in indices and value.dim() else value
            for key, value in values.items()
        }
        for index, values in state["optimizer"]["state"].items()
    }
    return {
        "model": weights,
        "optimizer": state["optimizer"] | {"state": moments},
    }
