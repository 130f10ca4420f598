"""Fit a line: python docs/examples/05_one_device.py"""

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


def train(points):
    sampler = RandomSampler(points)
    loader = DataLoader(points, batch_size=16, sampler=sampler)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(20):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return [parameter.item() for parameter in model.parameters()]


x = torch.linspace(-1, 1, 128).reshape(-1, 1)
print("slope {:.3f}, offset {:.3f}".format(*train(TensorDataset(x, 3 * x + 1))))
