"""Balance the loads of experts across ranks: an extra loss, or a bias.

Each rank routes its own tokens, and the ranks don't have equally many. What counts is
the load of an expert in the whole batch: the choices of the tokens of all ranks. A
rank that looks at its own tokens alone balances something else.

There are two remedies, and a run can use either. Switch Transformer adds a loss before
``backward()``. DeepSeek-V3 mainly shifts a bias, after the optimizer's step::

    load = loads_of_batch(chosen, experts)                      # on every rank
    (loss + balance_loss(chances, load, k, weight)).backward()  # either this
    shift_bias(bias, load, step)                                # or this

A rank may have no tokens at all.

    workshop check 22_balance

The page is docs/lessons/22_experts/2_balance.rst.
"""

import torch
import torch.distributed as dist


def loads_of_batch(chosen: torch.Tensor, experts: int) -> torch.Tensor:
    """How many choices of all ranks' tokens fell on each expert: [experts], float64.

    Args:
        chosen: [n, k], the numbers of the k experts of each of this rank's n tokens.
            n differs between ranks, and may be 0; every token has k choices.
        experts: how many there are, E.
    """
    load = chosen.flatten().bincount(minlength=experts).double()
    # TODO 1 of 3: load holds the choices of this rank's tokens. Make it the load of
    # the whole batch, on every rank.
    raise NotImplementedError("TODO 1 of 3")
    return load


def balance_loss(
    chances: torch.Tensor, load: torch.Tensor, k: int, weight: float
) -> torch.Tensor:
    """This rank's part of the extra loss, []; the parts of all ranks add up to it.

    The loss of the whole batch is ``weight * E * sum(f * p)``, summed over the experts:
    ``f`` is an expert's share of all choices, and ``p`` is its mean chance over the
    tokens of all ranks. This rank's part has the chances of its own tokens only. No
    gradient passes through ``f``.

    Args:
        chances: [n, E], what the router's softmax gives this rank's tokens.
        load: [E], what :func:`loads_of_batch` returned; left unchanged.
        k: how many experts a token chooses.
        weight: of the extra loss.
    """
    # TODO 2 of 3: return this rank's part. The load also tells how many tokens the
    # whole batch has.
    raise NotImplementedError("TODO 2 of 3")


@torch.no_grad()
def shift_bias(bias: torch.Tensor, load: torch.Tensor, step: float) -> None:
    """Change ``bias`` [E] in place: it's added to the chances when experts are chosen.

    An expert with more than the mean load becomes less likely by ``step``, one with
    less than the mean load becomes more likely by ``step``. An expert with exactly the
    mean load keeps its bias. How far a load is from the mean doesn't matter. ``load``
    is that of the whole batch, on every rank, and stays as it is.
    """
    # TODO 3 of 3: change the bias.
    raise NotImplementedError("TODO 3 of 3")
