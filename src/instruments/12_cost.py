"""Count what each of two devices holds and sends in a step of model parallel.

    python src/instruments/12_cost.py src/12_two_processes.py 10 --cut 2

It runs one step of the program and prints what each of the two processes counted
beside the formulas. These are for the digits network, cut between two of its layers and
trained by SGD with momentum, in numbers of 4 bytes.
"""

import copy
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.cost.counting import FLOAT32, compare, load_program
from common.cost.measure import count_step
from common.data import load_digits_split, make_model
from common.distributed import is_rank_0, log, one_line_errors
from common.parallel.model_parallel import TwoPartsConfig

INT64 = 8  # bytes
IMAGE = torch.Size([1, 8, 8])
NAMES = ["12_two_processes.py"]


# [start formulas]
def layer_parameters(layer: nn.Module) -> int:
    """Numbers in the weight and the bias of a layer, from its sizes."""
    if isinstance(layer, nn.Conv2d):
        height, width = layer.kernel_size
        return layer.out_channels * (layer.in_channels * height * width + 1)
    if isinstance(layer, nn.Linear):
        return layer.out_features * (layer.in_features + 1)
    return 0


def numel_between(model: nn.Sequential) -> list[int]:
    """Numbers for one image before the first layer, after it, ... after the last."""
    x = torch.empty(1, *IMAGE, device="meta")  # shapes only, nothing is computed
    counts = [x.numel()]
    for layer in copy.deepcopy(model).to("meta"):
        x = layer(x)
        counts.append(x.numel())
    return counts


def saved_bytes(model: nn.Sequential, start: int, stop: int) -> int:
    """Bytes that layers ``start`` to ``stop`` save for backward, for one image.

    A convolution, a pooling and a linear layer save their input, a ReLU its output.
    The pooling also saves where each maximum was. What two layers save counts once.
    """
    between = numel_between(model)
    saved, maxima = set(), 0
    for index in range(start, stop):
        if isinstance(model[index], nn.ReLU):
            saved.add(index + 1)
        elif isinstance(model[index], (nn.Conv2d, nn.MaxPool2d, nn.Linear)):
            saved.add(index)
        if isinstance(model[index], nn.MaxPool2d):
            maxima += between[index + 1]
    return FLOAT32 * sum(between[index] for index in saved) + INT64 * maxima


def formulas(model: nn.Sequential, part: int, config: TwoPartsConfig) -> dict:
    """What the device with part 0 or 1 holds and sends in a step."""
    start, stop = [(0, config.cut), (config.cut, len(model))][part]
    numel = sum(layer_parameters(layer) for layer in model[start:stop])
    activations = config.batch_size * saved_bytes(model, start, stop)
    if part == 1:  # the loss: logarithms of 10 chances, the label; one total weight
        activations += config.batch_size * (10 * FLOAT32 + INT64)
        activations += config.micro_batches * FLOAT32
    return {
        "parameters": FLOAT32 * numel,
        "gradients": FLOAT32 * numel,
        "optimizer state": FLOAT32 * numel,
        "activations": activations,
        "sent in a step": FLOAT32
        * config.batch_size
        * numel_between(model)[config.cut],
    }


# [end formulas]
@one_line_errors
def run_rank(rank: int, world_size: int, argv: list[str]) -> None:
    """Count a step of this rank's part; rank 0 prints the table of each."""
    sys.argv = argv
    program = load_program(__doc__, NAMES)
    config = program.parse_arguments()
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    part = program.make_part(rank, config.cut)
    optimizer = program.make_optimizer(part.layers, config.learning_rate)
    loader = program.make_loader(load_digits_split()[0], config.batch_size)
    images, labels = next(iter(loader))

    def step() -> None:
        part.run_batch(images, labels, config.micro_batches)
        optimizer.step()

    counted = count_step(part.layers, optimizer, step)
    formula = formulas(make_model(), rank, config)
    table = compare(counted, formula, f"bytes on device {rank}")
    everyone: list = [None] * world_size if is_rank_0() else None
    dist.gather_object(table, everyone, dst=0)  # every rank
    log("\n".join(everyone or []))
    dist.destroy_process_group()


@one_line_errors
def main() -> None:
    argv = list(sys.argv)
    program = load_program(__doc__, NAMES)
    program.parse_arguments()  # refuses bad input once, before there are ranks
    program.start_ranks(run_rank, 2, argv)


if __name__ == "__main__":
    main()
