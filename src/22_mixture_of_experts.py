"""Train a byte GPT with experts in one process: each token goes through k of E MLPs.

    python src/22_mixture_of_experts.py 300                     # 8 experts, 2 per token
    python src/22_mixture_of_experts.py 300 --balance bias      # or none, or loss
    python src/22_mixture_of_experts.py 300 --top-k 1 --capacity-factor 1.25
    python src/22_mixture_of_experts.py 300 --shared-expert

It is 13_train_gpt.py with a mixture of experts for each MLP. The k experts of a token
are together as large as the MLP. The last line says how evenly tokens chose.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from common import gpt_training
from common import mixture as mx
from common.byte_gpt import ByteGPT, next_byte_loss
from common.distributed import choose_device, log, one_line_errors


@dataclass(frozen=True)
class Config(mx.MixtureOptions, gpt_training.TextConfig):
    """The command line."""


def build(
    config: Config, device: torch.device
) -> tuple[ByteGPT, torch.optim.Optimizer]:
    """The model with experts, and its optimizer."""
    model = gpt_training.make_gpt(config, device)
    mx.replace_mlps(model, mx.mixture_of(config))
    return model, gpt_training.make_optimizer(model.parameters(), config.learning_rate)


def train_step(
    model: ByteGPT, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor
) -> Tensor:
    """One step: inputs and targets [B, T]; the mean loss of the batch."""
    optimizer.zero_grad()
    loss = next_byte_loss(model(inputs), targets)
    load = mx.loads(model)
    (loss + mx.balance_loss(model, load)).backward()
    optimizer.step()
    mx.shift_biases(model, load)
    return loss.detach()


def parse_arguments() -> Config:
    return gpt_training.parse_text_training(__doc__, Config, mx.add_mixture_options)


@one_line_errors
def main() -> None:
    config = parse_arguments()
    device = choose_device()
    batches = gpt_training.Batches(config, device)
    model, optimizer = build(config, device)
    progress = gpt_training.Progress(config, batches.entropy)
    for step in progress.steps():
        inputs, targets = batches.of_step(step)
        progress.note(step, train_step(model, optimizer, inputs, targets))
    log(mx.describe_load(mx.loads(model)))
    if config.capacity_factor:
        log(f"Dropped in the last step: {mx.dropped(model).item():.1%} of the choices")
    progress.report(batches.test_loss(model))


if __name__ == "__main__":
    main()
