"""Train with fully_shard (FSDP2) on any number of GPUs and nodes: one file to copy.

Change the five marked places: (1) data, (2) model, (3) loss, (4) metrics and
(5) optimizer. The rest is the same for every model, and needs only PyTorch:

    python train_fsdp.py                                     # a laptop, one process
    torchrun --standalone --nproc-per-node=4 train_fsdp.py   # one machine, four ranks
    SCRIPT=train_fsdp.py sbatch job_scripts/requeue.sbatch   # longer than a job may be
    qsub -v SCRIPT=train_fsdp.py job_scripts/chained.pbs     # the same with PBS

The last two are in the workshop, which explains them. Run the same command again to
resume: on as many ranks as before, it ends with the parameters of an uninterrupted run.
(Bit for bit on CPUs. On GPUs only if every kernel is deterministic:
torch.use_deterministic_algorithms(True) chooses such kernels, or names what has none.)
SIGTERM or SIGUSR1 to any rank saves after the next step, and all end with status 0.
(torchrun hands SIGTERM on, and then reports it as an error of its own. Ctrl-C does not
save.)

    python -m torch.distributed.checkpoint.format_utils dcp_to_torch \\
        snapshots/step-620 model.pt
    torch.load("model.pt")["model"]       # what load_state_dict of your model takes
"""

import argparse
import atexit
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
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


need_torch("2.6")  # the imports below fail in older ones
if not torch.cuda.is_available():
    # before it, gloo's reduce_scatter returns a sum where the average is asked for
    need_torch("2.9")

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.rendezvous import rendezvous
from torch.distributed.tensor import DTensor
from torch.utils import data
from torch.utils.checkpoint import checkpoint
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


# (2) your model, and what it makes of a batch.
# Its blocks are modules that are whole on a GPU one at a time: list(model.layers), for
# a transformer. All ranks must call the same ones in the same order: drop no layers at
# random, and call model(...) itself, which gathers what is sharded. A parameter may
# have two names within a block, or outside all blocks.
# Every rank first makes the model on the device "meta", where tensors have shapes but
# no values; then rank 0 makes it once more, with your values. Where a value is read, as
# in torch.linspace(0, 0.1, 12).tolist(), give that tensor device="cpu".
def make_model() -> tuple[nn.Module, list[nn.Module]]:
    linears = [nn.Linear(64, 64) for _ in range(3)]
    blocks = [nn.Sequential(linear, nn.GELU(), nn.Dropout(0.1)) for linear in linears]
    return nn.Sequential(nn.Linear(32, 64), *blocks, nn.Linear(64, 10)), blocks


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
    checkpoint_activations: bool
    prefetch: bool


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
    option(
        "--snapshot",
        type=Path,
        default="snapshots",
        help="a folder that all nodes share",
    )
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

    switch("--compile", "compile each block; the first steps take minutes")
    switch("--fused", "one kernel updates all parameters; a resumed run keeps its way")
    switch("--tf32", "multiply what stays in float32 with the 10 bits of TF32")
    recompute = "keep the inputs of blocks only, and compute the rest again in backward"
    switch("--checkpoint-activations", recompute)
    switch("--prefetch", "gather the next block before a block runs, not meanwhile")


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
    """What training changes, and a checkpoint holds."""

    model: FSDPModule
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    step: int = 0  # steps that were done


def low_precision(device: torch.device) -> torch.dtype | None:
    """In which type a GPU multiplies: bfloat16, where it does not only emulate it."""
    if device.type == "cpu":
        return None
    if torch.cuda.get_device_capability(device) < (8, 0):
        return torch.float16  # a V100; its small gradients need a GradScaler
    return torch.bfloat16


def make_run(config: Config, device: torch.device) -> Run:
    if config.tf32:
        torch.set_float32_matmul_precision("high")
    model = make_sharded_model(config, device)
    optimizer = make_optimizer(model, config.fused)  # of the shards
    scaled = low_precision(device) == torch.float16
    return Run(model, optimizer, torch.amp.GradScaler(device.type, enabled=scaled))


def make_sharded_model(config: Config, device: torch.device) -> FSDPModule:
    """Each rank gets its shards of the model that rank 0 has made.

    No GPU ever holds the whole model. Every rank must reach this.
    """
    seed_with(config.seed)  # whatever the model draws: the same on all ranks
    with torch.device("meta"):  # shapes without values
        model, blocks = make_model()
    ties = find_ties(model)
    refuse(problem_of_blocks(model, blocks, ties))
    prepare_blocks(blocks, config)
    # compute in low precision; gradients are averaged, and weights kept, in float32
    policy = MixedPrecisionPolicy(low_precision(device), reduce_dtype=torch.float32)
    # left out, it would be a mesh of the machine's accelerator: on a Mac not the CPU
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for module in (*blocks, model):  # the root last: it takes what the blocks left
        fully_shard(module, mesh=mesh, mp_policy=policy)
    if config.prefetch:
        for block, next_one in itertools.pairwise(blocks):
            block.set_modules_to_forward_prefetch([next_one])
    model.to_empty(device=device)  # memory for the shards, without values yet
    tie_again(model, ties)
    refuse(problem_of_values(model))

    whole: nn.Module | None = None
    values: dict[str, Tensor] = {}
    if dist.get_rank() == 0:
        seed_with(config.seed)
        whole, _ = make_model()
        values = whole.state_dict()
    # tensor by tensor from rank 0 to all, each of which keeps its shard
    everything = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, values, options=everything)
    for name, buffer in model.named_buffers():  # some aren't in a state_dict
        if whole is not None:
            buffer.copy_(whole.get_buffer(name))
        dist.broadcast(buffer, src=0)  # every rank must reach this line
    return model


def prepare_blocks(blocks: list[nn.Module], config: Config) -> None:
    """Recompute and compile, in this order, and before blocks are sharded.

    Both in place: a checkpoint has the same names with them and without.
    """
    for block in blocks:
        if config.checkpoint_activations:
            block.forward = recompute_in_backward(block.forward)
        if config.compile:
            block.forward = compile_forward(block.forward)


def recompute_in_backward(forward: Callable) -> Callable:
    """The same function, of which only the inputs are kept for backward."""

    def keep_inputs(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    return keep_inputs


def compile_forward(forward: Callable) -> Callable:
    """The same function, compiled where it is first called.

    PyTorch compiles no function of its own files, such as that of nn.Sequential.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    return torch.compile(call)


def find_ties(model: nn.Module) -> list[list[str]]:
    """The names of each parameter that has several: an embedding that is the head."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return [several for several in names.values() if len(several) > 1]


def problem_of_blocks(
    model: nn.Module, blocks: list[nn.Module], ties: list[list[str]]
) -> str:
    """Why these blocks can't be sharded one by one; empty if they can."""
    names = {module: name for name, module in model.named_modules()}
    for block in blocks:
        if isinstance(block, (nn.ModuleList, nn.ModuleDict)):
            wanted = "the modules of a ModuleList, as in list(model.layers)"
            return f"blocks must be {wanted}"
        if block is model or block not in names:
            kind = type(block).__name__
            return f"a block must be a part of the model, and this {kind} is not"
        if blocks.count(block) > 1:
            return f"{names[block]} is twice among the blocks"
    for tie in ties:
        owners = {block for block in blocks for name in tie if owns(block, name, names)}
        inside = [any(owns(block, name, names) for block in owners) for name in tie]
        if owners and (len(owners) > 1 or not all(inside)):
            first = names[min(owners, key=blocks.index)]
            same = " and ".join(tie)
            return f"{same} are one parameter: take {first} out of the blocks"
    return ""


def owns(block: nn.Module, parameter: str, names: dict[nn.Module, str]) -> bool:
    return parameter.startswith(f"{names[block]}.")


def tie_again(model: nn.Module, ties: list[list[str]]) -> None:
    """`to_empty` gives each name a tensor of its own."""
    for first, *others in ties:
        for name in others:
            owner, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(owner), attribute, model.get_parameter(first))


def problem_of_values(model: nn.Module) -> str:
    """What rank 0 can't send to the others, because PyTorch doesn't know of it."""
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            if isinstance(value, Tensor) and value.is_meta:
                where = f"{name}.{attribute}".strip(".")
                cure = "make it one by register_buffer"
                return f"{where} is a tensor, but no parameter and no buffer: {cure}"
    return ""


def forward(model: nn.Module, batch: Any) -> tuple:
    """(outputs, loss)"""
    outputs = predict(model, batch)
    return outputs, loss_function(outputs, batch)


def learning_rate(step: int, config: Config, plan: Plan) -> float:
    """Up in a line, and down in a cosine to a tenth."""
    rest = max(1, plan.total_steps - config.warmup_steps)
    done = max(0, step - config.warmup_steps) / rest
    warm = min(1, (step + 1) / (config.warmup_steps + 1))
    return config.learning_rate * warm * (0.55 + 0.45 * math.cos(math.pi * done))


def compute_gradients(
    run: Run, batches: Iterator, config: Config, world: World
) -> Tensor:
    """Those of the batch of all ranks; returns this rank's mean loss, on the device."""
    mean = torch.zeros((), device=world.device)
    for part in range(config.accumulation):
        batch = to_device(next(batches), world.device)
        seed_generators(config.seed, run.step, part, world.rank)  # for dropout
        # every rank must reach this line: weights are gathered block by block, and the
        # last backward reduces the gradients: [numel] -> [numel/N], the mean over all
        run.model.set_requires_gradient_sync(part == config.accumulation - 1)
        _, loss = forward(run.model, batch)
        run.scaler.scale(loss / config.accumulation).backward()
        mean += loss.detach() / config.accumulation
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
    run.model.eval()
    for number, batch in enumerate(load(loader, range(len(batches)))):
        batch = to_device(batch, world.device)
        # every rank must reach this line, also one whose sample doesn't count
        outputs, loss = forward(run.model, batch)
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


@torch.no_grad()
def try_once(run: Run, example: Any, device: torch.device) -> None:
    """What is wrong in the marked places is seen now, not after an epoch."""
    run.model.eval()  # nothing is drawn, and BatchNorm counts nothing
    batch = to_device(example, device)
    outputs, loss = forward(run.model, batch)  # every rank must reach this line
    means_of(outputs, loss, batch)
    run.model.train()


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

    Ranks wait for each other at every block, so a step takes all of them equally long.
    The rank whose data are late begins its first forward pass late, by its clock alone.
    (A rank that only computes slowly doesn't show: see 17_straggler.py.)
    """

    def __init__(
        self, config: Config, world: World, model: FSDPModule, sample_flops: float
    ):
        self.path, self.world = config.log_file, world
        self.batch_size, self.sample_flops = config.batch_size, sample_flops
        self.steps: list[tuple[Any, Any]] = []  # it began, its first forward begins
        self.waited = 0.0  # seconds for data
        self.tokens = 0  # of this rank
        # before the hook of fully_shard, which gathers
        model.register_forward_pre_hook(self._note_forward, prepend=True)
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
        """At the beginning of each forward pass; the first one of a step counts."""
        if not self.steps:  # an evaluation between two steps
            return
        begin, own = self.steps[-1]
        if own is begin:
            self.steps[-1] = (begin, moment(self.world.device))

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
                "own_s": own_s,  # until the first forward pass begins
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


def count_flops(sample: Any, config: Config, plan: Plan) -> float:
    """Operations of one sample, forward and backward: matrix products, convolutions.

    They are counted on the device "meta", as no GPU need hold the whole model.
    """
    if config.compile:
        return math.nan  # the counter sees only what isn't compiled
    meta = torch.device("meta")
    with meta:
        model, _ = make_model()
    model.eval()
    try:
        with FlopCounterMode(display=False) as counter:
            forward(model, to_device(sample, meta))[1].backward()
    except (RuntimeError, NotImplementedError):
        return math.nan  # your model or loss reads a value
    return counter.get_total_flops() / plan.micro_batch


def whole(norm: Tensor) -> Tensor:
    """The norm of all gradients, of which each rank has that of its shards."""
    if isinstance(norm, DTensor):
        return norm.full_tensor()  # every rank must reach this line; [] -> []
    return norm


# ---------------------------------------------------------------------------
# Checkpoints


def first_reason(error: BaseException) -> str:
    """What the first rank that failed said, in one line."""
    if isinstance(error, dcp.CheckpointException):
        error, _ = next(iter(error.failures.values()))
    return f"{type(error).__name__}: {' '.join(str(error).split()):.200}"


class Checkpoints:
    """A folder with the newest two: step-120, step-180. Each rank writes its shards."""

    def __init__(self, folder: Path, settings: dict[str, int]):
        self.folder = folder
        self.settings = settings  # what must be equal for a run to be resumed
        self.newest = 0  # the step of the last one that this run wrote or read
        self.saving: Future | None = None  # what is being written meanwhile
        self.group = dist.new_group(backend="gloo")  # NCCL's is busy with training

    def save(self, run: Run) -> None:
        """Copy the shards, and write them while training continues."""
        self.finish()
        found = max(self._steps(), default=0)
        problem = ""
        # two runs may have been started, by a requeue and by hand
        if found > self.newest:
            problem = f"another run has written {self.folder}: end one of the two"
        refuse(problem)
        finite = torch.tensor(all(one.isfinite().all() for one in self._shards(run)))
        # every rank must reach this line; [] -> [], by gloo: whether all shards are
        dist.all_reduce(finite, dist.ReduceOp.MIN, group=self.group)
        if not finite:  # a loss that once was NaN has made NaN of the whole model
            lost = f"after step {run.step} the model is not finite, and is not saved"
            refuse(f"{lost}: the checkpoints before it are unharmed")
        take_buffers_of_rank_0(run.model)
        self.newest = run.step
        # every rank must reach this line
        self.saving = dcp.async_save(
            self._state(run),
            checkpoint_id=self._path(run.step),
            process_group=self.group,
        )

    def finish(self) -> None:
        """Wait for what is being written; then remove what is old."""
        error = self.saving.exception() if self.saving else None
        problem = ""
        if error:
            problem = f"cannot write into {self.folder}: {first_reason(error)}"
        refuse(problem)
        self.saving = None
        if dist.get_rank() == 0:
            self._remove_old()

    def _remove_old(self) -> None:
        """All but the newest two, and what a killed run has left half written."""
        whole = self._steps()
        for path in self.folder.glob("step-*"):
            number = path.name.removeprefix("step-")
            if not number.isdecimal() or int(number) in whole[-2:]:
                continue
            if int(number) < max(whole, default=0):
                shutil.rmtree(path)

    def load(self, run: Run) -> None:
        """Resume from the newest one that rank 0 finds. Every rank must reach this."""
        refuse(self._problem_of_folder())
        box = [max(self._steps(), default=0)]
        dist.broadcast_object_list(box, device=torch.device("cpu"))
        (self.newest,) = box
        if self.newest == 0:
            return
        path = self._path(self.newest)
        problem = ""
        if dist.get_rank() == 0:
            problem = self._difference(path, run)
        refuse(problem and f"{problem}: give another --snapshot, or move it away")
        state = self._state(run)
        try:
            # the optimizer has no state of a parameter that never had a gradient
            planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
            # every rank must reach this line
            dcp.load(state, checkpoint_id=path, planner=planner)
        except (Exception, dcp.CheckpointException) as error:
            why = first_reason(error)
            problem = f"{path} is damaged, or a node lacks it ({why}): move it away"
        refuse(problem)
        if state["settings"] != self.settings:
            theirs, ours = state["settings"], self.settings
            problem = f"{path} is of a run with {theirs}, this has {ours}"
        refuse(problem and f"{problem}: give another --snapshot")
        set_state_dict(
            run.model,
            run.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        if state["scaler"]:
            run.scaler.load_state_dict(state["scaler"])
        run.step = self.newest

    def _state(self, run: Run) -> dict[str, Any]:
        model, optimizer = get_state_dict(run.model, run.optimizer)
        return {
            "model": model,
            "optimizer": optimizer,
            "scaler": run.scaler.state_dict(),
            "settings": {**self.settings},
        }

    def _shards(self, run: Run) -> list[Tensor]:
        """The part of each parameter that is on this rank."""
        return [one.to_local() for one in run.model.parameters()]

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step}"

    def _steps(self) -> list[int]:
        """The steps of all that are whole: .metadata is written last."""
        return sorted(
            int(path.name.removeprefix("step-"))
            for path in self.folder.glob("step-*")
            if path.name.removeprefix("step-").isdecimal()
            and (path / ".metadata").exists()
        )

    def _problem_of_folder(self) -> str:
        if self.folder.is_file():
            return f"{self.folder} is a file, not a folder: give another --snapshot"
        if not os.access(f"{self.folder.parent}/.", os.W_OK):
            why = "cannot be written, as its folder is missing or read-only"
            return f"{self.folder} {why}: give another --snapshot"
        return ""

    def _difference(self, path: Path, run: Run) -> str:
        """Why this model can't have been saved there; empty if it can."""
        try:
            saved = dcp.FileSystemReader(path).read_metadata().state_dict_metadata
        except Exception as error:  # a damaged file raises nearly anything
            return f"{path} is damaged ({type(error).__name__})"
        there = {
            name.removeprefix("model."): tuple(what.size)
            for name, what in saved.items()
            if name.startswith("model.") and hasattr(what, "size")
        }
        state = run.model.state_dict()
        here = {name: tuple(tensor.shape) for name, tensor in state.items()}
        other = f"{path} is of another model"
        for name in [*there, *here]:
            if name not in here:
                return f"{other}: it has {name}, which this one lacks"
            if name not in there:
                return f"{other}: it lacks {name}, which this one has"
            if there[name] != here[name]:
                return f"{other}: {name} is {there[name]}, here {here[name]}"
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
    checkpoints = Checkpoints(config.snapshot, settings)
    checkpoints.load(run)
    log(world, f"After {run.step} steps, with {config} and {world}")
    warn_of_few_cores(world, config)
    train(run, training, validation, checkpoints, stop, config, plan, world)
    leave_group()


def train(
    run: Run,
    training: data.DataLoader,
    validation: data.DataLoader,
    checkpoints: Checkpoints,
    stop: StopRequest,
    config: Config,
    plan: Plan,
    world: World,
) -> None:
    """Steps up to the last one, or until a rank is asked to stop."""
    if run.step >= plan.total_steps:
        result = evaluate(run, validation, world)
        where = f"step {run.step} of {plan.total_steps}"
        log(world, f"nothing to train: {where} | {result}")
        return
    (example,) = load(training, range(1))
    try_once(run, example, world.device)
    done = run.step * config.accumulation  # forwards
    batches = load(training, range(done, plan.total_steps * config.accumulation))
    run_log = None
    if config.log_file:
        flops = count_flops(example, config, plan)
        # every rank must reach this line
        run_log = RunLog(config, world, run.model, flops)
        batches = run_log.timed(batches)
    speed = Speed(config)
    speed.restart(run.step)
    stopping = False
    while run.step < plan.total_steps and not stopping:
        stop.ask_all_ranks()
        if run_log:
            run_log.begin_step()
        loss = compute_gradients(run, batches, config, world)
        norm = update(run, config, plan)
        stopping = stop.answer()
        if run.step % config.log_every == 0:
            dist.all_reduce(loss)  # every rank must reach this line; [] -> [], the sum
            mean = loss.item() / world.world_size  # waits for the device
            rate = speed.measure(run.step)
            log(world, f"step {run.step} | loss {mean:.4f} | {rate:.0f} samples/s")
            if run_log:
                run_log.write(run.step, mean, whole(norm), rate)
        ends = run.step == plan.total_steps
        if stopping or ends or run.step % plan.save_every == 0:
            checkpoints.save(run)
            log(world, f"step {run.step} of {plan.total_steps} | saving")
        if run.step % plan.steps_per_epoch == 0 and not stopping:
            log(world, f"step {run.step} | {evaluate(run, validation, world)}")
            speed.restart(run.step)
    checkpoints.finish()
    log(world, f"step {run.step} of {plan.total_steps} | saved")


def leave_group() -> None:
    """Tell the other ranks that this one has ended as it should, and end at once."""
    if torch.__version__ < "2.8":
        time.sleep(1)  # this would wait for gloo's threads, and they for Python
    dist.destroy_process_group()
    end_data_workers()
    sys.stdout.flush()
    os._exit(0)  # caches of DTensor keep threads of gloo, which may abort Python's end


if __name__ == "__main__":
    main()
