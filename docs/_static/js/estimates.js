/* What memory-bars and cost-calculator share: known models and clusters, and numbers
   as people read them. */
{
  const gpt = (layers, width, heads, context, vocabulary) => ({
    layers,
    width,
    heads,
    context,
    vocabulary,
    kv_heads: 0,
    inner: 0,
    experts: 0,
    chosen: 1,
    shared_experts: 0,
    dense_layers: 0,
    dense_inner: 0,
    key_rank: 0,
    query_rank: 0,
  });
  const llama = (layers, width, heads, inner) => ({
    ...gpt(layers, width, heads, 8192, 128256),
    kv_heads: 8,
    inner,
  });

  /* A Llama whose MLPs are experts: sizes, then E, k and shared experts. */
  const mixture = (sizes, kv_heads, vocabulary, experts, chosen, shared_experts) => ({
    ...llama(...sizes),
    ...{ kv_heads, vocabulary, experts, chosen, shared_experts },
  });

  /* Shapes of GPT-3 (arXiv 2005.14165, table 2.1), of Megatron-LM (2104.04473, table 1),
     of Llama 3 (2407.21783, table 3), of Mixtral (2401.04088, table 1, and the
     configuration of 8x22B), of Qwen2 (2407.10671, table 1) and of DeepSeek-V3
     (2412.19437, section 4.2, and its configuration). */
  const models = {
    "125 M": gpt(12, 768, 12, 2048, 50257),
    "1.3 B": gpt(24, 2048, 16, 2048, 50257),
    "6.7 B": gpt(32, 4096, 32, 2048, 50257),
    "13 B": gpt(40, 5120, 40, 2048, 50257),
    "76 B": gpt(60, 10240, 80, 2048, 51200),
    "175 B": gpt(96, 12288, 96, 2048, 50257),
    "Llama 3 8 B": llama(32, 4096, 32, 14336),
    "Llama 3 70 B": llama(80, 8192, 64, 28672),
    "Llama 3 405 B": llama(126, 16384, 128, 53248),
    "Mixtral 8x7B": mixture([32, 4096, 32, 14336], 8, 32000, 8, 2, 0),
    "Mixtral 8x22B": mixture([56, 6144, 48, 16384], 8, 32000, 8, 2, 0),
    "Qwen2 57B-A14B": mixture([28, 3584, 28, 2560], 4, 151646, 64, 8, 8),
    "DeepSeek-V3": {
      ...mixture([61, 7168, 128, 2048], 0, 129280, 256, 8, 1),
      ...{ dense_layers: 3, dense_inner: 18432, key_rank: 512, query_rank: 1536 },
    },
  };

  /* TFLOP/s without sparsity in bfloat16, and how many % of it programs reach; GB, GB/s
     in one direction; microseconds. */
  const device = (memory, peak, efficiency, inside, between) => ({
    per_node: 8,
    memory,
    peak,
    efficiency,
    inside,
    between,
    latency: 10,
  });
  const clusters = {
    "8 × A100 80 GB, 200 Gb/s each": device(80, 312, 50, 300, 25),
    "8 × H100 80 GB, 400 Gb/s each": device(80, 989, 40, 450, 50),
    "8 × H200 141 GB, 400 Gb/s each": device(141, 989, 40, 450, 50),
    "8 × A100 80 GB, 100 Gb/s together": device(80, 312, 50, 300, 1.5625),
  };

  /* The least and the most % of the peak with which published times come out, by the
     peak: the last column of docs/cost_published.inc. H200s have the peak of H100s. */
  const reached = { 312: [44, 68], 989: [33, 50] };

  const round = (value, digits) =>
    value.toLocaleString("en-US", { maximumSignificantDigits: digits });

  /* 0.0123, 1.23, 123, 12,345: three digits, or the whole number. */
  const short = (value) => (value >= 1000 ? round(Math.round(value), 15) : round(value, 3));

  const scaled = (value, units, step) => {
    const place = Math.floor(Math.log(Math.max(value, 1e-300)) / Math.log(step) + 1e-9);
    const index = play.within(place, 0, units.length - 1);
    return `${short(value / step ** index)} ${units[index]}`;
  };
  const count = (value) => scaled(value, ["", "K", "M", "B", "T"], 1000).trim();
  const flops = (value) => scaled(value / 1e12, ["TFLOP", "PFLOP", "EFLOP"], 1000);
  const time = (seconds) =>
    seconds > 0 && seconds < 1 ? `${short(seconds * 1000)} ms` : `${short(seconds)} s`;
  const gigabytes = (bytes) => `${short(bytes / 1e9)} GB`;

  const PARTS = {
    parameters: "blue",
    gradients: "green",
    "optimizer state": "orange",
    activations: "violet",
    "whole for a moment": "gray",
  };

  const sum = (parts) => Object.values(parts).reduce((all, one) => all + one, 0);

  /* A bar of stacked parts, with a line at the device's memory; both in bytes. What is
     more than twice that memory is cut off. Its numbers are in its name. */
  const bar = (parts, memory) => {
    let room = 100;
    const pieces = Object.entries(parts).map(([name, bytes]) => {
      const piece = play.make("span", { class: PARTS[name] });
      const width = Math.min((50 * bytes) / memory, room);
      piece.style.width = `${width}%`;
      room -= width;
      return piece;
    });
    const named = Object.entries(parts).map(
      ([name, bytes]) => `${name} ${gigabytes(bytes)}`
    );
    const look = { class: room > 0 ? "bar" : "bar cut", role: "img" };
    return play.make("div", { ...look, "aria-label": named.join(", ") }, ...pieces);
  };

  /* The colors of the bars in words. */
  const legend = () => {
    const { make } = play;
    const entries = Object.entries(PARTS).map(([name, color]) =>
      make("span", {}, make("i", { class: color }), ` ${name}`)
    );
    const line = make("span", {}, make("i", { class: "limit" }), " memory of a device");
    return make("p", { class: "parts", "aria-hidden": "true" }, ...entries, line);
  };

  /* Bytes on a rank: the model's state, activations, and what is whole for a moment. */
  const held = (model, layout) => {
    const { activation_bytes, moment_bytes, rank_state } = play.formulas;
    const [parameters, gradients, optimizer] = rank_state(model, layout);
    const activations = activation_bytes(model, layout);
    const held = { parameters, gradients, "optimizer state": optimizer, activations };
    const moment = moment_bytes(model, layout);
    return moment ? { ...held, "whole for a moment": moment } : held;
  };

  const RECOMPUTE = {
    none: "nothing",
    selective: "attention",
    ops: "every second product",
    full: "every layer",
  };

  const STAGES = ["DDP", "ZeRO-1", "ZeRO-2", "FSDP"];

  /* A layout in a few words, as tools/cost_tables.py writes it. */
  const words = (layout) => {
    const { tensor, context_ranks, expert_ranks, pipeline, data } = layout;
    const axes = { t: tensor, c: context_ranks, p: pipeline, d: data, e: expert_ranks };
    const used = Object.entries(axes).filter(([, ranks]) => ranks > 1);
    const parts = [used.map(([axis, ranks]) => `${axis} ${ranks}`).join(", ")];
    const sharded = layout.group ? `HSDP in groups of ${layout.group}` : STAGES[layout.stage];
    if (play.formulas.shard_ranks(layout) > 1) parts.push(sharded);
    parts.push(`micro-batch ${layout.micro_batch}`);
    if (layout.schedule === "interleaved") parts.push(`${layout.chunks} chunks`);
    const what = layout.recompute === "full" ? "all layers" : RECOMPUTE[layout.recompute];
    return [...parts, `${what} recomputed`].filter(Boolean).join("; ");
  };

  play.estimates = { models, clusters, reached, words, short, count, flops, time, gigabytes };
  Object.assign(play.estimates, { bar, legend, held, sum, RECOMPUTE });
}
