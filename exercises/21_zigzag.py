"""Place the tokens of a sequence in zigzag, and restore their order.

Under a causal mask, a token sees only those before it, so the rank with the end of a
sequence would have most of the work. Zigzag cuts a sequence for c ranks into 2 c chunks
of equal size, numbered from 0. Rank r holds chunk r and then chunk 2 c - 1 - r. So each
rank has an early chunk and a late one::

    own = sequence[positions(rank, 4, 64)]  # the tokens of a rank, in its order
    sequence = gathered[way_back(4, 64)]    # gathered: rank 0's, then rank 1's, ...

    workshop check 21_zigzag

The page is docs/lessons/21_long_sequences/2_ring.rst.
"""


def positions(rank: int, ranks: int, tokens: int) -> list[int]:
    """The positions in the sequence of a rank's tokens, in the order it holds them.

    Args:
        ranks: c, at least 1.
        tokens: of the whole sequence.

    Raises:
        ValueError: 2 c doesn't divide the tokens. The message has both numbers, such
            as 8 and 63.
    """
    # TODO 1 of 2: refuse what can't be cut, then return the positions of both chunks.
    raise NotImplementedError("TODO 1 of 2")


def way_back(ranks: int, tokens: int) -> list[int]:
    """For each token of the sequence, its index in the row of all ranks' tokens.

    The row has the tokens of rank 0 first, in the order it holds them, then those of
    rank 1, and so on.
    """
    # TODO 2 of 2: the row has token row[i] at index i. Which index has token t?
    raise NotImplementedError("TODO 2 of 2")
