"""Checks of exercises/04_parallel_by_hand.py."""

import gc
import threading
import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from workshop.grader import expect
from workshop.grader.by_hand import by_hand

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02),
}
SIZES = 12, 10, 7, 6, 3, 1  # images; 3 and 4 parts do not divide most of them


SHARED = (
    "the right one, as if the copies shared the module's parameters and their grad: "
    "copy with copy.deepcopy"
)
FIRST_TWICE = (
    "that of the whole batch, and the first part's share once more, as if the module "
    "itself ran the first part: copy it for each part"
)


class Network(nn.Module):
    """Float64, a layer used twice under two names, a frozen and an unused parameter.

    Only some images use ``lift``: a part may have none of them.
    """

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.first = nn.Parameter(draw(5, 6))
        self.bias = nn.Parameter(draw(5))
        self.again = nn.Parameter(draw(5, 5) / 3)
        self.tied = self.again
        self.last = nn.Parameter(draw(3, 5))
        self.scale = nn.Parameter(1 + draw(5) / 4, requires_grad=False)
        self.unused = nn.Parameter(draw(2))
        self.lift = nn.Parameter(draw(3))
        self.register_buffer("shift", draw(5) / 4)

    def forward(self, x):  # [B, 6] -> [B, 3]
        hidden = torch.tanh(x @ self.first.T + self.bias)
        hidden = torch.tanh(hidden @ self.again.T + self.shift)
        hidden = torch.tanh(hidden @ self.tied.T) * self.scale
        output, some = hidden @ self.last.T, x[:, :1] > 0.7
        return output + some * self.lift if some.any() else output


class Forgetful(nn.Module):
    """Stores a result on itself for a while, as many modules do."""

    def __init__(self, seed):
        super().__init__()
        self.inner = Network(seed)

    def forward(self, x):
        self.kept = self.inner(x)
        time.sleep(0.2)  # the other threads come by
        return self.kept


class Part(nn.Module):
    """Adds its number; part 0 is the slowest."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def forward(self, x):
        time.sleep(0.1 * (3 - self.number))
        return x + self.number


class Meeting(nn.Module):
    """Continues when as many threads have arrived as there are parts."""

    def __init__(self, barrier, missed):
        super().__init__()
        self.barrier, self.missed = barrier, missed

    def forward(self, x):
        try:
            self.barrier.wait(timeout=3)
        except threading.BrokenBarrierError:
            self.missed.append(len(x))
        return 2 * x


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError(f"this part has {len(x)} images and fails")


def batch(seed, size):
    generator = torch.Generator().manual_seed(seed + 1000 * size)
    images = torch.randn(size, 6, generator=generator, dtype=torch.float64)
    return images, torch.randint(3, (size,), generator=generator)


def gradients(network):
    return {
        key: None if p.grad is None else p.grad.clone()
        for key, p in network.named_parameters()
    }


def one_backward(exercise, network, parts, images, labels):
    """A step without the optimizer, by the learner's class."""
    mine = exercise.HandMadeDataParallel(network, parts)
    loss = F.cross_entropy(mine(images), labels)
    expect.that(
        loss.requires_grad,
        "the backward pass cannot run: the output does not require grad, so it was cut "
        "off from the weights",
    )
    loss.backward()
    mine.reduce()
    return gradients(network)


def compare_gradients(found, expected, label, times=1, parts=1, first=None, **near):
    """``times`` is how many times the whole batch was added up.

    ``first`` has the gradients of the first part's share of the loss.
    """
    for key, grad in expected.items():
        if grad is None:
            expect.that(found[key] is None, f"{key}.grad {label} should stay None")
            continue
        expect.that(found[key] is not None, f"{key}.grad {label} is None after reduce")
        mistaken = {}
        if times > 1:
            mistaken["that of the last pass alone: add to what is there"] = grad
        if parts > 1:
            mistaken["the mean of the parts' shares, not their sum"] = grad / parts
            for factor in (2**parts, parts + 1):
                mistaken[f"{factor} times {SHARED}"] = factor * grad
        if parts > 1 and first and first[key] is not None:
            mistaken[FIRST_TWICE] = grad + first[key]
        what = f"{key}.grad {label}"
        expect.close(found[key], times * grad, what, mistaken=mistaken, **near)


def share_of_first(seed, images, labels, parts):
    """Gradients of the first part's share of the loss."""
    network, size = Network(seed), len(images)
    chunk = images.chunk(parts)[0]
    outputs, count = network(chunk), len(chunk)
    loss = F.cross_entropy(outputs, labels[:count], reduction="sum") / size
    loss.backward()
    return gradients(network)


def truth(seed, images, labels):
    network = Network(seed)
    F.cross_entropy(network(images), labels).backward()
    return gradients(network)


@pytest.mark.ranks(1, init=False)
def test_outputs_in_order(exercise, seed):
    """Outputs are in the order of the parts, whichever thread finishes first."""
    chunks = list(batch(seed, 10)[0].chunk(4))
    outputs = exercise.parallel_apply([Part(i) for i in range(4)], [*chunks])
    kind = type(outputs).__name__
    is_list = isinstance(outputs, (list, tuple))
    expect.that(is_list, f"parallel_apply returned a {kind}, expected a list")
    expect.equal(len(outputs), 4, "the number of outputs of parallel_apply")
    for i, (output, chunk) in enumerate(zip(outputs, chunks, strict=True)):
        expect.close(output, chunk + i, f"the output of part {i}")


@pytest.mark.ranks(1, init=False)
def test_exceptions_arrive(exercise, seed):
    """An exception in a thread is raised by parallel_apply."""
    chunks = list(batch(seed, 10)[0].chunk(4))
    replicas = [Part(3), Part(3), Fails(), Part(3)]
    expect.raises(
        ValueError,
        exercise.parallel_apply,
        replicas,
        chunks,
        words=["this part has 3 images and fails"],
        what="parallel_apply, when the third part fails,",
    )


@pytest.mark.ranks(1, init=False)
def test_no_grad_reaches_the_threads(exercise, seed):
    """Under torch.no_grad() nothing is recorded in the threads; otherwise it is."""
    chunks = list(batch(seed, 7)[0].chunk(3))
    for recording in (False, True):
        with torch.set_grad_enabled(recording):
            replicas = [Network(seed) for _ in chunks]
            outputs = exercise.parallel_apply(replicas, [*chunks])
        expect.equal(
            [output.requires_grad for output in outputs],
            [recording] * len(chunks),
            f"requires_grad of the outputs, called with recording {recording}",
        )


@pytest.mark.ranks(1, init=False)
def test_output_is_that_of_the_module(exercise, seed):
    """The outputs equal those of the module, also for uneven batches."""
    for parts in (3, 4):
        for size in SIZES:
            images, _ = batch(seed, size)
            mine = exercise.HandMadeDataParallel(Network(seed), parts)
            label = f"the output for {size} images in {parts} parts"
            expect.close(mine(images), Network(seed)(images), label)


@pytest.mark.ranks(1, init=False)
def test_gradient_is_that_of_the_whole_batch(exercise, seed):
    """After backward and reduce every .grad is that of the whole batch."""
    for parts in (3, 4):
        for size in SIZES:
            images, labels = batch(seed, size)
            found = one_backward(exercise, Network(seed), parts, images, labels)
            used = len(images.chunk(parts))
            label = f"for {size} images in {parts} parts"
            expected = truth(seed, images, labels)
            first = share_of_first(seed, images, labels, parts)
            compare_gradients(found, expected, label, parts=used, first=first)


@pytest.mark.ranks(1, init=False)
def test_single_precision(exercise, seed):
    """A module in float32 gives outputs and gradients in float32."""
    images, labels = batch(seed, 10)
    images, near = images.float(), {"atol": 1e-4, "rtol": 1e-4}
    network, alone = Network(seed).float(), Network(seed).float()
    found, output = exercise.HandMadeDataParallel(network, 3)(images), alone(images)
    expect.close(found, output, "the output of a module in float32", **near)
    F.cross_entropy(output, labels).backward()
    expected = gradients(alone)
    found = one_backward(exercise, network, 3, images, labels)
    compare_gradients(found, expected, "of a module in float32", **near)


TOGETHER = threading.Barrier(4)
PARTS: list[int] = []  # images of each forward pass
ALONE: list[int] = []  # images of a forward pass that met no other one


class Crowd(Network):
    """Computes once four forward passes are running."""

    def forward(self, x):
        PARTS.append(len(x))
        try:
            TOGETHER.wait(timeout=2)
        except threading.BrokenBarrierError:
            ALONE.append(len(x))
        return super().forward(x)


@pytest.mark.ranks(1, init=False, limit=30)
def test_each_part_has_its_thread(exercise, seed, ledger):
    """The class runs all parts of the batch through the module at the same time."""
    images, labels = batch(seed, 12)
    with by_hand(ledger, nn.DataParallel):
        found = one_backward(exercise, Crowd(seed), 4, images, labels)
    expected = truth(seed, images, labels)
    compare_gradients(found, expected, "for 12 images in 4 parts", parts=4)
    made = "" if (n := len(PARTS)) == 4 else f"; 12 images should make 4 parts, not {n}"
    expect.right_way(
        not ALONE,
        "the 4 parts of the forward pass never ran at the same time: "
        f"parts of {ALONE[:4]} images ran without the others{made}",
    )


class Mode(nn.Module):
    """Computes one thing in training, another in evaluation."""

    def forward(self, x):
        return 2 * x if self.training else x


@pytest.mark.ranks(1, init=False)
def test_evaluation_mode(exercise, seed):
    """A module in evaluation or training mode runs in this mode, and stays in it."""
    images, _ = batch(seed, 10)
    for training, name in ((False, "evaluation"), (True, "training")):
        network = nn.Sequential(Network(seed), Mode()).train(training)
        found = exercise.HandMadeDataParallel(network, 4)(images)
        expect.close(found, network(images), f"the output of a module in {name} mode")
        expect.equal(network.training, training, "model.training after it")


@pytest.mark.ranks(1, init=False)
def test_gradients_add_up(exercise, seed):
    """A second backward and reduce without zero_grad adds to the gradients."""
    images, labels = batch(seed, 10)
    network = Network(seed)
    for _ in range(2):
        found = one_backward(exercise, network, 4, images, labels)
    compare_gradients(found, truth(seed, images, labels), "of two passes", times=2)


@pytest.mark.ranks(1, init=False)
def test_trains_like_one(exercise, seed):
    """Three steps give the weights that the module alone would have."""
    for name, make_optimizer in OPTIMIZERS.items():
        network, alone = Network(seed), Network(seed)
        mine = exercise.HandMadeDataParallel(network, 4)
        optimizer = make_optimizer(network.parameters())
        other = make_optimizer(alone.parameters())
        keys = set(mine.state_dict())
        begun = Network(seed)
        for step in range(3):
            images, labels = batch(seed + step, 10)
            optimizer.zero_grad()
            outputs = mine(images)
            expect.that(
                step == 0 or not torch.allclose(outputs, begun(images)),
                f"the outputs of step {step} are those of the first weights: the "
                "optimizer has changed the module's since, so copy it in every "
                "forward pass",
            )
            F.cross_entropy(outputs, labels).backward()
            new = sorted(set(mine.state_dict()) - keys)
            expect.that(
                not new,
                f"the forward pass adds {len(new)} names to state_dict(), such as "
                f"{new[:1]}: keep the copies in a plain list, not in a module",
            )
            mine.reduce()
            optimizer.step()
            other.zero_grad()
            F.cross_entropy(alone(images), labels).backward()
            other.step()
            for (key, a), b in zip(
                network.named_parameters(), alone.parameters(), strict=True
            ):
                expect.close(a, b, f"{key} after step {step}, {name}")


@pytest.mark.ranks(1, init=False)
def test_old_copies_are_dropped(exercise, seed):
    """Only the last pass needs copies: those of earlier ones are no longer there."""
    network, parts, passes = Network(seed), 4, 6
    mine = exercise.HandMadeDataParallel(network, parts)
    for turn in range(passes):
        images, labels = batch(seed + turn, 10)
        network.zero_grad()
        F.cross_entropy(mine(images), labels).backward()
        mine.reduce()
    compare_gradients(gradients(network), truth(seed, images, labels), "of the last")
    gc.collect()
    copies = sum(type(one) is Network for one in gc.get_objects()) - 1
    expect.right_way(
        copies <= 2 * parts,
        f"after {passes} passes with {parts} parts, {copies} copies of the module are "
        "in memory: keep those of the last forward pass only",
    )


@pytest.mark.ranks(1, init=False)
def test_each_thread_has_a_copy(exercise, seed):
    """A module may store something on itself during its forward pass."""
    images, _ = batch(seed, 12)
    output = exercise.HandMadeDataParallel(Forgetful(seed), 4)(images)
    first, *others = output.chunk(4)
    expect.that(
        not all(torch.equal(first, other) for other in others),
        "all parts have the same output: the threads use one and the same copy, and "
        "the module's attributes hold the last thread's values",
    )
    label = "the output of a module that stores something on itself"
    expect.close(output, Network(seed)(images), label)


@pytest.mark.ranks(1, init=False, limit=30)
def test_threads_work_at_the_same_time(exercise, seed):
    """No thread waits until another one is ready."""
    chunks = list(batch(seed, 40)[0].chunk(40))  # more than a pool starts unasked
    barrier, missed = threading.Barrier(40), []
    replicas = [Meeting(barrier, missed) for _ in chunks]
    outputs = exercise.parallel_apply(replicas, [*chunks])
    expect.close(torch.cat(outputs), 2 * torch.cat(chunks), "the outputs")
    expect.right_way(
        not missed,
        "the 40 parts never ran at the same time: use a thread for each, and start all "
        "threads before you wait for the first one",
    )
