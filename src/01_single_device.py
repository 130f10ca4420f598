"""Train a network on one device: the program that later ones change.

Run from the folder of the workshop:

    python src/01_single_device.py 10 5    # 10 epochs, a snapshot every 5
    python src/01_single_device.py 20 5    # 10 more: resumes 01_single_device.pt
    CUDA_VISIBLE_DEVICES= python src/01_single_device.py 10 5    # hide NVIDIA's GPUs
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader, Dataset

from common import data, distributed, snapshot

SEED = 0
DROPOUT = 0.1  # random numbers in every step: a resumed run must draw the same ones


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches in an order that is new in every epoch, from a generator of its own."""
    generator = torch.Generator().manual_seed(SEED)
    return DataLoader(dataset, batch_size, shuffle=True, generator=generator)


class RandomState:
    """The random numbers of this process, its device and a loader: a part of a run."""

    def __init__(self, device: torch.device, loader: torch.Generator):
        self.generators = {"cpu": torch.default_generator, "loader": loader}
        if device.type != "cpu":  # dropout draws on the device it runs on
            every = torch.get_device_module(device).default_generators
            self.generators["device"] = every[device.index]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The state of each generator, by name."""
        return {name: g.get_state() for name, g in self.generators.items()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Continue with the numbers where :meth:`state_dict` was called."""
        for name, saved in state.items():
            self.generators[name].set_state(saved)


def run_epoch(
    model: nn.Module, optimizer: Optimizer, loader: DataLoader, device: torch.device
) -> torch.Tensor:
    """One pass over the loader's images; the sum of their losses."""
    model.train()
    # on the device: .item() in every step would wait for it
    loss_sum = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)  # the mean over the batch
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach() * len(labels)
    return loss_sum


def train(config: data.TrainingConfig, device: torch.device) -> None:
    """Train the epochs that are left, and print the results."""
    torch.manual_seed(SEED)
    train_set, test_set = data.load_digits_split()
    distributed.log(
        f"{len(train_set)} training images on {distributed.describe_world(device)}, "
        f"learning rate {config.learning_rate}, snapshot {config.snapshot}"
    )
    loader = make_loader(train_set, config.batch_size)
    model = data.make_model(DROPOUT, config.width).to(device)
    optimizer = SGD(model.parameters(), config.learning_rate, momentum=0.9)
    random = RandomState(device, loader.generator)
    run = snapshot.Run(config, model=model, optimizer=optimizer, random=random)
    for epoch in run.epochs_left():
        shape = f"Batch size {config.batch_size} | Steps {len(loader)}"
        distributed.log(f"[{device}] Epoch {epoch} | {shape}")
        loss_sum = run_epoch(model, optimizer, loader, device)
        run.end_epoch(loss_sum.item() / len(train_set), len(train_set))
    data.report(run, model, test_set)


@distributed.one_line_errors
def main() -> None:
    config = data.parse_training(__doc__)
    train(config, distributed.choose_device())


if __name__ == "__main__":
    main()
