"""A small GPT that reads and writes bytes: the model of lessons 13 to 16.

    model = ByteGPT(Sizes(width=96, heads=12, blocks=4, context=64))
    scores = model(tokens)                    # [B, T] whole numbers -> [B, T, 256]
    loss = next_byte_loss(scores, targets)

A decoder as in GPT-2 (Radford et al., 2019): normalisation before attention and MLP, a
residual round each, learned positions. Nothing is left out that makes it hard to
split, and there is no dropout, so that a split model can be compared with a whole one
to the last digit. Embedding and head have weights of their own, for they end up on
different ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from common.distributed import BadInput

BYTES = 256


@dataclass(frozen=True)
class Sizes:
    """How large a model is; ``width`` is that of the residual stream.

    Raises:
        BadInput: the heads do not divide the width.
    """

    width: int = 96
    heads: int = 12  # divides among 2, 3, 4 and 6 ranks
    blocks: int = 4
    context: int = 64  # bytes that a prediction can look back on

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise BadInput(
                f"--width {self.width} cannot be divided among --heads {self.heads}: "
                "choose a multiple"
            )

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def hidden(self) -> int:
        """The width inside an MLP."""
        return 4 * self.width


# [start attention]
class Attention(nn.Module):
    """Every position gathers from those before it: [B, T, width] -> the same."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.head_width = sizes.head_width
        self.query = nn.Linear(sizes.width, sizes.width)
        self.key = nn.Linear(sizes.width, sizes.width)
        self.value = nn.Linear(sizes.width, sizes.width)
        self.out = nn.Linear(sizes.width, sizes.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # As many heads as the layers have columns for: a shard has fewer of them.
        heads = [
            layer(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]  # each [B, heads, T, head_width]
        gathered = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(gathered.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Every position by itself: [B, T, width] -> the same."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.up = nn.Linear(sizes.width, sizes.hidden)
        self.down = nn.Linear(sizes.hidden, sizes.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """Attention and MLP, each added to what comes in: [B, T, width] -> the same."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.width)
        self.attention = Attention(sizes)
        self.mlp_norm = nn.LayerNorm(sizes.width)
        self.mlp = MLP(sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


# [end attention]
# [start whole]
class Embed(nn.Module):
    """A vector for each byte and each place: [B, T] whole numbers -> [B, T, width]."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.byte = nn.Embedding(BYTES, sizes.width)
        self.place = nn.Embedding(sizes.context, sizes.width)
        for table in (self.byte, self.place):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.byte(tokens) + self.place(positions)


class Head(nn.Module):
    """A score for each byte that may come next: [B, T, width] -> [B, T, 256]."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.norm = nn.LayerNorm(sizes.width)
        self.score = nn.Linear(sizes.width, BYTES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.score(self.norm(x))


class ByteGPT(nn.Module):
    """Scores for the byte after each place: [B, T] whole numbers -> [B, T, 256]."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes
        self.embed = Embed(sizes)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.blocks))
        self.head = Head(sizes)

    def layers(self) -> list[nn.Module]:
        """What ``forward`` applies, one after the other: where a model can be cut."""
        return [self.embed, *self.blocks, self.head]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = tokens
        for layer in self.layers():
            x = layer(x)
        return x


def next_byte_loss(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over all places of -log p, in nats per byte: [B, T, 256], [B, T] -> []."""
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


# [end whole]
@torch.no_grad()
def write_on(
    model: nn.Module, context: int, start: bytes, count: int, seed: int = 0
) -> bytes:
    """``start`` and ``count`` more bytes, each drawn from what the model expects."""
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)  # the same draws on any device
    text = list(start)
    for _ in range(count):
        tokens = torch.tensor([text[-context:]], device=device)
        chances = F.softmax(model(tokens)[0, -1].double().cpu() / 0.8, dim=0)
        text.append(int(torch.multinomial(chances, 1, generator=generator)))
    return bytes(text)
