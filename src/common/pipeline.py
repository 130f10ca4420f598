"""A byte GPT in stages: where it is cut, and what the rank of a stage holds.

    spans = cut(model, 3)          # [range(0, 2), range(2, 4), range(4, 6)]
    stage = nn.Sequential(*model.layers()[spans[rank].start : spans[rank].stop])

Layer 0 is the embedding, the last one the head, between them are the blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import torch.distributed as dist
from torch import nn

from common.accounting import compare
from common.byte_gpt import BYTES, ByteGPT, Sizes
from common.distributed import BadInput
from common.formulas import (
    FLOAT32,
    block_activations,
    block_parameters,
    embed_parameters,
    head_parameters,
)
from common.schedules import Action


# [start cut]
def work(layer: nn.Module) -> int:
    """Multiplications for each byte in a layer; looking up in a table takes none."""
    linear = (part for part in layer.modules() if isinstance(part, nn.Linear))
    return sum(part.weight.numel() for part in linear)


def cut(model: ByteGPT, stages: int) -> list[range]:
    """The numbers of the layers of each stage, such that all have about equal work.

    Raises:
        BadInput: some stage would be empty.
    """
    works = [work(layer) for layer in model.layers()]
    total = sum(works)
    # a layer belongs to the stage in whose share of the work its middle lies
    middles = [end - own / 2 for own, end in zip(works, accumulate(works), strict=True)]
    owners = [min(int(middle * stages / total), stages - 1) for middle in middles]
    if set(owners) != set(range(stages)):
        raise BadInput(
            f"--blocks {model.sizes.blocks} cannot be cut into {stages} stages of "
            f"about equal work: choose --blocks {stages} or more, or fewer ranks"
        )
    starts = [owners.index(stage) for stage in range(stages)] + [len(owners)]
    return [range(starts[s], starts[s + 1]) for s in range(stages)]


# [end cut]
def name_layers(span: range, layers: int) -> str:
    """``embedding, blocks 1 to 2``: the layers of a stage in words."""
    blocks = [number for number in span if 0 < number < layers - 1]
    parts = ["embedding"] if 0 in span else []
    if len(blocks) > 1:
        parts.append(f"blocks {blocks[0]} to {blocks[-1]}")
    elif blocks:
        parts.append(f"block {blocks[0]}")
    return ", ".join(parts + (["head"] if layers - 1 in span else []))


# What the rank of a stage holds and sends, by formula


def stage_parameters(sizes: Sizes, span: range) -> int:
    """Numbers in the parameters of the layers ``span``."""
    blocks = blocks_in(sizes, span)
    embed = embed_parameters(sizes) if 0 in span else 0
    head = head_parameters(sizes) if sizes.blocks + 1 in span else 0
    return embed + blocks * block_parameters(sizes) + head


def blocks_in(sizes: Sizes, span: range) -> int:
    """How many of the layers ``span`` are blocks."""
    return sum(0 < number <= sizes.blocks for number in span)


def stage_activations(
    sizes: Sizes, span: range, live_pieces: int, live: int, batch_size: int
) -> int:
    """Bytes that a stage holds for backward, of ``live`` micro-batches.

    These have ``live_pieces`` pieces of text together. It is the formula of
    gpt_formulas.py, layer by layer; what is a whole number comes with the global
    batch of ``batch_size`` pieces, of which the micro-batches are views.
    """
    tokens = live_pieces * sizes.context
    numbers = blocks_in(sizes, span) * block_activations(sizes, tokens)
    whole_numbers = 0
    if 0 in span:
        whole_numbers += batch_size * sizes.context + live * sizes.context
    if sizes.blocks + 1 in span:
        numbers += (2 * sizes.width + 2 + BYTES) * tokens + live
        whole_numbers += batch_size * sizes.context
    return FLOAT32 * numbers + 8 * whole_numbers


def peak_activations(
    sizes: Sizes,
    spans: Sequence[range],
    order: Iterable[tuple[str, int]],
    batch_size: int,
    micro_batches: int,
) -> int:
    """The most bytes for backward at a time, of a rank with the stages ``spans``.

    ``order`` is what the rank does: ("forward" or "backward", which of its stages).
    The micro-batches are equally large.
    """
    pieces = batch_size // micro_batches
    live, most = [0] * len(spans), 0
    for what, own in order:
        live[own] += 1 if what == "forward" else -1
        held = sum(
            stage_activations(sizes, span, count * pieces, count, batch_size)
            for span, count in zip(spans, live, strict=True)
            if count
        )
        most = max(most, held)
    return most


def boundary_bytes(sizes: Sizes, pieces: int) -> int:
    """Bytes that cross one boundary in one direction: [B, T, width] numbers."""
    return FLOAT32 * pieces * sizes.context * sizes.width


def held_by_formula(sizes: Sizes, *spans: range) -> dict[str, int]:
    """Bytes that a rank with the stages ``spans`` holds between two steps."""
    bytes_of_weights = FLOAT32 * sum(stage_parameters(sizes, span) for span in spans)
    return {
        "parameters": bytes_of_weights,
        "gradients": bytes_of_weights,
        "optimizer state": 2 * bytes_of_weights,
    }


def tables_of_all_ranks(
    measured: dict[str, int], formula: dict[str, int], layers: str
) -> str:
    """A table for each rank; all ranks call this together, rank 0 gets the tables."""
    title = f"bytes on rank {dist.get_rank()}"
    mine = f"Rank {dist.get_rank()} has {layers}\n{compare(measured, formula, title)}"
    everyone: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    return "\n".join(everyone)


Events = list[dict]  # of one rank: what, micro_batch, begin, end


def gather_events(mine: Iterable[tuple[Action, float, float]]) -> list[Events]:
    """The events of every rank, on every rank; each gives its own, in their order."""
    events = [
        {"what": what, "micro_batch": k, "begin": begin, "end": end}
        for (what, k), begin, end in mine
    ]
    everyone: list[Events] = [[] for _ in range(dist.get_world_size())]
    # every rank must reach this line; some hundred bytes from each
    dist.all_gather_object(everyone, events)
    return everyone


def orders_of(ranks: list[Events]) -> list[list[Action]]:
    """What each rank did, first to last."""
    return [[Action(e["what"], e["micro_batch"]) for e in events] for events in ranks]


def write_timeline(path: Path, schedule: str, ranks: list[Events]) -> None:
    """Write the events of all ranks, in ms since the first one began.

    Raises:
        BadInput: the file cannot be written.
    """
    zero = min(event["begin"] for events in ranks for event in events)
    for event in (event for events in ranks for event in events):
        for moment in ("begin", "end"):
            event[moment] = round(1e3 * (event[moment] - zero), 3)
    text = json.dumps({"schedule": schedule, "ranks": ranks}, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write --timeline {path}: {error.strerror}") from error
