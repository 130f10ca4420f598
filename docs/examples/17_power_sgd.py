"""What PowerSGD sends, and how far its gradient is from the mean over the ranks.

torchrun --standalone --nproc-per-node=2 docs/examples/17_power_sgd.py
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the hook waits for a GPU where it sees one

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd
from torch.nn.parallel import DistributedDataParallel as DDP

EXACT, STEPS = 2, 20  # steps of plain all-reduces, at least 2; then compressed ones


def gradients(feedback: bool) -> tuple[torch.Tensor, power_sgd.PowerSGDState]:
    """[EXACT + STEPS, P], always of the same weights and data; and what was sent."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    model = DDP(layers, bucket_cap_mb=1000)  # one bucket: with more, gloo can hang
    state = power_sgd.PowerSGDState(
        None,  # the default group
        matrix_approximation_rank=1,
        start_powerSGD_iter=EXACT,
        use_error_feedback=feedback,
    )
    model.register_comm_hook(state, power_sgd.powerSGD_hook)
    torch.manual_seed(1 + dist.get_rank())
    inputs, found = torch.randn(16, 64), []
    for _ in range(EXACT + STEPS):
        model.zero_grad()
        model(inputs).square().mean().backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    return torch.stack(found), state


dist.init_process_group("gloo")
for feedback in (False, True):
    found, state = gradients(feedback)  # DDP is gone when it returns
    exact, compressed = found[0], found[EXACT:]
    wrong = [
        f"{(mean - exact).norm() / exact.norm():.0%}"
        for mean in (compressed[0], compressed.mean(dim=0))
    ]
    if dist.get_rank() == 0:
        sizes = [total // STEPS for total in state.compression_stats()[1:]]
        name = "with" if feedback else "without"
        print(f"{name} error feedback: {sizes[0]:,} numbers, {sizes[1]} are sent")
        print(f"  wrong by {wrong[0]} in one step, {wrong[1]} in the mean of {STEPS}")
dist.barrier()  # meanwhile gloo's threads let go of the hook, which holds the group
dist.destroy_process_group()
