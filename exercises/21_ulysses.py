"""Exchange tokens for heads, and back, as DeepSpeed Ulysses does.

Each of c ranks holds T / c tokens of every sequence, of all heads: rank 0 the first
T / c, rank 1 the next, and so on. Attention needs all tokens, but it treats every head
separately. So before attention each rank gets all T tokens of a / c heads, rank 0 the
first heads. Afterwards, each rank gets its tokens back, with all heads::

    query, key, value = (to_heads(x, group) for x in (query, key, value))
    out = to_tokens(scaled_dot_product_attention(query, key, value), group)

A rank sends every other rank only what that rank needs, which is 1 / c of its numbers.
Gradients aren't part of this exercise.

    workshop check 21_ulysses

The page is docs/lessons/21_long_sequences/3_ulysses.rst.
"""

import torch
import torch.distributed as dist


def check_heads(heads: int, ranks: int) -> None:
    """Refuse a number of heads that the ranks can't share equally.

    Raises:
        ValueError: ``ranks`` doesn't divide ``heads``. The message names both numbers.
    """
    # TODO 1 of 3
    raise NotImplementedError("TODO 1 of 3")


def to_heads(own: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    """All tokens of this rank's heads: [B, a, T/c, h] -> [B, a/c, T, h].

    Args:
        own: this rank's tokens, may be a view that isn't contiguous; left unchanged.
        group: the c ranks that share the sequences; None: all ranks.

    Raises:
        ValueError: by ``check_heads``, on every rank, before anything is sent.
    """
    # TODO 2 of 3: check the heads, then exchange with ``dist.all_to_all_single``.
    raise NotImplementedError("TODO 2 of 3")


def to_tokens(
    own: torch.Tensor, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    """All heads of this rank's tokens: [B, a/c, T, h] -> [B, a, T/c, h].

    Args:
        own: this rank's heads, may be a view that isn't contiguous; left unchanged.
        group: the c ranks that share the sequences; None: all ranks. c divides T.
    """
    # TODO 3 of 3: the way back.
    raise NotImplementedError("TODO 3 of 3")
