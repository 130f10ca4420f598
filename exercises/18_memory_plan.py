"""Plan the memory of a rank: do 7 billion parameters train on 8 devices with 80 GB?

AdamW in mixed precision keeps 2 bytes of each parameter, 2 of its gradient and 12 of
optimizer state. ZeRO shards them over the N data ranks, one more kind per stage. A
shard of P numbers has P / N of them, rounded up: all shards are equally long, and the
last one is padded.

For backward, a layer saves 34 B T H + 5 a B T^2 bytes, for B sequences of T tokens, a
width of H and a heads. If it is recomputed, it saves only its input, in 16 bits.
Backward then recomputes one layer at a time, which has all its bytes at that moment.

    workshop check 18_memory_plan

The page is docs/lessons/18_scaling/4_plan.rst.
"""

from typing import NamedTuple


class Model(NamedTuple):
    """The sizes of a GPT."""

    parameters: int
    layers: int
    width: int
    heads: int
    context: int


GPT_7B = Model(6_700_000_000, layers=32, width=4096, heads=32, context=2048)


def state_bytes(parameters: int, stage: int, ranks: int) -> int:
    """Bytes of parameters, gradients and optimizer state on one of ``ranks`` ranks.

    ``stage`` is ZeRO's: 0 shards nothing.
    """
    # TODO 1 of 3: which of the three does each stage shard?
    raise NotImplementedError("TODO 1 of 3")


def activation_bytes(model: Model, batch: int, recompute: bool) -> int:
    """The most bytes that all layers hold for backward, for ``batch`` sequences."""
    # TODO 2 of 3: all layers as they are, or their inputs and one layer.
    raise NotImplementedError("TODO 2 of 3")


def plan(model: Model, ranks: int, memory: int) -> tuple[int, bool, int] | None:
    """(stage, recompute, batch): the cheapest that leaves a tenth of ``memory`` free.

    Recomputing costs most, so first try every stage without it. A lower stage is
    cheaper than a higher one. Take the first combination that fits one sequence, and
    for it the largest batch of one rank, in whole sequences. None if nothing fits.
    """
    # TODO 3 of 3: try them in that order.
    raise NotImplementedError("TODO 3 of 3")
