"""Checks of exercises/17_checkpoint_blocks.py."""

import itertools

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import CheckpointError

from workshop.grader import expect

OTHER_BLOCK = (
    "in backward, what was checkpointed computes something else than in forward. "
    "A lambda that calls `block` takes the loop's last block by then: pass `block`"
)
INPUT_OF_DATA = (
    ", and an input that requires no gradient\n    the older kind of checkpoint, "
    "use_reentrant=True, loses the gradients of its parameters then"
)
SAVED, INPUTS = [60, 100, 30, 90, 45], [10, 60, 10, 10, 10]
LIMITS = (325, 324, 245, 244, 195, 150, 125, 101, 100)


class Block(nn.Module):
    """Keeps more, the wider it is inside; draws a mask as dropout does."""

    def __init__(self, inside):
        super().__init__()
        self.up, self.down = nn.Linear(6, inside), nn.Linear(inside, 6)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        hidden = nn.functional.dropout(torch.tanh(self.up(x)), 0.5, self.training)
        return x + self.down(hidden)


def blocks_of(seed, count=3):
    torch.manual_seed(seed)
    return nn.ModuleList(Block(inside) for inside in (40, 8, 24)[:count]).double()


def held(chosen, saved, inputs):
    return sum(inputs[n] if n in chosen else saved[n] for n in range(len(saved)))


def fewest(saved, inputs, limit):
    """How many blocks must be checkpointed, by trying every set."""
    sets = itertools.chain.from_iterable(
        itertools.combinations(range(len(saved)), count)
        for count in range(len(saved) + 1)
    )
    return next(len(one) for one in sets if held(one, saved, inputs) <= limit)


def run(function, seed, count=3, of_data=False):
    """(output, gradients, bytes saved at the end of forward, calls of each block)

    ``of_data``: as the first blocks of a network, whose input needs no gradient.
    """
    blocks, kept = blocks_of(seed, count), {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    own = {p.untyped_storage().data_ptr() for p in blocks.parameters()}
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=not of_data)
    torch.manual_seed(seed + 1)  # for dropout
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = function(blocks, x)
    saved = sum(size for place, size in kept.items() if place not in own)
    try:
        output.square().sum().backward()
    except CheckpointError as error:
        expect.that(False, f"{OTHER_BLOCK}; torch says: {str(error).splitlines()[0]}")
    parameters = ({} if of_data else {"x": x}) | dict(blocks.named_parameters())
    gradients = {name: one.grad for name, one in parameters.items()}
    return output, gradients, saved, [block.calls for block in blocks]


def plain(blocks, x):
    for block in blocks:
        x = block(x)
    return x


def forward_of(exercise, chosen):
    """The learner's; it must leave the set alone, which the next step uses again."""

    def forward(blocks, x):
        given = set(chosen)
        output = exercise.forward(blocks, x, given)
        expect.equal(given, chosen, "the caller's set `chosen`, afterwards")
        return output

    return forward


def check_choice(exercise, saved, inputs, limit, of):
    given = list(saved), list(inputs)
    chosen = exercise.choose_blocks(*given, limit)
    kind = type(chosen).__name__
    expect.that(kind == "set", f"the choice is {chosen!r}, a {kind}, not a set")
    expect.that(
        chosen <= set(range(len(saved))),
        f"{chosen} are not numbers of the {len(saved)} blocks",
    )
    bytes_now, count = held(chosen, saved, inputs), fewest(saved, inputs, limit)
    too_much = (
        f"with blocks {sorted(chosen)}{of} checkpointed, all keep {bytes_now} bytes: "
        f"more than the limit of {limit}"
    )
    without_inputs = held(chosen, saved, [0] * len(saved))
    if chosen and without_inputs <= limit:
        too_much += f". {without_inputs} are those of the others: add the chosen inputs"
    expect.that(bytes_now <= limit, too_much)
    without = sum(saved)
    too_many = f"{sorted(chosen)}{of} are checkpointed for a limit of {limit} bytes, "
    if count == 0:
        too_many += f"and none is needed: all blocks keep {without} bytes without that"
    else:
        too_many += f"where {count} of the blocks would do: which blocks free most?"
    expect.that(len(chosen) == count, too_many)
    for name, found, before in zip(
        ("saved", "inputs"), given, (saved, inputs), strict=True
    ):
        expect.equal(found, list(before), f"the caller's list `{name}`, afterwards")


@pytest.mark.ranks(1)
def test_as_few_blocks_as_possible(exercise):
    """The chosen blocks fit into the limit, and no smaller number would."""
    for limit in LIMITS:
        check_choice(exercise, SAVED, INPUTS, limit, "")


@pytest.mark.ranks(1)
def test_equal_blocks(exercise):
    """Blocks may be equal, as those of a GPT are."""
    for limit in (400, 399, 220, 41, 40):
        check_choice(exercise, [100] * 4, [10] * 4, limit, " of 4 equal ones")


@pytest.mark.ranks(1)
def test_a_limit_that_is_too_small(exercise):
    """ValueError if checkpointing every block is not enough."""
    expect.raises(ValueError, exercise.choose_blocks, SAVED, INPUTS, 99)


@pytest.mark.ranks(1)
def test_a_single_block(exercise):
    """One block may be all there is."""
    for limit in (100, 99, 10):
        check_choice(exercise, [100], [10], limit, " of 1 block")
    expect.raises(ValueError, exercise.choose_blocks, [100], [10], 9)


@pytest.mark.ranks(1)
def test_gradients_are_equal(exercise, seed):
    """Output and gradients are those without checkpoints, dropout included."""
    for chosen in (set(), {0}, {0, 2}, {0, 1, 2}):
        check_gradients(exercise, seed, chosen)


@pytest.mark.ranks(1)
def test_gradients_of_the_first_blocks(exercise, seed):
    """They are there, too, if the input is data, which requires no gradient."""
    for chosen, count in (({0}, 3), ({0, 1}, 3), ({0}, 1)):
        check_gradients(exercise, seed, chosen, count, of_data=True)


def check_gradients(exercise, seed, chosen, count=3, of_data=False):
    torch.manual_seed(seed + 2)
    output, gradients, *_ = run(plain, seed, count, of_data)
    torch.manual_seed(seed + 2)
    try:
        found, others, *_ = run(forward_of(exercise, chosen), seed, count, of_data)
    except RuntimeError as error:
        lost = of_data and "does not require grad" in str(error)
        expect.that(not lost, f"the output has no graph{INPUT_OF_DATA}")
        raise
    where = f"{sorted(chosen)} of {count} checkpointed"
    expect.close(found, output, f"the output with {where}")
    for name, value in gradients.items():
        own = others[name]
        why = INPUT_OF_DATA if of_data else ""
        expect.that(own is not None, f"{name} has no gradient with {where}{why}")
        expect.close(own, value, f"the gradient of {name} with {where}")


def because(calls, right):
    """What explains how many times the blocks were computed."""
    count = len(right)
    if calls == [2] * count:
        return ": all blocks are checkpointed"
    if calls == [1] * count:
        return ": no block is checkpointed"
    if calls == [3 - times for times in right]:
        return ": the other blocks are checkpointed, and not the chosen ones"
    return ""


@pytest.mark.ranks(1)
def test_chosen_blocks_keep_their_input(exercise, seed):
    """What is saved shrinks, and only the chosen blocks are computed twice."""
    everything = run(plain, seed)[2]
    for chosen in ({0, 2}, {0}, set()):
        *_, saved, calls = run(forward_of(exercise, chosen), seed)
        twice = [1 + (number in chosen) for number in range(3)]
        expect.right_way(
            calls == twice,
            f"with blocks {sorted(chosen)} chosen, the blocks were computed {calls} "
            f"times in forward and backward, expected {twice}{because(calls, twice)}",
        )
        less = saved < everything if chosen else saved == everything
        told = (
            f"with blocks {sorted(chosen)} chosen, forward saves {saved} bytes. With "
            f"no checkpoint it saves {everything}. Expected "
        )
        expect.right_way(less, told + ("fewer" if chosen else "the same"))
