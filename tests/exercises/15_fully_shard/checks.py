"""Checks of exercises/15_fully_shard.py."""

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from workshop.grader import expect

OPTIMIZERS = {
    "SGD": lambda *p: torch.optim.SGD(*p, lr=0.02, momentum=0.9),
    "AdamW": lambda *p: torch.optim.AdamW(*p, lr=0.01),
}
BLOCKS = 4, 3
TOLERANCE = 0.05  # where a sum is rounded to 16 bits depends on its order


class Memory(TorchDispatchMode):
    """Counts the numbers for which memory of the CPU is allocated."""

    counts = True

    def __init__(self):
        super().__init__()
        self.pieces = {}

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # else the first call would import torch._dynamo, a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
            if self.counts and torch.is_tensor(local) and local.device.type == "cpu":
                storage = local.untyped_storage()
                self.pieces[storage.data_ptr()] = storage.nbytes() // 4
        return made

    def numbers(self):
        return sum(self.pieces.values())


class Block(nn.Module):
    """[B, 30] -> the same; dims that neither 3 nor 4 ranks divide."""

    def __init__(self):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(30), nn.Linear(30, 50)
        self.down = nn.Linear(50, 30)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


class Network(nn.Module):
    """Blocks between two layers; it notes how its weights are drawn."""

    def __init__(self, seed, blocks=BLOCKS[0]):
        super().__init__()
        self.seed, self.drawn = seed, "never drawn: `init_weights()` was not called"
        self.enter = nn.Linear(5, 30)
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.leave = nn.Linear(30, 2)

    def init_weights(self):
        """The same numbers for whole parameters and for shards."""
        if any(parameter.is_meta for parameter in self.parameters()):
            self.drawn = "drawn while the parameters had no memory, and were lost"
            return
        Memory.counts = False  # of what is allocated here
        self.drawn = ""
        generator = torch.Generator().manual_seed(self.seed)
        with torch.no_grad(), torch.device("cpu"):  # whatever the caller's is
            for parameter in self.parameters():
                numbers = torch.randn(parameter.shape, generator=generator) / 7
                if isinstance(parameter, DTensor):
                    how = parameter.device_mesh, parameter.placements
                    numbers = distribute_tensor(numbers, *how, src_data_rank=None)
                parameter.copy_(numbers)
        Memory.counts = True

    def forward(self, x):  # [B, 5] -> [B, 2]
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.leave(x)


def batches(seed, world_size):
    """[3 steps, W, 4, 5]"""
    generator = torch.Generator().manual_seed(seed + 5000)
    return torch.randn(3, world_size, 4, 5, generator=generator)


def loss_of(network, inputs):
    try:
        return network(inputs).float().square().mean()
    except RuntimeError as error:
        mixed = "same dtype" in str(error) or "mixed dtype" in str(error)
        if not mixed:
            raise
    expect.that(
        False,
        "a layer gets inputs in 16 bits and its weights are in 32, or the other way "
        "round: every group needs the policy",
    )


def built(exercise, seed, make, blocks=BLOCKS[0]):
    """The learner's model and optimizer, with the right types."""
    found = exercise.build(lambda: Network(seed, blocks), make)
    pair = isinstance(found, tuple) and len(found) == 2
    expect.that(pair, "build should return the model and its optimizer")
    network, optimizer = found
    expect.that(isinstance(network, Network), "build returns no model of make_model()")
    kind = type(optimizer).__name__
    is_one = isinstance(optimizer, torch.optim.Optimizer)
    expect.that(is_one, f"build should return an optimizer, and returned {kind}")
    return network, optimizer


def check_parameters(network, optimizer):
    """All of them are shards with numbers, in 32 bits, and the optimizer steps them."""
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in network.named_parameters():
        expect.that(
            isinstance(parameter, DTensor),
            f"{name} is still whole on this rank: fully_shard has not reached it",
        )
        expect.that(not parameter.is_meta, f"{name} is on the meta device: no memory")
        bits = str(parameter.dtype).removeprefix("torch.")
        expect.that(bits == "float32", f"the shard of {name} is {bits}, not float32")
        expect.that(
            id(parameter) in stepped,
            f"{name} as the model has it now is not in the optimizer: "
            "no step reaches it",
        )
    expect.that(not network.drawn, f"the weights were {network.drawn}")


def trained_alone(seed, make, inputs):
    """The losses [3, W], by one process with the bits of the text."""
    network = Network(seed)
    network.init_weights()
    optimizer, losses = make(network.parameters()), []
    for step in inputs:
        optimizer.zero_grad()
        for part in step:
            half = {name: p.bfloat16() for name, p in network.named_parameters()}
            scores = functional_call(network, half, part.bfloat16())
            loss = scores.float().square().mean()
            (loss / len(step)).backward()
            losses.append(loss.detach())
        optimizer.step()
    return torch.stack(losses).view(len(inputs), -1)


def check_bits(rows, bits, what):
    for row in rows:
        found = str(row.dtypes[0]).removeprefix("torch.")
        expect.right_way(found == bits, f"{what} in {found}: it should be {bits}")


def ops_in(ledger, word):
    return [row for row in ledger.rows if word in row.op]


@pytest.mark.ranks(3, 4, limit=20)
def test_shards_with_numbers_in_the_optimizer(exercise, rank, world_size, seed):
    """Every parameter is sharded in float32, initialized, and in the optimizer."""
    network, optimizer = built(exercise, seed, OPTIMIZERS["SGD"])
    check_parameters(network, optimizer)
    expect.that(
        isinstance(network, FSDPModule),
        "the model itself was not given to fully_shard: it is the group of the root",
    )
    expect.still_training(network, "the model is")


@pytest.mark.ranks(3, 4, limit=20)
def test_trains_like_one_process(exercise, rank, world_size, seed):
    """The losses of three steps are within 5 % of one process computing in 16 bits."""
    inputs = batches(seed, world_size)
    for name, make in OPTIMIZERS.items():
        losses = trained_alone(seed, make, inputs)
        network, optimizer = built(exercise, seed, make)
        for number, step in enumerate(inputs):
            optimizer.zero_grad()
            loss = loss_of(network, step[rank])
            loss.backward()
            optimizer.step()
            what = f"the loss of step {number} of {name}"
            expect.close(loss, losses[number, rank], what, rtol=TOLERANCE)


@pytest.mark.ranks(3, 4, limit=20)
def test_never_whole_in_memory(exercise, rank, world_size, seed):
    """From the beginning, a rank has memory for its shards only."""
    with Memory() as memory:
        network, _ = built(exercise, seed, OPTIMIZERS["SGD"])
    whole = sum(p.numel() for p in network.parameters())
    own = sum(p.to_local().numel() for p in network.parameters())
    expect.right_way(
        memory.numbers() < (own + whole) / 2,
        f"build allocated memory for {memory.numbers()} numbers; this rank's shards "
        f"are {own} of the model's {whole}: the whole model was in memory",
    )


@pytest.mark.ranks(3, limit=20)
def test_groups_and_bits(exercise, rank, world_size, seed, ledger):
    """Gathered in 16 bits and reduced in 32, one block at a time, the last one once."""
    for count in BLOCKS:
        check_groups_and_bits(exercise, rank, seed, ledger, count)


def check_groups_and_bits(exercise, rank, seed, ledger, count):
    network, _ = built(exercise, seed, OPTIMIZERS["SGD"], count)
    ledger.clear()
    loss = loss_of(network, batches(seed, torch.distributed.get_world_size())[0][rank])
    forward = ops_in(ledger, "all_gather")
    whole = [
        number
        for number, block in enumerate(network.blocks)
        if not any(isinstance(p, DTensor) for p in block.parameters())
    ]
    loss.backward()
    gathers, reduces = ops_in(ledger, "all_gather"), ops_in(ledger, "reduce_scatter")
    expect.right_way(
        len(forward) == count + 1,
        f"forward gathers {len(forward)} times: with a group for each of the {count} "
        f"blocks and one for the rest of the model, it is {count + 1} times",
    )
    expect.right_way(
        whole == [count - 1],
        f"after forward, the blocks {whole} of 0 to {count - 1} are whole: that "
        "should be the last one, and no other",
    )
    check_bits(gathers, "bfloat16", "parameters are gathered")
    check_bits(reduces, "float32", "gradients are reduced")
    expect.equal(len(reduces), count + 1, "groups of gradients that are reduced")
