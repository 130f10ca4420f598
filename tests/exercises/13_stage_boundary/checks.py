"""Checks of exercises/13_stage_boundary.py."""

import time

import pytest
import torch
from torch import nn

from workshop.grader import expect

expect.nothing_is_averaged()

NOTHING_BACK = (
    "zeros came back from the next rank, as for a received tensor that does not "
    "require a gradient"
)
WIDTHS = (4, 6, 5, 7, 3)  # of what crosses the boundaries


class Stage(nn.Module):
    """Two layers with biases, the second not square; [B, in] -> [B, out]."""

    def __init__(self, number, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed * 10 + number)
        before, after = WIDTHS[number : number + 2]

        def draw(*shape):
            values = torch.randn(*shape, generator=generator, dtype=torch.float64)
            return nn.Parameter(values / 2)

        self.first, self.bias = draw(before, before), draw(before)
        self.second, self.shift = draw(after, before), draw(after)

    def forward(self, x):
        hidden = torch.tanh(x @ self.first.T + self.bias)
        return hidden @ self.second.T + self.shift


def inputs_of(seed, sizes):
    generator = torch.Generator().manual_seed(seed + 900)
    return [
        torch.randn(size, WIDTHS[0], generator=generator, dtype=torch.float64)
        for size in sizes
    ]


def whole(world_size, seed):
    return nn.Sequential(*(Stage(number, seed) for number in range(world_size)))


def loss_of(outputs):
    return 200 * (outputs - 0.3).square().mean()  # gradients larger than 1


def take_forward(exercise, stage, inputs, rank):
    """Forward of one micro-batch, as the learner's code does it."""
    x = inputs.clone().requires_grad_() if rank == 0 else None
    found = exercise.forward(stage, x, (len(inputs), WIDTHS[rank]))
    pair = isinstance(found, (tuple, list)) and len(found) == 2
    expect.that(
        pair and all(map(torch.is_tensor, found)),
        "forward must return the stage's input and its output",
    )
    return found


def take_backward(exercise, x, y, rank, world_size):
    exercise.backward(x, y, loss_of(y) if rank == world_size - 1 else None)


def compare(stage, reference, rank, what, mistaken=None):
    """All gradients of this rank's stage with those of one process.

    ``mistaken`` holds other networks like ``reference``, with wrong gradients.
    """
    mine = dict(stage.named_parameters())
    for name, parameter in reference[rank].named_parameters():
        grad = mine[name].grad
        expect.that(grad is not None, f"{name}.grad is None after backward, {what}")
        wrong = {f"zero: {NOTHING_BACK}": 0 * parameter.grad}
        for words, other in (mistaken or {}).items():
            wrong[words] = other[rank].get_parameter(name).grad
        expect.close(grad, parameter.grad, f"{name}.grad {what}", mistaken=wrong)


@pytest.mark.ranks(3, 4)
def test_outputs_are_those_of_one_process(exercise, rank, world_size, seed):
    """The output of each stage is what the whole network computes there."""
    inputs = inputs_of(seed, [5])[0]
    stage, reference = Stage(rank, seed), whole(world_size, seed)
    x, y = take_forward(exercise, stage, inputs, rank)
    expected = [inputs]
    for part in reference:
        expected.append(part(expected[-1]))
    expect.close(x, expected[rank], f"the input of stage {rank}")
    expect.close(y, expected[rank + 1], f"the output of stage {rank}")
    expect.that(  # rank 0 sends nothing back
        rank == 0 or x.requires_grad,
        "the input from the rank before does not require a gradient, so backward "
        "will leave none in it to send back",
    )
    expect.that(
        rank == 0 or x.is_leaf or x.retains_grad,
        "the input from the rank before is no leaf, and backward leaves gradients in "
        "leaves only: call `requires_grad_()` on the tensor that the stage takes",
    )
    expect.that(
        y.requires_grad,
        "the output has lost its graph: return what the stage computes, and detach "
        "only what you send",
    )


@pytest.mark.ranks(3, 4)
def test_gradients_are_those_of_one_process(exercise, rank, world_size, seed):
    """After backward every weight of every stage has the gradient of one process."""
    inputs = inputs_of(seed, [5])[0]
    stage, reference = Stage(rank, seed), whole(world_size, seed)
    loss_of(reference(inputs)).backward()
    x, y = take_forward(exercise, stage, inputs, rank)
    take_backward(exercise, x, y, rank, world_size)
    expect.still_training(stage, "the stage is")
    compare(stage, reference, rank, f"on stage {rank}")


@pytest.mark.ranks(3, 4)
def test_several_micro_batches_under_way(exercise, rank, world_size, seed):
    """Gradients add up over micro-batches, in whatever order they go back."""
    parts = inputs_of(seed, [4, 4, 2])
    for order in ("F0 F1 F2 B0 B1 B2", "F0 F1 B1 F2 B0 B2"):
        stage, reference = Stage(rank, seed), whole(world_size, seed)
        for part in parts:
            loss_of(reference(part)).backward()
        pairs = {}
        for what, number in order.split():
            if what == "F":
                pairs[number] = take_forward(exercise, stage, parts[int(number)], rank)
            else:
                take_backward(exercise, *pairs[number], rank, world_size)
        last = whole(world_size, seed)
        for part in parts[:1] + parts[2:]:
            loss_of(last(part)).backward()
        words = (
            "that of micro-batches 0 and 2 alone: forward of 2 must not discard the "
            "gradient that backward of 1 has left"
        )
        what = f"after three micro-batches, {order}"
        compare(stage, reference, rank, what, {words: last})


@pytest.mark.ranks(3, 4)
def test_three_steps_with_a_late_rank(exercise, rank, world_size, seed):
    """With any rank late, three steps of SGD and AdamW give one process's weights."""
    for make in (
        lambda p: torch.optim.SGD(p, lr=0.0005, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=0.02),
    ):
        stage, reference = Stage(rank, seed), whole(world_size, seed)
        mine, theirs = make(stage.parameters()), make(reference.parameters())
        for step, part in enumerate(inputs_of(seed, [5, 3, 4])):
            if rank == step:
                time.sleep(0.2)
            for optimizer in (mine, theirs):
                optimizer.zero_grad()
            loss_of(reference(part)).backward()
            x, y = take_forward(exercise, stage, part, rank)
            take_backward(exercise, x, y, rank, world_size)
            mine.step()
            theirs.step()
        for (name, a), b in zip(
            stage.named_parameters(), reference[rank].parameters(), strict=True
        ):
            expect.close(a, b, f"{name} of stage {rank} after three steps")


@pytest.mark.ranks(3)
def test_what_travels(exercise, rank, world_size, seed, ledger):
    """One message each way over each boundary, and nothing else."""
    inputs = inputs_of(seed, [5])[0]
    stage = Stage(rank, seed)
    ledger.clear()
    x, y = take_forward(exercise, stage, inputs, rank)
    take_backward(exercise, x, y, rank, world_size)
    last = rank == world_size - 1
    sent = [row.numel for row in ledger.rows if row.op == "send"]
    expected = ([] if last else [5 * WIDTHS[rank + 1]]) + (
        [5 * WIDTHS[rank]] if rank else []
    )
    expect.right_way(
        not any("uint8" in row.dtypes for row in ledger.rows),
        "this rank sends or receives pickled objects: send the tensor itself",
    )
    others = sorted(set(ledger.ops()) - {"send", "recv"})
    told = f"this rank calls {', '.join(others)}: use only send and recv"
    expect.right_way(not others, told)
    expect.right_way(
        sent == expected, f"this rank sends {sent} numbers, expected {expected}"
    )
