"""The smallest training that goes on where it was when torchrun starts it again.

export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1    # restarts with gloo need it
torchrun --standalone --nproc-per-node=2 --max-restarts=3 src/07_elastic.py
"""

import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from common.devices import choose_backend, choose_device
from common.logging import is_rank_0, log, one_line_errors
from common.rendezvous import get_torchrun_env
from common.snapshot import read_snapshot, write_snapshot

SNAPSHOT = Path("elastic.pt")
STEPS = 100
PAUSE = 0.05  # seconds in each step: time to kill a rank by hand
WEIGHTS = torch.tensor([[1.0, -2.0, 3.0, 0.5]])  # what the model has to find out


class ToyModel(nn.Module):
    """The smallest model that can learn a weighted sum: [B, 4] to [B, 1]."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def train(model: nn.Module, rank: int, device: torch.device) -> None:
    """Start from the latest snapshot, if there is one, and save every 20 steps."""
    start = 0
    if SNAPSHOT.exists():
        snapshot = read_snapshot(SNAPSHOT)
        model.load_state_dict(snapshot["model"])
        start = snapshot["steps_run"]
        log(f"Starting from step {start}")
    # every rank must reach this line: rank 0's weights are sent to all
    ddp_model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(start, STEPS):
        torch.manual_seed(step * 1000 + rank)  # other data on every rank and step
        x = torch.randn(16, 4).to(device)
        loss = (ddp_model(x) - x @ WEIGHTS.T.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()  # gradients become the mean over the ranks in here
        optimizer.step()
        time.sleep(PAUSE)
        if (step + 1) % 20 == 0:
            if is_rank_0():
                snapshot = {"model": model.state_dict(), "steps_run": step + 1}
                write_snapshot(snapshot, SNAPSHOT)
            log(f"Step {step + 1} | Loss {loss.item():.6f}")


@one_line_errors
def main() -> None:
    device = choose_device(get_torchrun_env().local_rank)
    dist.init_process_group(choose_backend(device))
    model = ToyModel().to(device)
    train(model, dist.get_rank(), device)  # DDP is gone when it returns
    log("Weights " + ", ".join(f"{w:.4f}" for w in model.layer.weight[0].tolist()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
