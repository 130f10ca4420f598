"""Checks of exercises/13_pipeline_api.py."""

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()
WIDTH, BATCH = 5, 12
MICRO_BATCHES = (4, 6)  # both divide the batch; 1F1B needs as many as there are stages
PADDED = [0, 5, 6, 7]  # with 6 micro-batches, one has no target at all


def drawn(seed, *shape):
    """The same numbers on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def network(seed, stages):
    """A layer and tanh for each stage."""
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(stages)]
    whole = nn.Sequential(*layers).double()
    with torch.no_grad():
        for number, parameter in enumerate(whole.parameters()):
            parameter.copy_(drawn(seed + number, *parameter.shape))
    return whole


def batch(seed):
    """Inputs and targets, some of which are padding."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(WIDTH, (BATCH,), generator=generator)
    targets[PADDED[seed % 2 :]] = -1  # other batches have other numbers of targets
    return drawn(seed + 50, BATCH, WIDTH), targets


def loss_of(outputs, targets):
    return F.cross_entropy(outputs, targets, ignore_index=-1)


def losses_by_mistake(outputs, targets, m):
    """The loss of a batch if the losses of its m parts are combined differently."""
    parts = zip(outputs.detach().chunk(m), targets.chunk(m), strict=True)
    means = torch.stack([loss_of(*part) for part in parts])
    counts = torch.stack([(part != -1).sum() for part in targets.chunk(m)])
    right = loss_of(outputs.detach(), targets)
    shares = means.nan_to_num() * counts / counts.sum()
    return {
        "the mean of means over different numbers of targets": (means.mean()),
        f"divided by the {m} micro-batches, too": right / m,
        f"divided by the {dist.get_world_size()} ranks, one of which has a loss": (
            right / dist.get_world_size()
        ),
        "the share of the last micro-batch": shares[-1],
        f"divided by all {BATCH} targets, padding included": (
            right * counts.sum() / BATCH
        ),
        "0: the losses are on the last rank only": torch.zeros(()).double(),
    }


def compare(stage, whole, rank, micro_batches, before):
    """The gradients of this rank's stage are those that one process has."""
    for name, parameter in stage.named_parameters():
        right = whole[rank].get_parameter(name).grad
        divided = "scale_grads is on, and the loss is divided already"
        names = {f"1/{micro_batches} of it: {divided}": right / micro_batches}
        if name in before:
            last = right - before[name]
            names["that of the last step alone: step adds to .grad"] = last
            told = f"off: what was there before was divided, too, by {micro_batches}"
            names[told] = before[name] / micro_batches + last
        expect.gradient(parameter, right, name, mistaken=names)


def schedule_of(exercise, layers, micro_batches):
    schedule = exercise.make_schedule(layers, micro_batches)
    kind, steps = type(schedule).__name__, callable(getattr(schedule, "step", None))
    expect.that(
        steps, f"make_schedule returned a {kind}: it should return the schedule"
    )
    return schedule


@pytest.mark.ranks(3, 4)
def test_loss_and_gradients_are_those_of_the_whole_network(
    exercise, rank, world_size, seed
):
    """Every rank returns the loss of the batch, and has its gradients."""
    for m in MICRO_BATCHES:
        whole, mine = network(seed, world_size), network(seed, world_size)[rank]
        schedule, before = schedule_of(exercise, mine, m), {}
        for number in (1, 2):
            inputs, targets = batch(seed + number)
            outputs = whole(inputs)
            right = loss_of(outputs, targets)
            right.backward()
            found = exercise.step(schedule, inputs, targets)
            where = f"the loss of step {number} with {m} micro-batches"
            names = losses_by_mistake(outputs, targets, m)
            expect.close(found, right.detach(), where, mistaken=names)
            compare(mine, whole, rank, m, before)
            expect.still_training(mine, "the stage is")
            named = whole[rank].named_parameters()
            before = {name: p.grad.clone() for name, p in named}


@pytest.mark.ranks(4)
def test_holds_what_1f1b_holds(exercise, rank, world_size, seed):
    """The batch is cut as asked, and no rank holds more micro-batches than in 1F1B."""
    m = MICRO_BATCHES[1]
    stage = network(seed, world_size)[rank]
    schedule = schedule_of(exercise, stage, m)
    exercise.step(schedule, *batch(seed))  # the first step also finds out the shapes
    entered, live, most = [], [0], [0]

    def enters(layers, given, output):
        entered.append(len(output))
        live[0] += 1
        most[0] = max(most[0], live[0])
        output.register_hook(returns)

    def returns(gradient):
        live[0] -= 1

    stage.register_forward_hook(enters)
    exercise.step(schedule, *batch(seed))
    expect.right_way(
        entered == [BATCH // m] * m,
        f"micro-batches of {entered} went through this stage: make_schedule was asked "
        f"for {m} of {BATCH // m} each",
    )
    expect.right_way(
        most[0] <= world_size - rank,
        f"this rank held {most[0]} of {m} micro-batches at a time: 1F1B holds "
        f"{world_size} on rank 0 and one fewer on each rank after it",
    )


@pytest.mark.ranks(3)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """Three steps of one schedule, with SGD and with AdamW, give the same weights."""
    optimizers = {
        "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
    }
    for name, make in optimizers.items():
        whole, mine = network(seed, world_size), network(seed, world_size)[rank]
        both = make(whole.parameters()), make(mine.parameters())
        schedule = schedule_of(exercise, mine, MICRO_BATCHES[0])
        for number in range(3):
            inputs, targets = batch(seed + number)
            for optimizer in both:
                optimizer.zero_grad()
            loss_of(whole(inputs), targets).backward()
            exercise.step(schedule, inputs, targets)
            for optimizer in both:
                optimizer.step()
        for key, parameter in mine.named_parameters():
            expected = whole[rank].get_parameter(key)
            expect.close(parameter, expected, f"{key} after 3 steps, {name}")


@pytest.mark.ranks(3)
def test_network_in_float32(exercise, rank, world_size, seed):
    """A network in float32, as most are, has its loss in float32."""
    whole, (inputs, targets) = network(seed, world_size).float(), batch(seed)
    schedule = schedule_of(exercise, whole[rank], MICRO_BATCHES[0])
    right = loss_of(whole(inputs.float()), targets).detach()
    found = exercise.step(schedule, inputs.float(), targets)
    expect.close(found, right, "the loss in float32", atol=1e-5, rtol=1e-5)
