"""Backward through a network that is cut in two, in one process.

python docs/examples/12_cut_the_graph.py
"""

import torch
import torch.nn.functional as F
from torch import nn


def run_batch(first, second, images, labels):
    """Leave the gradients of the whole network in both parts; return its loss."""
    hidden = first(images)
    leaf = hidden.detach().requires_grad_()  # no history: a new graph starts here
    loss = F.cross_entropy(second(leaf), labels)
    loss.backward()  # stops at leaf: first has no gradients yet
    hidden.backward(leaf.grad)  # continues through first
    return loss.detach()


def main():
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).double()
    images, labels = torch.randn(30, 64, dtype=torch.float64), torch.arange(30) % 10
    F.cross_entropy(whole(images), labels).backward()
    wanted = [parameter.grad.clone() for parameter in whole.parameters()]
    whole.zero_grad()
    run_batch(whole[:2], whole[2:], images, labels)
    found = [parameter.grad for parameter in whole.parameters()]
    largest = max((a - b).abs().max() for a, b in zip(found, wanted, strict=True))
    print(f"largest difference of a gradient: {largest.item():.0e}")


if __name__ == "__main__":
    main()
