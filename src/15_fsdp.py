"""Train a byte GPT that is sharded over the ranks by PyTorch's ``fully_shard``.

torchrun --standalone --nproc-per-node=4 src/15_fsdp.py 100
torchrun --standalone --nproc-per-node=4 src/15_fsdp.py 100 --mixed-precision
torchrun --standalone --nproc-per-node=2 src/15_fsdp.py 60 --save-every 20
python src/13_train_gpt.py 90 --save-every 30        # resumes it on one device
"""

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path

import common  # noqa: F401  # refuses an old PyTorch before what follows

# isort: split
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions
from torch.distributed.checkpoint.state_dict import set_model_state_dict as set_model
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import (
    BadInput,
    is_rank_0,
    one_line_errors,
    positive_float,
    positive_int,
)
from common.gpt_training import (
    SEED,
    Batches,
    Progress,
    SaveOptions,
    TextConfig,
    add_save_options,
    claim_snapshot,
    local_batch,
    make_gpt,
    make_optimizer,
    parse_text_training,
    run_and_exit,
    show_config,
)
from common.parallel.full_state import (
    full_state_dict,
    load_full_state_dict,
    read_on_rank_0,
)
from common.process_group import join_or_alone
from common.snapshot import resuming, save_or_continue

# The scores are a view, as a linear layer returns them for three dimensions. That is
# harmless as long as no code changes them in place.
warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")

ALONE = "it holds every shard, so gathering and reducing send nothing"


@dataclass(frozen=True)
class Config(SaveOptions, TextConfig):
    """The command line; the same on all ranks."""

    mixed_precision: bool
    keep_whole: bool  # no block is gathered again in backward
    prefetch: int | None  # blocks to gather ahead in forward
    max_norm: float | None  # of the gradients of all ranks together


# [start shard]
def shard(model: ByteGPT, config: Config, device: torch.device) -> FSDPModule:
    """Shard in place: each block is a group of its own, the root has the rest."""
    # Left out, it would be a mesh of the machine's accelerator: on a Mac not the CPU
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    policy = MixedPrecisionPolicy()
    if config.mixed_precision:
        policy = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype=torch.float32)
    free = not config.keep_whole  # what forward has gathered
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=free)
    fully_shard(model, mesh=mesh, mp_policy=policy)  # last: what no block has
    blocks = list(model.blocks)
    for number, block in enumerate(blocks):
        ahead = blocks[number + 1 : number + 1 + (config.prefetch or 0)]
        if ahead:
            block.set_modules_to_forward_prefetch(ahead)
    return model


# [end shard]
def build(
    config: Config, device: torch.device
) -> tuple[FSDPModule, torch.optim.Optimizer]:
    """The model in shards, as no device ever holds all of it, and their optimizer."""
    with torch.device("meta"):  # shapes, and no memory for the numbers
        model = make_gpt(config, device)
    shard(model, config, device)
    model.to_empty(device=device)  # memory for this rank's shards only
    torch.manual_seed(SEED)
    whole = ByteGPT(model.sizes).state_dict() if is_rank_0() else {}  # on the CPU
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model(model, whole, options=options)  # every rank
    # after fully_shard: it replaces the parameters, and steps must reach the new ones
    return model, make_optimizer(model.parameters(), config.learning_rate)


# [start step]
def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    max_norm: float | None = None,
) -> torch.Tensor:
    """One step: this rank's inputs and targets [B / N, T]; the mean loss of these."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs).float(), targets)
    loss.backward()  # the shards of gradients become the mean over the ranks
    if max_norm:
        # Every rank: the norm is that of the whole gradient, the sum over all shards.
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.detach()


# [end step]
# [start save]
def save_snapshot(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    steps_run: int,
    path: Path,
) -> str:
    """One file in the format of src/13_train_gpt.py; all ranks call this together."""
    snapshot = full_state_dict(model, optimizer) | {"steps_run": steps_run}
    not_saved = ""
    if is_rank_0():
        not_saved = save_or_continue(snapshot, path)
    dist.barrier()  # after this line every rank can read what rank 0 wrote
    return not_saved


def load_snapshot(model: ByteGPT, optimizer: torch.optim.Optimizer, path: Path) -> int:
    """Resume from a snapshot of any number of ranks; returns its number of steps.

    Rank 0 decides: a folder that the nodes don't share may have a snapshot on some.
    """
    snapshot, steps_run = read_on_rank_0(path)
    if steps_run == 0:
        return 0
    with resuming(path, {"steps_run": steps_run}):
        load_full_state_dict(model, optimizer, snapshot)
    return steps_run


# [end save]
def train(config: Config, device: torch.device) -> str:
    """Train and print; returns why the last snapshot is not saved, or ""."""
    show_config(config)
    batches = Batches(config, device)
    model, optimizer = build(config, device)
    steps_run, not_saved = 0, ""
    if config.save_every:
        steps_run = load_snapshot(model, optimizer, config.snapshot)  # every rank
    progress = Progress(config, batches.entropy)
    for step in progress.steps(steps_run):
        inputs, targets = map(local_batch, batches.of_step(step))
        loss = train_step(model, optimizer, inputs, targets, config.max_norm)
        progress.note(step, loss / dist.get_world_size())
        if config.save_every and (step + 1) % config.save_every == 0:
            not_saved = save_snapshot(model, optimizer, step + 1, config.snapshot)
    # all ranks score together: no rank has the whole model
    progress.report(batches.test_loss(lambda tokens: model(tokens).float()))
    return not_saved


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    bits = "compute and gather in 16 bits, reduce and step in 32"
    add("--mixed-precision", action="store_true", help=bits)
    whole = "keep blocks whole from forward to backward: more memory, less traffic"
    add("--keep-whole", action="store_true", help=whole)
    ahead = "blocks to gather ahead in forward (default: none)"
    add("--prefetch", type=positive_int, metavar="N", help=ahead)
    clip = "clip the gradients of all ranks together to this norm"
    add("--max-norm", type=positive_float, metavar="NORM", help=clip)


def parse_arguments() -> Config:
    config = parse_text_training(__doc__, Config, add_save_options, add_options)
    if config.save_every and is_rank_0():
        claim_snapshot(config.snapshot)
    return config


@one_line_errors
def main() -> None:
    config = parse_arguments()
    # the others wait while rank 0 writes a snapshot, which may take minutes
    not_saved = train(config, join_or_alone(ALONE, timeout=None))
    dist.destroy_process_group()
    if not_saved:
        raise BadInput(not_saved)


if __name__ == "__main__":
    run_and_exit(main)
