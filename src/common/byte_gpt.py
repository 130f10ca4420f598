"""A small GPT that reads and writes bytes: the model of lessons 13 to 17.

    model = ByteGPT(Sizes(width=96, heads=12, blocks=4, context=64))
    scores = model(tokens)                    # [B, T] whole numbers -> [B, T, 256]
    loss = next_byte_loss(scores, targets)

A decoder as in GPT-2 (Radford et al., 2019): normalization before attention and MLP, a
residual around each, learned positions. There is no dropout, so that a split model can
be compared with a whole one to the last digit. Embedding and head have weights of
their own, because they end up on different ranks.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import nn

from common.distributed import BadInput

BYTES = 256
TEST_EVERY = 10  # one file of ten is kept for the test
MARK = b"\n\n"  # between two files


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
            given = f"--width {self.width} cannot be divided among --heads {self.heads}"
            raise BadInput(f"{given}: choose a multiple")

    @property
    def hidden(self) -> int:
        """The width inside an MLP."""
        return 4 * self.width


class SizeOptions(Protocol):
    """A command line that says how large the model is, among other things."""

    width: int
    heads: int
    blocks: int
    context: int


def sizes_of(options: SizeOptions) -> Sizes:
    """The sizes of the model that a command line asks for."""
    return Sizes(options.width, options.heads, options.blocks, options.context)


# [start attention]
class Attention(nn.Module):
    """Every position gathers from those before it: [B, T, width] -> the same."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.head_width = sizes.width // sizes.heads
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
    """Attention and MLP, each added to its input: [B, T, width] -> the same."""

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
# The text: the source files of Python's own standard library. Every machine with Python
# has them, and the same Python has the same bytes, so nothing is downloaded.


def stdlib_files(folder: Path | None = None) -> list[Path]:
    """The ``.py`` files directly in the folder of the standard library, by name.

    Without those that differ between builds of one version (``_sysconfigdata*``).

    Raises:
        BadInput: there are none, as in some small distributions.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    found = folder.glob("*.py")
    files = sorted(path for path in found if not path.name.startswith("_sysconfig"))
    if len(files) < TEST_EVERY:
        what = f"the standard library in {folder} has no source files to train on"
        cure = "use a Python that comes with them, such as the one of your distribution"
        raise BadInput(f"{what}: {cure}")
    return files


def load_text(folder: Path | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """(text to train on, text to test on): bytes as uint8, one dimension each."""
    parts: tuple[list[bytes], list[bytes]] = [], []
    for number, path in enumerate(stdlib_files(folder)):
        parts[number % TEST_EVERY == TEST_EVERY - 1].append(path.read_bytes())
    whole = [bytearray(MARK.join(part)) for part in parts]
    train, test = (torch.frombuffer(text, dtype=torch.uint8) for text in whole)
    return train, test


def batch_of_step(
    text: torch.Tensor, step: int, batch_size: int, context: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs, targets) of one step, [B, T] each: pieces of the text, and what follows.

    They depend on the number of the step alone. So every rank can draw the global
    batch and take its part, and a resumed run continues with the batch that is next.
    """
    generator = torch.Generator().manual_seed(step)
    starts = torch.randint(len(text) - context, (batch_size, 1), generator=generator)
    pieces = text[starts + torch.arange(context + 1)].long()  # [B, T + 1]
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()


def unigram_entropy(text: torch.Tensor) -> float:
    """The loss, in nats per byte, of a model that knows only the byte frequencies."""
    chances = torch.bincount(text.long(), minlength=256).double() / len(text)
    return float(torch.special.entr(chances).sum())
