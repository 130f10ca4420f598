"""What one training step of a GPT costs on paper: memory, bytes, seconds.

``common/cost/counting.py`` counts our byte GPT exactly, on the CPU and in 32 bits.
These are published estimates for large models on GPUs: AdamW in mixed precision,
dropout, an MLP four times as wide as the model. The page "What will it cost?" uses
them, in ``docs/_static/js/formulas.js``, where each function has the same name.

Tensor ranks are neighbors; then data ranks, then pipeline stages.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

HALF = 2  # bytes of a parameter, a gradient or an activation in 16 bits
ADAM = 12  # bytes for each parameter: a 32-bit copy, momentum, variance


class Model(NamedTuple):
    """The sizes of a GPT: L, H, its heads, T tokens of context, and V."""

    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int


class Layout(NamedTuple):
    """How a job is spread: t * p * d ranks, and m micro-batches for each pipeline."""

    tensor: int = 1  # t
    pipeline: int = 1  # p
    data: int = 1  # d
    stage: int = 0  # of ZeRO, over the data ranks; 3 is FSDP
    micro_batch: int = 1  # sequences
    micro_batches: int = 1  # m, of each data rank in a step
    schedule: str = "1f1b"  # or "gpipe", "interleaved", "zb-h1"
    chunks: int = 1  # model chunks of each pipeline rank, if interleaved
    recompute: str = "none"  # or "selective" (attention), "full" (each layer)
    sequence_parallel: bool = False
    group: int = 0  # data ranks that shard, the groups being equal: HSDP; 0: all of d


class Cluster(NamedTuple):
    """Devices and links; bandwidths are per device and direction."""

    per_node: int  # devices of a node
    peak: float  # FLOP/s of a device
    efficiency: float  # share of the peak that a device reaches while it computes
    inside: float  # bytes/s between devices of a node
    between: float  # bytes/s of a device's share of the network
    latency: float  # s for each message


def all_ranks(layout: Layout) -> int:
    """t * p * d: one rank per device."""
    return layout.tensor * layout.pipeline * layout.data


def shard_ranks(layout: Layout) -> int:
    """The ranks over which a data rank's state is sharded."""
    return min(layout.group or layout.data, layout.data)


def gpt_parameters(model: Model) -> int:
    """12 L H^2 (1 + 13/(12 H) + (V + T)/(12 L H)): arXiv 2104.04473, section 5.1."""
    block = 12 * model.width**2 + 13 * model.width
    return model.layers * block + (model.vocabulary + model.context) * model.width


def rank_parameters(model: Model, layout: Layout) -> float:
    """Parameters of the first stage on a tensor rank: arXiv 1909.08053, section 3."""
    # norms and biases of rows stay whole: 6 H
    cut = (12 * model.width**2 + 7 * model.width) / layout.tensor
    blocks = ceil(model.layers / layout.pipeline) * (cut + 6 * model.width)
    embedding = model.vocabulary / layout.tensor + model.context
    return blocks + embedding * model.width


def state_bytes(parameters: float, stage: int, ranks: int) -> list[float]:
    """Bytes of parameters, gradients, optimizer state: arXiv 1910.02054, section 5."""
    parts = (HALF, 3), (HALF, 2), (ADAM, 1)  # and the stage that shards it
    shards = [ranks if stage >= first else 1 for _, first in parts]
    return [size * parameters / n for (size, _), n in zip(parts, shards, strict=True)]


def layer_activations(model: Model, layout: Layout) -> float:
    """Bytes that a layer saves of a micro-batch: arXiv 2205.05198, table 2."""
    stream = model.context * layout.micro_batch * model.width
    if layout.recompute == "full":
        return 2 * stream
    scores = 5 * model.heads * model.context / model.width
    inside = 24 + (scores if layout.recompute == "none" else 0)
    ends = 10 / (layout.tensor if layout.sequence_parallel else 1)
    return stream * (ends + inside / layout.tensor)


def in_flight(layout: Layout) -> float:
    """Micro-batches that the first stage holds at most: arXiv 2205.05198, 4.2.3."""
    stages, count = layout.pipeline, layout.micro_batches
    more = (stages - 1) / layout.chunks if layout.schedule == "interleaved" else 0
    return count if layout.schedule == "gpipe" else min(count, stages + more)


def activation_bytes(model: Model, layout: Layout) -> float:
    """Bytes on a rank of the first stage, which may be the last: 2205.05198, 4.3."""
    layers = ceil(model.layers / layout.pipeline)
    saved = layers * in_flight(layout) * layer_activations(model, layout)
    if layout.pipeline > 1:
        return saved
    tokens = model.context * layout.micro_batch
    return saved + 4 * tokens * (model.width + model.vocabulary) / layout.tensor


def bubble_share(layout: Layout) -> float:
    """Idle over useful time: arXiv 2104.04473, section 2.2; ZB-H1: 2401.10241, 2.1."""
    parts = {"interleaved": layout.chunks, "zb-h1": 3}.get(layout.schedule, 1)
    return (layout.pipeline - 1) / (parts * layout.micro_batches)


def step_flops(model: Model, layout: Layout, recompute: str = "none") -> float:
    """FLOPs of a step on all ranks, and of what is recomputed: 2205.05198, app. A."""
    batch = layout.data * layout.micro_batches * layout.micro_batch
    blocks = 72 * batch * model.context * model.layers * model.width**2
    attention = model.context / (6 * model.width)
    head = model.vocabulary / (12 * model.layers * model.width)
    again = {"full": (1 + attention) / 3, "selective": attention / 3}
    return blocks * (1 + attention + head + again.get(recompute, 0))


def compute_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds that a rank computes in a step."""
    flops = step_flops(model, layout, layout.recompute) / all_ranks(layout)
    return flops / (cluster.peak * cluster.efficiency)


def axis_bandwidth(stride: int, ranks: int, cluster: Cluster) -> float:
    """Bytes/s of a rank in a ring of ``ranks`` ranks that are ``stride`` apart.

    Between nodes a ring uses the network share of each member that a node has.
    """
    if stride * ranks <= cluster.per_node:
        return cluster.inside
    members = max(cluster.per_node // stride, 1)
    return min(cluster.inside, members * cluster.between)


def data_rounds(layout: Layout) -> int:
    """Times a rank sends (d - 1)/d of what it holds: arXiv 1910.02054, section 7."""
    count = layout.micro_batches  # what is sharded is gathered or reduced for each
    return {2: count + 1, 3: 3 * count}.get(layout.stage, 2)


def data_rings(layout: Layout) -> list[tuple[int, int, int, float]]:
    """(stride, ranks, rounds, share) in a group, and between HSDP's: gradients only."""
    group, count = shard_ranks(layout), layout.micro_batches
    between = layout.tensor * group, layout.data // group, 2 * count, 1 / group
    return [(layout.tensor, group, data_rounds(layout), 1.0), between]


def data_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the data axis in a step, by rings, in 16 bits."""
    whole = HALF * rank_parameters(model, layout)
    return sum(n * x * whole * (d - 1) / d for _, d, n, x in data_rings(layout))


def data_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of :func:`data_bytes`, with one collective per layer."""
    whole, seconds = HALF * rank_parameters(model, layout), 0.0
    delay = ceil(model.layers / layout.pipeline) * cluster.latency
    for stride, ranks, rounds, share in data_rings(layout):
        each = share * whole / ranks / axis_bandwidth(stride, ranks, cluster)
        seconds += rounds * (ranks - 1) * (delay + each)
    return seconds


def stream_bytes(model: Model, layout: Layout) -> int:
    """Bytes of a micro-batch between two layers: [B, T, H] numbers."""
    return HALF * layout.micro_batch * model.context * model.width


def tensor_calls(model: Model, layout: Layout) -> int:
    """All-reduces of a rank: two per layer and pass, arXiv 1909.08053, figure 4."""
    passes = 3 if layout.recompute == "full" else 2
    return 2 * passes * ceil(model.layers / layout.pipeline) * layout.micro_batches


def tensor_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the tensor axis in a step, by rings."""
    each = 2 * stream_bytes(model, layout) * (layout.tensor - 1) / layout.tensor
    return tensor_calls(model, layout) * each


def tensor_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of :func:`tensor_bytes`."""
    messages = tensor_calls(model, layout) * 2 * (layout.tensor - 1)
    bandwidth = axis_bandwidth(1, layout.tensor, cluster)
    return messages * cluster.latency + tensor_bytes(model, layout) / bandwidth


def pipeline_sends(layout: Layout) -> int:
    """Messages from a stage in the middle: forward and backward, for each chunk."""
    chunks = layout.chunks if layout.schedule == "interleaved" else 1
    return 2 * chunks * layout.micro_batches if layout.pipeline > 1 else 0


def pipeline_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of these messages; not a ring, so one share of a link."""
    inside = all_ranks(layout) <= cluster.per_node
    bandwidth = cluster.inside if inside else cluster.between
    each = cluster.latency + stream_bytes(model, layout) / bandwidth
    return pipeline_sends(layout) * each


def hiding_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """What hides the data axis: the step, backward (2/3), or the last backward."""
    share = {2: 2 / 3, 3: 1}.get(layout.stage, 2 / 3 / layout.micro_batches)
    return share * compute_seconds(model, layout, cluster)


def step_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds of a step: only the data axis communicates behind computation."""
    given = model, layout, cluster
    slots = 1 + bubble_share(layout)
    exposed = max(data_seconds(*given) - hiding_seconds(*given), 0)
    busy = compute_seconds(*given) + tensor_seconds(*given)
    return busy * slots + pipeline_seconds(*given) + exposed


def mfu(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Model FLOPs utilization, arXiv 2204.02311: recomputing doesn't count."""
    flops = step_seconds(model, layout, cluster) * all_ranks(layout) * cluster.peak
    return step_flops(model, layout) / flops


def binding_ranks(model: Model, layout: Layout, cluster: Cluster) -> int:
    """Data ranks, 1, 2, 4, ..., of this global batch that can't hide; 0: never."""
    tensor, pipeline, data, stage, size, count, *rest = layout
    batch, ranks = data * count, 1
    while ranks <= batch:
        other = Layout(tensor, pipeline, ranks, stage, size, batch // ranks, *rest)
        limit = hiding_seconds(model, other, cluster)
        if data_seconds(model, other, cluster) > limit:
            return ranks
        ranks *= 2
    return 0
