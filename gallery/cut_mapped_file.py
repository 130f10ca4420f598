"""A worker reads a mapped file while another job writes it again."""

import tempfile
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

TOKENS, BLOCK = 4000, 1000


class Blocks(Dataset):
    def __init__(self, path: Path):
        self.tokens = torch.from_file(str(path), size=TOKENS, dtype=torch.int32)

    def __len__(self):
        return TOKENS // BLOCK

    def __getitem__(self, index):
        return self.tokens[index * BLOCK : (index + 1) * BLOCK].clone()


def prepare(path: Path, tokens: int) -> None:
    """Write over the file: a process that has mapped it sees it shrink at once."""
    path.write_bytes(bytes(4 * tokens))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens.bin"
        prepare(path, TOKENS)
        blocks = Blocks(path)
        prepare(path, 0)  # the other job has just opened the file
        read = sum(batch.numel() for batch in DataLoader(blocks, num_workers=1))
        print(f"read {read} tokens")

# The cure: A worker reads a mapped file, and another job puts a new one in its place.
#
# -    """Write over the file: a process that has mapped it sees it shrink at once."""
# -    path.write_bytes(bytes(4 * tokens))
# +    """Write a new file, then rename it: a mapping of the old one stays."""
# +    new = path.with_suffix(".new")
# +    new.write_bytes(bytes(4 * tokens))
# +    new.replace(path)
