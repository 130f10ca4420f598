/* What one training step of a GPT costs: src/common/cost/formulas.py in JavaScript.

   Functions and fields have the names that they have there, where the sources are.
   tests/docs/test_cost_calculator.py compares both on random inputs. They are in a
   function that needs nothing else, because a worker gets its text. */
play.cost = () => {
  const HALF = 2; // bytes of a parameter, a gradient or an activation in 16 bits
  const ADAM = 12; // bytes for each parameter: a 32-bit copy, momentum, variance

  const HEAD = 128; // numbers of a head's query, key and value with latent attention
  const POSITION = 64; // more of its query and key

  const all_ranks = (layout) =>
    layout.tensor * layout.context_ranks * layout.data * layout.pipeline;

  const shard_ranks = (layout) =>
    Math.min(layout.group || layout.data, layout.data) * layout.context_ranks;

  const stage_layers = (model, layout) => Math.ceil(model.layers / layout.pipeline);

  const attention_width = (model) =>
    model.key_rank ? Math.floor((model.heads * (2 * HEAD + POSITION)) / 2) : model.width;

  const key_width = (model) =>
    model.key_rank
      ? attention_width(model)
      : Math.floor((model.width * (model.kv_heads || model.heads)) / model.heads);

  function attention_products(model) {
    const [width, heads] = [model.width, model.heads];
    if (!model.key_rank) return 2 * width ** 2 + 2 * width * key_width(model);
    const rotated = heads * (HEAD + POSITION);
    const queries = model.query_rank
      ? model.query_rank * (width + rotated)
      : width * rotated;
    const keys = width * (model.key_rank + POSITION) + model.key_rank * heads * 2 * HEAD;
    return queries + keys + heads * HEAD * width;
  }

  const mlp_products = (model) =>
    model.inner ? 3 * model.width * model.inner : 8 * model.width ** 2;

  const expert_share = (model) =>
    model.experts ? Math.max(model.layers - model.dense_layers, 0) / model.layers : 0;

  function mean_mlps(model, of_experts) {
    const share = expert_share(model);
    const dense = model.experts && model.inner ? model.dense_inner / model.inner : 1;
    return share * of_experts + (1 - share) * dense;
  }

  const held_mlps = (model, expert_ranks = 1) =>
    mean_mlps(model, model.experts / expert_ranks + model.shared_experts);

  const used_mlps = (model) => mean_mlps(model, model.chosen + model.shared_experts);

  const router_products = (model) => expert_share(model) * model.experts * model.width;

  function layer_products(model, expert_ranks = 1) {
    const mlps = held_mlps(model, expert_ranks) * mlp_products(model);
    return attention_products(model) + mlps + router_products(model);
  }

  function token_products(model) {
    const mlps = used_mlps(model) * mlp_products(model);
    return attention_products(model) + mlps + router_products(model);
  }

  function gpt_parameters(model) {
    const [products, width] = [layer_products(model), model.width];
    if (model.inner) {
      const ends = (2 * model.vocabulary + 1) * width;
      return model.layers * (products + 2 * width) + ends;
    }
    const embedding = (model.vocabulary + model.context) * width;
    const biases = (8 + 5 * held_mlps(model)) * width;
    return model.layers * (products + biases) + embedding;
  }

  function used_parameters(model) {
    const unused = held_mlps(model) - used_mlps(model);
    const biases = model.inner ? 0 : 5 * model.width;
    return gpt_parameters(model) - model.layers * unused * (mlp_products(model) + biases);
  }

  function rank_parameters(model, layout) {
    const [rows, width] = [model.vocabulary / layout.tensor, model.width];
    const mlps = held_mlps(model, layout.expert_ranks);
    let cut = attention_products(model) + mlps * mlp_products(model);
    let whole = router_products(model);
    let embedding;
    if (model.inner) {
      whole += 2 * width;
      embedding = layout.pipeline === 1 ? 2 * rows + 1 : rows;
    } else {
      cut += (3 + 4 * mlps) * width;
      whole += (5 + mlps) * width;
      embedding = rows + model.context;
    }
    const layer = cut / layout.tensor + whole;
    return stage_layers(model, layout) * layer + embedding * width;
  }

  function expert_parameters(model, layout) {
    let each = mlp_products(model) / layout.tensor;
    if (!model.inner) each += (4 * model.width) / layout.tensor + model.width;
    const own = (expert_share(model) * model.experts) / layout.expert_ranks;
    return stage_layers(model, layout) * own * each;
  }

  function state_parts(model, layout) {
    const everything = rank_parameters(model, layout);
    if (layout.expert_ranks === 1) return [[everything, 1]];
    const experts = expert_parameters(model, layout);
    return [[everything - experts, 1], [experts, layout.expert_ranks]];
  }

  const expert_shards = (layout, expert_ranks) =>
    Math.max(Math.floor(shard_ranks(layout) / expert_ranks), 1);

  function rank_state(model, layout) {
    const parts = state_parts(model, layout).map(([own, spread]) =>
      state_bytes(own, layout.stage, expert_shards(layout, spread))
    );
    return parts.reduce((all, sizes) => all.map((bytes, index) => bytes + sizes[index]));
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
    const [tokens, mlps] = [own_tokens(model, layout), used_mlps(model)];
    const [width, keys] = [model.width, key_width(model)];
    const heads = attention_width(model);
    const shards = layout.sequence_parallel ? layout.tensor : 1;
    const rows = 4 * model.chosen * width * expert_share(model);
    if (layout.recompute === "full") return (2 * tokens * width) / (model.inner ? shards : 1);
    if (layout.recompute === "ops") {
      const inside = 4 * heads + 2 * keys + 2 * mlps * (model.inner || 4 * width);
      return tokens * ((4 * width + rows) / shards + inside / layout.tensor);
    }
    let inside = 4 * heads + 4 * keys;
    inside += model.inner ? 8 * mlps * model.inner : 16 * mlps * width;
    const [ends, score] = model.inner ? [8 * width, 2] : [10 * width, 5];
    if (layout.recompute === "none") inside += score * model.heads * model.context;
    return tokens * ((ends + rows) / shards + inside / layout.tensor);
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
      let units = model.vocabulary * model.width;
      units += layer_products(model, layout.expert_ranks);
      if (expert_shards(layout, layout.expert_ranks) === 1)
        units -=
          ((expert_share(model) * model.experts) / layout.expert_ranks) * mlp_products(model);
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
    const [parameters, gradients, optimizer] = rank_state(model, layout);
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
    const products = token_products(model);
    const scores = model.context * attention_width(model);
    const again_inner = used_mlps(model) * model.inner;
    const ops = model.width * (key_width(model) + model.width + again_inner);
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

  function data_rings(layout, expert_ranks = 1) {
    const group = expert_shards(layout, expert_ranks);
    const copies = Math.floor((layout.data * layout.context_ranks) / expert_ranks);
    const groups = Math.max(Math.floor(copies / group), 1);
    const stride = layout.tensor * expert_ranks;
    return [
      [stride, group, data_rounds(layout), 1],
      [stride * group, groups, 2 * layout.micro_batches, 1 / group],
    ];
  }

  const sum = (list, each) => list.reduce((all, one) => all + each(...one), 0);

  function data_bytes(model, layout) {
    return sum(state_parts(model, layout), (own, spread) =>
      sum(
        data_rings(layout, spread),
        (_, ranks, rounds, share) => (rounds * share * HALF * own * (ranks - 1)) / ranks
      )
    );
  }

  function data_seconds(model, layout, cluster) {
    const delay = stage_layers(model, layout) * cluster.latency;
    return sum(state_parts(model, layout), (own, spread) =>
      sum(data_rings(layout, spread), (stride, ranks, rounds, share) => {
        const bandwidth = axis_bandwidth(stride, ranks, cluster);
        const each = (share * HALF * own) / ranks / bandwidth;
        return rounds * (ranks - 1) * (delay + each);
      })
    );
  }

  function gather_seconds(model, layout, cluster) {
    if (layout.stage !== 1 && layout.stage !== 2) return 0;
    const delay = stage_layers(model, layout) * cluster.latency;
    return sum(state_parts(model, layout), (own, spread) => {
      const ranks = expert_shards(layout, spread);
      const bandwidth = axis_bandwidth(layout.tensor * spread, ranks, cluster);
      return (ranks - 1) * (delay + (HALF * own) / ranks / bandwidth);
    });
  }

  const stream_bytes = (model, layout) =>
    HALF * own_tokens(model, layout) * model.width;

  function tensor_calls(model, layout) {
    const passes = layout.recompute === "full" ? 3 : 2;
    return 2 * passes * stage_layers(model, layout) * layout.micro_batches;
  }

  function tensor_rows(model, layout) {
    if (layout.expert_ranks === 1) return 1;
    return (1 + model.chosen + Math.min(model.shared_experts, 1)) / 2;
  }

  function tensor_bytes(model, layout) {
    const whole = 2 * stream_bytes(model, layout);
    const each = (whole * (layout.tensor - 1)) / layout.tensor;
    return tensor_calls(model, layout) * each * tensor_rows(model, layout);
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
    const scores = (12 + again) * model.context * attention_width(model) * model.layers;
    const flops = (step_tokens(model, layout) * scores) / all_ranks(layout);
    return flops / (cluster.peak * cluster.efficiency);
  }

  const context_exposed = (...given) =>
    Math.max(context_seconds(...given) - attention_seconds(...given), 0);

  function expert_calls(model, layout) {
    if (layout.expert_ranks === 1) return 0;
    const passes = layout.recompute === "full" ? 3 : 2;
    const layers = expert_share(model) * stage_layers(model, layout);
    return 2 * passes * layers * layout.micro_batches;
  }

  function expert_bytes(model, layout) {
    const shards = layout.sequence_parallel ? layout.tensor : 1;
    const rows = (model.chosen * stream_bytes(model, layout)) / shards;
    const away = (layout.expert_ranks - 1) / layout.expert_ranks;
    return expert_calls(model, layout) * rows * away;
  }

  function expert_seconds(model, layout, cluster) {
    const [ranks, sent] = [layout.expert_ranks, expert_bytes(model, layout)];
    if (ranks === 1) return 0;
    const members = Math.max(Math.floor(cluster.per_node / layout.tensor), 1);
    const near = Math.min(members, ranks); // on one node
    const inside = (sent * (near - 1)) / (ranks - 1) / cluster.inside;
    const between = (sent * (ranks - near)) / (ranks - 1) / cluster.between;
    return expert_calls(model, layout) * cluster.latency + Math.max(inside, between);
  }

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
    const axes = tensor_seconds(...given) + context_exposed(...given) + expert_seconds(...given);
    const busy = compute_seconds(...given) + axes;
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
      const expert_ranks = Math.min(layout.expert_ranks, ranks * layout.context_ranks);
      const other = { ...layout, data: ranks, micro_batches, expert_ranks };
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
    return experts_refused(model, layout);
  }

  function experts_refused(model, layout) {
    const [experts, ranks] = [model.experts, layout.expert_ranks];
    if (!experts && ranks > 1)
      return `${ranks} expert ranks need a model with experts: take 1.`;
    if (experts && model.chosen > experts)
      return `A token can't choose ${model.chosen} of ${experts} experts.`;
    if (experts % ranks) return `${ranks} expert ranks can't share ${experts} experts.`;
    const copies = layout.data * layout.context_ranks;
    if (copies % ranks)
      return `${copies} data and context ranks can't form groups of ${ranks}.`;
    const sharing = shard_ranks(layout);
    if (sharing % ranks)
      return `A group of ${sharing} that shards can't hold ${ranks} expert ranks.`;
    return "";
  }

  return {
    activation_bytes,
    all_ranks,
    attention_products,
    attention_seconds,
    attention_width,
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
    expert_bytes,
    expert_calls,
    expert_parameters,
    expert_seconds,
    expert_share,
    expert_shards,
    experts_refused,
    exposed_seconds,
    gather_seconds,
    gpt_parameters,
    head_bytes,
    held_mlps,
    hiding_seconds,
    in_flight,
    interleaving_refused,
    key_width,
    layer_activations,
    layer_products,
    mean_mlps,
    mfu,
    mlp_products,
    moment_bytes,
    own_tokens,
    pipeline_bytes,
    pipeline_seconds,
    pipeline_sends,
    rank_bytes,
    rank_parameters,
    rank_state,
    router_products,
    shard_ranks,
    stage_layers,
    state_bytes,
    state_parts,
    step_flops,
    step_seconds,
    step_tokens,
    stream_bytes,
    tensor_bytes,
    tensor_calls,
    tensor_rows,
    tensor_seconds,
    token_products,
    used_mlps,
    used_parameters,
    why_not,
  };
};
Object.assign(play.formulas, play.cost());
