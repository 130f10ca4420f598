"""One step on a batch of 30 images that is cut into micro-batches of 8.

python docs/examples/01_accumulate.py
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn


# [start accumulate]
def accumulated_step(model, optimizer, images, labels, micro_batch_size):
    """Take the step of the whole batch, with the memory of a micro-batch."""
    optimizer.zero_grad()
    for part, answers in zip(
        images.split(micro_batch_size), labels.split(micro_batch_size), strict=True
    ):
        loss = F.cross_entropy(model(part), answers)  # the mean over the micro-batch
        (loss * len(part) / len(images)).backward()  # its share; adds to .grad
    optimizer.step()


# [end accumulate]


def main():
    torch.manual_seed(0)
    whole = nn.Linear(64, 10, dtype=torch.float64)
    parts = copy.deepcopy(whole)
    images, labels = torch.randn(30, 64, dtype=torch.float64), torch.arange(30) % 10
    for model, size in ((whole, 30), (parts, 8)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        accumulated_step(model, optimizer, images, labels, size)
    difference = (whole.weight - parts.weight).abs().max().item()
    print(f"largest difference of a weight: {difference:.0e}")


if __name__ == "__main__":
    main()
