"""Which layouts fit on a cluster, the fastest first, by the formulas of this folder.

The page "What will it cost?" has the same functions in JavaScript, in
``docs/_static/js/layout-search.js``, and runs them in a worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import floor
from typing import Any, NamedTuple

from common.cost import formulas
from common.cost.formulas import Cluster, Layout, Model

ROOM = 0.9  # of a device's memory; the rest is for buffers, fragments and CUDA
MOST_STAGES = 64
SIZES = 1, 2, 4, 8  # sequences of a micro-batch
RECOMPUTE = "none", "selective", "ops", "full"
CHUNKS = 1, 2, 4  # model chunks of a rank; more than one are interleaved
LONG = 8192  # tokens: only longer sequences are cut
CONTEXT_RANKS = 2, 4, 8, 16
EXPERT_RANKS = 2, 4, 8, 16, 32, 64


class Found(NamedTuple):
    """A layout that fits, with what it costs."""

    layout: Layout
    bytes: float  # of the rank that holds most
    seconds: float  # of a step
    mfu: float  # share of the devices' peak
    tokens: float  # per second of a device


def layouts_that_fit(
    model: Model, cluster: Cluster, nodes: int, memory: float, batch: int
) -> list[Found]:
    """Every useful layout of all the nodes' devices that fits, the fastest first.

    Of layouts with the same ranks and the same stage of ZeRO, only the fastest is in
    the list, or of equally fast ones that with the least memory. If two in the list are
    equally fast, the first is simpler: it has fewer tensor ranks, fewer context ranks,
    fewer expert ranks, fewer stages or a lower stage of ZeRO. ``memory`` is a device's,
    in bytes, of which a layout may take ``ROOM``. ``batch`` is the global batch, in
    sequences.
    """
    best: dict[tuple, tuple] = {}
    for layout in possible_layouts(model, cluster, nodes, batch):
        held = formulas.rank_bytes(model, layout)
        if held > ROOM * memory:
            continue
        seconds = formulas.step_seconds(model, layout, cluster)
        # rounded, so that the order doesn't depend on the last bit
        order = floor(1e6 * seconds + 0.5), floor(1e-6 * held + 0.5)
        axes = layout.tensor, layout.context_ranks, layout.expert_ranks
        kind = *axes, layout.pipeline, layout.stage
        if kind not in best or order < best[kind][0]:
            best[kind] = order, layout, held, seconds
    ranked = sorted(best, key=lambda kind: (best[kind][0][0], kind))
    return [_found(model, cluster, *best[kind][1:]) for kind in ranked]


def least_bytes(model: Model, cluster: Cluster, nodes: int, batch: int) -> float:
    """Bytes of the layout with the least memory; 0 if there is no layout."""
    layouts = possible_layouts(model, cluster, nodes, batch)
    return min((formulas.rank_bytes(model, layout) for layout in layouts), default=0)


def possible_layouts(
    model: Model, cluster: Cluster, nodes: int, batch: int
) -> Iterator[Layout]:
    """All that the search tries; tensor ranks stay inside a node."""
    ranks = nodes * cluster.per_node
    tensors = [n for n in range(1, cluster.per_node + 1) if cluster.per_node % n == 0]
    contexts = (1, *CONTEXT_RANKS) if model.context > LONG else (1,)
    spreads = (1, *EXPERT_RANKS) if model.experts else (1,)
    stages = range(1, min(MOST_STAGES, model.layers) + 1)
    for tensor, context, pipeline in product(tensors, contexts, stages):
        data, rest = divmod(ranks, tensor * context * pipeline)
        if rest or batch % data:
            continue
        axes = {"tensor": tensor, "context_ranks": context, "pipeline": pipeline}
        group = cluster.per_node // (tensor * context)  # data ranks of a node
        parallel = {"data": data, "sequence_parallel": tensor > 1}
        choices = _choices(axes, data, batch // data, group)
        for more, spread in product(choices, spreads):
            layout = Layout(**axes, **parallel, **more, expert_ranks=spread)
            if not formulas.why_not(model, layout):
                yield layout


def _choices(
    axes: dict[str, int], data: int, sequences: int, group: int
) -> Iterator[dict[str, Any]]:
    """What a layout with these ranks may differ in; ``sequences`` of a data rank.

    A stage of ZeRO comes with the ranks that shard, which are a ``group`` for HSDP.
    """
    sharded = [(0, 0)]
    if data * axes["context_ranks"] > 1:
        sharded += [(1, 0), (2, 0), (3, 0)]
    if 1 < group < data and data % group == 0:
        sharded.append((3, group))
    chunks = CHUNKS if axes["pipeline"] > 1 else (1,)
    for size in SIZES:
        if sequences % size:
            continue
        counts = {"micro_batch": size, "micro_batches": sequences // size}
        for stage, ranks in sharded:
            state = {"stage": stage, "group": ranks}
            for recompute in RECOMPUTE:
                for parts in chunks:
                    schedule = "interleaved" if parts > 1 else "1f1b"
                    kind = {"schedule": schedule, "chunks": parts}
                    yield {**state, **counts, "recompute": recompute, **kind}


def _found(
    model: Model, cluster: Cluster, layout: Layout, held: float, seconds: float
) -> Found:
    share = formulas.mfu(model, layout, cluster)
    tokens = formulas.device_tokens(model, layout, cluster)
    return Found(layout, held, seconds, share, tokens)
