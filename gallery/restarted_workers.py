"""A DataLoader starts new workers in each epoch."""

import os

import torch
from torch.utils.data import DataLoader, Dataset

EPOCHS = 3


class Images(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return os.getpid()  # of the worker, which stands for an image here


if __name__ == "__main__":
    loader = DataLoader(Images(), num_workers=2)
    workers = set()
    for epoch in range(EPOCHS):
        running = set(torch.cat(list(loader)).tolist())
        print(f"epoch {epoch}: workers are the processes {sorted(running)}")
        workers |= running
    print(f"{EPOCHS} epochs with 2 workers: {len(workers)} processes were started")

# The cure: A DataLoader keeps its workers from one epoch to the next.
#
# -    loader = DataLoader(Images(), num_workers=2)
# +    loader = DataLoader(Images(), num_workers=2, persistent_workers=True)
