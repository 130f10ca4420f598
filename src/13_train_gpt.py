"""Train a byte GPT on one device: the model that lessons 13 to 16 spread over ranks.

Run from the folder of the workshop:

    python src/13_train_gpt.py 300                          # 300 steps, then a sample
    python src/13_train_gpt.py 300 --save-every 100         # snapshots in gpt.pt
    python src/13_train_gpt.py 600 --save-every 100         # 300 more: goes on from it
"""

import argparse
from pathlib import Path

import torch

from common.accounting import (
    compare,
    count_step,
)
from common.byte_gpt import ByteGPT, next_byte_loss, write_on
from common.distributed import (
    check_output_file,
    choose_device,
    describe_world,
    log,
    one_line_errors,
)
from common.formulas import (
    FLOAT32,
    block_activations,
    head_activations,
    model_parameters,
)
from common.gpt_training import (
    Text,
    add_save_options,
    count_parameters,
    make_gpt,
    make_optimizer,
    parse_text_training,
    sizes_of,
)
from common.snapshot import (
    check_saved,
    progress,
    read_snapshot,
    restoring_from,
    save_or_continue,
)


# [start step]
def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> float:
    """One step: inputs and targets [B, T]; the mean loss of the batch."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


# [end step]
def count_a_step(model: ByteGPT, text: Text, args: argparse.Namespace) -> str:
    """The table of what one device holds, counted in a step on a copy of the model."""
    copy = make_gpt(args, text.device)
    optimizer = make_optimizer(copy.parameters(), args.learning_rate)
    inputs, targets = text.batch(0)
    counted = count_step(
        copy, optimizer, lambda: train_step(copy, optimizer, inputs, targets)
    )
    sizes, numbers = sizes_of(args), model_parameters(sizes_of(args))
    saved = sizes.blocks * block_activations(sizes, inputs.numel())
    formula = {
        "parameters": FLOAT32 * numbers,
        "gradients": FLOAT32 * numbers,
        "optimizer state": 2 * FLOAT32 * numbers,
        "activations": FLOAT32 * saved + head_activations(sizes, *inputs.shape),
    }
    return compare(counted, formula, "bytes on one device")


def save_snapshot(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    steps_run: int,
    args: argparse.Namespace,
) -> str:
    """Everything the next step depends on; the batches depend on its number alone."""
    snapshot = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "steps_run": steps_run,
    }
    return save_or_continue(snapshot, args.snapshot)


def load_snapshot(model: ByteGPT, optimizer: torch.optim.Optimizer, path: Path) -> int:
    """Go on as if the run that saved it had never stopped; the steps it had run."""
    snapshot = read_snapshot(path)
    with restoring_from(path):
        model.load_state_dict(snapshot["model"])
        optimizer.load_state_dict(snapshot["optimizer"])
        steps_run = snapshot["steps_run"]
    log(f"Resuming from {path} after {progress(snapshot)}")
    return steps_run


def train(args: argparse.Namespace, device: torch.device) -> str:
    """Train and print; returns why the last snapshot is not saved, or ""."""
    text = Text(args, device)
    model = make_gpt(args, device)
    optimizer = make_optimizer(model.parameters(), args.learning_rate)
    log(f"{count_parameters(model):,} parameters on {describe_world(device)}")
    log(count_a_step(model, text, args))
    steps_run, not_saved = 0, ""
    if args.save_every and args.snapshot.exists():
        steps_run = load_snapshot(model, optimizer, args.snapshot)
    for step, inputs, targets in text.steps(steps_run):
        text.note(step, train_step(model, optimizer, inputs, targets))
        if args.save_every and (step + 1) % args.save_every == 0:
            not_saved = save_snapshot(model, optimizer, step + 1, args)
    text.report(text.test_loss(model))
    if args.sample:
        written = write_on(model, args.context, b"def ", args.sample)
        log("It writes:\n" + written.decode("utf-8", "replace"))
    return not_saved


@one_line_errors
def main() -> None:
    args = parse_text_training(__doc__, add_save_options)
    if args.save_every:
        check_output_file(args.snapshot, "--snapshot")
    check_saved(train(args, choose_device()))


if __name__ == "__main__":
    main()
