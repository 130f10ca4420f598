"""Count what one of c ranks holds, sends and computes when sequences are cut.

    torchrun --standalone --nproc-per-node=4 src/instruments/21_cost.py \\
        src/21_ring_attention.py 300 --zigzag
    torchrun --standalone --nproc-per-node=4 src/instruments/21_cost.py \\
        src/21_ulysses.py 300

It runs one step of the program, and rank 0 prints what it counted beside the formulas.
A rank's keys are S bytes: B T/c tokens of H numbers. Per block, both ways together:

* sent: ring (6 c - 4) S, gathered keys and values 4 (c - 1) S, Ulysses 8 (c - 1)/c S;
* activations: ring and Ulysses 17 H + a + 4 numbers for each own token: H more than one
  device, because what attention returns is copied into another layout. With gathered
  keys and values 16 H + a + 4, of which 2 H are for each token of all ranks, and a mask
  of T numbers for each of a sequence's T/c own positions;
* products of a query and a key in forward, in units of (T/2c)^2: ring 4 r + 3 on rank
  r, 2 c + 1 with --zigzag. The other two leave that to PyTorch. On a CPU, also how long
  each rank computed them: its own CPU time, so waiting doesn't count.
"""

import sys
import time
from functools import partial
from pathlib import Path

import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.byte_gpt import Sizes, sizes_of
from common.cost.counting import (
    FLOAT32,
    activations,
    compare,
    load_program,
    model_parameters,
    model_states,
)
from common.cost.measure import count_step
from common.distributed import log, one_line_errors
from common.gpt_training import Batches
from common.parallel import context_parallel as cp
from common.process_group import join_or_alone

ALONE = "it has all of every sequence, and sends nothing"
BLOCK_SENDS = {
    "ring": lambda c, size: (6 * c - 4) * size if c > 1 else 0,
    "gather": lambda c, size: 4 * (c - 1) * size,
    "Ulysses": lambda c, size: 8 * (c - 1) * size // c,
}


def sent(sizes: Sizes, batch_size: int, c: int, method: str) -> int:
    """Bytes a rank sends in a step: in every block, and for all gradients."""
    own_keys = FLOAT32 * batch_size * sizes.context // c * sizes.width
    gradients = 2 * FLOAT32 * model_parameters(sizes) * (c - 1) // c
    return sizes.blocks * BLOCK_SENDS[method](c, own_keys) + gradients


def kept(sizes: Sizes, batch_size: int, c: int, method: str) -> int:
    """Bytes of activations on a rank."""
    own = Sizes(sizes.width, sizes.heads, sizes.blocks, sizes.context // c)
    total = activations(own, batch_size)
    if method != "gather":
        total += FLOAT32 * sizes.blocks * batch_size * own.context * sizes.width
    else:
        more = 2 * sizes.width * batch_size * (sizes.context - own.context)
        mask = sizes.context * own.context
        total += FLOAT32 * sizes.blocks * (more + mask)
    return total


def method_of(program: str, gather: bool) -> str:
    """Which of the three methods a program trains with."""
    if program == "21_ulysses.py":
        return "Ulysses"
    return "gather" if gather else "ring"


class Products:
    """Counts products of a query with a key in forward, as ``count``.

    ``seconds`` is the CPU time that this thread has spent in them.
    """

    def __enter__(self) -> "Products":
        self.count, self.seconds = 0, 0.0
        self._attend = cp.attend
        cp.attend = self._counting
        return self

    def __exit__(self, *error) -> None:
        cp.attend = self._attend

    def _counting(self, query, key, value, same_place):
        self.count += query.shape[-2] * key.shape[-2]
        start = time.thread_time()
        part = self._attend(query, key, value, same_place)
        self.seconds += time.thread_time() - start
        return part


def of_all_ranks(number: int) -> str:
    """Every rank calls this with its own; the text has the numbers of all, in order."""
    gathered: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(gathered, number)
    return ", ".join(map(str, gathered))


@one_line_errors
def main() -> None:
    program = load_program(__doc__, ("21_ring_attention.py", "21_ulysses.py"))
    config = program.parse_arguments()
    device = join_or_alone(ALONE)
    inputs, targets = Batches(config, device).of_step(0)
    model, optimizer, cut = program.build(config, device)
    step = partial(program.train_step, model, optimizer, cut, inputs, targets)
    with Products() as products:
        measured = count_step(model, optimizer, step)
    sizes, c = sizes_of(config), dist.get_world_size()
    method = method_of(program.path.name, getattr(config, "gather", False))
    formula = model_states(model_parameters(sizes)) | {
        "activations": kept(sizes, len(inputs), c, method),
        "sent in a step": sent(sizes, len(inputs), c, method),
    }
    log(compare(measured, formula, "bytes on rank 0"))
    if method == "ring":
        unit = (sizes.context // (cp.CHUNKS_PER_RANK * c)) ** 2 * sizes.blocks
        # Every rank: how many units of products each has computed.
        counts = of_all_ranks(products.count // unit)
        log(f"products on each rank, in units of (T/2c)^2 per block: {counts}")
        if device.type == "cpu":
            took = of_all_ranks(round(1000 * products.seconds))
            log(f"CPU time of these products, in milliseconds: {took}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
