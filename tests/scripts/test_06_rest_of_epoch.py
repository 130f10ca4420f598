"""What is left of an epoch: each image once, on any number of ranks, and augmented
alike after a resume."""

from importlib import import_module

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

checkpoint = import_module("06_checkpoint")
requeue = import_module("09_requeue")


def deal(size, world_size, epoch, done):
    rest = checkpoint.rest_of_share
    return [rest(size, epoch, done, rank, world_size) for rank in range(world_size)]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_sampler_from_the_start_is_the_distributed_sampler(world_size):
    for epoch in (0, 5):
        for rank, share in enumerate(deal(22, world_size, epoch, 0)):
            other = DistributedSampler(
                range(22), world_size, rank, seed=checkpoint.SEED
            )
            other.set_epoch(epoch)
            assert share == list(other)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_sampler_from_inside_an_epoch_deals_out_the_rest(world_size):
    whole = deal(22, world_size, 1, 0)
    for steps in range(len(whole[0]) + 1):
        rest = deal(22, world_size, 1, steps * world_size)
        assert rest == [share[steps:] for share in whole]


@pytest.mark.parametrize("before, after", [(2, 3), (3, 4), (4, 1), (3, 2)])
def test_every_image_is_used_once_though_the_world_size_changes(before, after):
    for steps in range(6):
        used = [i for share in deal(22, before, 2, 0) for i in share[:steps]]
        rest = [i for share in deal(22, after, 2, steps * before) for i in share]
        padding = -(22 - steps * before) % after
        assert set(used + rest) == set(range(22))
        assert len(used + rest) == 22 + padding


class Augmented(torch.utils.data.Dataset):
    """Images that are drawn anew each time."""

    def __len__(self):
        return 22

    def __getitem__(self, index):
        return torch.rand(())


def augmentations(monkeypatch, program, rank, epoch, done=0, seed=None):
    """What a rank's two workers draw in an epoch; ``seed`` replaces the program's."""
    monkeypatch.setattr(dist, "get_rank", lambda: rank)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    loader = program.make_loader(Augmented(), 1, epoch, done)
    if seed is not None:
        loader.generator.manual_seed(seed)
    workers = DataLoader(loader.dataset, 1, num_workers=2, generator=loader.generator)
    return torch.cat(list(workers)).tolist()


@pytest.mark.parametrize("program", [checkpoint, requeue])
def test_workers_draw_alike_after_a_resume_and_nowhere_else(program, monkeypatch):
    drawn = {
        (rank, epoch): augmentations(monkeypatch, program, rank, epoch)
        for rank in (0, 1)
        for epoch in (3, 4)
    }
    numbers = [number for numbers in drawn.values() for number in numbers]
    assert len(set(numbers)) == len(numbers) == 44
    fixed = [augmentations(monkeypatch, program, *which, seed=7) for which in drawn]
    assert all(numbers == fixed[0] for numbers in fixed)  # as the page warns
    torch.rand(5)  # the resumed run has drawn other numbers before
    assert augmentations(monkeypatch, program, 1, 4) == drawn[1, 4]
    # inside an epoch they are not those of the run that was never stopped
    assert augmentations(monkeypatch, program, 1, 4, done=8) != drawn[1, 4][4:]


def test_equal_global_batch_on_another_world_size_holds_the_same_images():
    """So gradients differ only in rounding (and in what dropout draws)."""
    for done in (0, 12):
        two, four = deal(48, 2, 3, done), deal(48, 4, 3, done)
        for step in range((48 - done) // 12):
            a = {i for share in two for i in share[6 * step : 6 * step + 6]}
            b = {i for share in four for i in share[3 * step : 3 * step + 3]}
            assert a == b
