"""What the programs NN_cost.py share: they count a step of a program of their lesson.

    python src/instruments/13_cost.py src/13_train_gpt.py 300

The formulas here are for the byte GPT on one device. With H for the width of the
residual stream, a heads and T bytes of context, per block:

* parameters: 4 (H^2 + H) of attention, 8 H^2 + 5 H of the MLP, 4 H of the two norms,
  together 12 H^2 + 13 H (Narayanan et al., 2021, "Efficient Large-Scale Language Model
  Training on GPU Clusters Using Megatron-LM", section 5.1);
* activations saved for backward: 16 H + a + 4 numbers for each byte of the batch
  (Korthikanti et al., 2022, "Reducing Activation Recomputation in Large Transformer
  Models", section 4.1, without dropout masks and stored attention scores: the CPU's
  scaled_dot_product_attention saves one number per head and byte, each norm two).
"""

from __future__ import annotations

import os
import runpy
import sys
from argparse import REMAINDER
from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace

import common
from common.byte_gpt import BYTES, Sizes
from common.distributed import BadInput, Parser, output_file

SRC = Path(__file__).resolve().parents[2]
FLOAT32 = 4  # bytes


def load_program(
    description: str | None, names: Collection[str], **files: str
) -> SimpleNamespace:
    """The functions of the program that the command line names, and its ``path``.

    Its ``main`` is not run, and ``sys.argv`` becomes its command line. ``files`` are
    options of this command, with their help; each path is an attribute, too.

    Raises:
        BadInput: it is none of the programs ``names``, or is not there.
    """
    parser = Parser(description)
    for option, words in files.items():
        parser.add_argument(f"--{option}", type=output_file, metavar="FILE", help=words)
    parser.add_argument("program", type=Path, help=f"{' or '.join(names)}, in src")
    parser.add_argument("arguments", nargs=REMAINDER, help="its own command line")
    args = parser.parse_args()
    if args.program.name not in names or not args.program.is_file():
        choices = " or ".join(os.path.relpath(SRC / name) for name in names)
        raise BadInput(f"{args.program} cannot be counted here: name {choices}")
    sentence = common.problem(args.program)
    if sentence:
        raise BadInput(sentence)
    sys.argv = [str(args.program), *args.arguments]
    found = {option: getattr(args, option) for option in files}
    functions = runpy.run_path(sys.argv[0])
    return SimpleNamespace(**functions | found | {"path": args.program})


def compare(
    measured: Mapping[str, int], formula: Mapping[str, int], what: str = "bytes"
) -> str:
    """A line for each quantity: measured on this rank, and by the formula."""
    lines = [f"{what:<22} {'measured':>14} {'formula':>14}"]
    for name, value in formula.items():
        if name not in measured:
            continue  # such as an axis that this mesh does not have
        same = "" if value == measured[name] else "   they differ"
        lines.append(f"{name:<22} {measured[name]:>14,} {value:>14,}{same}")
    return "\n".join(lines)


def model_states(parameters: int) -> dict[str, int]:
    """Bytes for this many parameters in float32, trained by AdamW."""
    size = FLOAT32 * parameters
    return {"parameters": size, "gradients": size, "optimizer state": 2 * size}


def block_parameters(sizes: Sizes) -> int:
    """Numbers in the parameters of one block."""
    return 12 * sizes.width**2 + 13 * sizes.width


def embed_parameters(sizes: Sizes) -> int:
    """Numbers in the two tables of the embedding."""
    return (BYTES + sizes.context) * sizes.width


def head_parameters(sizes: Sizes) -> int:
    """Numbers in the last norm and the layer that scores bytes."""
    return 2 * sizes.width + (sizes.width + 1) * BYTES


def model_parameters(sizes: Sizes) -> int:
    """Numbers in all parameters."""
    blocks = sizes.blocks * block_parameters(sizes)
    return embed_parameters(sizes) + blocks + head_parameters(sizes)


def block_activations(sizes: Sizes, tokens: int) -> int:
    """Numbers that one block saves for backward, for ``tokens`` bytes in all."""
    return (16 * sizes.width + sizes.heads + 4) * tokens


def head_activations(sizes: Sizes, batch_size: int) -> int:
    """Bytes that embedding, head and loss save for a batch of [B, T] tokens.

    For each token: two whole numbers of 8 bytes (itself, its target), the norm's input,
    two statistics and result, and 256 log probabilities. One whole number for each
    place, and the loss's total weight.
    """
    tokens = batch_size * sizes.context
    numel = (2 * sizes.width + 2 + BYTES) * tokens + 1
    return FLOAT32 * numel + 8 * (2 * tokens + sizes.context)


def activations(sizes: Sizes, batch_size: int) -> int:
    """Bytes that the whole model and the loss save for [B, T] tokens."""
    blocks = sizes.blocks * block_activations(sizes, batch_size * sizes.context)
    return FLOAT32 * blocks + head_activations(sizes, batch_size)
