"""The text of lessons 13 to 16: the source files of Python's own standard library.

Every machine with Python has them, and the same Python has the same bytes. So nothing
is downloaded, and two people with one version of Python see the same losses.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

import torch

from common.distributed import BadInput

SEED = 0
TEST_EVERY = 10  # one file of ten is kept for the test
MARK = b"\n\n"  # between two files


def stdlib_files(folder: Path | None = None) -> list[Path]:
    """The ``.py`` files right in the folder of the standard library, by name.

    Files that differ between builds of one version (``_sysconfigdata*``) and what was
    installed later (``site-packages``) are not among them.

    Raises:
        BadInput: there are none, as in some small distributions.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    files = sorted(
        path for path in folder.glob("*.py") if not path.name.startswith("_sysconfig")
    )
    if len(files) < TEST_EVERY:
        raise BadInput(
            f"the standard library in {folder} has no source files to train on: use a "
            "Python that comes with them, such as the one of your distribution"
        )
    return files


def load_text(folder: Path | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """(text to train on, text to test on): bytes as uint8, one dimension each."""
    parts: tuple[list[bytes], list[bytes]] = [], []
    for number, path in enumerate(stdlib_files(folder)):
        parts[number % TEST_EVERY == TEST_EVERY - 1].append(path.read_bytes())
    train, test = (
        torch.frombuffer(bytearray(MARK.join(part)), dtype=torch.uint8)
        for part in parts
    )
    return train, test


def batch_of_step(
    text: torch.Tensor, step: int, batch_size: int, context: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs, targets) of one step, [B, T] each: pieces of the text, and what follows.

    They depend on the number of the step alone. So every rank can draw the global
    batch of all ranks and take its part, and a resumed run goes on with the batch that
    would have come next.
    """
    generator = torch.Generator().manual_seed(SEED + step)
    starts = torch.randint(len(text) - context, (batch_size, 1), generator=generator)
    pieces = text[starts + torch.arange(context + 1)].long()  # [B, T + 1]
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()


def unigram_entropy(text: torch.Tensor) -> float:
    """Nats per byte of who knows how frequent each byte is, and nothing else.

    A model whose loss is not clearly below has learnt nothing from what comes before.
    """
    chances = torch.bincount(text.long(), minlength=256).double() / len(text)
    return float(torch.special.entr(chances).sum())
