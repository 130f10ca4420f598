"""Checks of exercises/13_keep_stage.py: against the model on one device."""

import gc
import itertools
import time
import weakref

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

expect.nothing_is_averaged()

VOCABULARY, WIDTH = 7, 5
SIZES = {3: [(2, 2, 1), (1, 4, 0)], 4: [(1, 3, 2, 1), (0, 2, 0, 3)]}


def built(exercise, seed, sizes):
    """The whole model in float64, the same on all ranks, and the blocks of each."""
    torch.manual_seed(seed)
    model = exercise.Network(VOCABULARY, WIDTH, sum(sizes)).double()
    ends = list(itertools.accumulate(sizes))
    blocks_of = [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return model, blocks_of


def owner(name, blocks_of):
    """The rank whose stage has this parameter."""
    part, _, rest = name.partition(".")
    if part == "embedding":
        return 0
    if part == "head":
        return len(blocks_of) - 1
    number = int(rest.partition(".")[0])
    return next(rank for rank, blocks in enumerate(blocks_of) if number in blocks)


def compare_names(found, whole, blocks_of, rank):
    """What a stage has against what it should have, by the whole model's names."""
    right = [name for name in whole if owner(name, blocks_of) == rank]
    missing = [name for name in right if name not in found]
    foreign = [name for name in found if name in whole and name not in right]
    others = [name for name in found if name not in whole]
    stage = f"the stage of rank {rank}, with the blocks {list(blocks_of[rank])},"
    renamed = len(found) == len(right) and missing
    expect.that(
        not renamed or (not others and not foreign),
        f"{stage} has {(others + foreign)[:1]} where the whole model has "
        f"{missing[:1]}: blocks keep their numbers",
    )
    expect.that(not missing, f"{stage} lacks {missing}")
    expect.that(not foreign, f"{stage} has {foreign}, which other ranks keep")
    expect.that(not others, f"{stage} has {others}, which the whole model lacks")


@pytest.mark.ranks(3, 4)
def test_a_stage_keeps_what_is_its_own(exercise, rank, world_size, seed):
    """Each rank keeps its blocks, under their names; the rest is dropped."""
    for sizes in SIZES[world_size]:
        model, blocks_of = built(exercise, seed, sizes)
        whole = {name: value.clone() for name, value in model.state_dict().items()}
        layers = weakref.WeakValueDictionary(model.named_modules())
        exercise.keep_stage(model, blocks_of)
        found = model.state_dict()
        compare_names(found, whole, blocks_of, rank)
        for name, keeper in (("embedding", 0), ("head", world_size - 1)):
            layer = getattr(model, name)
            kind = type(layer).__name__
            expect.that(
                rank == keeper or layer is None,
                f"model.{name} of rank {rank} is {kind}; what isn't there is None",
            )
        for name, value in found.items():
            expect.equal(value, whole[name], f"{name} of rank {rank}")
        gc.collect()
        kept = dict(model.named_modules())
        alive = [name for name in layers if name not in kept]
        expect.that(
            not alive,
            f"something still refers to {alive}, which other ranks keep: the memory "
            "of what is dropped isn't free",
        )


@pytest.mark.ranks(3, 4)
def test_the_stages_compute_what_the_model_does(exercise, rank, world_size, seed):
    """Tokens through all the stages give what the whole model gives."""
    for sizes in SIZES[world_size]:
        model, blocks_of = built(exercise, seed, sizes)
        tokens = torch.arange(6).view(2, 3) % VOCABULARY
        expected = model(tokens).detach()
        exercise.keep_stage(model, blocks_of)
        x = tokens
        for stage in range(world_size):
            message = [model(x).detach() if rank == stage else None]
            dist.broadcast_object_list(message, src=stage)
            x = message[0]
        expect.close(x, expected, f"what the stages compute, with blocks {sizes}")


@pytest.mark.ranks(3, 4)
def test_one_device_can_load_the_snapshot(exercise, rank, world_size, seed):
    """whole_state gives rank 0 all parameters, as trained, under their names."""
    for sizes in SIZES[world_size]:
        model, blocks_of = built(exercise, seed, sizes)
        names = list(model.state_dict())
        exercise.keep_stage(model, blocks_of)
        with torch.no_grad():  # as if each rank had trained its stage
            for parameter in model.parameters():
                parameter += rank + 1
        again, _ = built(exercise, seed, sizes)
        right = again.state_dict()
        for name in names:
            right[name] += owner(name, blocks_of) + 1
        if rank == 1:
            time.sleep(0.05)
        found = exercise.whole_state(model)
        if rank > 0:
            expect.that(
                found is None,
                f"whole_state must return None on rank {rank}: it returned "
                f"{type(found).__name__}",
            )
            continue
        expect.that(
            isinstance(found, dict),
            f"whole_state returned {type(found).__name__} on rank 0: expected a dict",
        )
        missing = {owner(name, blocks_of) for name in names if name not in found}
        expect.that(
            not missing,
            f"the parameters of rank {sorted(missing)} are missing in the snapshot, or "
            "have other names in it",
        )
        expect.equal(sorted(found), sorted(names), "the names in the snapshot")
        for name, value in right.items():
            what = f"{name} in the snapshot, which rank {owner(name, blocks_of)} trains"
            expect.close(found[name], value, what)
