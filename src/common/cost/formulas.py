"""What one training step of a GPT costs on paper: memory, bytes, seconds.

``common/cost/counting.py`` counts our byte GPT exactly, on the CPU and in 32 bits.
These are published estimates for large models on GPUs, trained by AdamW in mixed
precision. A model is a GPT as Megatron-LM runs it (dropout, an MLP four times as wide
as the model), or a Llama as torchtitan runs it (a gated MLP, its own output layer, no
dropout, logits in 32 bits). The page "What will it cost?" uses the formulas, in
``docs/_static/js/formulas.js``, where each function has the same name.

Tensor ranks are neighbors; then context ranks, data ranks, and pipeline stages.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

HALF = 2  # bytes of a parameter, a gradient or an activation in 16 bits
ADAM = 12  # bytes for each parameter: a 32-bit copy, momentum, variance


class Model(NamedTuple):
    """The sizes of a model: L, H, its heads, T tokens of a sequence, and V."""

    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int
    kv_heads: int = 0  # heads of keys and values (GQA); 0: as many as heads
    inner: int = 0  # width of a Llama's gated MLP (SwiGLU); 0: a GPT, with 4 H


class Layout(NamedTuple):
    """How a job is spread: t * c * d * p ranks, m micro-batches for each pipeline."""

    tensor: int = 1  # t
    pipeline: int = 1  # p
    data: int = 1  # d
    stage: int = 0  # of ZeRO, over the data ranks; 3 is FSDP
    micro_batch: int = 1  # sequences
    micro_batches: int = 1  # m, of each data rank in a step
    schedule: str = "1f1b"  # or "gpipe", "interleaved", "zb-h1"
    chunks: int = 1  # model chunks of each pipeline rank, if interleaved
    recompute: str = "none"  # or "selective" (attention), "ops", "full" (each layer)
    sequence_parallel: bool = False
    group: int = 0  # data ranks that shard, the groups being equal: HSDP; 0: all of d
    context_ranks: int = 1  # c, that share each sequence by ring attention, in zigzag


class Cluster(NamedTuple):
    """Devices and links; bandwidths are per device and direction."""

    per_node: int  # devices of a node
    peak: float  # FLOP/s of a device
    efficiency: float  # share of the peak while a device computes, or computes again
    inside: float  # bytes/s between devices of a node
    between: float  # bytes/s of a device's share of the network
    latency: float  # s for each message


def all_ranks(layout: Layout) -> int:
    """t * c * d * p: one rank per device."""
    axes = layout.tensor * layout.context_ranks * layout.data
    return axes * layout.pipeline


def shard_ranks(layout: Layout) -> int:
    """The ranks over which state is sharded: context ranks share it, too."""
    return min(layout.group or layout.data, layout.data) * layout.context_ranks


def stage_layers(model: Model, layout: Layout) -> int:
    """Layers of the longest stage."""
    return ceil(model.layers / layout.pipeline)


def key_width(model: Model) -> int:
    """Numbers of a token's keys, or of its values."""
    return model.width * (model.kv_heads or model.heads) // model.heads


def layer_products(model: Model) -> int:
    """Weights of a layer's matrices: 12 H^2 in a GPT."""
    attention = 2 * model.width**2 + 2 * model.width * key_width(model)
    if model.inner:
        return attention + 3 * model.width * model.inner
    return attention + 8 * model.width**2


def gpt_parameters(model: Model) -> int:
    """12 L H^2 (1 + 13/(12 H) + (V + T)/(12 L H)): arXiv 2104.04473, section 5.1.

    A Llama has no biases and no positions to learn, but a second matrix of V rows.
    """
    products, width = layer_products(model), model.width
    if model.inner:
        ends = (2 * model.vocabulary + 1) * width
        return model.layers * (products + 2 * width) + ends
    embedding = (model.vocabulary + model.context) * width
    return model.layers * (products + 13 * width) + embedding


def rank_parameters(model: Model, layout: Layout) -> float:
    """Parameters of the first stage on a tensor rank: arXiv 1909.08053, section 3."""
    rows = model.vocabulary / layout.tensor
    if model.inner:
        cut, whole = layer_products(model) / layout.tensor, 2 * model.width
        last = layout.pipeline == 1  # it has the output layer and its norm, too
        embedding = 2 * rows + 1 if last else rows
    else:
        # norms and biases of rows stay whole: 6 H
        cut = (layer_products(model) + 7 * model.width) / layout.tensor
        whole, embedding = 6 * model.width, rows + model.context
    return stage_layers(model, layout) * (cut + whole) + embedding * model.width


def state_bytes(parameters: float, stage: int, ranks: int) -> list[float]:
    """Bytes of parameters, gradients, optimizer state: arXiv 1910.02054, section 5."""
    parts = (HALF, 3), (HALF, 2), (ADAM, 1)  # and the stage that shards it
    shards = [ranks if stage >= first else 1 for _, first in parts]
    return [size * parameters / n for (size, _), n in zip(parts, shards, strict=True)]


def own_tokens(model: Model, layout: Layout) -> float:
    """Tokens of a micro-batch that a rank computes on: B T / c."""
    return model.context * layout.micro_batch / layout.context_ranks


def layer_activations(model: Model, layout: Layout) -> float:
    """Bytes that a layer saves of a micro-batch: arXiv 2205.05198, table 2.

    A Llama has no masks of dropout to save, and four tensors as wide as its MLP. With
    "ops" (torchtitan's selective checkpointing), a layer saves its input, attention's
    output and every second product: queries, values, the gate and the last.
    """
    tokens = own_tokens(model, layout)
    width, keys = model.width, key_width(model)
    shards = layout.tensor if layout.sequence_parallel else 1
    if layout.recompute == "full":
        return 2 * tokens * width / (shards if model.inner else 1)
    if layout.recompute == "ops":
        inside = 4 * width + 2 * keys + 2 * (model.inner or 4 * width)
        return tokens * (4 * width / shards + inside / layout.tensor)
    if model.inner:
        ends, inside, score = 8 * width, 4 * width + 4 * keys + 8 * model.inner, 2
    else:
        ends, inside, score = 10 * width, 20 * width + 4 * keys, 5
    if layout.recompute == "none":
        inside += score * model.heads * model.context
    return tokens * (ends / shards + inside / layout.tensor)


def in_flight(layout: Layout) -> float:
    """Micro-batches that the first stage holds at most: arXiv 2205.05198, 4.2.3."""
    stages, count = layout.pipeline, layout.micro_batches
    more = (stages - 1) / layout.chunks if layout.schedule == "interleaved" else 0
    return count if layout.schedule == "gpipe" else min(count, stages + more)


def head_bytes(model: Model, layout: Layout) -> float:
    """Bytes of the last stage's output: arXiv 2205.05198, section 4.3.

    PyTorch's loss, which a Llama has here, holds the logits in 32 bits, the logarithm
    of their softmax, and its gradient at once. Megatron-LM's works in place.
    """
    tokens = own_tokens(model, layout)
    values = 3 * model.vocabulary if model.inner else model.width + model.vocabulary
    return 4 * tokens * values / layout.tensor


def activation_bytes(model: Model, layout: Layout) -> float:
    """Bytes on a rank of the first stage, or of the last, which may hold more."""
    each = stage_layers(model, layout) * layer_activations(model, layout)
    kept = layout.micro_batches if layout.schedule == "gpipe" else 1
    last = kept * each + head_bytes(model, layout)
    return max(in_flight(layout) * each, last)


def moment_bytes(model: Model, layout: Layout) -> float:
    """Bytes of what is whole for a moment only, in the moment that needs most.

    ZeRO-3 gathers the largest unit and the next one, and has their gradients, in 16
    bits. A layer that is recomputed has all of its activations again; on the last
    stage, the output is gone by then.
    """
    moment = 0.0
    if layout.stage == 3 and shard_ranks(layout) > 1:
        units = model.vocabulary * model.width + layer_products(model)
        moment += 2 * HALF * units / layout.tensor
    if layout.recompute in ("ops", "full"):
        again = layer_activations(model, layout._replace(recompute="selective"))
        gone = head_bytes(model, layout) if layout.pipeline == 1 else 0
        moment += max(again - gone, 0)
    return moment


def rank_bytes(model: Model, layout: Layout) -> float:
    """Bytes on the rank that holds most: its state, activations, and a moment's."""
    own, ranks = rank_parameters(model, layout), shard_ranks(layout)
    parameters, gradients, optimizer = state_bytes(own, layout.stage, ranks)
    state = parameters + gradients + optimizer
    return state + activation_bytes(model, layout) + moment_bytes(model, layout)


def bubble_share(layout: Layout) -> float:
    """Idle over useful time: arXiv 2104.04473, section 2.2; ZB-H1: 2401.10241, 2.1."""
    parts = {"interleaved": layout.chunks, "zb-h1": 3}.get(layout.schedule, 1)
    return (layout.pipeline - 1) / (parts * layout.micro_batches)


def step_tokens(model: Model, layout: Layout) -> int:
    """Tokens of all ranks in a step."""
    return layout.data * layout.micro_batches * layout.micro_batch * model.context


def step_flops(model: Model, layout: Layout, recompute: str = "none") -> float:
    """FLOPs of a step on all ranks, and of what is recomputed: 2205.05198, app. A.

    Six for each weight of a matrix and token, 12 L T H for attention and token.
    """
    products, scores = layer_products(model), model.context * model.width
    ops = model.width * (key_width(model) + model.width + model.inner)
    again = {"full": 2 * products + 4 * scores, "selective": 4 * scores, "ops": 2 * ops}
    layer = 6 * products + 12 * scores + again.get(recompute, 0)
    head = 6 * model.vocabulary * model.width
    return step_tokens(model, layout) * (model.layers * layer + head)


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
    groups = layout.data * layout.context_ranks // group
    between = layout.tensor * group, groups, 2 * count, 1 / group
    return [(layout.tensor, group, data_rounds(layout), 1.0), between]


def data_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the data axis in a step, by rings, in 16 bits."""
    whole = HALF * rank_parameters(model, layout)
    return sum(n * x * whole * (d - 1) / d for _, d, n, x in data_rings(layout))


def data_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of :func:`data_bytes`, with one collective per layer."""
    whole, seconds = HALF * rank_parameters(model, layout), 0.0
    delay = stage_layers(model, layout) * cluster.latency
    for stride, ranks, rounds, share in data_rings(layout):
        each = share * whole / ranks / axis_bandwidth(stride, ranks, cluster)
        seconds += rounds * (ranks - 1) * (delay + each)
    return seconds


def gather_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Of these, the all-gather of ZeRO-1 and ZeRO-2: it follows the optimizer's step.

    Nothing is left to compute then. Only a library that delays it, layer by layer, to
    the next forward pass can hide it.
    """
    if layout.stage not in (1, 2):
        return 0.0
    ranks, delay = shard_ranks(layout), stage_layers(model, layout) * cluster.latency
    whole = HALF * rank_parameters(model, layout)
    each = whole / ranks / axis_bandwidth(layout.tensor, ranks, cluster)
    return (ranks - 1) * (delay + each)


def stream_bytes(model: Model, layout: Layout) -> float:
    """Bytes of a micro-batch between two layers: [B, T / c, H] numbers."""
    return HALF * own_tokens(model, layout) * model.width


def tensor_calls(model: Model, layout: Layout) -> int:
    """All-reduces of a rank: two per layer and pass, arXiv 1909.08053, figure 4."""
    passes = 3 if layout.recompute == "full" else 2
    return 2 * passes * stage_layers(model, layout) * layout.micro_batches


def tensor_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the tensor axis in a step, by rings."""
    each = 2 * stream_bytes(model, layout) * (layout.tensor - 1) / layout.tensor
    return tensor_calls(model, layout) * each


def tensor_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of :func:`tensor_bytes`."""
    messages = tensor_calls(model, layout) * 2 * (layout.tensor - 1)
    bandwidth = axis_bandwidth(1, layout.tensor, cluster)
    return messages * cluster.latency + tensor_bytes(model, layout) / bandwidth


def context_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the context axis in a step, by ring attention.

    Of the S bytes of its own keys and of its values, forward sends 2 (c - 1) S in each
    layer, and backward (4 c - 2) S: keys, values, and their gradients (lesson 21).
    """
    ranks = layout.context_ranks
    if ranks == 1:
        return 0.0
    forwards = 2 if layout.recompute == "full" else 1
    sends = forwards * 2 * (ranks - 1) + 4 * ranks - 2
    keys = HALF * own_tokens(model, layout) * key_width(model) / layout.tensor
    return layout.micro_batches * stage_layers(model, layout) * sends * keys


def context_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of :func:`context_bytes`."""
    ranks = layout.context_ranks
    rounds = 4 * (ranks - 1) if layout.recompute == "full" else 3 * (ranks - 1)
    messages = layout.micro_batches * stage_layers(model, layout) * rounds
    bandwidth = axis_bandwidth(layout.tensor, ranks, cluster)
    return messages * cluster.latency + context_bytes(model, layout) / bandwidth


def attention_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds of scores and of what they weigh, behind which a ring sends."""
    again = 4 if layout.recompute in ("selective", "full") else 0
    scores = (12 + again) * model.context * model.width * model.layers
    flops = step_tokens(model, layout) * scores / all_ranks(layout)
    return flops / (cluster.peak * cluster.efficiency)


def context_exposed(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds of the context axis that attention doesn't hide."""
    given = model, layout, cluster
    return max(context_seconds(*given) - attention_seconds(*given), 0)


def pipeline_sends(layout: Layout) -> int:
    """Messages from a stage in the middle: forward and backward, for each chunk."""
    chunks = layout.chunks if layout.schedule == "interleaved" else 1
    return 2 * chunks * layout.micro_batches if layout.pipeline > 1 else 0


def pipeline_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the pipeline axis in a step.

    Each tensor rank sends its part: arXiv 2104.04473, section 4.1.
    """
    return pipeline_sends(layout) * stream_bytes(model, layout) / layout.tensor


def pipeline_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds of these messages; not a ring, so one share of a link."""
    inside = all_ranks(layout) <= cluster.per_node
    bandwidth = cluster.inside if inside else cluster.between
    delay = pipeline_sends(layout) * cluster.latency
    return delay + pipeline_bytes(model, layout) / bandwidth


def hiding_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """What hides the data axis: the step, backward (2/3), or the last backward."""
    share = {2: 2 / 3, 3: 1}.get(layout.stage, 2 / 3 / layout.micro_batches)
    return share * compute_seconds(model, layout, cluster)


def exposed_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds of the data axis that no computation hides."""
    after = gather_seconds(model, layout, cluster)
    before = data_seconds(model, layout, cluster) - after
    return max(before - hiding_seconds(model, layout, cluster), 0) + after


def step_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds of a step: only the data axis communicates behind computation."""
    given = model, layout, cluster
    slots = 1 + bubble_share(layout)
    busy = compute_seconds(*given) + tensor_seconds(*given) + context_exposed(*given)
    return busy * slots + pipeline_seconds(*given) + exposed_seconds(*given)


def mfu(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Model FLOPs utilization, arXiv 2204.02311: recomputing doesn't count."""
    flops = step_seconds(model, layout, cluster) * all_ranks(layout) * cluster.peak
    return step_flops(model, layout) / flops


def device_tokens(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Tokens per second of one device."""
    seconds = step_seconds(model, layout, cluster)
    return step_tokens(model, layout) / seconds / all_ranks(layout)


def binding_ranks(model: Model, layout: Layout, cluster: Cluster) -> int:
    """Data ranks, 1, 2, 4, ..., of this global batch that can't hide; 0: never."""
    batch, ranks = layout.data * layout.micro_batches, 1
    while ranks <= batch:
        other = layout._replace(data=ranks, micro_batches=batch // ranks)
        limit = hiding_seconds(model, other, cluster)
        after = gather_seconds(model, other, cluster)  # is never hidden
        if data_seconds(model, other, cluster) - after > limit:
            return ranks
        ranks *= 2
    return 0


def why_not(model: Model, layout: Layout) -> str:
    """Why this layout can't be built, as a sentence; empty if it can."""
    heads, tensor, stages = model.heads, layout.tensor, layout.pipeline
    keys = model.kv_heads or heads
    chunks = layout.chunks if layout.schedule == "interleaved" else 1
    if heads % tensor:
        return f"{tensor} tensor ranks can't share {heads} heads."
    if keys % tensor:
        return f"{tensor} tensor ranks can't share {keys} heads of keys and values."
    if layout.context_ranks > 1 and model.context % (2 * layout.context_ranks):
        return context_refused(layout.context_ranks, model.context)
    if stages * chunks > model.layers:
        parts = stages * chunks
        return f"{parts} stages need as many layers; there are {model.layers}."
    if layout.schedule == "interleaved" and layout.micro_batches % stages:
        return interleaving_refused(stages, layout.micro_batches)
    if layout.group and layout.stage < 3:
        return "HSDP needs ZeRO-3."
    if layout.group and layout.data % layout.group:
        return f"{layout.data} data ranks can't form groups of {layout.group}."
    return ""


def context_refused(ranks: int, tokens: int) -> str:
    """What to do if 2 c chunks don't divide a sequence."""
    needed = f"{ranks} context ranks cut a sequence into {2 * ranks} chunks"
    fitting = 2 * ranks * ceil(tokens / (2 * ranks))
    return f"{needed}: take {fitting} tokens instead of {tokens}."


def interleaving_refused(stages: int, count: int) -> str:
    """What to do if ``count`` micro-batches don't fill rounds: 2104.04473, 2.2."""
    needed = f"Interleaving {stages} ranks needs a multiple of {stages} micro-batches"
    return f"{needed}: take {stages * ceil(count / stages)} instead of {count}."
