"""Train with DistributedDataParallel on any number of GPUs and nodes: one file to copy.

Change the five marked places: (1) data, (2) model, (3) loss, (4) metrics and
(5) optimizer. The rest is the same for every model, and needs only PyTorch:

    python train_ddp.py                                     # a laptop, one process
    torchrun --standalone --nproc-per-node=4 train_ddp.py   # one machine, four ranks
    SCRIPT=train_ddp.py sbatch job_scripts/requeue.sbatch   # longer than a job may be
    qsub -v SCRIPT=train_ddp.py job_scripts/chained.pbs     # the same with PBS

The last two are in the workshop, which explains them. Run the same command again to
resume: on as many ranks as before, it ends with the parameters of an uninterrupted run.
(Bit for bit on CPUs. On GPUs only if every kernel is deterministic:
torch.use_deterministic_algorithms(True) chooses such kernels, or names what has none.)
SIGTERM or SIGUSR1 to any rank saves after the next step, and all end with status 0.
(torchrun hands SIGTERM on, and then reports it as an error of its own. Ctrl-C does not
save.)

    torch.load("snapshot.pt")["model"]    # what load_state_dict of your model takes
"""

import argparse
import atexit
import hashlib
import json
import math
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch


def need_torch(oldest: str) -> None:
    """End with status 2 where PyTorch is older."""
    if torch.__version__ < oldest:
        found = f"this is PyTorch {torch.__version__}, and it needs {oldest} or newer"
        print(f"{sys.argv[0]}: error: {found}", file=sys.stderr, flush=True)
        sys.exit(2)


need_torch("2.4")  # the imports below fail in older ones

import torch.distributed as dist
import torch.distributed.nn.functional  # imported later, it would keep the group alive
from torch import Tensor, nn
from torch.distributed.checkpoint import state_dict as dcp
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import data
from torch.utils.flop_counter import FlopCounterMode

# ---------------------------------------------------------------------------
# What you change. A batch is whatever `collate` returns: a list, a dict, a tensor. More
# code of yours goes into a file of its own: here, a name may be one that is used below.


# (1) your data: one set to train on, one to evaluate, both with a length. Return all
# samples, in the same order on every rank and in every run: the ranks share them out.
# All ranks call this at once, so what must be downloaded or made is there already. A
# shuffle or a split by torch, random or np.random is the same for all: they're seeded.
# A folder's files come in any order: sort them.
# What is random in `__getitem__` comes from torch, random or np.random, as those are
# seeded for every batch: with a generator of your own, a resumed run is not exact.
def make_datasets() -> tuple[data.Dataset, data.Dataset]:
    points = torch.randn(5000, 32, generator=torch.Generator().manual_seed(0))
    samples = data.TensorDataset(points, points[:, :10].argmax(1))
    return data.Subset(samples, range(4001)), data.Subset(samples, range(4001, 5000))


def collate(samples: list) -> Any:
    """A batch of these samples; here is the place to pad them to one length."""
    return data.default_collate(samples)


def count_tokens(batch: Any) -> int:
    """Those that a batch trains on, for the log; 0 if your samples aren't of tokens."""
    return 0


# (2) your model, and what it makes of a batch. Each parameter must be used in every
# forward pass: freeze the others by requires_grad_(False). Call model(...) itself: DDP
# hides other methods of your class.
def make_model() -> nn.Module:
    hidden = nn.Linear(32, 128), nn.GELU(), nn.Dropout(0.1)
    return nn.Sequential(*hidden, nn.Linear(128, 10))


def predict(model: nn.Module, batch: Any) -> Tensor:
    points, _ = batch
    return model(points).float()  # a GPU computes in low precision


# (3) your loss: a tensor with one number, the mean over the samples of a batch. (A mean
# over tokens is one if all samples have as many; else it varies with the ranks.)
def loss_function(outputs: Tensor, batch: Any) -> Tensor:
    _, classes = batch
    return nn.functional.cross_entropy(outputs, classes)


# (4) your metrics: each a mean over samples, as the loss. What is none, such as R2 or
# perplexity, is made of what is: return that here, and combine the means in `evaluate`.
def metrics(outputs: Tensor, batch: Any) -> dict[str, Tensor]:
    _, classes = batch
    return {"accuracy": (outputs.argmax(1) == classes).float().mean()}


# (5) your optimizer; `learning_rate` sets the rate of all its groups before each step
def make_optimizer(model: nn.Module, fused: bool) -> torch.optim.Optimizer:
    # None: PyTorch chooses, and False would be its slowest way
    return torch.optim.AdamW(model.parameters(), fused=fused or None)


# ---------------------------------------------------------------------------
# Configuration


@dataclass(frozen=True)
class Config:
    """The command line; the same on all ranks."""

    epochs: int
    save_every: float
    snapshot: Path
    batch_size: int
    accumulation: int
    learning_rate: float
    warmup_steps: int
    max_norm: float
    workers: int
    log_every: int
    log_file: Path | None
    seed: int
    cpu: bool
    compile: bool
    fused: bool
    tf32: bool


class Help(
    argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter
):
    """The docstring as it is, and each option with its default."""


def parse_command_line() -> Config:
    parser = argparse.ArgumentParser(formatter_class=Help, description=__doc__)
    option = parser.add_argument
    in_all = "in all runs together; the learning rate falls until the last one"
    option("epochs", nargs="?", type=positive, default=10, help=in_all)
    often = "epochs from one save to the next, such as 0.25"
    option("save_every", nargs="?", type=above_0, default=1.0, help=often)
    option("--snapshot", type=Path, default="snapshot.pt", help="where rank 0 saves")
    option("--batch-size", type=positive, default=64, help="samples, of all ranks")
    option("--accumulation", type=positive, default=1, help="forwards in each step")
    option("--learning-rate", type=float, default=3e-3, help="after the warm-up")
    option("--warmup-steps", type=not_negative, default=50, help="in which it rises")
    clip = "the gradient of all ranks is clipped to it; inf for not at all"
    option("--max-norm", type=above_0, default=1.0, help=clip)
    option("--workers", type=not_negative, default=2, help="processes that load data")
    option("--log-every", type=positive, default=20, help="steps")
    lines = "where rank 0 adds a line of JSON every --log-every steps"
    option("--log-file", type=Path, help=lines)
    option("--seed", type=int, default=0, help="of all that is drawn")
    option("--cpu", action="store_true", help="leave the GPUs alone")
    add_options_for_speed(parser)
    return Config(**vars(parser.parse_args()))


def add_options_for_speed(parser: argparse.ArgumentParser) -> None:
    """What may make a run faster or smaller: measure each of them with your model."""

    def switch(name: str, words: str) -> None:
        parser.add_argument(name, action="store_true", help=words)

    switch("--compile", "compile the model; the first steps take minutes")
    switch("--fused", "one kernel updates all parameters; a resumed run keeps its way")
    switch("--tf32", "multiply what stays in float32 with the 10 bits of TF32")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {number}")
    return number


def above_0(text: str) -> float:
    number = float(text)
    if not number > 0:  # nor is nan
        raise argparse.ArgumentTypeError(f"must be more than 0, not {number}")
    return number


@dataclass(frozen=True)
class Plan:
    """What follows from the configuration, the data and the number of ranks."""

    steps_per_epoch: int  # a rest smaller than a batch has its turn in another epoch
    total_steps: int
    save_every: int  # steps
    micro_batch: int  # samples in one forward pass of one rank


def make_plan(config: Config, samples: int, world_size: int) -> Plan:
    steps_per_epoch = samples // config.batch_size
    epochs_to_save = min(config.save_every, config.epochs)
    return Plan(
        steps_per_epoch=steps_per_epoch,
        total_steps=config.epochs * steps_per_epoch,
        save_every=max(1, round(epochs_to_save * steps_per_epoch)),
        micro_batch=config.batch_size // (world_size * config.accumulation),
    )


def problem_of_batch_size(config: Config, samples: int, world_size: int) -> str:
    if samples == 0:
        return "the training set is empty: see (1) your data"
    parts = world_size * config.accumulation
    if config.batch_size % parts == 0 and config.batch_size <= samples:
        return ""
    wanted = f"a multiple of {parts} (ranks x --accumulation), at most {samples}"
    return f"--batch-size must be {wanted}; it is {config.batch_size}"


# ---------------------------------------------------------------------------
# The ranks


@dataclass(frozen=True)
class World:
    """Which of all processes this one is."""

    rank: int
    local_rank: int
    world_size: int
    device: torch.device


# Where each launcher says rank, local rank, world size; the innermost launcher first.
TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
OPEN_MPI = (
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_SIZE",
)
SRUN = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")
INTERACTIVE_STEP = "4294967290"  # the shell of salloc: a step of Slurm, but no rank


def find_world(cpu: bool = False) -> World:
    """What the launcher says; without one, this is the only rank.

    Args:
        cpu: compute on the CPU, also where there are GPUs.
    """
    rank, local_rank, world_size = 0, 0, 1
    launchers = [TORCHRUN, OPEN_MPI]
    # a batch script has the variables of a rank as well, but it is no step
    if os.environ.get("SLURM_STEP_ID", INTERACTIVE_STEP) != INTERACTIVE_STEP:
        launchers.append(SRUN)
    for names in launchers:
        if all(name in os.environ for name in names):
            rank, local_rank, world_size = (int(os.environ[name]) for name in names)
            break
    device = torch.device("cpu") if cpu else choose_device(local_rank)
    return World(rank, local_rank, world_size, device)


# Set in a job that was given GPUs
GPUS_OF_JOB = ("SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")


def choose_device(local_rank: int) -> torch.device:
    """The GPU of this rank; the CPU if there is none, and the job asked for none."""
    if not torch.cuda.is_available():
        refuse_unused_gpus(local_rank)
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if count == 1 and is_shown_its_own_gpu(local_rank):
        return torch.device("cuda", 0)
    if local_rank >= count:
        end_with(
            f"local rank {local_rank} has no GPU of its own, this process sees "
            f"{count}: start one rank for each GPU of the node"
        )
    return torch.device("cuda", local_rank)


def refuse_unused_gpus(local_rank: int) -> None:
    """End a job that was given GPUs which this PyTorch can't use."""
    given = [name for name in GPUS_OF_JOB if os.environ.get(name, "0") != "0"]
    if not given:
        return
    if local_rank > 0:
        time.sleep(2)  # the first rank of the node says it for all
        end_with("")
    end_with(
        f"the job has GPUs ({given[0]}={os.environ[given[0]]}), but this PyTorch "
        f"({torch.__version__}) finds none: install a build for the node's driver, "
        "or compute on the CPU with --cpu"
    )


def is_shown_its_own_gpu(local_rank: int) -> bool:
    """Whether the launcher hides other ranks' GPUs; torchrun doesn't, srun may."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return local_rank == 0
    if OPEN_MPI[0] in os.environ:
        return True  # it does what the site has told it
    return local_rank < int(os.environ.get("SLURM_GPUS_ON_NODE", 1))


def warn_of_few_cores(world: World, config: Config) -> None:
    """A rank and its data workers that share a core leave the GPU waiting."""
    if world.device.type == "cpu" or not hasattr(os, "sched_getaffinity"):
        return
    cores = len(os.sched_getaffinity(0))
    if "LOCAL_WORLD_SIZE" in os.environ:  # the ranks of a torchrun share its cores
        cores /= int(os.environ["LOCAL_WORLD_SIZE"])
    needed = config.workers + 1
    if cores < needed:
        log(
            world,
            f"Warning: each rank has {cores:g} CPU cores, and needs {needed} for "
            f"itself and its {config.workers} workers: ask the scheduler for more, in "
            "Slurm by --cpus-per-task",
        )


def join_ranks(world: World) -> None:
    """Form the process group. Every rank must reach this: it returns when all have."""
    backend, gpu, store = "gloo", None, None
    if world.device.type == "cuda":
        torch.cuda.set_device(world.device)
        backend, gpu = "cpu:gloo,cuda:nccl", world.device  # gloo waits for no GPU
    if world.world_size == 1:
        store = dist.HashStore()  # nobody to agree with
    elif "MASTER_ADDR" not in os.environ:
        end_with("MASTER_ADDR is not set: export the host of rank 0, and MASTER_PORT")
    elif gpu:
        # as init_process_group would, but NCCL doesn't start yet
        store, _, _ = next(rendezvous("env://", world.rank, world.world_size))
        refuse_shared_gpu(store, world)
    dist.init_process_group(
        backend,
        store=store,
        rank=world.rank,
        world_size=world.world_size,
        timeout=timedelta(minutes=30),  # others wait while rank 0 saves
        device_id=gpu,
    )


def refuse_shared_gpu(store: dist.Store, world: World) -> None:
    """End if another rank has the same GPU: NCCL refuses that, in many lines."""
    uuid = getattr(torch.cuda.get_device_properties(world.device), "uuid", None)
    # torchrun may keep the store when it starts the ranks again
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if uuid and store.add(f"attempt {attempt}, ranks on {uuid}", 1) > 1:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
        end_with(
            f"rank {world.rank} and another one have the same GPU "
            f"(CUDA_VISIBLE_DEVICES={seen}): start one rank for each GPU, and let the "
            "launcher set this variable"
        )


def refuse(problem: str) -> None:
    """If rank 0 has a problem, it prints one sentence, and all ranks end with status 2.

    Every rank must reach this line.
    """
    box = [problem]
    dist.broadcast_object_list(box, device=torch.device("cpu"))  # from rank 0 to all
    if box[0]:
        dist.barrier()  # all are here: the first to end makes torchrun kill the others
        said = box[0] if dist.get_rank() == 0 else ""
        end_with(said)


def end_with(problem: str) -> None:
    """Print it, and leave with status 2 before another rank notices and complains."""
    if problem:
        print(f"{sys.argv[0]}: error: {problem}", file=sys.stderr, flush=True)
    end_data_workers()
    os._exit(2)


class StopRequest:
    """Whether a scheduler has asked any of the ranks to save and end."""

    def __init__(self) -> None:
        self.asked = False
        self.launcher = os.getppid()
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        self.asked = True  # looked at between two steps: none is left half done

    def _launcher_is_gone(self) -> bool:
        """A torchrun that was killed can't end its ranks: they do it themselves."""
        return "TORCHELASTIC_RUN_ID" in os.environ and os.getppid() != self.launcher

    def ask_all_ranks(self) -> None:
        """Begin to ask, by gloo, while the step runs. Every rank must reach this."""
        self.flag = torch.tensor(int(self.asked or self._launcher_is_gone()))
        self.work = dist.all_reduce(self.flag, dist.ReduceOp.MAX, async_op=True)

    def answer(self) -> bool:
        """What was found; the same on all ranks."""
        self.work.wait()
        return bool(self.flag)


def refuse_different_data(*sizes: int) -> None:
    """Each rank has its own share of the samples only if all mean the same ones."""
    of_all: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(of_all, sizes)  # every rank must reach this line
    for rank, of_rank in enumerate(of_all):
        if of_rank != of_all[0]:
            found = f"rank 0 has {of_all[0]} samples, rank {rank} has {of_rank}"
            refuse(f"{found}: make_datasets() must return all samples on every rank")


def log(world: World, line: str) -> None:
    if world.rank == 0:
        print(line, flush=True)


# ---------------------------------------------------------------------------
# Data: a number alone says which samples are in a batch, and what is drawn for them.
# So nothing of the loaders has to be saved for a run to be resumed exactly.


def draw(*key: int) -> int:
    """63 bits that look random and depend on this key alone."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def seed_generators(*key: int) -> None:
    """Seed whatever augmentation and dropout draw from."""
    seed_with(draw(*key))


def seed_with(seed: int) -> None:
    """Seed PyTorch, Python and NumPy alike on this rank."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def shuffled(position: int, length: int, key: int) -> int:
    """What stands at a position of range(length) in the order that a key gives.

    A Feistel network: a permutation that no process has to hold in memory. It permutes
    range(size**2), which may be more than `length`: what falls beyond it is permuted
    again, until it is inside.
    """
    size = 2 ** ((length.bit_length() + 1) // 2)  # of a half: size**2 >= length
    while True:
        left, right = divmod(position, size)
        for turn in range(4):
            left, right = right, left ^ (draw(key, turn, right) % size)
        position = left * size + right
        if position < length:
            return position


class TrainingBatches(data.Dataset):
    """The batch of one forward pass of this rank, by its number in the whole run."""

    def __init__(self, samples: Any, config: Config, plan: Plan, world: World):
        self.samples, self.config, self.plan = samples, config, plan
        self.rank, self.world_size = world.rank, world.world_size

    def indices(self, number: int) -> list[int]:
        """Each sample at most once in an epoch, in another order in each epoch.

        With 2 ranks, batches of 8 and 2 forwards per step, number 3 is the second
        forward of the second step: places 12 to 15 of the epoch. Rank 1 has 13 and 15.
        """
        step, part = divmod(number, self.config.accumulation)
        epoch, step_of_epoch = divmod(step, self.plan.steps_per_epoch)
        size = self.plan.micro_batch * self.world_size  # of all ranks
        first = step_of_epoch * self.config.batch_size + part * size
        own = range(first + self.rank, first + size, self.world_size)
        key = draw(self.config.seed, epoch)
        return [shuffled(place, len(self.samples), key) for place in own]

    def __getitem__(self, number: int) -> Any:
        seed_generators(self.config.seed, number, self.rank)
        return collate([self.samples[index] for index in self.indices(number)])


class ValidationBatches(data.Dataset):
    """Each sample once, on one of the ranks."""

    def __init__(self, samples: Any, config: Config, plan: Plan, world: World):
        self.samples, self.world, self.seed = samples, world, config.seed
        self.size = plan.micro_batch * world.world_size  # of all ranks

    def __len__(self) -> int:
        return math.ceil(len(self.samples) / self.size)

    def indices(self, number: int) -> range:
        """This rank's part of a batch; some ranks may have none of the last one."""
        batch = range(len(self.samples))[number * self.size :][: self.size]
        return batch[self.world.rank :: self.world.world_size]

    def __getitem__(self, number: int) -> Any:
        own = self.indices(number) or [0]  # a sample that will not be counted
        seed_generators(self.seed, number, self.world.rank)
        return collate([self.samples[index] for index in own])


class Numbers(data.Sampler):
    """The numbers of the batches to load next, which `load` sets; none at the start."""

    def __init__(self) -> None:
        self.wanted = range(0)

    def __iter__(self) -> Iterator[int]:
        return iter(self.wanted)


def start_loader(batches: data.Dataset, config: Config) -> data.DataLoader:
    """A loader whose workers run already, for the whole run.

    They are forked before the process group has threads: PyTorch warns that a fork
    beside them may hang.
    """
    loader = data.DataLoader(
        batches,
        batch_size=None,  # batches come from `batches`, one for each number
        sampler=Numbers(),
        num_workers=config.workers,
        persistent_workers=config.workers > 0,
        pin_memory=torch.cuda.is_available(),
        worker_init_fn=ignore_signals,
    )
    iter(loader)  # starts the workers, which persist, with nothing to load
    return loader


def load(loader: data.DataLoader, wanted: range) -> Iterator[Any]:
    """The batches with these numbers, from the workers that run already."""
    loader.sampler.wanted = wanted
    return iter(loader)


def ignore_signals(worker: int) -> None:
    """Schedulers signal every process of a job; the rank alone decides when to end."""
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


def end_data_workers() -> None:
    """At exit: Python would send them SIGTERM, which they ignore, and wait forever."""
    # or PyTorch reports them as killed, below the error that really ended the run
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for worker in multiprocessing.active_children():
        worker.kill()


def to_device(batch: Any, device: torch.device) -> Any:
    """All tensors of a batch, however it is nested."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: to_device(value, device) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):  # a namedtuple
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return [to_device(value, device) for value in batch]
    return batch


# ---------------------------------------------------------------------------
# Training and evaluation


@dataclass
class Run:
    """What training changes, and a snapshot holds."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    step: int = 0  # steps that were done


def low_precision(device: torch.device) -> torch.dtype:
    """In which type a GPU multiplies: bfloat16, where it does not only emulate it."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0):
        return torch.float16  # a V100; its small gradients need a GradScaler
    return torch.bfloat16


def make_run(config: Config, device: torch.device) -> Run:
    if config.tf32:
        torch.set_float32_matmul_precision("high")
    seed_with(config.seed)
    model = make_model().to(device)
    if config.compile:
        # in place: a snapshot has the same names. DDP comes later
        model.forward = compile_forward(model.forward)
    optimizer = make_optimizer(model, config.fused)
    scaled = device.type == "cuda" and low_precision(device) == torch.float16
    return Run(model, optimizer, torch.amp.GradScaler(device.type, enabled=scaled))


def compile_forward(forward: Callable) -> Callable:
    """The same function, compiled where it is first called.

    PyTorch compiles no function of its own files, such as that of nn.Sequential.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    return torch.compile(call)


def forward(model: nn.Module, batch: Any, device: torch.device) -> tuple:
    """(outputs, loss), with matrix products in low precision on a GPU."""
    on_gpu = device.type == "cuda"
    with torch.autocast(device.type, low_precision(device), enabled=on_gpu):
        outputs = predict(model, batch)
        return outputs, loss_function(outputs, batch)


def learning_rate(step: int, config: Config, plan: Plan) -> float:
    """Up in a line, and down in a cosine to a tenth."""
    rest = max(1, plan.total_steps - config.warmup_steps)
    done = max(0, step - config.warmup_steps) / rest
    warm = min(1, (step + 1) / (config.warmup_steps + 1))
    return config.learning_rate * warm * (0.55 + 0.45 * math.cos(math.pi * done))


def compute_gradients(
    ddp: DDP, run: Run, batches: Iterator, config: Config, world: World
) -> Tensor:
    """Those of the batch of all ranks; returns this rank's mean loss, on the device."""
    mean = torch.zeros((), device=world.device)

    def backward(part: int) -> None:
        batch = to_device(next(batches), world.device)
        seed_generators(config.seed, run.step, part, world.rank)  # for dropout
        _, loss = forward(ddp, batch, world.device)
        run.scaler.scale(loss / config.accumulation).backward()
        mean.add_(loss.detach() / config.accumulation)

    *earlier, last = range(config.accumulation)
    with ddp.no_sync():  # gradients add up on this rank
        for part in earlier:
            backward(part)
    # every rank must reach this line; gradients: [numel] -> [numel], the mean over all
    backward(last)
    return mean


def update(run: Run, config: Config, plan: Plan) -> Tensor:
    """One step of the optimizer, the same on all ranks; the norm before clipping."""
    run.scaler.unscale_(run.optimizer)
    norm = nn.utils.clip_grad_norm_(run.model.parameters(), config.max_norm)
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate(run.step, config, plan)
    run.scaler.step(run.optimizer)
    run.scaler.update()
    run.optimizer.zero_grad()
    run.step += 1
    return norm


def means_of(outputs: Tensor, loss: Tensor, batch: Any) -> dict[str, Tensor]:
    """The loss and your metrics by name, each one number in float64."""
    found = {"loss": loss}
    for name, mean in metrics(outputs, batch).items():
        if name in found:
            raise ValueError(f"metrics() must not return a {name!r} of its own")
        found[name] = torch.as_tensor(mean, device=loss.device)
    for name, mean in found.items():
        if mean.numel() != 1:
            raise ValueError(f"{name} must be one number, but is {tuple(mean.shape)}")
    return {name: mean.detach().double().reshape(()) for name, mean in found.items()}


def take_buffers_of_rank_0(model: nn.Module) -> None:
    """Each rank has counted its own for BatchNorm; one is saved, and evaluated."""
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)  # every rank must reach this line


@torch.no_grad()
def evaluate(run: Run, loader: data.DataLoader, world: World) -> str:
    """The means over all samples of the validation set, as a line of the log."""
    batches = loader.dataset
    if len(batches) == 0:
        return "no samples to validate with"
    sums: dict[str, Tensor] = {}
    take_buffers_of_rank_0(run.model)
    run.model.eval()  # without DDP: nothing here waits for another rank
    for number, batch in enumerate(load(loader, range(len(batches)))):
        batch = to_device(batch, world.device)
        outputs, loss = forward(run.model, batch, world.device)
        count = len(batches.indices(number))
        for name, mean in means_of(outputs, loss, batch).items():
            sums.setdefault(name, torch.zeros_like(mean))
            if count > 0:
                sums[name] += mean * count
    run.model.train()
    total = torch.stack(list(sums.values()))
    # every rank must reach this line; [names] -> [names], the sum
    dist.all_reduce(total)
    means = (total / len(batches.samples)).tolist()
    parts = [f"{name} {mean:.6f}" for name, mean in zip(sums, means, strict=True)]
    return f"validation {', '.join(parts)}"


def settle_buckets(ddp: DDP, example: Any, device: torch.device) -> None:
    """Let DDP order its buckets now, by a backward pass whose gradients are dropped.

    It orders them in the first one, and sums differ by the order: without this, the
    first step of a resumed run would differ in the last bits.
    """
    ddp.eval()  # nothing is drawn
    batch = to_device(example, device)
    outputs, loss = forward(ddp, batch, device)
    means_of(outputs, loss, batch)  # what is wrong there is seen now
    loss.backward()
    ddp.zero_grad()
    ddp.train()


class Speed:
    """Samples per second of all ranks, since it was last asked."""

    def __init__(self, config: Config) -> None:
        self.batch_size = config.batch_size

    def restart(self, step: int) -> None:
        self.step, self.time = step, time.perf_counter()

    def measure(self, step: int) -> float:
        seconds = time.perf_counter() - self.time
        rate = (step - self.step) * self.batch_size / seconds
        self.restart(step)
        return rate


# ---------------------------------------------------------------------------
# The log for people and programs that watch the run: 17_watch_run.py reads it


def moment(device: torch.device) -> Any:
    """Now; on a GPU, when the GPU gets there."""
    if device.type == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def seconds_between(first: Any, last: Any) -> float:
    """From one moment to another; a GPU must have reached both."""
    if isinstance(first, float):
        return last - first
    return first.elapsed_time(last) / 1000


def memory_gb(device: torch.device) -> float:
    """The most that the GPU has held since it was last asked; the process, ever."""
    if device.type == "cpu":
        unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB on Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    peak = torch.cuda.max_memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    return peak / 1e9


class RunLog:
    """One line of JSON for the steps since the last one.

    Ranks wait for each other in backward, so a step takes all of them equally long. The
    slow rank is the one whose last forward pass ends late, by its clock alone.
    """

    def __init__(self, config: Config, world: World, ddp: DDP, sample_flops: float):
        self.path, self.world = config.log_file, world
        self.batch_size, self.sample_flops = config.batch_size, sample_flops
        self.steps: list[tuple[Any, Any]] = []  # it began, its last forward ended
        self.waited = 0.0  # seconds for data
        self.tokens = 0  # of this rank
        ddp.register_forward_hook(self._note_forward)
        refuse(self._problem_of_file())

    def _problem_of_file(self) -> str:
        """Rank 0 tries it now, and not after an hour."""
        try:
            if self.world.rank == 0:
                self.path.open("a").close()
        except OSError as error:
            return f"--log-file {self.path}: {error.strerror}: choose another file"
        return ""

    def begin_step(self) -> None:
        now = moment(self.world.device)
        self.steps.append((now, now))

    def _note_forward(self, *_: Any) -> None:
        """At the end of each forward pass; the last one of a step counts."""
        self.steps[-1] = (self.steps[-1][0], moment(self.world.device))

    def timed(self, batches: Iterator) -> Iterator:
        """The same batches; counts this rank's tokens, and the seconds it waits."""
        begin = time.perf_counter()
        for batch in batches:
            self.waited += time.perf_counter() - begin
            self.tokens += count_tokens(batch)
            yield batch
            begin = time.perf_counter()

    def write(self, step: int, loss: float, norm: Tensor, rate: float) -> None:
        """Gather what each rank has measured; the device has reached this step."""
        steps, waited, tokens = self.steps, self.waited, self.tokens
        self.steps, self.waited, self.tokens = [], 0.0, 0
        own = sum(seconds_between(*moments) for moments in steps)
        of_rank = [waited / len(steps), own / len(steps), self.batch_size / rate]
        of_rank += [memory_gb(self.world.device), tokens / len(steps)]
        measured = torch.tensor(of_rank, dtype=torch.float64)
        of_all = [torch.empty_like(measured) for _ in range(self.world.world_size)]
        # every rank must reach this line; [5] -> [5] of each rank, on the CPU
        dist.all_gather(of_all, measured)
        data_s, own_s, step_s, memory, tokens_of = torch.stack(of_all).T.tolist()
        flops = self.sample_flops * rate / self.world.world_size
        self._append(
            {
                "step": step,
                "time": time.time(),
                "loss": loss,
                "grad_norm": norm.item(),
                "samples_per_s": rate,
                "tokens_per_s": sum(tokens_of) * rate / self.batch_size,
                "tflops_per_s": flops / 1e12,  # of each rank
                "data_s": data_s,  # of a step, by rank: waiting for data
                "own_s": own_s,  # until the last forward pass has ended
                "step_s": step_s,  # all of it
                "memory_gb": memory,
            }
        )

    def _append(self, record: dict[str, Any]) -> None:
        """A log that can't be written is no reason to end a run."""
        try:
            if self.world.rank == 0:
                with self.path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
        except OSError as error:
            log(self.world, f"Warning: cannot write {self.path}: {error.strerror}")


def count_flops(sample: Any, config: Config, world: World, plan: Plan) -> float:
    """Operations of one sample, forward and backward: matrix products, convolutions."""
    if config.compile:
        return math.nan  # the counter sees only what isn't compiled
    model = make_model().to(world.device).eval()
    batch = to_device(sample, world.device)
    with FlopCounterMode(display=False) as counter:
        forward(model, batch, world.device)[1].backward()
    return counter.get_total_flops() / plan.micro_batch


# ---------------------------------------------------------------------------
# The snapshot


class Snapshot:
    """The file of rank 0 from which a run is resumed."""

    def __init__(self, path: Path, settings: dict[str, int]):
        self.path = path
        self.settings = settings  # what must be equal for a run to be resumed
        self.written = 0.0  # when this run wrote or read it

    def save(self, run: Run) -> None:
        """Rank 0 replaces the file: a kill in here leaves the previous one."""
        problem = ""
        if dist.get_rank() == 0:
            try:
                self._refuse_what_is_lost(run)
                self._refuse_a_second_writer()
                self._write(run)
            except (OSError, RuntimeError) as error:
                problem = f"cannot write {self.path}, which is unharmed: {error}"
        refuse(problem)

    def _refuse_what_is_lost(self, run: Run) -> None:
        """A loss that once was NaN has made NaN of the whole model."""
        if not all(one.isfinite().all() for one in run.model.parameters()):
            raise RuntimeError(f"after step {run.step} the model is not finite")

    def _refuse_a_second_writer(self) -> None:
        """Two runs may have been started, as by a requeue and by hand."""
        if self.path.exists() and os.path.getmtime(self.path) > self.written + 1:
            raise OSError("another run has written it: end one of the two")

    def _write(self, run: Run) -> None:
        content = {
            "step": run.step,
            "settings": self.settings,
            "model": run.model.state_dict(),
            "optimizer": dcp.get_optimizer_state_dict(run.model, run.optimizer),
            "scaler": run.scaler.state_dict(),
        }
        temporary = f"{self.path}.tmp"
        with open(temporary, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())  # on the disk, before it gets the name
        try:
            os.replace(temporary, self.path)
        except FileNotFoundError:  # it had this name for another run, too
            raise OSError("another run writes it: end one of the two") from None
        self.written = os.path.getmtime(self.path)

    def load(self, run: Run) -> None:
        """Resume if rank 0 finds a snapshot. Every rank must reach this line."""
        content: dict[str, Any] = {}
        problem = ""
        if dist.get_rank() == 0:
            content, problem = self._read(run)
        refuse(problem)
        box = [content.get("step", 0), content.get("scaler")]
        dist.broadcast_object_list(box, device=torch.device("cpu"))
        run.step, scaler = box
        if run.step == 0:
            return
        if scaler:  # none, where the run that wrote it needed none
            run.scaler.load_state_dict(scaler)
        # the model of rank 0 has it already, and DDP will send it to all
        dcp.set_optimizer_state_dict(  # tensor by tensor from rank 0 to all
            run.model,
            run.optimizer,
            content.get("optimizer", {}),
            options=dcp.StateDictOptions(
                full_state_dict=True,
                broadcast_from_rank0=True,
                strict=False,  # there is no state of a parameter without a gradient
            ),
        )

    def _read(self, run: Run) -> tuple[dict[str, Any], str]:
        """(content, problem) of the file; loads the model. On rank 0 only."""
        if not os.access(f"{self.path.parent}/.", os.W_OK):
            why = "cannot be written, as its folder is missing or read-only"
            return {}, f"{self.path} {why}: give another --snapshot"
        if not self.path.exists():
            return {}, ""
        content: dict[str, Any] = {}
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
            self.written = os.path.getmtime(self.path)
            why = self._difference(content, run.model)
            if not why:
                run.model.load_state_dict(content["model"])
        except Exception as error:  # a damaged file raises nearly anything
            why = f"is damaged, or was written by something else ({error!r:.80})"
        if why:
            return {}, f"{self.path} {why}: give another --snapshot, or move it away"
        return content, ""

    def _difference(self, content: dict[str, Any], model: nn.Module) -> str:
        """Why this run can't resume from there; empty if it can."""
        if content["settings"] != self.settings:
            theirs, ours = content["settings"], self.settings
            return f"is of a run with {theirs}, this has {ours}"
        there, here = content["model"], model.state_dict()
        for name in [*there, *here]:
            if name not in here:
                return f"is of another model: it has {name}, which this one lacks"
            if name not in there:
                return f"is of another model: it lacks {name}, which this one has"
            shapes = tuple(there[name].shape), tuple(here[name].shape)
            if shapes[0] != shapes[1]:
                return f"is of another model: {name} is {shapes[0]}, here {shapes[1]}"
        return ""


# ---------------------------------------------------------------------------
# All of it


@record  # torchrun shows the traceback of the rank that failed first
def main() -> None:
    config = parse_command_line()
    stop = StopRequest()
    world = find_world(config.cpu)
    seed_with(config.seed)  # what is drawn for the data is the same on all ranks
    train_set, validation_set = make_datasets()
    problem = problem_of_batch_size(config, len(train_set), world.world_size)
    if problem:
        join_ranks(world)
        refuse(problem)
    plan = make_plan(config, len(train_set), world.world_size)
    training = start_loader(TrainingBatches(train_set, config, plan, world), config)
    validating = ValidationBatches(validation_set, config, plan, world)
    validation = start_loader(validating, config)
    atexit.register(end_data_workers)
    join_ranks(world)
    refuse_different_data(len(train_set), len(validation_set))

    run = make_run(config, world.device)
    settings = {"seed": config.seed, "samples": len(train_set)}
    settings["batch_size"] = config.batch_size
    snapshot = Snapshot(config.snapshot, settings)
    snapshot.load(run)
    log(world, f"After {run.step} steps, with {config} and {world}")
    warn_of_few_cores(world, config)
    train(run, training, validation, snapshot, stop, config, plan, world)
    leave_group()


def train(
    run: Run,
    training: data.DataLoader,
    validation: data.DataLoader,
    snapshot: Snapshot,
    stop: StopRequest,
    config: Config,
    plan: Plan,
    world: World,
) -> None:
    """Steps up to the last one, or until a rank is asked to stop."""
    # every rank must reach this line: the model of rank 0 is sent to all
    ddp = DDP(run.model)
    if run.step >= plan.total_steps:
        result = evaluate(run, validation, world)
        where = f"step {run.step} of {plan.total_steps}"
        log(world, f"nothing to train: {where} | {result}")
        return
    (example,) = load(training, range(1))
    settle_buckets(ddp, example, world.device)
    done = run.step * config.accumulation  # forwards
    batches = load(training, range(done, plan.total_steps * config.accumulation))
    run_log = None
    if config.log_file:
        flops = count_flops(example, config, world, plan)
        run_log = RunLog(config, world, ddp, flops)  # every rank must reach this line
        batches = run_log.timed(batches)
    speed = Speed(config)
    speed.restart(run.step)
    stopping = False
    while run.step < plan.total_steps and not stopping:
        stop.ask_all_ranks()
        if run_log:
            run_log.begin_step()
        loss = compute_gradients(ddp, run, batches, config, world)
        norm = update(run, config, plan)
        stopping = stop.answer()
        if run.step % config.log_every == 0:
            dist.all_reduce(loss)  # every rank must reach this line; [] -> [], the sum
            mean = loss.item() / world.world_size  # waits for the device
            rate = speed.measure(run.step)
            log(world, f"step {run.step} | loss {mean:.4f} | {rate:.0f} samples/s")
            if run_log:
                run_log.write(run.step, mean, norm, rate)
        ends = run.step == plan.total_steps
        if stopping or ends or run.step % plan.save_every == 0:
            snapshot.save(run)
            log(world, f"step {run.step} of {plan.total_steps} | saved")
            speed.restart(run.step)
        if run.step % plan.steps_per_epoch == 0 and not stopping:
            log(world, f"step {run.step} | {evaluate(run, validation, world)}")
            speed.restart(run.step)


def leave_group() -> None:
    """Tell the other ranks that this one has ended as it should."""
    if torch.__version__ < "2.8":
        time.sleep(1)  # this would wait for gloo's threads, and they for Python
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
