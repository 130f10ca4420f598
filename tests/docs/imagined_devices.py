"""nn.DataParallel on four imagined devices, for the tests of lesson 4's sentences.

There is no GPU here. What nn.DataParallel does in Python on four of them is its own
code, run with imagined devices; only the copies from device to device, which are C++,
are replaced by copies in memory. What happens there is taken from its documentation.
"""

import contextlib
import os
import sys
import threading
import types
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

DOCUMENTED = " ".join((nn.DataParallel.__doc__ or "").split())
DEVICES = [0, 1, 2, 3]


def documented(sentence):
    assert sentence in DOCUMENTED, f"nn.DataParallel no longer promises {sentence!r}"


def forget_gpus(monkeypatch):
    """Also on a machine that has some."""
    module = sys.modules["torch.nn.parallel.data_parallel"]
    monkeypatch.setattr(module, "_get_available_device_type", lambda: None)


class Scatter:
    """In place of the one that copies to GPUs; they share what ``copied`` lists."""

    copied: ClassVar[list] = []

    @classmethod
    def apply(cls, devices, sizes, dim, tensor):
        parts = tensor.chunk(len(devices), dim)
        cls.copied.append(("scatter", [len(part) for part in parts]))
        return parts


class Gather:
    @staticmethod
    def apply(device, dim, *parts):
        Scatter.copied.append(("gather", device))
        return torch.cat([p.view(1) if p.dim() == 0 else p for p in parts], dim)


def broadcast(tensors, devices, detach=False):
    """The first device has them already: its replica shares their memory."""
    others = devices[1:]
    sent = sum(tensor.nbytes for tensor in tensors) * len(others)
    Scatter.copied.append(("broadcast", sent))
    return [list(tensors), *([t.clone() for t in tensors] for _ in others)]


def imagine_devices(monkeypatch):
    """``imagine_devices(monkeypatch)(model)``: wrapped by nn.DataParallel for four."""
    monkeypatch.setattr(Scatter, "copied", [])
    of = {
        name: sys.modules[f"torch.nn.parallel.{name}"]
        for name in ("data_parallel", "replicate", "scatter_gather")
    }
    monkeypatch.setattr(of["replicate"], "_broadcast_coalesced_reshape", broadcast)
    monkeypatch.setattr(of["scatter_gather"], "Scatter", Scatter)
    monkeypatch.setattr(of["scatter_gather"], "Gather", Gather)
    monkeypatch.setattr(
        torch,
        "accelerator",
        types.SimpleNamespace(
            is_available=lambda: True,
            current_accelerator=lambda: torch.device("cpu"),
            current_stream=lambda device: contextlib.nullcontext(),
            device_index=lambda device: contextlib.nullcontext(),
        ),
    )

    def make(model, first_device="cpu"):
        monkeypatch.setattr(
            of["data_parallel"], "_get_available_device_type", lambda: "cpu"
        )
        parallel_model = nn.DataParallel(model, DEVICES)
        parallel_model.src_device_obj = torch.device(first_device)
        return parallel_model

    return make


def batch(size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(size, 6, generator=generator, dtype=torch.float64)
    return images, torch.randint(3, (size,), generator=generator)


def network(*extra):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), *extra, nn.Linear(5, 3)).double()


def gradients(forward, model, images, labels):
    model.zero_grad()
    F.cross_entropy(forward(images), labels).backward()
    return [p.grad.clone() for p in model.parameters()]


class Seen(nn.Module):
    """Notes in which process and thread it was called, and with how many images."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.counter = 0

    def forward(self, x):
        self.calls.append((os.getpid(), threading.current_thread(), len(x)))
        self.counter += len(x)
        return x
