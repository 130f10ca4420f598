"""Checks of exercises/05_ddp_by_hand.py."""

import time

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from workshop.grader import expect
from workshop.grader.by_hand import by_hand

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
}


class Network(nn.Module):
    """Float64, with a layer used twice, a frozen and an unused parameter, and buffers.

    One of these is float, one counts, one is left out of what is saved.
    """

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.first = nn.Parameter(draw(5, 6))
        self.bias = nn.Parameter(draw(5))
        self.again = nn.Parameter(draw(5, 5) / 3)
        self.last = nn.Parameter(draw(3, 5))
        self.scale = nn.Parameter(1 + draw(5) / 4, requires_grad=False)
        self.unused = nn.Parameter(draw(2))
        self.register_buffer("shift", draw(5) / 4)
        self.register_buffer("steps", torch.tensor(seed**2))  # no rank has their mean
        mask = torch.arange(5) == seed % 5
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):  # [B, 6] -> [B, 3]
        hidden = torch.tanh(x @ self.first.T + self.bias)
        hidden = torch.tanh(hidden @ self.again.T + self.shift + self.mask)
        hidden = torch.tanh(hidden @ self.again.T) * self.scale
        return hidden @ self.last.T


def batches(seed, world_size, steps=3):
    """[steps, W, 4, 6] inputs; targets are zero."""
    generator = torch.Generator().manual_seed(seed + 5000)
    shape = steps, world_size, 4, 6
    return 2 * torch.randn(*shape, generator=generator, dtype=torch.float64)


def loss_of(outputs):
    return outputs.square().mean()


def state(network):
    """name -> parameter or buffer, also those that state_dict leaves out."""
    return {
        key: value.detach()
        for key, value in [*network.named_parameters(), *network.named_buffers()]
    }


def gradients(network, inputs):
    """name -> gradient of one process for ``inputs``."""
    network.zero_grad()
    loss_of(network(inputs)).backward()
    found = {k: p.grad for k, p in network.named_parameters() if p.grad is not None}
    return {key: grad.clone() for key, grad in found.items()}


def compare_gradients(mine, rank, seed, inputs, label):
    """The mean over the ranks, as one process computes it from all inputs."""
    expected = gradients(Network(seed), inputs.flatten(0, 1))
    own = gradients(Network(seed), inputs[rank])
    for key, grad in expected.items():
        found = getattr(mine.module, key).grad
        expect.that(found is not None, f"{key}.grad is None after backward and finish")
        # a copy: what was not waited for may still change
        expect.close(found.clone(), grad, f"{key}.grad {label}", local=own[key])


def no_work_is_left(ddp_model):
    """``finish`` has emptied the list; a second pass would hide what is left in it."""
    works = getattr(ddp_model, "works", None)
    left = works if isinstance(works, list) else []
    expect.right_way(
        not left,
        f"self.works still holds {len(left)} averages after finish(): those are "
        "complete, and the next finish() would wait for them again",
    )


@pytest.mark.ranks(3, 4)
def test_all_begin_as_rank_0(exercise, rank, world_size, seed, ledger):
    """All ranks hold rank 0's state, although each built the module differently."""
    with by_hand(ledger, DDP):
        mine = exercise.HandMadeDDP(Network(seed + rank))
    first, own = state(Network(seed)), state(Network(seed + rank))
    all_states = [state(Network(seed + other)) for other in range(world_size)]
    # a copy: what was not waited for may still change
    found = {key: value.clone() for key, value in state(mine.module).items()}
    for key, value in first.items():
        mean = sum(other[key].double() for other in all_states) / world_size
        mistaken = {"the mean of the ranks' values: rank 0's is wanted": mean}
        if key == "scale" and rank:
            frozen = "this rank's own: a frozen parameter is sent, too, as it's used"
            mistaken[frozen] = own[key]
        what = f"{key} at the beginning"
        expect.close(found[key], value, what, local=own[key], mistaken=mistaken)


@pytest.mark.ranks(3, 4)
def test_gradient_is_that_of_the_global_batch(exercise, rank, world_size, seed):
    """After backward and finish every .grad is the mean over the ranks."""
    mine = exercise.HandMadeDDP(Network(seed + rank))
    inputs = batches(seed, world_size)[0]
    outputs = mine(inputs[rank])
    expect.close(outputs, Network(seed)(inputs[rank]), "the output of forward")
    loss_of(outputs).backward()
    mine.finish()
    compare_gradients(mine, rank, seed, inputs, "of the first step")


@pytest.mark.ranks(3)
def test_single_precision(exercise, rank, world_size, seed):
    """A module in float32 gets gradients in float32."""
    mine = exercise.HandMadeDDP(Network(seed).float())
    inputs = batches(seed, world_size)[0].float()
    loss_of(mine(inputs[rank])).backward()
    mine.finish()
    expected = gradients(Network(seed).float(), inputs.flatten(0, 1))
    for key, grad in expected.items():
        found, what = getattr(mine.module, key).grad, f"{key}.grad in float32"
        expect.that(found is not None, f"{what} is None after backward and finish")
        expect.close(found.clone(), grad, what, atol=1e-4, rtol=1e-4)


@pytest.mark.ranks(3, 4)
def test_a_late_rank(exercise, rank, world_size, seed):
    """finish() returns only when the slowest rank's gradients are averaged, too."""
    mine = exercise.HandMadeDDP(Network(seed))
    inputs = batches(seed, world_size)
    for step in inputs[:2]:
        mine.module.zero_grad()
        if rank == 1:
            time.sleep(0.3)
        loss_of(mine(step[rank])).backward()
        mine.finish()
        compare_gradients(mine, rank, seed, step, "when rank 1 is late")
        no_work_is_left(mine)


@pytest.mark.ranks(3, 4)
def test_trains_like_ddp(exercise, rank, world_size, seed):
    """Three steps give the weights that torch's DDP gives."""
    for name, make_optimizer in OPTIMIZERS.items():
        inputs = batches(seed, world_size)
        mine = exercise.HandMadeDDP(Network(seed + rank))
        optimizer = make_optimizer(mine.module.parameters())
        theirs = DDP(Network(seed + rank), find_unused_parameters=True)
        their_optimizer = make_optimizer(theirs.module.parameters())
        for step in inputs:
            optimizer.zero_grad()
            loss_of(mine(step[rank])).backward()
            mine.finish()
            optimizer.step()
            their_optimizer.zero_grad()
            loss_of(theirs(step[rank])).backward()
            their_optimizer.step()
        for (key, a), b in zip(
            mine.module.named_parameters(), theirs.module.parameters(), strict=True
        ):
            expect.close(a.clone(), b, f"{key} after 3 steps, {name}")


@pytest.mark.ranks(4)
def test_averaging_begins_during_backward(exercise, rank, world_size, seed, ledger):
    """The hook starts the average; finish() only waits."""
    mine = exercise.HandMadeDDP(Network(seed))
    inputs = batches(seed, world_size)[0]
    loss = loss_of(mine(inputs[rank]))
    ledger.clear()
    loss.backward()
    begun = len(ledger.rows)
    mine.finish()
    compare_gradients(mine, rank, seed, inputs, "of the first step")
    expect.right_way(
        begun >= 4,
        f"{begun} collectives had started when backward ended, for 4 gradients: the "
        "hook should start them, so that they run while backward continues",
    )
    expect.right_way(
        len(ledger.rows) == begun,
        f"finish() began {len(ledger.rows) - begun} more collectives: it should only "
        "wait for those that the hook has begun",
    )
    no_work_is_left(mine)
    mine.finish()
    again = "after a second finish(), which has nothing to wait for"
    compare_gradients(mine, rank, seed, inputs, again)


@pytest.mark.ranks(3, limit=20)
def test_backward_does_not_wait(exercise, rank, world_size, seed, shared_dir):
    """A rank's backward ends although another rank hasn't started its own."""
    mine = exercise.HandMadeDDP(Network(seed))
    inputs = batches(seed, world_size)[0]
    ended = [shared_dir / f"backward_of_rank_{other}_ended" for other in (0, 1)]
    everybody = True
    if rank == 2:
        # as long as they need, unless they wait for this rank
        for _ in range(300):
            if everybody := all(path.exists() for path in ended):
                break
            time.sleep(0.02)
    loss_of(mine(inputs[rank])).backward()
    if rank < 2:
        ended[rank].touch()
    mine.finish()
    compare_gradients(mine, rank, seed, inputs, "when rank 2 begins last")
    expect.right_way(
        everybody,
        "ranks 0 and 1 stay in backward until this rank has begun with its own: "
        "the hook waits, and nothing is sent while backward continues",
    )
