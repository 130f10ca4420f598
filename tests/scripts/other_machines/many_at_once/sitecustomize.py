"""An optimizer's own choice on a GPU: one kernel for many parameters (foreach)."""

from torch.optim import optimizer

optimizer._get_foreach_kernels_supported_devices = lambda: ["cpu"]
