"""What PyTorch 2.13 says of a Mac with Apple silicon: it has a GPU, called MPS."""

import torch

MPS = torch.device("mps")


def current(*_: object, **__: object) -> torch.device:
    return MPS


torch._C._get_accelerator = current  # asked where fully_shard() is given no mesh
torch.accelerator.current_accelerator = current
torch.accelerator.is_available = lambda: True
torch.accelerator.device_count = lambda: 1
torch.accelerator.synchronize = lambda *_: None
