/* What one training step of a GPT costs: src/common/cost/formulas.py in JavaScript.

   Functions and fields have the names that they have there, where the sources are.
   tests/docs/test_cost_calculator.py compares both on random inputs. */
play.formulas = (() => {
  const HALF = 2; // bytes of a parameter, a gradient or an activation in 16 bits
  const ADAM = 12; // bytes for each parameter: a 32-bit copy, momentum, variance

  const all_ranks = (layout) => layout.tensor * layout.pipeline * layout.data;

  const shard_ranks = (layout) => Math.min(layout.group || layout.data, layout.data);

  const stage_layers = (model, layout) => Math.ceil(model.layers / layout.pipeline);

  function gpt_parameters(model) {
    const block = 12 * model.width ** 2 + 13 * model.width;
    return model.layers * block + (model.vocabulary + model.context) * model.width;
  }

  function rank_parameters(model, layout) {
    const cut = (12 * model.width ** 2 + 7 * model.width) / layout.tensor;
    const blocks = stage_layers(model, layout) * (cut + 6 * model.width);
    const embedding = model.vocabulary / layout.tensor + model.context;
    return blocks + embedding * model.width;
  }

  function state_bytes(parameters, stage, ranks) {
    const parts = [[HALF, 3], [HALF, 2], [ADAM, 1]]; // and the stage that shards it
    return parts.map(
      ([size, first]) => (size * parameters) / (stage >= first ? ranks : 1)
    );
  }

  function layer_activations(model, layout) {
    const stream = model.context * layout.micro_batch * model.width;
    if (layout.recompute === "full") return 2 * stream;
    const scores = (5 * model.heads * model.context) / model.width;
    const inside = 24 + (layout.recompute === "none" ? scores : 0);
    const ends = 10 / (layout.sequence_parallel ? layout.tensor : 1);
    return stream * (ends + inside / layout.tensor);
  }

  function in_flight(layout) {
    const stages = layout.pipeline;
    const more =
      layout.schedule === "interleaved" ? (stages - 1) / layout.chunks : 0;
    if (layout.schedule === "gpipe") return layout.micro_batches;
    return Math.min(layout.micro_batches, stages + more);
  }

  function activation_bytes(model, layout) {
    const layers = stage_layers(model, layout);
    const saved = layers * in_flight(layout) * layer_activations(model, layout);
    if (layout.pipeline > 1) return saved;
    const tokens = model.context * layout.micro_batch;
    return saved + (4 * tokens * (model.width + model.vocabulary)) / layout.tensor;
  }

  function bubble_share(layout) {
    const parts = { interleaved: layout.chunks, "zb-h1": 3 }[layout.schedule] ?? 1;
    return (layout.pipeline - 1) / (parts * layout.micro_batches);
  }

  function step_flops(model, layout, recompute = "none") {
    const batch = layout.data * layout.micro_batches * layout.micro_batch;
    const blocks = 72 * batch * model.context * model.layers * model.width ** 2;
    const attention = model.context / (6 * model.width);
    const head = model.vocabulary / (12 * model.layers * model.width);
    const again = { full: (1 + attention) / 3, selective: attention / 3 };
    return blocks * (1 + attention + head + (again[recompute] ?? 0));
  }

  function compute_seconds(model, layout, cluster) {
    const flops = step_flops(model, layout, layout.recompute) / all_ranks(layout);
    return flops / (cluster.peak * cluster.efficiency);
  }

  function axis_bandwidth(stride, ranks, cluster) {
    if (stride * ranks <= cluster.per_node) return cluster.inside;
    const members = Math.max(Math.floor(cluster.per_node / stride), 1);
    return Math.min(cluster.inside, members * cluster.between);
  }

  function data_rounds(layout) {
    const count = layout.micro_batches;
    return { 2: count + 1, 3: 3 * count }[layout.stage] ?? 2;
  }

  function data_rings(layout) {
    const group = shard_ranks(layout);
    const groups = Math.floor(layout.data / group);
    return [
      [layout.tensor, group, data_rounds(layout), 1],
      [layout.tensor * group, groups, 2 * layout.micro_batches, 1 / group],
    ];
  }

  function data_bytes(model, layout) {
    const whole = HALF * rank_parameters(model, layout);
    return data_rings(layout).reduce(
      (all, [, ranks, rounds, share]) =>
        all + (rounds * share * whole * (ranks - 1)) / ranks,
      0
    );
  }

  function data_seconds(model, layout, cluster) {
    const whole = HALF * rank_parameters(model, layout);
    const delay = stage_layers(model, layout) * cluster.latency;
    return data_rings(layout).reduce((all, [stride, ranks, rounds, share]) => {
      const each = (share * whole) / ranks / axis_bandwidth(stride, ranks, cluster);
      return all + rounds * (ranks - 1) * (delay + each);
    }, 0);
  }

  const stream_bytes = (model, layout) =>
    HALF * layout.micro_batch * model.context * model.width;

  function tensor_calls(model, layout) {
    const passes = layout.recompute === "full" ? 3 : 2;
    return 2 * passes * stage_layers(model, layout) * layout.micro_batches;
  }

  function tensor_bytes(model, layout) {
    const whole = 2 * stream_bytes(model, layout);
    const each = (whole * (layout.tensor - 1)) / layout.tensor;
    return tensor_calls(model, layout) * each;
  }

  function tensor_seconds(model, layout, cluster) {
    const messages = tensor_calls(model, layout) * 2 * (layout.tensor - 1);
    const bandwidth = axis_bandwidth(1, layout.tensor, cluster);
    return messages * cluster.latency + tensor_bytes(model, layout) / bandwidth;
  }

  function pipeline_sends(layout) {
    const chunks = layout.schedule === "interleaved" ? layout.chunks : 1;
    return layout.pipeline > 1 ? 2 * chunks * layout.micro_batches : 0;
  }

  function pipeline_seconds(model, layout, cluster) {
    const inside = all_ranks(layout) <= cluster.per_node;
    const bandwidth = inside ? cluster.inside : cluster.between;
    const each = cluster.latency + stream_bytes(model, layout) / bandwidth;
    return pipeline_sends(layout) * each;
  }

  function hiding_seconds(model, layout, cluster) {
    const last = 2 / 3 / layout.micro_batches; // backward of the last micro-batch
    const share = { 2: 2 / 3, 3: 1 }[layout.stage] ?? last;
    return share * compute_seconds(model, layout, cluster);
  }

  function step_seconds(...given) {
    const slots = 1 + bubble_share(given[1]);
    const exposed = Math.max(data_seconds(...given) - hiding_seconds(...given), 0);
    const busy = compute_seconds(...given) + tensor_seconds(...given);
    return busy * slots + pipeline_seconds(...given) + exposed;
  }

  function mfu(model, layout, cluster) {
    const seconds = step_seconds(model, layout, cluster);
    return step_flops(model, layout) / (seconds * all_ranks(layout) * cluster.peak);
  }

  function binding_ranks(model, layout, cluster) {
    const batch = layout.data * layout.micro_batches;
    for (let ranks = 1; ranks <= batch; ranks *= 2) {
      const micro_batches = Math.floor(batch / ranks);
      const other = { ...layout, data: ranks, micro_batches };
      const limit = hiding_seconds(model, other, cluster);
      if (data_seconds(model, other, cluster) > limit) return ranks;
    }
    return 0;
  }

  return {
    ...play.formulas,
    activation_bytes,
    all_ranks,
    axis_bandwidth,
    binding_ranks,
    bubble_share,
    compute_seconds,
    data_bytes,
    data_rings,
    data_rounds,
    data_seconds,
    gpt_parameters,
    hiding_seconds,
    in_flight,
    layer_activations,
    mfu,
    pipeline_seconds,
    pipeline_sends,
    rank_parameters,
    shard_ranks,
    state_bytes,
    step_flops,
    step_seconds,
    stream_bytes,
    tensor_bytes,
    tensor_calls,
    tensor_seconds,
  };
})();
