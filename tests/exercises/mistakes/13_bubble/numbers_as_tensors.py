# wrong value: Tensor | expected int
# [answer 2]
import torch

if schedule == "gpipe":
    return torch.tensor(micro_batches)
return torch.tensor([micro_batches, ranks - rank]).min()
