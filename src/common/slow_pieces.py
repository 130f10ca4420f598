"""A data set that is slow on purpose: the pieces of text that lesson 17 trains on."""

from __future__ import annotations

import time
import zlib

import torch
from torch.utils.data import Dataset

from common.byte_gpt import load_text


class SlowPieces(Dataset):
    """Pieces of the text that are slow to read: far away, and each compressed."""

    def __init__(self, context: int, wait: float = 0.005):
        self.wait = wait  # s to open a piece, as on a network disk
        pieces = load_text()[0].split(context + 1)[:1000]
        self.files = [zlib.compress(bytes(piece.tolist())) for piece in pieces]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:  # [context + 1]
        time.sleep(self.wait)
        return torch.tensor(list(zlib.decompress(self.files[index])))
