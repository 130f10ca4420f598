"""src/common/data.py: the digits, their shares, the network, the command line."""

import sys
from pathlib import Path

import torch

from common import data


def test_split_is_the_same_everywhere_and_disjoint():
    train_set, test_set = data.load_digits_split()
    again, _ = data.load_digits_split()
    other, _ = data.load_digits_split(seed=1)
    assert (len(train_set), len(test_set)) == (1438, 359)
    assert torch.equal(train_set.tensors[0], again.tensors[0])
    assert not torch.equal(train_set.tensors[0], other.tensors[0])
    images, labels = train_set.tensors
    assert images.shape[1:] == (1, 8, 8) and images.dtype == torch.float32
    assert labels.dtype == torch.int64 and set(labels.tolist()) == set(range(10))
    assert images.min() == 0 and images.max() == 1
    # both sets together are scikit-learn's images, each once
    from sklearn.datasets import load_digits

    both = torch.cat([images, test_set.tensors[0]]).flatten(1)
    rows = sorted(map(tuple, (both * 16).int().tolist()))
    assert rows == sorted(map(tuple, load_digits().data.astype(int).tolist()))


def test_shares_of_all_ranks_count_each_image_once(monkeypatch):
    """Also where the ranks do not divide 359; a padded share would count more."""
    torch.manual_seed(0)
    model = data.make_model(dropout=0.5)
    test_set = data.load_digits_split()[1]
    whole = data.count_correct(model, test_set)
    monkeypatch.setattr(data.dist, "is_initialized", lambda: True)
    monkeypatch.setattr(data.dist, "all_reduce", lambda counts: None)
    for world_size in (2, 3, 4, 7):
        monkeypatch.setattr(data.dist, "get_world_size", lambda n=world_size: n)
        shares = []
        for rank in range(world_size):
            monkeypatch.setattr(data.dist, "get_rank", lambda r=rank: r)
            shares.append(data.count_correct(model, test_set))
        assert tuple(map(sum, zip(*shares, strict=True))) == whole
    assert whole[1] == 359


def test_model_has_the_size_that_its_docstring_says():
    model = data.make_model(width=data.WIDTH)
    assert sum(p.numel() for p in model.parameters()) == 197_770
    assert "197,770 parameters at the width of 96" in data.make_model.__doc__


def test_each_program_has_a_snapshot_and_the_wide_network_of_its_own(monkeypatch):
    for program in ("01_single_device", "05_ddp_spawn"):
        monkeypatch.setattr(sys, "argv", [f"src/{program}.py", "10", "5"])
        args = data.parse_training("")
        assert args.snapshot == Path(f"{program}.pt")
        assert args.width == data.WIDTH
