"""What docs/lessons/05_ddp_spawn says of DDP, tried out in ranks.

Each function runs in every rank, as a check of an exercise does; the docstring is the
sentence on the page. test_05_ddp_spawn_claims.py has them run.
"""

import copy
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from workshop.grader import expect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from common.data import WIDTH, make_model

DIGITS = 197_770  # parameters of the network of the digits


def data(size, seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(size, 6, generator=generator, dtype=torch.float64)
    return TensorDataset(images, torch.randint(3, (size,), generator=generator))


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def gradients(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


def gathered(value):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


@pytest.mark.ranks(2, 3, 4)
def test_mean_over_the_ranks_is_gradient_of_the_global_batch(rank, world_size, seed):
    """.grad is the gradient of the mean loss over the global batch, also of the last,
    smaller one."""
    dataset = data(11 * world_size - 1, seed)  # padded by one: 11 on each rank
    sampler = DistributedSampler(dataset, seed=seed)
    loader = DataLoader(dataset, 4, sampler=sampler)  # batches of 4, 4 and 3
    ddp_model = DDP(network(seed + rank))
    alone = network(seed)
    sizes = []
    for images, labels in loader:
        everything = gathered((images, labels))
        ddp_model.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        alone.zero_grad()
        all_images, all_labels = (torch.cat(x) for x in zip(*everything, strict=True))
        F.cross_entropy(alone(all_images), all_labels).backward()
        for mine, expected in zip(gradients(ddp_model), gradients(alone), strict=True):
            expect.close(mine, expected, f"the gradient, {len(labels)} images per rank")
        sizes.append(len(labels))
    expect.equal(sizes, [4, 4, 3], "images per rank in each step")


@pytest.mark.ranks(2, 3, 4)
def test_unequal_batches_need_weights(rank, world_size, seed):
    """If your batches are unequal, multiply the loss of rank r, which holds n_r of n
    images, by n_r N / n."""
    counts = [2 + 3 * r for r in range(world_size)]
    images, labels = data(sum(counts), seed)[:]
    alone = network(seed)
    F.cross_entropy(alone(images), labels).backward()
    mine = images.split(counts)[rank], labels.split(counts)[rank]
    found = []
    for weight in (1.0, counts[rank] * world_size / sum(counts)):
        ddp_model = DDP(network(seed))
        loss = F.cross_entropy(ddp_model(mine[0]), mine[1])
        (loss * weight).backward()
        found.append(gradients(ddp_model))
    plain, weighted = found
    for got, expected in zip(weighted, gradients(alone), strict=True):
        expect.close(got, expected, "the weighted gradient")
    different = not torch.allclose(plain[0], gradients(alone)[0])
    expect.that(different, "without weights it should be another gradient")


@pytest.mark.ranks(3)
def test_what_ddp_sends_and_when(rank, seed, ledger):
    """DDP sends 791,080 bytes when it is made and in backward, and nothing in the
    forward pass and in the step, but for the layout of the buckets in the second."""
    model = make_model(0.1, WIDTH)
    expect.equal(sum(p.numel() for p in model.parameters()), DIGITS, "parameters")
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    images, labels = torch.randn(4, 1, 8, 8), torch.tensor([0, 1, 2, 3])
    ledger.clear()
    ddp_model = DDP(model)
    state = [row for row in ledger.rows if row.dtypes == ["float32"]]
    expect.equal([row.op for row in state], ["broadcast"], "what makes the state equal")
    expect.equal(state[0].bytes, 791_080, "bytes of the state")
    others = [row for row in ledger.rows if row not in state]
    expect.that(sum(row.bytes for row in others) < 500, "a few bytes for the shapes")
    for step in range(3):
        optimizer.zero_grad()
        ledger.clear()
        loss = F.cross_entropy(ddp_model(images), labels)
        if step == 1:
            expect.equal(
                set(ledger.ops()), {"broadcast"}, "calls in the second forward"
            )
            expect.that(sum(row.bytes for row in ledger.rows) < 100, "a few bytes")
        else:
            expect.equal(ledger.ops(), [], f"calls in the forward pass of step {step}")
        ledger.clear()
        loss.backward()
        expect.equal(ledger.ops(), ["all_reduce"], f"calls in backward of step {step}")
        expect.equal(ledger.rows[0].bytes, 791_080, "bytes of the gradients")
        ledger.clear()
        optimizer.step()
        expect.equal(ledger.ops(), [], f"calls in the optimizer of step {step}")


@pytest.mark.ranks(3)
def test_buffers_are_sent_in_the_forward_pass(rank, seed, ledger):
    """In a model with buffers, such as those of BatchNorm, rank 0's are broadcast in
    the forward pass; ddp_model.module(x) sends nothing."""
    torch.manual_seed(seed + rank)
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    ddp_model = DDP(model)
    ledger.clear()
    ddp_model(torch.randn(4, 6)).sum().backward()
    before_backward = ledger.ops()[:-1]
    expect.that(
        set(before_backward) == {"broadcast"}, f"not only broadcasts: {before_backward}"
    )
    ddp_model.eval()
    with torch.no_grad():
        ledger.clear()
        ddp_model.module(torch.randn(4, 6))
        expect.equal(ledger.ops(), [], "calls in the forward pass of the module")
        ddp_model(torch.randn(4, 6))
        expect.that("broadcast" in ledger.ops(), "an evaluation sends the buffers, too")


@pytest.mark.ranks(3)
def test_ranks_that_train_together_stay_equal(rank, world_size, seed):
    """Equal weights at the beginning and equal gradients: equal weights afterwards,
    bit for bit, although the ranks began from other random numbers."""
    model = network(seed + rank)
    ddp_model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    images, labels = data(6 * world_size, seed)[rank::world_size]
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(ddp_model(images), labels).backward()
        optimizer.step()
    for name, parameter in model.named_parameters():
        expect.same_on_all_ranks(parameter, name)


@pytest.mark.ranks(3)
def test_forward_beside_the_wrapper_is_not_averaged(rank, world_size, seed, ledger):
    """With model(x) or ddp_model.module(x) the weights drift apart without an error."""
    model = network(seed)
    ddp_model = DDP(model)
    images, labels = data(6 * world_size, seed)[rank::world_size]
    for forward in (model, ddp_model.module):
        ddp_model.zero_grad()
        ledger.clear()
        F.cross_entropy(forward(images), labels).backward()
        expect.equal(ledger.ops(), [], "calls in backward")
        first = gathered(gradients(model)[0])
        expect.that(not torch.equal(first[0], first[1]), "the gradients are equal")


@pytest.mark.ranks(3)
def test_set_epoch_chooses_the_order(rank, seed):
    """Without set_epoch every epoch has the order of epoch 0; inside the loop over
    the batches it comes too late."""
    dataset = data(30, seed)
    sampler = DistributedSampler(dataset, seed=seed)
    first, again = list(sampler), list(sampler)
    expect.equal(again, first, "the order of the second epoch without set_epoch")
    sampler.set_epoch(0)
    expect.equal(list(sampler), first, "the order of epoch 0")
    sampler.set_epoch(1)
    other = list(sampler)
    expect.that(other != first, "epoch 1 has the order of epoch 0")
    sampler.set_epoch(0)
    late = []
    for index in sampler:
        sampler.set_epoch(1)
        late.append(index)
    expect.equal(late, first, "the order when set_epoch(1) came inside the loop")


@pytest.mark.ranks(3)
def test_unused_parameter_is_noticed_in_the_second_step(rank, seed):
    """Expected to have finished reduction in the prior iteration: in the second step,
    if a parameter took no part in the loss; find_unused_parameters cures it."""
    images = data(4, seed)[:][0]
    for find in (False, True):
        model = network(seed)
        model.unused = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        ddp_model = DDP(model, find_unused_parameters=find)
        ddp_model(images).sum().backward()
        if find:
            ddp_model(images).sum().backward()
            continue
        expect.raises(
            RuntimeError,
            ddp_model,
            images,
            words=["Expected to have finished reduction in the prior iteration"],
        )


@pytest.mark.ranks(2)
def test_ddp_refuses_device_ids_on_the_cpu(rank, seed):
    """On the CPU there is no device to choose, and DDP refuses any."""
    expect.raises(
        ValueError,
        DDP,
        network(seed),
        device_ids=[rank],
        words=["device_ids and output_device arguments only work with"],
    )


def bucket_sizes(ddp_model, inputs):
    """Bytes of each bucket in each of two steps; the same what DDP does by itself."""
    sizes = []

    def average(_state, bucket):
        sizes[-1].append(bucket.buffer().nbytes)
        gradients = bucket.buffer().div_(dist.get_world_size())
        work = dist.all_reduce(gradients, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    ddp_model.register_comm_hook(None, average)
    for _ in range(2):
        sizes.append([])
        ddp_model.zero_grad()
        ddp_model(inputs).square().mean().backward()
    return sizes


@pytest.mark.ranks(2)
def test_size_of_the_buckets(rank, seed):
    """In the first step one bucket holds everything. Afterwards, if you don't set
    bucket_cap_mb, the first one is full at 1 MiB, and the others at 25 MiB. If you set
    it, even to 25, it holds for the first bucket, too."""
    layer, mib = 512 * 513 * 4, 1 << 20  # layers of slightly more than 1 MiB
    inputs = torch.randn(2, 512)

    def model():
        return nn.Sequential(*[nn.Linear(512, 512) for _ in range(30)])

    first, second = bucket_sizes(DDP(model()), inputs)
    expect.equal(first, [30 * layer], "the buckets of the first step")
    expect.equal(sum(second), 30 * layer, "bytes of all buckets of the second step")
    expect.that(mib <= second[0] <= layer, f"the first bucket: {second}")
    expect.that(25 * mib <= second[1] < 26 * mib, f"the second bucket: {second}")
    same = bucket_sizes(DDP(model(), bucket_cap_mb=25), inputs)[1]
    expect.that(25 * mib <= same[0] < 26 * mib, f"the first bucket, set to 25: {same}")
    small = bucket_sizes(DDP(model(), bucket_cap_mb=2), inputs)[1]
    expect.equal(small, [2 * layer] * 15, "the buckets of 2 MiB")


@pytest.mark.ranks(2)
def test_comm_hook_replaces_what_ddp_does(rank, world_size, seed):
    """The hook of 05_timeline.py does the same to a bucket as DDP by itself."""
    program = import_module("instruments.05_timeline")
    Timeline, watch_buckets = program.Timeline, program.watch_buckets

    images, labels = data(6 * world_size, seed)[rank::world_size]
    plain, watched = DDP(network(seed)), DDP(network(seed))
    timeline = Timeline(images.device)
    watch_buckets(watched, timeline)
    for ddp_model in (plain, watched):
        F.cross_entropy(ddp_model(images), labels).backward()
    for a, b in zip(gradients(watched), gradients(plain), strict=True):
        expect.close(a, b, "the gradient with the hook")
    expect.equal(len(timeline.events()), 2, "events of one bucket")


@pytest.mark.ranks(2)
def test_repeating_the_training_of_one_process(rank, world_size, seed):
    """To repeat what one process did at a batch size, divide it by the ranks: the
    weights are the same."""
    images, labels = data(24, seed)[:]
    alone = network(seed)
    ddp_model = DDP(copy.deepcopy(alone))
    for model, forward, batch_size in (
        (alone, alone, 8),
        (ddp_model.module, ddp_model, 8 // world_size),
    ):
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for first in range(0, 24, 8):
            begin = first + (rank * batch_size if forward is ddp_model else 0)
            part = slice(begin, begin + batch_size)
            optimizer.zero_grad()
            F.cross_entropy(forward(images[part]), labels[part]).backward()
            optimizer.step()
    for a, b in zip(ddp_model.parameters(), alone.parameters(), strict=True):
        expect.close(a, b, "the weights")
