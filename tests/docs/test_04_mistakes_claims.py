"""Common mistakes of docs/lessons/04_data_parallel, made on imagined devices."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.docs.imagined_devices import (
    Seen,
    batch,
    documented,
    forget_gpus,
    imagine_devices,
    network,
)
from tests.docs.pages import checked_page

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

DataParallelByHand = import_module("04_data_parallel_by_hand").DataParallelByHand

on_the_page = checked_page("04_data_parallel")


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch):
    forget_gpus(monkeypatch)


@pytest.fixture
def wrap(monkeypatch):
    """``wrap(model)``: nn.DataParallel on four imagined devices."""
    return imagine_devices(monkeypatch)


def test_keys_with_module_do_not_fit_the_model():
    on_the_page(
        "``Missing key(s) in state_dict`` and ``Unexpected key(s) in state_dict:"
    )
    model = network()
    parallel_model = nn.DataParallel(model)
    with pytest.raises(RuntimeError) as error:
        network().load_state_dict(parallel_model.state_dict())
    assert "Missing key(s) in state_dict" in str(error.value)
    assert 'Unexpected key(s) in state_dict: "module.' in str(error.value)
    network().load_state_dict(parallel_model.module.state_dict())


def test_attributes_of_the_model_are_not_those_of_the_wrapper():
    on_the_page("``'DataParallel' object has no attribute``")
    parallel_model = nn.DataParallel(Seen())
    with pytest.raises(AttributeError, match="'DataParallel' object has no attribute"):
        _ = parallel_model.counter
    assert parallel_model.module.counter == 0


class WithLoss(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, images, labels):
        return F.cross_entropy(self.inner(images), labels)


def test_a_loss_for_each_device_is_a_vector(wrap):
    on_the_page("so each device returns one: a vector is gathered")
    documented("this wrapper will return a vector of length equal to number of devices")
    model = network()
    images, labels = batch(10)  # parts of 3, 3, 3 and 1
    losses = wrap(WithLoss(model))(images, labels)
    assert losses.shape == (4,)
    words = "grad can be implicitly created only for scalar outputs"
    on_the_page(words)
    with pytest.raises(RuntimeError, match=words):
        losses.backward()
    on_the_page("``.mean()`` is right for equal parts only")
    whole = F.cross_entropy(model(images), labels)
    assert not torch.isclose(losses.mean(), whole)
    weights = torch.tensor([3, 3, 3, 1]) / 10
    torch.testing.assert_close((losses * weights).sum(), whole, rtol=1e-6, atol=1e-6)
    equal = wrap(WithLoss(model))(images[:8], labels[:8]).mean()
    torch.testing.assert_close(equal, F.cross_entropy(model(images[:8]), labels[:8]))


def test_what_a_replica_keeps_is_lost(wrap):
    on_the_page("the copies do the counting, and then they are thrown away")
    documented("it will always stay at the initial value")
    seen = Seen()
    wrap(seen)(batch(12)[0])
    assert len(seen.calls) == 4 and seen.counter == 0


def test_model_on_another_device_is_refused(wrap):
    words = "module must have its parameters and buffers on device"
    on_the_page(words)
    parallel_model = wrap(network(), first_device="cuda:0")
    with pytest.raises(RuntimeError, match=f"{words} cuda:0"):
        parallel_model(batch(8)[0])


class FailsAtOnes(nn.Module):
    def forward(self, x):
        if x.max() == 1:
            raise ValueError("no ones, please")
        return x


def test_exception_in_a_thread_names_its_replica(wrap):
    on_the_page("``Caught ValueError in replica 1 on device 1``")
    on_the_page("the real message is below this line")
    images = torch.zeros(8, 6)
    images[2] = 1
    words = r"(?s)^Caught ValueError in replica 1 on device 1\..*no ones, please"
    with pytest.raises(ValueError, match=words):
        wrap(FailsAtOnes())(images)


def test_batch_norm_knows_its_part_only(wrap):
    on_the_page(
        "each part is normalized by its own mean; only the first part's are kept"
    )
    documented("will have its parameters and buffers sharing storage with the base")
    norm, first, whole = (nn.BatchNorm1d(6).double() for _ in range(3))
    images, _ = batch(12)
    assert not torch.allclose(wrap(norm)(images), whole(images))
    first(images[:3])
    torch.testing.assert_close(norm.running_mean, first.running_mean)


def test_synchronised_batch_norm_is_for_gpus_only():
    code = """if True:
        import torch
        import torch.distributed as dist
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        torch.nn.SyncBatchNorm(3)(torch.ones(2, 3))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SyncBatchNorm expected input tensor to be on GPU" in done.stderr


def test_batch_norm_refuses_a_part_of_one_image(wrap):
    words = "Expected more than 1 value per channel when training"
    on_the_page(words)
    model = network(nn.BatchNorm1d(5))
    model(batch(9)[0])
    with pytest.raises(ValueError, match=words):
        DataParallelByHand(model, 4)(batch(10)[0])
    with pytest.raises(ValueError, match=words):
        wrap(model)(batch(10)[0])
