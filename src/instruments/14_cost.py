"""Count what one of t ranks holds and sends in a step of tensor parallel.

    torchrun --standalone --nproc-per-node=4 src/instruments/14_cost.py \\
        src/14_tensor_by_hand.py 300
    torchrun --standalone --nproc-per-node=4 src/instruments/14_cost.py \\
        src/14_tensor_parallel.py 300 --sequence-parallel

It runs one step of the program, and rank 0 prints what it counted beside the formulas.
With width H, a heads and a batch of B pieces with T bytes each, per block:

* parameters: (12 H^2 + 7 H) / t that are cut, 6 H in norms and in biases of rows;
* activations: 4 H + 4 + (12 H + a) / t numbers for each byte. The inputs of the two
  norms and their results are whole. (Korthikanti et al., 2022, section 4.2, has 10
  bytes + 24/t for H at 2 bytes a number. 2 of its 10 are dropout masks, which this
  model doesn't have.) With sequence parallel: 2 H + (14 H + a + 4) / t, because only
  what was gathered is whole. The paper keeps slices of that, too, and gathers again in
  backward: (16 H + a + 4) / t, for one more all_gather at each border;
* sent: an all_reduce of B T H numbers for attention and for the MLP, in each direction.
"""

import sys
from functools import partial
from pathlib import Path

import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.byte_gpt import BYTES, Sizes, sizes_of
from common.cost.counting import (
    FLOAT32,
    compare,
    embed_parameters,
    load_program,
    model_states,
)
from common.cost.measure import count_step
from common.distributed import log, one_line_errors
from common.gpt_training import Batches, run_and_exit
from common.process_group import join_or_alone

ALONE = "it has all columns and rows of every layer, and sends nothing"


def own_scores(world_size: int, rank: int) -> int:
    """How many of the 256 bytes a rank scores."""
    each = -(-BYTES // world_size)
    return min(each, BYTES - rank * each)


def parameters(sizes: Sizes, world_size: int, rank: int) -> int:
    """Numbers in the parameters on a rank."""
    width = sizes.width
    block = (12 * width**2 + 7 * width) // world_size + 6 * width
    head = 2 * width + (width + 1) * own_scores(world_size, rank)
    return embed_parameters(sizes) + sizes.blocks * block + head


def kept_whole(sizes: Sizes) -> int:
    """Numbers in the parameters that every rank holds whole."""
    return embed_parameters(sizes) + (6 * sizes.blocks + 2) * sizes.width


def block_activations(sizes: Sizes, tokens: int, world_size: int, sliced: bool) -> int:
    """Numbers that one block saves on a rank, for ``tokens`` bytes in all."""
    width, heads = sizes.width, sizes.heads
    if sliced:
        return 2 * width * tokens + (14 * width + heads + 4) * tokens // world_size
    return (4 * width + 4) * tokens + (12 * width + heads) * tokens // world_size


def activations(
    sizes: Sizes, batch_size: int, world_size: int, rank: int, sliced: bool
) -> int:
    """Bytes that all layers and the loss save on a rank for [B, T] tokens.

    Besides the blocks: the input of the last norm with two statistics and its result,
    the chances of the rank's own bytes, two integers of 8 bytes for each token (the
    token, and where its target is), and one for each place.
    """
    tokens = batch_size * sizes.context
    parts = world_size if sliced else 1
    head = (sizes.width + 2) * tokens // parts + sizes.width * tokens
    head += own_scores(world_size, rank) * tokens
    blocks = sizes.blocks * block_activations(sizes, tokens, world_size, sliced)
    return FLOAT32 * (blocks + head) + 8 * (2 * tokens + sizes.context)


def all_reduced(size: int, world_size: int) -> int:
    """Bytes that a rank sends in one all_reduce of ``size`` bytes: lesson 03."""
    return 2 * size * (world_size - 1) // world_size


def sent_by_layers(sizes: Sizes, tokens: int, world_size: int) -> int:
    """Bytes a rank sends for the blocks and before the head, in both directions.

    The same with slices: a reduce_scatter and an all_gather are an all_reduce.
    """
    borders = 4 * sizes.blocks + 1  # the head's has a collective in backward alone
    return all_reduced(FLOAT32 * borders * sizes.width * tokens, world_size)


def sent_for_kept_whole(sizes: Sizes, world_size: int) -> int:
    """Bytes a rank sends for gradients of whole tensors, if it saw only its slice."""
    return all_reduced(FLOAT32 * kept_whole(sizes), world_size)


def by_hand(
    sizes: Sizes, batch_size: int, world_size: int, rank: int, sliced: bool
) -> dict[str, int]:
    """Bytes that a rank holds and sends in 14_tensor_by_hand.py."""
    tokens = batch_size * sizes.context
    sent = sent_by_layers(sizes, tokens, world_size)
    # the loss: the largest score, the sum and the score of the target
    sent += all_reduced(3 * FLOAT32 * tokens, world_size)
    if sliced:
        sent += sent_for_kept_whole(sizes, world_size)
    return {
        **model_states(parameters(sizes, world_size, rank)),
        "activations": activations(sizes, batch_size, world_size, rank, sliced),
        "sent in a step": sent,
    }


def by_torch(
    sizes: Sizes, batch_size: int, world_size: int, rank: int, sliced: bool
) -> dict[str, int]:
    """The same in 14_tensor_parallel.py, with torch 2.13 and AdamW.

    The loss also keeps the number of targets, one number. With slices, the embedding
    gets its whole gradient by an all_gather. The gradients of the norms stay Partial
    and are added up each time they are read: AdamW reads them three times.
    """
    table = by_hand(sizes, batch_size, world_size, rank, sliced)
    table["activations"] += FLOAT32
    if sliced:
        stream = FLOAT32 * sizes.width * batch_size * sizes.context
        norm = all_reduced(FLOAT32 * sizes.width, world_size)  # its weight or its bias
        table["sent in a step"] += stream * (world_size - 1) // world_size
        table["sent in a step"] += 3 * 2 * (2 * sizes.blocks + 1) * norm
        table["sent in a step"] -= sent_for_kept_whole(sizes, world_size)
    return table


FORMULAS = {"14_tensor_by_hand.py": by_hand, "14_tensor_parallel.py": by_torch}


@one_line_errors
def main() -> None:
    program = load_program(__doc__, FORMULAS)
    config = program.parse_arguments()
    device = join_or_alone(ALONE)
    inputs, targets = Batches(config, device).of_step(0)
    both = program.build(config, device)
    step = partial(program.train_step, *both, inputs, targets)
    measured = count_step(*both, step)
    world = dist.get_world_size(), dist.get_rank()
    says = FORMULAS[program.path.name]
    formula = says(sizes_of(config), len(inputs), *world, config.sequence_parallel)
    log(compare(measured, formula, "bytes on rank 0"))
    dist.destroy_process_group()


if __name__ == "__main__":
    run_and_exit(main)
