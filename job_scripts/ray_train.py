"""Train with DDP in workers that Ray Train starts: one file to change.

    pip install "ray[default,train]"
    python job_scripts/ray_train.py                     # two workers on this machine
    python job_scripts/ray_train.py --workers 8 --gpus  # in the Ray cluster you're on

Ray sets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE and NODE_RANK in each worker,
and forms the process group before it calls your function. So don't form it again.
"""

import argparse

import ray.train  # pyright: ignore[reportMissingImports]
import ray.train.torch  # pyright: ignore[reportMissingImports]
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(settings: dict[str, int]) -> None:
    """What each worker runs, as a rank of the group that Ray has formed."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = ray.train.torch.get_device()
    torch.manual_seed(0)
    ddp_model = DDP(nn.Linear(8, 1, bias=False).to(device))
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(1)
    points = torch.randn(settings["batch_size"], 8, generator=generator)
    shares = points.tensor_split(world_size)
    inputs = shares[rank].to(device)  # this rank's share of the same batch
    for step in range(settings["steps"]):
        optimizer.zero_grad()
        loss = (ddp_model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()  # every rank must reach this line
        optimizer.step()
        mean = loss.detach() / world_size
        dist.all_reduce(mean)  # every rank must reach this line; [] -> [], the sum
        ray.train.report({"step": step, "loss": mean.item()})  # every rank, too
    if rank == 0:
        print(f"step {step} | loss {mean.item():.6f}", flush=True)


def parse_command_line() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--workers", type=int, default=2, help="ranks, on all nodes")
    parser.add_argument("--gpus", action="store_true", help="one GPU for each worker")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks")
    return parser.parse_args()


def main() -> None:
    args = parse_command_line()
    workers = ray.train.ScalingConfig(num_workers=args.workers, use_gpu=args.gpus)
    restarts = ray.train.FailureConfig(max_failures=3)  # of all workers together
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"steps": args.steps, "batch_size": args.batch_size},
        scaling_config=workers,
        run_config=ray.train.RunConfig(failure_config=restarts),
    )
    trainer.fit()  # its result has metrics only of a report with a checkpoint


if __name__ == "__main__":
    main()
