"""A data set's own generator is copied to each worker, so all draw the same noise."""

import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand((), generator=self.generator)


if __name__ == "__main__":
    torch.manual_seed(0)
    noise = [round(value.item(), 3) for value in DataLoader(Noise(), num_workers=2)]
    print(f"samples of worker 0: {noise[0::2]}")
    print(f"samples of worker 1: {noise[1::2]}")
    print(f"{len(set(noise))} different values for {len(noise)} samples")

# The cure: Each worker has a generator of its own, with a seed that DataLoader gives
# it.
#
# -    def __init__(self):
# -        self.generator = torch.Generator().manual_seed(0)
# -
# @@
# -        return torch.rand((), generator=self.generator)
# +        return torch.rand(())
