"""A DataLoader's worker writes a batch to a /dev/shm that is too small for it."""

import os
import shlex
import sys

import torch
from torch.utils.data import DataLoader, Dataset

MEGABYTES = 1  # of shared memory, as in a container with a small --shm-size
AGAIN = [sys.executable, "-s", __file__, "in_namespace"]


class Images(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((3, 224, 224), float(index))


def small_shm() -> None:
    """Start again, with a /dev/shm of its own: the machine's stays as it is."""
    mount = f"mount -t tmpfs -o size={MEGABYTES}m shm /dev/shm"
    words = ["unshare", "--map-root-user", "--mount"]
    os.execvp(words[0], [*words, "sh", "-c", f"{mount} && exec {shlex.join(AGAIN)}"])


if __name__ == "__main__":
    if sys.argv[1:] != ["in_namespace"]:
        small_shm()
    for number, batch in enumerate(DataLoader(Images(), batch_size=8, num_workers=1)):
        print(f"batch {number}: {batch.nbytes / 1e6:.1f} MB of /dev/shm", flush=True)

# The cure: A DataLoader has a /dev/shm with room for the batches that wait in it.
#
# -MEGABYTES = 1  # of shared memory, as in a container with a small --shm-size
# +MEGABYTES = 64  # of shared memory: `docker run --shm-size=64m`
