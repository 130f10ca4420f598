"""Train on all devices with ``nn.DataParallel``, in one process, as old code does.

Run from the folder of the workshop:

    python src/04_data_parallel.py 10 5    # on all GPUs; without GPUs, as one

04_data_parallel_by_hand.py shows the same algorithm in threads, also without GPUs.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader, Dataset

from common import data, distributed, snapshot

SEED = 0
DROPOUT = 0.0  # threads would draw from one generator, each time in another order


def make_parallel(model: nn.Module) -> nn.Module:
    """Wrap the model, and say what that does on this machine."""
    parallel_model = nn.DataParallel(model)  # all devices that are visible
    if len(parallel_model.device_ids) > 1:
        distributed.log(
            f"Each batch is split over the devices {parallel_model.device_ids}"
        )
    else:
        distributed.log("Fewer than two GPUs: nn.DataParallel just calls the module")
    return parallel_model


def make_loader(dataset: Dataset, batch_size: int) -> DataLoader:
    """Batches in an order that is new in every epoch, from a generator of its own."""
    generator = torch.Generator().manual_seed(SEED)
    return DataLoader(dataset, batch_size, shuffle=True, generator=generator)


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
    parallel_model = make_parallel(model)
    optimizer = SGD(model.parameters(), config.learning_rate, momentum=0.9)
    run = snapshot.Run(config, model=model, optimizer=optimizer)
    for epoch in run.epochs_left():
        loader.generator.manual_seed(SEED + epoch)  # a resumed run has the same order
        shape = f"Batch size {config.batch_size} | Steps {len(loader)}"
        distributed.log(f"[{device}] Epoch {epoch} | {shape}")
        loss_sum = run_epoch(parallel_model, optimizer, loader, device)
        run.end_epoch(loss_sum.item() / len(train_set), len(train_set))
    data.report(run, model, test_set)


@distributed.one_line_errors
def main() -> None:
    config = data.parse_training(__doc__)
    train(config, distributed.choose_device())


if __name__ == "__main__":
    main()
