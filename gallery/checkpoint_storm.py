"""Every rank writes the whole model at each checkpoint."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
model = nn.Linear(500, 500)  # 1 MB, equal on all ranks
megabytes = sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6

with tempfile.TemporaryDirectory() as folder:
    for step in (10, 20):
        path = Path(folder) / f"step-{step}-rank-{rank}.pt"
        torch.save(model.state_dict(), path)
        saved = f"saved {path.stat().st_size / 1e6:.1f} MB"
        of_model = f"of the model's {megabytes:.1f} MB"
        print(f"rank {rank}: step {step}, {saved} {of_model}\n", end="", flush=True)
    size = sum(path.stat().st_size for path in Path(folder).iterdir())

written = torch.tensor(size / 1e6)
dist.all_reduce(written)  # every rank
if rank == 0:
    print(f"2 checkpoints of {ranks} ranks: {written.item():.0f} MB written")
dist.destroy_process_group()

# The cure: Rank 0 alone writes the model, which is the same on all ranks.
#
# -        path = Path(folder) / f"step-{step}-rank-{rank}.pt"
# -        torch.save(model.state_dict(), path)
# -        saved = f"saved {path.stat().st_size / 1e6:.1f} MB"
# -        of_model = f"of the model's {megabytes:.1f} MB"
# -        print(f"rank {rank}: step {step}, {saved} {of_model}\n", end="", flush=True)
# +        if rank == 0:
# +            path = Path(folder) / f"step-{step}.pt"
# +            torch.save(model.state_dict(), path)
# +            saved = f"saved {path.stat().st_size / 1e6:.1f} MB"
# +            of_model = f"of the model's {megabytes:.1f} MB"
# +            said = f"rank {rank}: step {step}, {saved} {of_model}\n"
# +            print(said, end="", flush=True)
