"""What one training step of a GPT costs on paper: memory, bytes, seconds.

``common/cost/counting.py`` counts our byte GPT exactly, on the CPU and in 32 bits.
These are published estimates for large models on GPUs, trained by AdamW in mixed
precision. A model is a GPT as Megatron-LM runs it (dropout, an MLP four times as wide
as the model), or a Llama as torchtitan runs it (a gated MLP, its own output layer, no
dropout, logits in 32 bits). The MLP of each layer may be E experts, of which a token
goes through k, and shared experts, which every token goes through; all are equally
wide. The first layers may have one MLP instead. With latent attention (MLA), keys and
values are computed from few numbers of a token, and queries, too, as in DeepSeek-V3
(arXiv 2412.19437, section 2.1.1). The page "What will it cost?" uses the formulas, in
``docs/_static/js/formulas.js``, where each function has the same name.

Tensor ranks are neighbors; then context ranks, data ranks, and pipeline stages. Expert
ranks are neighbors among the context and data ranks. We assume that the experts of a
layer get equally many tokens.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

HALF = 2  # bytes of a parameter, a gradient or an activation in 16 bits
ADAM = 12  # bytes for each parameter: a 32-bit copy, momentum, variance
# Of a head with latent attention in DeepSeek-V2 and V3: arXiv 2412.19437, section 4.2
HEAD = 128  # numbers of its query, its key and its value
POSITION = 64  # more of its query and of the key, which rotate with the position


class Model(NamedTuple):
    """The sizes of a model: L, H, its heads, T tokens of a sequence, and V."""

    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int
    kv_heads: int = 0  # heads of keys and values (GQA); 0: as many as heads
    inner: int = 0  # width of a Llama's gated MLP (SwiGLU); 0: a GPT, with 4 H
    experts: int = 0  # E of each layer, with a router; 0: one MLP
    chosen: int = 1  # k, the experts that a token goes through
    shared_experts: int = 0  # more experts of a layer, for every token
    dense_layers: int = 0  # of a model with experts, the first ones, with one MLP
    dense_inner: int = 0  # the width of their gated MLP
    key_rank: int = 0  # numbers that give a token's keys and values (MLA); 0: no MLA
    query_rank: int = 0  # and its queries; 0: these are computed from all H


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
    expert_ranks: int = 1  # e, that share the experts: a part of the d * c ranks


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
    """Numbers of a token's keys, or of its values; with MLA the mean of the two."""
    if model.key_rank:
        return attention_width(model)
    return model.width * (model.kv_heads or model.heads) // model.heads


def attention_width(model: Model) -> int:
    """Numbers of a token's queries, or of what attention returns: H but with MLA.

    There the queries have more numbers than the values: this is the mean of the two.
    """
    if model.key_rank:
        return model.heads * (2 * HEAD + POSITION) // 2
    return model.width


def attention_products(model: Model) -> int:
    """Weights of the four matrices around attention: 4 H^2 in a GPT."""
    if model.key_rank:
        rotated = model.heads * (HEAD + POSITION)
        queries = model.width * rotated
        if model.query_rank:
            queries = model.query_rank * (model.width + rotated)
        keys = model.width * (model.key_rank + POSITION)
        keys += model.key_rank * model.heads * 2 * HEAD  # and values
        return queries + keys + model.heads * HEAD * model.width
    return 2 * model.width**2 + 2 * model.width * key_width(model)


def mlp_products(model: Model) -> int:
    """Weights of the matrices of an MLP or of an expert: 8 H^2 in a GPT."""
    if model.inner:
        return 3 * model.width * model.inner
    return 8 * model.width**2


def expert_share(model: Model) -> float:
    """The part of the layers that has experts."""
    if not model.experts:
        return 0
    return max(model.layers - model.dense_layers, 0) / model.layers


def mean_mlps(model: Model, of_experts: float) -> float:
    """MLPs of a layer, the mean over all; a dense layer's counts by its width."""
    share = expert_share(model)
    dense = 1.0
    if model.experts and model.inner:
        dense = model.dense_inner / model.inner
    return share * of_experts + (1 - share) * dense


def held_mlps(model: Model, expert_ranks: int = 1) -> float:
    """MLPs of a layer on a rank, if ``expert_ranks`` share the experts."""
    return mean_mlps(model, model.experts / expert_ranks + model.shared_experts)


def used_mlps(model: Model) -> float:
    """MLPs of a layer that a token goes through: its k experts and the shared ones."""
    return mean_mlps(model, model.chosen + model.shared_experts)


def router_products(model: Model) -> float:
    """Weights of a layer's router."""
    return expert_share(model) * model.experts * model.width


def layer_products(model: Model, expert_ranks: int = 1) -> float:
    """Weights of a layer's matrices on a rank, the router's too: 12 H^2 in a GPT."""
    mlps = held_mlps(model, expert_ranks) * mlp_products(model)
    return attention_products(model) + mlps + router_products(model)


def token_products(model: Model) -> float:
    """Weights of a layer's matrices that a token is multiplied with."""
    mlps = used_mlps(model) * mlp_products(model)
    return attention_products(model) + mlps + router_products(model)


def gpt_parameters(model: Model) -> float:
    """12 L H^2 (1 + 13/(12 H) + (V + T)/(12 L H)): arXiv 2104.04473, section 5.1.

    A Llama has no biases and no positions to learn, but a second matrix of V rows.
    """
    products, width = layer_products(model), model.width
    if model.inner:
        ends = (2 * model.vocabulary + 1) * width
        return model.layers * (products + 2 * width) + ends
    embedding = (model.vocabulary + model.context) * width
    biases = (8 + 5 * held_mlps(model)) * width  # and norms: 13 H without experts
    return model.layers * (products + biases) + embedding


def used_parameters(model: Model) -> float:
    """Of these, the ones that compute a token: not the experts that it didn't choose.

    What Mixtral's paper calls active parameters: arXiv 2401.04088, section 2.
    """
    unused = held_mlps(model) - used_mlps(model)
    biases = 0 if model.inner else 5 * model.width
    return gpt_parameters(model) - model.layers * unused * (
        mlp_products(model) + biases
    )


def rank_parameters(model: Model, layout: Layout) -> float:
    """Parameters of the first stage on a tensor rank: arXiv 1909.08053, section 3."""
    rows, width = model.vocabulary / layout.tensor, model.width
    mlps = held_mlps(model, layout.expert_ranks)
    cut = attention_products(model) + mlps * mlp_products(model)
    whole = router_products(model)
    if model.inner:
        whole += 2 * width
        last = layout.pipeline == 1  # it has the output layer and its norm, too
        embedding = 2 * rows + 1 if last else rows
    else:
        # norms and biases of rows stay whole: 6 H without experts
        cut += (3 + 4 * mlps) * width
        whole += (5 + mlps) * width
        embedding = rows + model.context
    layer = cut / layout.tensor + whole
    return stage_layers(model, layout) * layer + embedding * width


def expert_parameters(model: Model, layout: Layout) -> float:
    """Of these, the ones of the rank's E / e experts."""
    each = mlp_products(model) / layout.tensor
    if not model.inner:
        each += 4 * model.width / layout.tensor + model.width
    own = expert_share(model) * model.experts / layout.expert_ranks
    return stage_layers(model, layout) * own * each


def state_parts(model: Model, layout: Layout) -> list[tuple[float, int]]:
    """Parameters of a rank, and the e ranks over which these are spread already."""
    everything = rank_parameters(model, layout)
    if layout.expert_ranks == 1:
        return [(everything, 1)]
    experts = expert_parameters(model, layout)
    return [(everything - experts, 1), (experts, layout.expert_ranks)]


def expert_shards(layout: Layout, expert_ranks: int) -> int:
    """The ranks over which the state of an expert is sharded: those with a copy."""
    return max(shard_ranks(layout) // expert_ranks, 1)


def rank_state(model: Model, layout: Layout) -> list[float]:
    """Bytes of a rank's parameters, gradients and optimizer state."""
    parts = [
        state_bytes(own, layout.stage, expert_shards(layout, spread))
        for own, spread in state_parts(model, layout)
    ]
    return [sum(sizes) for sizes in zip(*parts, strict=True)]


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
    output and every second product: queries, values, the gate and the last. Experts
    save what an MLP saves for each row that they get, and the row before and after.
    """
    tokens, mlps = own_tokens(model, layout), used_mlps(model)
    width, keys, heads = model.width, key_width(model), attention_width(model)
    shards = layout.tensor if layout.sequence_parallel else 1
    rows = 4 * model.chosen * width * expert_share(model)
    if layout.recompute == "full":
        return 2 * tokens * width / (shards if model.inner else 1)
    if layout.recompute == "ops":
        inside = 4 * heads + 2 * keys + 2 * mlps * (model.inner or 4 * width)
        return tokens * ((4 * width + rows) / shards + inside / layout.tensor)
    inside = 4 * heads + 4 * keys
    if model.inner:
        ends, score = 8 * width, 2
        inside += 8 * mlps * model.inner
    else:
        ends, score = 10 * width, 5
        inside += 16 * mlps * width
    if layout.recompute == "none":
        inside += score * model.heads * model.context
    return tokens * ((ends + rows) / shards + inside / layout.tensor)


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
    bits; experts with one copy aren't gathered. A layer that is recomputed has all of
    its activations again; on the last stage, the output is gone by then.
    """
    moment = 0.0
    if layout.stage == 3 and shard_ranks(layout) > 1:
        units = model.vocabulary * model.width
        units += layer_products(model, layout.expert_ranks)
        if expert_shards(layout, layout.expert_ranks) == 1:
            gathered = expert_share(model) * model.experts / layout.expert_ranks
            units -= gathered * mlp_products(model)
        moment += 2 * HALF * units / layout.tensor
    if layout.recompute in ("ops", "full"):
        again = layer_activations(model, layout._replace(recompute="selective"))
        gone = head_bytes(model, layout) if layout.pipeline == 1 else 0
        moment += max(again - gone, 0)
    return moment


def rank_bytes(model: Model, layout: Layout) -> float:
    """Bytes on the rank that holds most: its state, activations, and a moment's."""
    parameters, gradients, optimizer = rank_state(model, layout)
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

    Six for each weight of a matrix and token, 12 L T H for attention and token. Experts
    that a token didn't choose compute nothing for it.
    """
    products, scores = token_products(model), model.context * attention_width(model)
    again_inner = used_mlps(model) * model.inner
    ops = model.width * (key_width(model) + model.width + again_inner)
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


def data_rings(
    layout: Layout, expert_ranks: int = 1
) -> list[tuple[int, int, int, float]]:
    """(stride, ranks, rounds, share) in a group, and between HSDP's: gradients only.

    The ranks are those with a copy, of which experts have fewer.
    """
    group, count = expert_shards(layout, expert_ranks), layout.micro_batches
    copies = layout.data * layout.context_ranks // expert_ranks
    groups, stride = max(copies // group, 1), layout.tensor * expert_ranks
    between = stride * group, groups, 2 * count, 1 / group
    return [(stride, group, data_rounds(layout), 1.0), between]


def data_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the data axis in a step, by rings, in 16 bits."""
    sent = 0.0
    for own, spread in state_parts(model, layout):
        whole, rings = HALF * own, data_rings(layout, spread)
        sent += sum(n * x * whole * (d - 1) / d for _, d, n, x in rings)
    return sent


def data_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of :func:`data_bytes`, with one collective per layer."""
    seconds, delay = 0.0, stage_layers(model, layout) * cluster.latency
    for own, spread in state_parts(model, layout):
        for stride, ranks, rounds, share in data_rings(layout, spread):
            bandwidth = axis_bandwidth(stride, ranks, cluster)
            each = share * HALF * own / ranks / bandwidth
            seconds += rounds * (ranks - 1) * (delay + each)
    return seconds


def gather_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Of these, the all-gather of ZeRO-1 and ZeRO-2: it follows the optimizer's step.

    Nothing is left to compute then. Only a library that delays it, layer by layer, to
    the next forward pass can hide it.
    """
    if layout.stage not in (1, 2):
        return 0.0
    seconds, delay = 0.0, stage_layers(model, layout) * cluster.latency
    for own, spread in state_parts(model, layout):
        ranks = expert_shards(layout, spread)
        bandwidth = axis_bandwidth(layout.tensor * spread, ranks, cluster)
        seconds += (ranks - 1) * (delay + HALF * own / ranks / bandwidth)
    return seconds


def stream_bytes(model: Model, layout: Layout) -> float:
    """Bytes of a micro-batch between two layers: [B, T / c, H] numbers."""
    return HALF * own_tokens(model, layout) * model.width


def tensor_calls(model: Model, layout: Layout) -> int:
    """All-reduces of a rank: two per layer and pass, arXiv 1909.08053, figure 4."""
    passes = 3 if layout.recompute == "full" else 2
    return 2 * passes * stage_layers(model, layout) * layout.micro_batches


def tensor_rows(model: Model, layout: Layout) -> float:
    """Rows for a token in one of these, the mean of attention's and the MLP's.

    The k rows that experts of other ranks return are summed over the tensor ranks
    before they are sent, and shared experts' row by itself.
    """
    if layout.expert_ranks == 1:
        return 1.0
    return (1 + model.chosen + min(model.shared_experts, 1)) / 2


def tensor_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the tensor axis in a step, by rings."""
    each = 2 * stream_bytes(model, layout) * (layout.tensor - 1) / layout.tensor
    return tensor_calls(model, layout) * each * tensor_rows(model, layout)


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
    scores = (12 + again) * model.context * attention_width(model) * model.layers
    flops = step_tokens(model, layout) * scores / all_ranks(layout)
    return flops / (cluster.peak * cluster.efficiency)


def context_exposed(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Seconds of the context axis that attention doesn't hide."""
    given = model, layout, cluster
    return max(context_seconds(*given) - attention_seconds(*given), 0)


def expert_calls(model: Model, layout: Layout) -> float:
    """All-to-alls of a rank: dispatch and combine, per layer and pass (lesson 22)."""
    if layout.expert_ranks == 1:
        return 0
    passes = 3 if layout.recompute == "full" else 2
    layers = expert_share(model) * stage_layers(model, layout)
    return 2 * passes * layers * layout.micro_batches


def expert_bytes(model: Model, layout: Layout) -> float:
    """Bytes a rank sends along the expert axis in a step.

    k rows of H numbers for each token, of which (e - 1)/e are for other ranks. With
    sequence parallel, each tensor rank sends the rows of its own tokens.
    """
    shards = layout.tensor if layout.sequence_parallel else 1
    rows = model.chosen * stream_bytes(model, layout) / shards
    away = (layout.expert_ranks - 1) / layout.expert_ranks
    return expert_calls(model, layout) * rows * away


def expert_seconds(model: Model, layout: Layout, cluster: Cluster) -> float:
    """Latency and bandwidth of :func:`expert_bytes`, which nothing hides.

    Not a ring: a rank sends to all others at once, inside its node and between nodes.
    """
    ranks, sent = layout.expert_ranks, expert_bytes(model, layout)
    if ranks == 1:
        return 0.0
    near = min(max(cluster.per_node // layout.tensor, 1), ranks)  # on one node
    inside = sent * (near - 1) / (ranks - 1) / cluster.inside
    between = sent * (ranks - near) / (ranks - 1) / cluster.between
    return expert_calls(model, layout) * cluster.latency + max(inside, between)


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
    busy += expert_seconds(*given)
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
        spread = min(layout.expert_ranks, ranks * layout.context_ranks)
        other = layout._replace(
            data=ranks, micro_batches=batch // ranks, expert_ranks=spread
        )
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
    return experts_refused(model, layout)


def experts_refused(model: Model, layout: Layout) -> str:
    """Why experts can't be chosen or spread like this; empty if they can."""
    experts, ranks = model.experts, layout.expert_ranks
    if not experts and ranks > 1:
        return f"{ranks} expert ranks need a model with experts: take 1."
    if experts and model.chosen > experts:
        return f"A token can't choose {model.chosen} of {experts} experts."
    if experts % ranks:
        return f"{ranks} expert ranks can't share {experts} experts."
    copies = layout.data * layout.context_ranks
    if copies % ranks:
        return f"{copies} data and context ranks can't form groups of {ranks}."
    if shard_ranks(layout) % ranks:
        sharing = shard_ranks(layout)
        return f"A group of {sharing} that shards can't hold {ranks} expert ranks."
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
