/* What one training step of a GPT costs: src/common/cost/formulas.py in JavaScript.

   Functions and fields have the names that they have there, where the sources are.
   tests/docs/test_cost_calculator.py compares both on random inputs. They are in a
   function that needs nothing else, because a worker gets its text. */
play.cost = () => {
  const HALF = 2; // bytes of a parameter, a gradient or an activation in 16 bits
  const ADAM = 12; // bytes for each parameter: a 32-bit copy, momentum, variance

  const all_ranks = (layout) =>
    layout.tensor * layout.context_ranks * layout.data * layout.pipeline;

  const shard_ranks = (layout) =>
    Math.min(layout.group || layout.data, layout.data) * layout.context_ranks;

  const stage_layers = (model, layout) => Math.ceil(model.layers / layout.pipeline);

  const key_width = (model) =>
    Math.floor((model.width * (model.kv_heads || model.heads)) / model.heads);

  function layer_products(model) {
    const attention = 2 * model.width ** 2 + 2 * model.width * key_width(model);
    if (model.inner) return attention + 3 * model.width * model.inner;
    return attention + 8 * model.width ** 2;
  }

  function gpt_parameters(model) {
    const [products, width] = [layer_products(model), model.width];
    if (model.inner) {
      const ends = (2 * model.vocabulary + 1) * width;
      return model.layers * (products + 2 * width) + ends;
    }
    const embedding = (model.vocabulary + model.context) * width;
    return model.layers * (products + 13 * width) + embedding;
  }

  function rank_parameters(model, layout) {
    const rows = model.vocabulary / layout.tensor;
    let cut, whole, embedding;
    if (model.inner) {
      [cut, whole] = [layer_products(model) / layout.tensor, 2 * model.width];
      embedding = layout.pipeline === 1 ? 2 * rows + 1 : rows;
    } else {
      cut = (layer_products(model) + 7 * model.width) / layout.tensor;
      [whole, embedding] = [6 * model.width, rows + model.context];
    }
    return stage_layers(model, layout) * (cut + whole) + embedding * model.width;
  }

  function state_bytes(parameters, stage, ranks) {
    const parts = [[HALF, 3], [HALF, 2], [ADAM, 1]]; // and the stage that shards it
    return parts.map(
      ([size, first]) => (size * parameters) / (stage >= first ? ranks : 1)
    );
  }

  const own_tokens = (model, layout) =>
    (model.context * layout.micro_batch) / layout.context_ranks;

  function layer_activations(model, layout) {
    const tokens = own_tokens(model, layout);
    const [width, keys] = [model.width, key_width(model)];
    const shards = layout.sequence_parallel ? layout.tensor : 1;
    if (layout.recompute === "full") return (2 * tokens * width) / (model.inner ? shards : 1);
    if (layout.recompute === "ops") {
      const inside = 4 * width + 2 * keys + 2 * (model.inner || 4 * width);
      return tokens * ((4 * width) / shards + inside / layout.tensor);
    }
    let [ends, inside, score] = [10 * width, 20 * width + 4 * keys, 5];
    if (model.inner) {
      [ends, inside, score] = [8 * width, 4 * width + 4 * keys + 8 * model.inner, 2];
    }
    if (layout.recompute === "none") inside += score * model.heads * model.context;
    return tokens * (ends / shards + inside / layout.tensor);
  }

  function in_flight(layout) {
    const stages = layout.pipeline;
    const more =
      layout.schedule === "interleaved" ? (stages - 1) / layout.chunks : 0;
    if (layout.schedule === "gpipe") return layout.micro_batches;
    return Math.min(layout.micro_batches, stages + more);
  }

  function head_bytes(model, layout) {
    const tokens = own_tokens(model, layout);
    const numbers = model.inner ? 3 * model.vocabulary : model.width + model.vocabulary;
    return (4 * tokens * numbers) / layout.tensor;
  }

  function activation_bytes(model, layout) {
    const each = stage_layers(model, layout) * layer_activations(model, layout);
    const kept = layout.schedule === "gpipe" ? layout.micro_batches : 1;
    const last = kept * each + head_bytes(model, layout);
    return Math.max(in_flight(layout) * each, last);
  }

  function moment_bytes(model, layout) {
    let moment = 0;
    if (layout.stage === 3 && shard_ranks(layout) > 1) {
      const units = model.vocabulary * model.width + layer_products(model);
      moment += (2 * HALF * units) / layout.tensor;
    }
    if (["ops", "full"].includes(layout.recompute)) {
      const again = layer_activations(model, { ...layout, recompute: "selective" });
      const gone = layout.pipeline === 1 ? head_bytes(model, layout) : 0;
      moment += Math.max(again - gone, 0);
    }
    return moment;
  }

  function rank_bytes(model, layout) {
    const [own, ranks] = [rank_parameters(model, layout), shard_ranks(layout)];
    const [parameters, gradients, optimizer] = state_bytes(own, layout.stage, ranks);
    const state = parameters + gradients + optimizer;
    return state + activation_bytes(model, layout) + moment_bytes(model, layout);
  }

  function bubble_share(layout) {
    const parts = { interleaved: layout.chunks, "zb-h1": 3 }[layout.schedule] ?? 1;
    return (layout.pipeline - 1) / (parts * layout.micro_batches);
  }

  const step_tokens = (model, layout) =>
    layout.data * layout.micro_batches * layout.micro_batch * model.context;

  function step_flops(model, layout, recompute = "none") {
    const products = layer_products(model);
    const scores = model.context * model.width;
    const ops = model.width * (key_width(model) + model.width + model.inner);
    const again = { full: 2 * products + 4 * scores, selective: 4 * scores, ops: 2 * ops };
    const layer = 6 * products + 12 * scores + (again[recompute] ?? 0);
    const head = 6 * model.vocabulary * model.width;
    return step_tokens(model, layout) * (model.layers * layer + head);
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
    const groups = Math.floor((layout.data * layout.context_ranks) / group);
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

  function gather_seconds(model, layout, cluster) {
    if (layout.stage !== 1 && layout.stage !== 2) return 0;
    const ranks = shard_ranks(layout);
    const delay = stage_layers(model, layout) * cluster.latency;
    const whole = HALF * rank_parameters(model, layout);
    const each = whole / ranks / axis_bandwidth(layout.tensor, ranks, cluster);
    return (ranks - 1) * (delay + each);
  }

  const stream_bytes = (model, layout) =>
    HALF * own_tokens(model, layout) * model.width;

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

  function context_bytes(model, layout) {
    const ranks = layout.context_ranks;
    if (ranks === 1) return 0;
    const forwards = layout.recompute === "full" ? 2 : 1;
    const sends = forwards * 2 * (ranks - 1) + 4 * ranks - 2;
    const keys = (HALF * own_tokens(model, layout) * key_width(model)) / layout.tensor;
    return layout.micro_batches * stage_layers(model, layout) * sends * keys;
  }

  function context_seconds(model, layout, cluster) {
    const ranks = layout.context_ranks;
    const rounds = (layout.recompute === "full" ? 4 : 3) * (ranks - 1);
    const messages = layout.micro_batches * stage_layers(model, layout) * rounds;
    const bandwidth = axis_bandwidth(layout.tensor, ranks, cluster);
    return messages * cluster.latency + context_bytes(model, layout) / bandwidth;
  }

  function attention_seconds(model, layout, cluster) {
    const again = ["selective", "full"].includes(layout.recompute) ? 4 : 0;
    const scores = (12 + again) * model.context * model.width * model.layers;
    const flops = (step_tokens(model, layout) * scores) / all_ranks(layout);
    return flops / (cluster.peak * cluster.efficiency);
  }

  const context_exposed = (...given) =>
    Math.max(context_seconds(...given) - attention_seconds(...given), 0);

  function pipeline_sends(layout) {
    const chunks = layout.schedule === "interleaved" ? layout.chunks : 1;
    return layout.pipeline > 1 ? 2 * chunks * layout.micro_batches : 0;
  }

  const pipeline_bytes = (model, layout) =>
    (pipeline_sends(layout) * stream_bytes(model, layout)) / layout.tensor;

  function pipeline_seconds(model, layout, cluster) {
    const inside = all_ranks(layout) <= cluster.per_node;
    const bandwidth = inside ? cluster.inside : cluster.between;
    const delay = pipeline_sends(layout) * cluster.latency;
    return delay + pipeline_bytes(model, layout) / bandwidth;
  }

  function hiding_seconds(model, layout, cluster) {
    const last = 2 / 3 / layout.micro_batches; // backward of the last micro-batch
    const share = { 2: 2 / 3, 3: 1 }[layout.stage] ?? last;
    return share * compute_seconds(model, layout, cluster);
  }

  function exposed_seconds(...given) {
    const after = gather_seconds(...given);
    const before = data_seconds(...given) - after;
    return Math.max(before - hiding_seconds(...given), 0) + after;
  }

  function step_seconds(...given) {
    const slots = 1 + bubble_share(given[1]);
    const busy =
      compute_seconds(...given) + tensor_seconds(...given) + context_exposed(...given);
    return busy * slots + pipeline_seconds(...given) + exposed_seconds(...given);
  }

  function mfu(model, layout, cluster) {
    const seconds = step_seconds(model, layout, cluster);
    return step_flops(model, layout) / (seconds * all_ranks(layout) * cluster.peak);
  }

  function device_tokens(model, layout, cluster) {
    const seconds = step_seconds(model, layout, cluster);
    return step_tokens(model, layout) / seconds / all_ranks(layout);
  }

  function binding_ranks(model, layout, cluster) {
    const batch = layout.data * layout.micro_batches;
    for (let ranks = 1; ranks <= batch; ranks *= 2) {
      const micro_batches = Math.floor(batch / ranks);
      const other = { ...layout, data: ranks, micro_batches };
      const limit = hiding_seconds(model, other, cluster);
      const after = gather_seconds(model, other, cluster); // is never hidden
      if (data_seconds(model, other, cluster) - after > limit) return ranks;
    }
    return 0;
  }

  function context_refused(ranks, tokens) {
    const needed = `${ranks} context ranks cut a sequence into ${2 * ranks} chunks`;
    const fitting = 2 * ranks * Math.ceil(tokens / (2 * ranks));
    return `${needed}: take ${fitting} tokens instead of ${tokens}.`;
  }

  function interleaving_refused(stages, count) {
    const needed = `Interleaving ${stages} ranks needs a multiple of ${stages} micro-batches`;
    return `${needed}: take ${stages * Math.ceil(count / stages)} instead of ${count}.`;
  }

  function why_not(model, layout) {
    const [heads, tensor, stages] = [model.heads, layout.tensor, layout.pipeline];
    const keys = model.kv_heads || heads;
    const chunks = layout.schedule === "interleaved" ? layout.chunks : 1;
    if (heads % tensor) return `${tensor} tensor ranks can't share ${heads} heads.`;
    if (keys % tensor)
      return `${tensor} tensor ranks can't share ${keys} heads of keys and values.`;
    if (layout.context_ranks > 1 && model.context % (2 * layout.context_ranks))
      return context_refused(layout.context_ranks, model.context);
    if (stages * chunks > model.layers)
      return `${stages * chunks} stages need as many layers; there are ${model.layers}.`;
    if (layout.schedule === "interleaved" && layout.micro_batches % stages)
      return interleaving_refused(stages, layout.micro_batches);
    if (layout.group && layout.stage < 3) return "HSDP needs ZeRO-3.";
    if (layout.group && layout.data % layout.group)
      return `${layout.data} data ranks can't form groups of ${layout.group}.`;
    return "";
  }

  return {
    activation_bytes,
    all_ranks,
    attention_seconds,
    axis_bandwidth,
    binding_ranks,
    bubble_share,
    compute_seconds,
    context_bytes,
    context_exposed,
    context_refused,
    context_seconds,
    data_bytes,
    data_rings,
    data_rounds,
    data_seconds,
    device_tokens,
    exposed_seconds,
    gather_seconds,
    gpt_parameters,
    head_bytes,
    hiding_seconds,
    in_flight,
    interleaving_refused,
    key_width,
    layer_activations,
    layer_products,
    mfu,
    moment_bytes,
    own_tokens,
    pipeline_bytes,
    pipeline_seconds,
    pipeline_sends,
    rank_bytes,
    rank_parameters,
    shard_ranks,
    stage_layers,
    state_bytes,
    step_flops,
    step_seconds,
    step_tokens,
    stream_bytes,
    tensor_bytes,
    tensor_calls,
    tensor_seconds,
    why_not,
  };
};
Object.assign(play.formulas, play.cost());
