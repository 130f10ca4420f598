"""Every tensor you keep from a DataLoader's worker is an open file."""

import resource

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, index):
        return torch.tensor([float(index)])


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))  # 1,024 is usual
    kept = []
    for batch in DataLoader(Images(), num_workers=1):
        kept.append(batch)
    print(f"kept {len(kept)} batches")

# The cure: A copy of what a worker sent lets go of the file that it arrived in.
#
# -        kept.append(batch)
# +        kept.append(batch.clone())
