"""A training run that is slow. Each remedy in 17_remedies.diff changes a few lines.

PYTHONPATH=src torchrun --standalone --nproc-per-node=2 docs/examples/17_slow.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from common.byte_gpt import ByteGPT, Sizes, next_byte_loss
from common.slow_pieces import SlowPieces

MICRO_BATCHES = 4


def build(device: torch.device) -> DDP:
    torch.manual_seed(0)
    model = ByteGPT(Sizes(context=64)).to(device)
    ddp_model = DDP(
        model,
        bucket_cap_mb=0.25,
    )
    return ddp_model


def train(steps: int, device: torch.device) -> float:
    ddp_model = build(device)
    optimizer = torch.optim.AdamW(ddp_model.parameters(), 3e-3)
    loader = DataLoader(
        SlowPieces(64),
        batch_size=4,
        shuffle=True,
    )
    batches = iter(loader)
    for _ in range(steps):
        optimizer.zero_grad()
        for number in range(MICRO_BATCHES):
            tokens = next(batches).to(device)
            scores = ddp_model(tokens[:, :-1])
            loss = next_byte_loss(scores.float(), tokens[:, 1:]) / MICRO_BATCHES
            loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = train(3, torch.device("cpu"))
    if dist.get_rank() == 0:
        print(f"loss {loss:.2f}")
    dist.destroy_process_group()
