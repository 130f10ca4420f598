"""What a byte GPT holds, by formula: to be compared with what is counted.

With W for the width of the residual stream, h heads and T bytes of context, per block:

* parameters: 4 (W^2 + W) of attention, 8 W^2 + 5 W of the MLP, 4 W of the two norms,
  together 12 W^2 + 13 W (Narayanan et al., 2021, "Efficient Large-Scale Language Model
  Training on GPU Clusters Using Megatron-LM", section 5.1);
* activations saved for backward: 16 W + h + 4 numbers for each byte of the batch. The
  34 W bytes at two bytes a number of Korthikanti et al., 2022 ("Reducing Activation
  Recomputation in Large Transformer Models", section 4.1) hold 2 W of dropout masks,
  which this model does not have. Their 5 a s^2 b for the attention scores falls away,
  too: scaled_dot_product_attention saves one number per head and byte instead (here
  the CPU's, torch 2.13), and each of the two norms saves two.
"""

from __future__ import annotations

from byte_gpt import BYTES, Sizes

FLOAT32 = 4  # bytes


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


def head_activations(sizes: Sizes, batch_size: int, context: int) -> int:
    """Bytes that embedding, head and loss save for a batch of [B, T] tokens.

    For each token: two whole numbers of 8 bytes (itself, its target), the input of the
    norm and its two statistics, its result, and the logarithms of 256 chances. Beside
    that one whole number for each place, and the loss's total weight.
    """
    tokens = batch_size * context
    numbers = (2 * sizes.width + 2 + BYTES) * tokens + 1
    return FLOAT32 * numbers + 8 * (2 * tokens + context)
