"""A data set that is slow to decode: the pieces of text that lesson 17 trains on."""

from __future__ import annotations

import bz2

import torch
from torch.utils.data import Dataset

from common.byte_gpt import load_text

DOCUMENTS, LENGTH = 4, 2**18  # that many bytes of text are compressed together


class SlowPieces(Dataset):
    """Pieces of compressed documents. To read a piece, all of its document is decoded.

    A bz2 stream has no other way to a place in its middle.
    """

    def __init__(self, context: int):
        self.size = context + 1
        documents = load_text()[0].split(LENGTH)[:DOCUMENTS]
        self.files = [bz2.compress(bytes(text.tolist())) for text in documents]

    def __len__(self) -> int:
        return DOCUMENTS * (LENGTH // self.size)

    def __getitem__(self, index: int) -> torch.Tensor:  # [context + 1]
        number, piece = divmod(index, LENGTH // self.size)
        text = bytearray(bz2.decompress(self.files[number]))
        values = torch.frombuffer(text, dtype=torch.uint8).long()  # [LENGTH]
        return values[piece * self.size : (piece + 1) * self.size].clone()
