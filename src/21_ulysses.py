"""Train a byte GPT whose sequences are cut over ranks: heads for tokens and back.

    torchrun --standalone --nproc-per-node=2 src/21_ulysses.py 300
    torchrun --standalone --nproc-per-node=4 src/21_ulysses.py 300

All ranks get the same batch, and each computes on its part of every sequence. For
attention they exchange: each gets all tokens, and only some of the heads. So their
number must divide --heads, and twice their number --context. The losses equal those of
13_train_gpt.py, up to rounding.
"""

from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from common import gpt_training
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import one_line_errors
from common.parallel import context_parallel as cp
from common.parallel.context_parallel import Cut
from common.parallel.ulysses import ulysses_attention
from common.process_group import join_or_alone

ALONE = "it has all tokens and all heads, and exchanges nothing"


def build(
    config: gpt_training.TextConfig, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer, Cut]:
    """The model that one device would train, for own tokens; its optimizer; the cut."""
    model = gpt_training.make_gpt(config, device)
    cut = cp.whole_world()
    gpt_training.check_divides(config.heads, cut.ranks, "--heads", "ranks")
    cp.split_gpt(model, cut, ulysses_attention)
    optimizer = gpt_training.make_optimizer(model.parameters(), config.learning_rate)
    return model, optimizer, cut


def train_step(
    model: ByteGPT,
    optimizer: torch.optim.Optimizer,
    cut: Cut,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """One step: inputs and targets [B, T], the same on all ranks; own mean loss."""
    optimizer.zero_grad()
    # Targets come from the whole text: that of a chunk's last token is elsewhere.
    loss = next_byte_loss(model(cut.take(inputs)), cut.take(targets))
    loss.backward()
    cp.average_gradients(model, cut)
    optimizer.step()
    return loss.detach()


def whole_scores(model: ByteGPT, cut: Cut, inputs: Tensor) -> Tensor:
    """The scores of all tokens on all ranks: [B, T] -> [B, T, 256]."""
    return cp.whole_scores(model(cut.take(inputs)), cut)


def parse_arguments() -> gpt_training.TextConfig:
    return gpt_training.parse_text_training(__doc__, gpt_training.TextConfig)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = join_or_alone(ALONE)
    batches = gpt_training.Batches(config, device)
    model, optimizer, cut = build(config, device)
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        loss = train_step(model, optimizer, cut, inputs, targets)
        progress.note(step, loss / cut.ranks)
    # Every rank must call this: each has the scores of its own tokens only.
    progress.report(batches.test_loss(partial(whole_scores, model, cut)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
