"""The smallest program that resumes when torchrun restarts it.

export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1    # restarts need it
torchrun --standalone --nproc-per-node=2 --max-restarts=3 src/07_elastic.py
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # import before the group is made
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

STEPS, PAUSE = 100, 0.05  # seconds in each step: time to kill a rank by hand
WEIGHTS = torch.tensor([[1.0, -2.0, 3.0, 0.5]])  # what the model has to learn


def train(model: nn.Module, rank: int, device: torch.device) -> None:
    """Start from the newest snapshot if there is one, and save every 20 steps."""
    start = torch.tensor(0, device=device)
    if rank == 0 and os.path.exists("elastic.pt"):
        snapshot = torch.load("elastic.pt", device, weights_only=True)
        model.load_state_dict(snapshot["model"])
        start.fill_(snapshot["steps_run"])
        print(f"Starting from step {start.item()}", flush=True)
    # every rank must reach these lines: rank 0's weights and its step are sent to all
    ddp_model = DDP(model)
    dist.broadcast(start, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(int(start), STEPS):
        torch.manual_seed(step * 1000 + rank)  # new data on every rank and step
        x = torch.randn(16, 4).to(device)
        loss = (ddp_model(x) - x @ WEIGHTS.T.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()  # gradients become the mean over the ranks in here
        optimizer.step()
        time.sleep(PAUSE)
        if (step + 1) % 20 == 0 and rank == 0:
            snapshot = {"model": model.state_dict(), "steps_run": step + 1}
            torch.save(snapshot, "elastic.pt.tmp")
            os.replace("elastic.pt.tmp", "elastic.pt")  # never half a file
            print(f"Step {step + 1} | Loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        error = "07_elastic.py: error: torchrun did not start this process"
        print(error, file=sys.stderr)
        sys.exit(2)
    local_rank = int(os.environ["LOCAL_RANK"])
    gpu = torch.device("cuda", local_rank) if torch.cuda.is_available() else None
    backend = "nccl" if gpu else "gloo"
    dist.init_process_group(backend, device_id=gpu)
    model = nn.Linear(4, 1).to(gpu or "cpu")
    train(model, dist.get_rank(), gpu or "cpu")  # DDP is gone when it returns
    if dist.get_rank() == 0:
        print("Weights", ", ".join(f"{w:.4f}" for w in model.weight[0].tolist()))
    dist.destroy_process_group()
