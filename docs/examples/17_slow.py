"""A training run that is slow. Each remedy in 17_remedies.diff changes a few lines.

PYTHONPATH=src torchrun --standalone --nproc-per-node=2 docs/examples/17_slow.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

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


def train(steps: int, device: torch.device) -> torch.Tensor:
    """The loss of the last step: of this rank's 4 micro-batches."""
    ddp_model = build(device)
    optimizer = torch.optim.AdamW(ddp_model.parameters(), 3e-3)
    pieces = SlowPieces(64)
    loader = DataLoader(
        pieces,
        batch_size=4,
        sampler=DistributedSampler(pieces),
    )
    batches, step_loss = iter(loader), torch.zeros((), device=device)
    for _ in range(steps):
        optimizer.zero_grad()
        step_loss.zero_()
        for number in range(MICRO_BATCHES):
            tokens = next(batches).to(device)
            scores = ddp_model(tokens[:, :-1])
            loss = next_byte_loss(scores.float(), tokens[:, 1:]) / MICRO_BATCHES
            loss.backward()
            step_loss += loss.detach()
        optimizer.step()
    return step_loss


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loss = train(3, torch.device("cpu"))
    dist.all_reduce(loss, dist.ReduceOp.AVG)  # the ranks have other pieces
    if dist.get_rank() == 0:
        print(f"loss {loss:.2f}")
    dist.destroy_process_group()
