"""An expert axis for the capstone: a mixture of experts on a grid of ranks.

The N ranks form a grid of data x experts. With four ranks and two expert ranks, ranks 0
and 1 hold all experts together, and so do ranks 2 and 3. Ranks 0 and 2 have the same
experts: they're *copies*. Every rank has tokens of its own, some ranks have more than
others, and a rank may have none. A softmax over the router's scores gives a token one
gate for each expert. The token goes to the expert with the highest gate, and that
expert's output is multiplied by the gate.

The loss is the mean squared error over all elements of all ranks' outputs.

    workshop check 20_expert_axis

The page is docs/lessons/20_capstone/5_second_task.rst.
"""

import torch
import torch.distributed as dist
from torch import nn


class Exchange(torch.autograd.Function):
    """Send rows to the ranks of a group: [sum of sent, H] -> [sum of received, H].

    ``sent`` and ``received`` list the rows for each rank, and from each rank. Every
    rank of the group calls it, even one without rows.
    """

    @staticmethod
    def forward(ctx, rows, sent, received, group):
        ctx.sent, ctx.received, ctx.group = sent, received, group
        arrived = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(arrived, rows.contiguous(), received, sent, group=group)
        return arrived

    @staticmethod
    def backward(ctx, gradient):
        # TODO 1 of 3: send each row's gradient to the rank that the row is from.
        # Return it, and None for each of the other three arguments.
        # [start answer 1]
        back = gradient.new_empty(sum(ctx.sent), gradient.shape[1])
        gradient = gradient.contiguous()
        dist.all_to_all_single(back, gradient, ctx.sent, ctx.received, group=ctx.group)
        return back, None, None, None
        # [end answer 1]


class Mixture(nn.Module):
    """E experts over the e ranks of ``group``: rank 0 has the first E / e, and so on.

    Each expert computes [m, H] -> [m, H].
    """

    def __init__(self, width: int, experts: int, group: dist.ProcessGroup):
        super().__init__()
        self.group = group
        self.router = nn.Linear(width, experts, bias=False)  # the same on all ranks
        own = experts // dist.get_world_size(group)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width)
            )
            for _ in range(own)
        )

    def run_experts(self, rows: torch.Tensor, arriving: torch.Tensor) -> torch.Tensor:
        """The outputs of this rank's experts, [m, H] -> [m, H], in the same order.

        Args:
            rows: what arrived: rank 0's rows first; each rank's sorted by expert.
            arriving: [e, E/e] how many rows each rank sent for each own expert.
        """
        sizes = arriving.flatten().tolist()
        outputs = [
            self.experts[index % len(self.experts)](part)
            for index, part in enumerate(rows.split(sizes))
        ]
        return torch.cat(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[n, H] -> [n, H], in the order of the tokens.

        Every rank of the group calls it; n differs from rank to rank and may be 0.
        """
        # TODO 2 of 3: choose, sort by expert, exchange counts and rows, compute, send
        # back, restore the order, multiply by the gates.
        # [start answer 2]
        gates, chosen = self.router(x).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        counts = chosen.bincount(minlength=self.router.out_features)
        counts = counts.view(dist.get_world_size(self.group), -1)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts, group=self.group)
        sent, received = counts.sum(1).tolist(), arriving.sum(1).tolist()
        rows = Exchange.apply(x[order], sent, received, self.group)
        outputs = self.run_experts(rows, arriving)
        returned = Exchange.apply(outputs, received, sent, self.group)
        return gates[:, None] * returned[order.argsort()]
        # [end answer 2]


def step_gradients(
    mixture: Mixture,
    x: torch.Tensor,
    targets: torch.Tensor,
    copies: dist.ProcessGroup,
) -> torch.Tensor:
    """The loss of all ranks' tokens; each parameter's ``grad`` is its gradient.

    Args:
        mixture: no parameter has a ``grad`` yet.
        x, targets: [n, H] of this rank's tokens.
        copies: the ranks that have the same experts as this one.

    Returns:
        the loss, a tensor with one number. It's the same on all ranks.

    Afterwards the router's ``grad`` is the same on all ranks, an expert's on its
    copies.
    """
    # TODO 3 of 3: what must the loss be divided by? Which ranks add up which gradients?
    # [start answer 3]
    total = torch.tensor(targets.numel())
    dist.all_reduce(total)
    loss = (mixture(x) - targets).square().sum() / total
    loss.backward()
    for name, parameter in mixture.named_parameters():
        group = dist.group.WORLD
        if name.startswith("experts"):
            group = copies
        dist.all_reduce(parameter.grad, group=group)
    loss = loss.detach()
    dist.all_reduce(loss)
    return loss
    # [end answer 3]
