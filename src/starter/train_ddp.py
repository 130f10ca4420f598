"""Train with DistributedDataParallel on any number of GPUs and nodes: one file to copy.

Change the three marked places: (1) data, (2) model, (3) loss. It needs only PyTorch:

    python train_ddp.py                                     # a laptop, one process
    torchrun --standalone --nproc-per-node=4 train_ddp.py   # one machine, four ranks
    SCRIPT=train_ddp.py sbatch job_scripts/requeue.sbatch   # longer than a job may be
    qsub -v SCRIPT=train_ddp.py job_scripts/chained.pbs     # the same with PBS

Run the same command again to resume: it ends with the parameters of an uninterrupted
run. SIGTERM or SIGUSR1 to any rank saves after the next step; all exit with status 0.
"""

import argparse
import atexit
import contextlib
import functools
import math
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch


def need_torch(oldest: str) -> None:
    """End with status 2 where PyTorch is older."""
    if torch.__version__ < oldest:
        found = f"this is PyTorch {torch.__version__}, and it needs {oldest} or newer"
        print(f"{sys.argv[0]}: error: {found}", file=sys.stderr, flush=True)
        sys.exit(2)


need_torch("2.4")  # the imports below fail in older ones

import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it keeps the group alive
from torch import nn
from torch.distributed.checkpoint import state_dict as dcp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import data


# (1) your data, to train on and to evaluate; samples are tuples of tensors
def make_datasets() -> list:
    points = torch.randn(5000, 32, generator=torch.Generator().manual_seed(0))
    samples = data.TensorDataset(points, points[:, :10].argmax(1))
    return [data.Subset(samples, range(4001)), data.Subset(samples, range(4001, 5000))]


# (2) your model
def make_model() -> nn.Module:
    hidden = nn.Linear(32, 128), nn.GELU(), nn.Dropout(0.1)
    return nn.Sequential(*hidden, nn.Linear(128, 10))


# (3) your loss: the mean over the samples of a batch
def loss_function(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


add = (parser := argparse.ArgumentParser()).add_argument
add("epochs", nargs="?", type=int, default=10, help="in all runs together")
add("save_every", nargs="?", type=float, default=1, help="in epochs, such as 0.25")
add("--snapshot", type=Path, default="snapshot.pt", help="where rank 0 saves")
add("--batch-size", type=int, default=64, help="samples per step, of all ranks")
add("--accumulation", type=int, default=1, help="forwards per step, to save memory")
add("--learning-rate", type=float, default=3e-3, help="at the end of the warm-up")
add("--warmup-steps", type=int, default=50)
add("--workers", type=int, default=2, help="processes per rank that load data")
add("--log-every", type=int, default=20, help="in steps")
add("--seed", type=int, default=0)


def join_ranks(args: argparse.Namespace) -> argparse.Namespace:
    """Join the process group, and add to ``args`` who this process is."""
    launchers = (  # where each says rank, world size, local rank
        ("RANK", "WORLD_SIZE", "LOCAL_RANK"),  # torchrun
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"),  # srun
    )
    names = next((names for names in launchers if {*names} <= os.environ.keys()), ())
    values = [int(os.environ[name]) for name in names[:3]]
    args.rank, args.world_size, local_rank = values or (0, 1, 0)
    # one process has nobody to agree with; ranks agree through MASTER_ADDR
    store = dist.HashStore() if args.world_size == 1 else None
    args.device, backend, device_id = torch.device("cpu"), "gloo", None
    if torch.cuda.is_available():
        # modulo, because some launchers show each rank only the GPU that is its own
        device_id = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device_id)
        args.device, backend = device_id, "cpu:gloo,cuda:nccl"  # gloo waits for no GPU
    timeout, ranks = timedelta(minutes=30), (args.world_size, args.rank)  # saves fit in
    dist.init_process_group(
        backend, None, timeout, *ranks, store=store, device_id=device_id
    )
    return args


def from_rank_0(step: int, problem: str) -> int:
    """The step of rank 0, on all ranks; if it has a problem, all end with status 2."""
    box = [step, problem]
    dist.broadcast_object_list(box, device=torch.device("cpu"))  # from rank 0 to all
    if box[1] and dist.get_rank() == 0:
        print(f"{sys.argv[0]}: error: {box[1]}", file=sys.stderr, flush=True)
    if box[1]:
        dist.barrier()  # torchrun ends all ranks as soon as one has ended
        os._exit(2)
    return box[0]


def micro_batch(dataset, args: argparse.Namespace, number) -> list:
    """The batch of one forward pass on this rank; its number alone determines it."""
    step, part = divmod(number, args.accumulation)
    epoch, position = divmod(step, args.steps_per_epoch)
    if epoch != args.epoch:  # another order, the same on all ranks
        rng = torch.Generator().manual_seed(hash((args.seed, epoch)))
        args.epoch, args.order = epoch, torch.randperm(len(dataset), generator=rng)
    batch = args.order[position * args.batch_size :][: args.batch_size]
    own = batch[args.rank :: args.world_size].chunk(args.accumulation)[part]
    torch.manual_seed(hash((args.seed, number, args.rank)))  # and numpy's, if used
    return data.default_collate([dataset[index] for index in own.tolist()])


def mean_loss(model: nn.Module, batch: list, device: torch.device) -> torch.Tensor:
    batch = [tensor.to(device, non_blocking=True) for tensor in batch]
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        return loss_function(model, batch)


def train_step(ddp: DDP, optimizer, batches, step: int, args) -> torch.Tensor:
    """One step on the batch of all ranks; its part of the mean loss, on the device."""
    mean = torch.zeros((), device=args.device)
    for part in range(args.accumulation):
        batch, last = next(batches), part == args.accumulation - 1
        torch.manual_seed(hash((args.seed, step, part, args.rank)))  # for dropout
        with contextlib.nullcontext() if last else ddp.no_sync():
            loss = mean_loss(ddp, batch, args.device) / args.accumulation
            loss.backward()  # the last one makes gradients the mean over the ranks
        mean += loss.detach()
    nn.utils.clip_grad_norm_(ddp.parameters(), max_norm=1.0)
    warm, rest = args.warmup_steps, max(1, args.total_steps - args.warmup_steps)
    cosine = 0.55 + 0.45 * math.cos(math.pi * max(0, step - warm) / rest)
    for group in optimizer.param_groups:  # up in a line, down in a cosine to a tenth
        group["lr"] = args.learning_rate * min(1, (step + 1) / (warm + 1)) * cosine
    optimizer.step()
    optimizer.zero_grad()
    return mean / args.world_size


@torch.no_grad()
def evaluate(model: nn.Module, loader, args: argparse.Namespace) -> float:
    """The mean loss over a data set: each sample counts once, on one of the ranks."""
    total = torch.zeros((), dtype=torch.float64, device=args.device)
    model.eval()  # without DDP: it has no collectives, so no rank needs padding
    for batch in loader:
        total += mean_loss(model, batch, args.device) * len(batch[0])
    model.train()
    dist.all_reduce(total)  # every rank must reach this line; [] -> [], the sum
    return total.item() / len(loader.dataset)


def save_snapshot(model: nn.Module, optimizer, step: int, args) -> None:
    """Rank 0 replaces the snapshot: a kill in here leaves the previous one."""
    path, problem = args.snapshot, ""
    if args.rank == 0:
        snapshot = {"step": step, "run": args.run, "model": model.state_dict()}
        snapshot["optimizer"] = dcp.get_optimizer_state_dict(model, optimizer)
        try:
            if path.exists() and os.path.getmtime(path) > args.saved + 1:  # a second
                raise OSError("another run has written it: end one of the two")
            with open(f"{path}.tmp", "wb") as file:
                torch.save(snapshot, file)
                file.flush()
                os.fsync(file.fileno())  # on the disk, before it gets the name
            os.replace(file.name, path)
            args.saved = os.path.getmtime(path)
        except (OSError, RuntimeError) as error:
            problem = f"cannot write {path}, which is unharmed: {error}"
    from_rank_0(step, problem)


def load_snapshot(model: nn.Module, optimizer, args: argparse.Namespace) -> int:
    """Resume if rank 0 finds a snapshot; returns the steps that were run."""
    saved, step, problem = {"optimizer": {}}, 0, ""
    if args.rank == 0 and not os.access(f"{args.snapshot.parent}/.", os.W_OK):
        problem = "cannot be written, as its folder is missing or read-only"
    elif args.rank == 0 and args.snapshot.exists():
        try:
            saved = torch.load(args.snapshot, map_location="cpu", weights_only=True)
            model.load_state_dict(saved["model"])  # DDP will send it to all
            step, args.saved = saved["step"], os.path.getmtime(args.snapshot)
            if saved["run"] != args.run:
                problem = f"is of a run with {saved['run']}, this has {args.run}"
        except Exception as error:  # a damaged file raises nearly anything
            problem = f"is damaged or of another model ({type(error).__name__})"
    step = from_rank_0(step, problem and f"{args.snapshot} {problem}: use another")
    if step:  # every rank must reach this line; tensor by tensor from rank 0 to all
        full = dcp.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        dcp.set_optimizer_state_dict(model, optimizer, saved["optimizer"], options=full)
    return step


def train(args: argparse.Namespace, stop_asked: list) -> None:
    train_set, validation_set = make_datasets()
    samples, parts = len(train_set), args.world_size * args.accumulation
    args.part_size, rest = divmod(args.batch_size, parts)
    if rest or not 0 < args.batch_size <= samples:
        wanted = f"a multiple of {parts} (ranks x --accumulation)"
        from_rank_0(0, f"--batch-size must be {wanted}, at most {samples}")
    args.run = {"seed": args.seed, "samples": samples, "batch_size": args.batch_size}
    args.steps_per_epoch = samples // args.batch_size  # the rest has its turn later
    args.total_steps, args.epoch = args.epochs * args.steps_per_epoch, None
    args.saved, save_every = 0, max(1, round(args.save_every * args.steps_per_epoch))
    args.load = {"num_workers": args.workers, "pin_memory": torch.cuda.is_available()}
    keep = {"sampler": range(args.rank, len(validation_set), args.world_size)}
    keep["persistent_workers"] = args.workers > 0
    loader = data.DataLoader(validation_set, args.part_size, **keep, **args.load)
    iter(loader)  # forks its workers now: beside gloo's busy threads, one may hang
    torch.manual_seed(args.seed)
    model = make_model().to(args.device)
    optimizer = torch.optim.AdamW(model.parameters())
    step = load_snapshot(model, optimizer, args)
    log = functools.partial(print, flush=True) if args.rank == 0 else lambda line: None
    log(f"After {step} steps, with {vars(args)}")
    ddp = DDP(model)  # every rank must reach this line: rank 0's model is sent to all
    get = functools.partial(micro_batch, train_set, args)
    mean_loss(ddp.eval(), get(0), args.device).backward()  # DDP orders its buckets now,
    ddp.train().zero_grad()  # so that a resumed run is bit-equal from its first step
    micro_steps = range(step * args.accumulation, args.total_steps * args.accumulation)
    batches = iter(data.DataLoader(micro_steps, None, collate_fn=get, **args.load))
    first, start, stop = step, time.perf_counter(), False
    launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
    while step < args.total_steps and not stop:
        left = launcher not in (None, os.getppid())  # torchrun was killed: save, end
        stop = torch.tensor(bool(left or stop_asked or signal.sigpending()))
        # every rank must reach this line; [] -> [], by gloo while the step runs
        asking = dist.all_reduce(stop, dist.ReduceOp.MAX, async_op=True)
        loss = train_step(ddp, optimizer, batches, step, args)
        step += 1
        asking.wait()
        if step % args.log_every == 0:
            dist.all_reduce(loss)  # every rank must reach this line; [] -> [], the sum
            rate = (step - first) * args.batch_size / (time.perf_counter() - start)
            log(f"step {step} | loss {loss.item():.4f} | {rate:.0f} samples/s")  # waits
        if stop or step % save_every == 0 or step == args.total_steps:
            save_snapshot(model, optimizer, step, args)
            log(f"step {step} of {args.total_steps} | saved")
        if step % args.steps_per_epoch == 0 and not stop:
            log(f"step {step} | validation loss {evaluate(model, loader, args):.6f}")


if __name__ == "__main__":
    asked: list[int] = []  # read between two steps: none is left half done
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: asked.append(number))
    # data workers inherit this: schedulers signal every process, not only the ranks
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    # so a rank that fails would wait for its workers: Python ends them by SIGTERM
    atexit.register(lambda: [w.kill() for w in torch.multiprocessing.active_children()])
    train(join_ranks(parser.parse_args()), asked)  # when it returns, DDP is gone
    if torch.__version__ < "2.8":  # this would wait for gloo's threads, they for Python
        time.sleep(1)
    dist.destroy_process_group()
