"""Train with fully_shard (FSDP2) on any number of GPUs and nodes: one file to copy.

Change the three marked places: (1) data, (2) model, (3) loss. It needs only PyTorch:

    python train_fsdp.py                                     # a laptop, one process
    torchrun --standalone --nproc-per-node=4 train_fsdp.py   # one machine, four ranks
    SCRIPT=train_fsdp.py sbatch job_scripts/requeue.sbatch   # longer than a job may be
    qsub -v SCRIPT=train_fsdp.py job_scripts/chained.pbs     # the same with PBS

Run the same command again to resume: it ends with the parameters of an uninterrupted
run. SIGTERM or SIGUSR1 to any rank saves after the next step; all exit with status 0.
"""

import argparse
import atexit
import math
import os
import shutil
import signal
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch


def need_torch(oldest: str) -> None:
    """End with status 2 where PyTorch is older."""
    if torch.__version__ < oldest:
        found = f"this is PyTorch {torch.__version__}, and it needs {oldest} or newer"
        print(f"{sys.argv[0]}: error: {found}", file=sys.stderr, flush=True)
        sys.exit(2)


need_torch("2.6")  # the imports below fail in older ones
if not torch.cuda.is_available():
    # before it, gloo's reduce_scatter returns a sum where the average is asked for
    need_torch("2.9")

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils import data


# (1) your data, to train on and to evaluate; samples are tuples of tensors
def make_datasets() -> list:
    points = torch.randn(5000, 32, generator=torch.Generator().manual_seed(0))
    samples = data.TensorDataset(points, points[:, :10].argmax(1))
    return [data.Subset(samples, range(4001)), data.Subset(samples, range(4001, 5000))]


# (2) your model and its blocks; their modules have reset_parameters(), as torch's
def make_model() -> tuple[nn.Module, list]:
    linears = [nn.Linear(64, 64) for _ in range(3)]
    blocks = [nn.Sequential(linear, nn.GELU(), nn.Dropout(0.1)) for linear in linears]
    return nn.Sequential(nn.Linear(32, 64), *blocks, nn.Linear(64, 10)), blocks


# (3) your loss: the mean over the samples of a batch
def loss_function(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]).float(), batch[1])


add = (parser := argparse.ArgumentParser()).add_argument
add("epochs", nargs="?", type=int, default=10, help="in all runs together")
add("save_every", nargs="?", type=float, default=1, help="in epochs, such as 0.25")
add("--snapshot", type=Path, default="snapshots", help="a folder of all nodes")
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


def make_sharded_model(args: argparse.Namespace) -> nn.Module:
    """Make block after block real, and shard it: none holds the whole model."""
    with torch.device("meta"):
        model, blocks = make_model()
    forward = torch.bfloat16 if args.device.type == "cuda" else None
    policy = MixedPrecisionPolicy(forward, reduce_dtype=torch.float32)
    torch.manual_seed(args.seed)  # ranks draw the same whole blocks and keep shards
    for module in (*blocks, model):
        for child in module.modules():
            own = [*child.parameters(recurse=False), *child.buffers(recurse=False)]
            if any(tensor.is_meta for tensor in own):
                child.to_empty(device=args.device, recurse=False).reset_parameters()
        fully_shard(module, mp_policy=policy)
    return model


def train_step(model, optimizer, batches, step: int, args) -> torch.Tensor:
    """One step on the batch of all ranks; the mean loss of this one, on the device."""
    mean = torch.zeros((), device=args.device)
    for part in range(args.accumulation):
        batch = [tensor.to(args.device, non_blocking=True) for tensor in next(batches)]
        torch.manual_seed(hash((args.seed, step, part, args.rank)))  # for dropout
        model.set_requires_gradient_sync(part == args.accumulation - 1)
        loss = loss_function(model, batch) / args.accumulation
        loss.backward()  # the last one makes gradients the mean over the ranks
        mean += loss.detach()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    warm, rest = args.warmup_steps, max(1, args.total_steps - args.warmup_steps)
    cosine = 0.55 + 0.45 * math.cos(math.pi * max(0, step - warm) / rest)
    for group in optimizer.param_groups:  # up in a line, down in a cosine to a tenth
        group["lr"] = args.learning_rate * min(1, (step + 1) / (warm + 1)) * cosine
    optimizer.step()
    optimizer.zero_grad()
    return mean


@torch.no_grad()
def evaluate(model: nn.Module, loader, own: list, args: argparse.Namespace) -> float:
    """The mean loss over a data set: each sample counts once, on one of the ranks."""
    total = torch.zeros((), dtype=torch.float64, device=args.device)
    model.eval()
    for part, batch in zip(own, loader, strict=True):
        total += len(part) * loss_function(model, [t.to(args.device) for t in batch])
    model.train()
    dist.all_reduce(total)  # every rank must reach this line; [] -> [], the sum
    return total.item() / len(loader.dataset)


def state_of(model: nn.Module, optimizer, args: argparse.Namespace) -> dict:
    model, optim = get_state_dict(model, optimizer)
    return {"model_state_dict": model, "optim_state_dict": optim, "run": {**args.run}}


def finish_save(args: argparse.Namespace) -> list[int]:
    """Wait for the save under way; the steps of the checkpoints, of which two stay."""
    error = args.saving and args.saving.exception()
    from_rank_0(0, f"cannot write into {args.snapshot}: {error!r:.80}" if error else "")
    found = args.snapshot.glob("step-*/.metadata")  # written last: a whole checkpoint
    steps = sorted(int(path.parent.name[5:]) for path in found)
    for step in steps[:-2] if args.rank == 0 else ():
        shutil.rmtree(args.snapshot / f"step-{step}")
    return steps


def load_checkpoint(model: nn.Module, optimizer, args: argparse.Namespace) -> int:
    """Resume from the newest checkpoint that rank 0 finds; returns its step."""
    problem = f"{args.snapshot} can be no folder of checkpoints: choose another"
    bad = args.snapshot.is_file() or not os.access(f"{args.snapshot.parent}/.", os.W_OK)
    step = from_rank_0(max(finish_save(args), default=0), problem * bad)
    if step:
        path, problem = args.snapshot / f"step-{step}", ""
        state = state_of(model, optimizer, args)
        try:
            dcp.load(state, checkpoint_id=path)  # every rank must reach this line
            if (run := state.pop("run")) != args.run:
                problem = f"is of a run with {run}, this has {args.run}"
        except (Exception, dcp.CheckpointException) as error:
            problem = f"is damaged or of another model, or nodes lack it: {error!r:.80}"
        from_rank_0(step, problem and f"{path} {problem}: move it away")
        set_state_dict(model, optimizer, **state)
    return step


def train(args: argparse.Namespace, stop_asked: list) -> None:
    train_set, validation_set = make_datasets()
    samples, parts = len(train_set), args.world_size * args.accumulation
    if args.batch_size % parts or not 0 < args.batch_size <= samples:
        wanted = f"a multiple of {parts} (ranks x --accumulation)"
        from_rank_0(0, f"--batch-size must be {wanted}, at most {samples}")
    args.run = {"seed": args.seed, "samples": samples, "batch_size": args.batch_size}
    args.steps_per_epoch = samples // args.batch_size  # the rest has its turn later
    args.total_steps, args.saving = args.epochs * args.steps_per_epoch, None
    args.epoch, save_every = None, max(1, round(args.save_every * args.steps_per_epoch))
    args.load = {"num_workers": args.workers, "pin_memory": torch.cuda.is_available()}
    args.load["persistent_workers"] = args.workers > 0
    every, size = range(len(validation_set)), args.batch_size
    own = [every[n : n + size][args.rank :: args.world_size] for n in every[::size]]
    batch = [part or [0] for part in own]  # a rank without any must call the model
    validation = data.DataLoader(validation_set, batch_sampler=batch, **args.load)
    iter(validation)  # forks its workers now: beside gloo's busy threads, one may hang
    model = make_sharded_model(args)
    optimizer = torch.optim.AdamW(model.parameters())  # of the shards
    step = load_checkpoint(model, optimizer, args)
    log = partial(print, flush=True) if args.rank == 0 else lambda line: None
    log(f"After {step} steps, with {vars(args)}")
    get = partial(micro_batch, train_set, args)
    micro_steps = range(step * args.accumulation, args.total_steps * args.accumulation)
    batches = iter(data.DataLoader(micro_steps, None, collate_fn=get, **args.load))
    save = partial(dcp.async_save, process_group=dist.new_group(backend="gloo"))
    first, saved, start, stop = step, step, time.perf_counter(), False
    launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
    while step < args.total_steps and not stop:
        left = launcher not in (None, os.getppid())  # torchrun was killed: save, end
        stop = torch.tensor(bool(left or stop_asked or signal.sigpending()))
        # every rank must reach this line; [] -> [], by gloo while the step runs
        asking = dist.all_reduce(stop, dist.ReduceOp.MAX, async_op=True)
        loss = train_step(model, optimizer, batches, step, args)
        step += 1
        asking.wait()
        if step % args.log_every == 0:  # only here: item() waits for the GPU
            dist.all_reduce(loss)  # every rank must reach this line; [] -> [], the sum
            rate = (step - first) * args.batch_size / (time.perf_counter() - start)
            mean = loss.item() / args.world_size
            log(f"step {step} | loss {mean:.4f} | {rate:.0f} samples/s")
        if stop or step % save_every == 0 or step == args.total_steps:
            why = f"another run has written {args.snapshot}: end one of the two"
            saved = from_rank_0(step, why * (max(finish_save(args), default=0) > saved))
            path = args.snapshot / f"step-{step}"
            # every rank must reach this line: it copies its shards, to write them later
            args.saving = save(state_of(model, optimizer, args), checkpoint_id=path)
            log(f"step {step} of {args.total_steps} | saving")
        if step % args.steps_per_epoch == 0 and not stop:
            loss = evaluate(model, validation, own, args)
            log(f"step {step} | validation loss {loss:.6f}")
    finish_save(args)
    log(f"step {step} of {args.total_steps} | saved")


if __name__ == "__main__":
    asked: list[int] = []  # read between two steps: none is left half done
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: asked.append(number))
    # data workers inherit this: schedulers signal every process, not only the ranks
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    # so a rank that fails would wait for its workers: Python ends them by SIGTERM
    atexit.register(lambda: [w.kill() for w in torch.multiprocessing.active_children()])
    train(join_ranks(parser.parse_args()), asked)
    if torch.__version__ < "2.8":  # this would wait for gloo's threads, they for Python
        time.sleep(1)
    dist.destroy_process_group()
    os._exit(0)  # DTensor's caches keep threads of gloo, which may abort Python's end
