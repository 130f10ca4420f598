"""Train a byte GPT with few messages: ranks train alone for K steps, then they agree.

    torchrun --standalone --nproc-per-node=4 src/23_diloco.py 300       # K = 20
    torchrun --standalone --nproc-per-node=4 src/23_diloco.py 300 \\
        --outer-learning-rate 1 --outer-momentum 0      # the mean of the parameters
    torchrun --standalone --nproc-per-node=4 src/23_diloco.py 300 \\
        --fragments 4 --int8                            # smaller messages
    torchrun --standalone --nproc-per-node=4 src/23_diloco.py 300 \\
        --fragments 4 --delay 3 --keep 0.5              # sent during inner steps
    torchrun --standalone --nproc-per-node=4 src/23_diloco.py 600 \\
        --save-every 300                                # resumes on as many ranks

Every rank starts from the same parameters, and draws its own pieces of text. Only the
outer steps, once in --local-steps, send anything that training needs.
"""

import argparse
import io
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from common import gpt_training, snapshot
from common import local_steps as ls
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import (
    BadInput,
    is_rank_0,
    log,
    one_line_errors,
    positive_float,
    positive_int,
    rank_seed,
)
from common.process_group import join_or_alone

ALONE = "its outer steps average nothing"


@dataclass(frozen=True)
class Config(gpt_training.SaveOptions, gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    local_steps: int  # inner ones between two averages of a parameter, K
    outer_learning_rate: float  # of SGD
    outer_momentum: float  # of Nesterov; 0 for none
    fragments: int  # parts that are averaged in turn
    int8: bool  # one byte for each parameter
    delay: int  # inner steps until a fragment's mean is mixed in; 0 waits for it
    keep: float  # part of the rank's own parameters in that mix


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer, list[ls.Fragment]]:
    """The same model on every rank; its inner optimizer; what the ranks agree on."""
    ls.check_turns(config.local_steps, config.fragments, config.delay)
    if config.delay and config.int8:
        why = "its messages wait for each other"
        raise BadInput(f"--delay {config.delay} can't be with --int8: {why}: leave one")
    if config.keep and not config.delay:
        why = "without --delay no inner step is taken meanwhile"
        raise BadInput(f"--keep {config.keep:g}: {why}: leave it, or add --delay")
    model = gpt_training.make_gpt(config, device)
    optimizer = gpt_training.make_optimizer(model.parameters(), config.learning_rate)
    return model, optimizer, ls.make_fragments(model.parameters(), config.fragments)


def own_batches(config: Config, device: torch.device) -> gpt_training.Batches:
    """Batches of this rank's share, B/N pieces of text."""
    gpt_training.check_divides(
        config.batch_size, dist.get_world_size(), "--batch-size", "ranks"
    )
    batches = gpt_training.Batches(config, device)
    batches.batch_size = config.batch_size // dist.get_world_size()
    return batches


def rule_of(config: Config) -> ls.OuterRule:
    return ls.OuterRule(
        learning_rate=config.outer_learning_rate,
        momentum=config.outer_momentum,
        int8=config.int8,
        delay=config.delay,
        keep=config.keep,
    )


# [start step]
def train_step(
    model: ByteGPT, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor
) -> Tensor:
    """An inner step: inputs and targets [B/N, T] of this rank; sends nothing."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()


# [end step]
# [start save]
def on_the_cpu(state: dict) -> dict:
    """A copy of a state whose tensors lie on the CPU."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, map_location="cpu", weights_only=True)


def save_snapshot(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    fragments: list[ls.Fragment],
    steps_run: int,
    path: Path,
    cpu_group: dist.ProcessGroup,
) -> str:
    """Rank 0 writes the state of every rank: they differ. All ranks call this."""
    own = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "outer": [fragment.state_dict() for fragment in fragments],
    }
    ranks: list | None = None
    if is_rank_0():
        ranks = [None] * dist.get_world_size()
    # Every rank, to rank 0, where a tensor of rank 1's GPU would come to that GPU again
    dist.gather_object(on_the_cpu(own), ranks, group=cpu_group)
    if ranks is None:
        return ""
    return snapshot.save_or_continue({"ranks": ranks, "steps_run": steps_run}, path)


def load_snapshot(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    fragments: list[ls.Fragment],
    path: Path,
) -> int:
    """Each rank takes its own state of what rank 0 reads; the steps run, or 0."""
    state = snapshot.read_for_all(path)  # every rank must reach this line
    if state is None:
        return 0
    with snapshot.resuming(path, state):
        saved, world_size = len(state["ranks"]), dist.get_world_size()
        if saved != world_size:
            cure = f"start {saved} ranks, or {snapshot.OTHER}"
            raise BadInput(f"{path} has the states of {saved} ranks: {cure}")
        own = state["ranks"][dist.get_rank()]
        model.load_state_dict(own["model"])
        optimizer.load_state_dict(own["optimizer"])
        for fragment, saved_outer in zip(fragments, own["outer"], strict=True):
            fragment.load_state_dict(saved_outer)
        steps_run = state["steps_run"]
    return steps_run


# [end save]
def add_outer_options(parser: argparse.ArgumentParser) -> None:
    add, shown = parser.add_argument, " (default: %(default)s)"
    words = "inner steps between two averages of a parameter, K" + shown
    add("--local-steps", metavar="K", type=positive_int, default=20, help=words)
    words = "step size of the outer SGD" + shown
    add("--outer-learning-rate", type=positive_float, default=0.7, help=words)
    words = "Nesterov momentum of the outer SGD, 0 for none" + shown
    add("--outer-momentum", type=below_1, default=0.9, help=words)
    words = "average the parameters in this many parts, in turn" + shown
    add("--fragments", type=positive_int, default=1, help=words)
    add("--int8", action="store_true", help="send one byte for each parameter")
    words = "inner steps during which a fragment is sent" + shown
    add("--delay", metavar="STEPS", type=not_negative, default=0, help=words)
    words = "of a rank's own parameters, this part is kept after a delay" + shown
    add("--keep", metavar="PART", type=below_1, default=0.0, help=words)


def not_negative(text: str) -> int:
    """0 or a positive_int; an argparse type."""
    if text == "0":
        return 0
    return positive_int(text)


def below_1(text: str) -> float:
    """A number from 0 to below 1; an argparse type."""
    if not 0 <= float(text) < 1:
        raise BadInput(f"{text!r} is not a number from 0 to below 1")
    return float(text)


def parse_arguments() -> Config:
    options = add_outer_options, gpt_training.add_save_options
    return gpt_training.parse_text_training(__doc__, Config, *options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE, timeout=None)  # others wait while rank 0 writes
    if config.save_every and is_rank_0():
        gpt_training.claim_snapshot(config.snapshot)
    batches = own_batches(config, device)
    model, optimizer, fragments = build(config, device)
    rule, steps_run, not_saved = rule_of(config), 0, ""
    cpu_group = dist.new_group(backend="gloo")  # for states, which need no GPU's memory
    if config.save_every:
        steps_run = load_snapshot(model, optimizer, fragments, config.snapshot)
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps(steps_run):
        # rank_seed: no other rank draws these pieces of text, nor this one again
        inputs, targets = batches.of_step(rank_seed(gpt_training.SEED, step))
        loss = train_step(model, optimizer, inputs, targets)
        # all ranks, if the turn of any fragment has come
        ls.agree(fragments, step + 1, config.local_steps, rule)
        progress.note(step, loss / dist.get_world_size())
        if config.save_every and (step + 1) % config.save_every == 0:
            done = step + 1, config.snapshot, cpu_group
            not_saved = save_snapshot(model, optimizer, fragments, *done)
    for fragment in fragments:
        if fragment.sent is not None:
            ls.finish(fragment, rule)  # no inner step is left to wait for
        # what is tested is equal on all ranks
        ls.copy_to_parameters(fragment, fragment.shared)
    sent = ls.bytes_sent(fragments, config.local_steps, rule, dist.get_world_size())
    log(f"Sent by each rank for the model: {sent:,.0f} bytes per step")
    progress.report(batches.test_loss(model))
    dist.destroy_process_group()
    if not_saved:
        raise BadInput(not_saved)


if __name__ == "__main__":
    main()
