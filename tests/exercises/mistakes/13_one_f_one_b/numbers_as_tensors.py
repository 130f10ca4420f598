# wrong value: list of tuple (str, Tensor) | expected list
# [answer 2]
import torch

actions = [("forward", k) for k in range(ahead)]
for k in range(ahead, micro_batches):
    actions += [("forward", k), ("backward", k - ahead)]
actions += [("backward", k) for k in range(micro_batches - ahead, micro_batches)]
return [(what, torch.tensor(k)) for what, k in actions]
