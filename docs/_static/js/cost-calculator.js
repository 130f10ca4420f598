/* What training will cost: model, cluster and layout in; memory, seconds, MFU and days
   out, and the layouts that fit, best first. The address keeps the inputs, so a link
   shows the same estimate.

   The formulas are those of src/common/cost/formulas.py, the search that of search.py. */
// Needs formulas.js
// Needs layout-search.js
// Needs estimates.js
{
  const { make, formulas, estimates } = play;
  const { gigabytes, short, time } = estimates;
  const SCALE = { memory: 1e9, peak: 1e12, efficiency: 0.01 };
  Object.assign(SCALE, { inside: 1e9, between: 1e9, latency: 1e-6 });

  /* [name, label, least, most]: a field for a number. */
  const SEQUENCE = ["context", "Tokens T of a sequence", 16, 1e7];
  const SIZES = [
    ["layers", "Layers L", 1, 1000],
    ["width", "Width H", 64, 1e5],
    ["heads", "Heads", 1, 1000],
    ["kv_heads", "Heads of keys and values (GQA), 0: as many", 0, 1000],
    ["inner", "Width of a gated MLP (SwiGLU), 0: a GPT", 0, 1e6],
    ["vocabulary", "Vocabulary V", 2, 1e7],
    ["experts", "Experts E of a layer, 0: one MLP", 0, 1e4],
    ["chosen", "Experts k of a token", 1, 1000],
    ["shared_experts", "Shared experts", 0, 1000],
    ["dense_layers", "First layers without experts", 0, 1000],
    ["dense_inner", "Width of their MLP", 0, 1e6],
    ["key_rank", "Latent keys and values (MLA), 0: none", 0, 1e5],
    ["query_rank", "Latent queries, 0: from all H", 0, 1e5],
  ];
  const MODEL = [SEQUENCE, ...SIZES];
  const NODES = ["nodes", "Nodes", 1, 1e5];
  const SHARE = ["efficiency", "% of the peak reached", 1, 100];
  const DEVICES = [
    ["per_node", "Devices per node", 1, 1000],
    ["memory", "GB per device", 1, 1e4],
    ["peak", "Peak TFLOP/s", 1, 1e5],
    ["inside", "GB/s in a node", 0.1, 1e4],
    ["between", "GB/s between nodes", 0.01, 1e4],
    ["latency", "Latency in µs", 0, 1e6],
  ];
  const CLUSTER = [SHARE, ...DEVICES];
  const JOB = [
    ["batch", "Sequences per step", 1, 1e7],
    ["budget", "Tokens in all, billions", 0.001, 1e6],
  ];
  const LAYOUT = [
    ["data", "Data ranks d", 1, 1e5],
    ["tensor", "Tensor ranks t", 1, 1000],
    ["context_ranks", "Context ranks c", 1, 1000],
    ["expert_ranks", "Expert ranks e", 1, 1000],
    ["pipeline", "Stages p", 1, 1000],
    ["micro_batch", "Micro-batch size", 1, 1e4],
    ["micro_batches", "Micro-batches m", 1, 1e5],
    ["group", "HSDP group, 0: none", 0, 1e5],
  ];
  const CHOICES = [
    ["stage", "Sharded", ["nothing: DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3, FSDP"]],
    ["recompute", "Recompute", estimates.RECOMPUTE],
    ["sequence_parallel", "Sequence parallel", ["no", "yes"]],
    [
      "schedule",
      "Schedule",
      { gpipe: "GPipe", "1f1b": "1F1B", interleaved: "interleaved", "zb-h1": "ZB-H1" },
    ],
  ];
  const START = {
    ...estimates.models["6.7 B"],
    ...estimates.clusters["8 × H100 80 GB, 400 Gb/s each"],
    ...{ data: 64, tensor: 1, context_ranks: 1, expert_ranks: 1, pipeline: 1 },
    ...{ micro_batch: 4, micro_batches: 2 },
    ...{ stage: 3, recompute: "selective", sequence_parallel: 0 },
    ...{ schedule: "1f1b", chunks: 2, group: 0 },
    ...{ nodes: 8, batch: 512, budget: 1000, price: "" },
  };
  const SHOWN = 10; // layouts in the table
  const ROOM = 0.9; // of a device's memory, as the search takes it
  const HOUR = 3600;

  /* The nodes that a layout occupies, and the sequences that it trains in a step. */
  const nodesOf = (inputs) => Math.ceil(formulas.all_ranks(inputs) / inputs.per_node);
  const batchOf = ({ data, micro_batch, micro_batches }) =>
    data * micro_batch * micro_batches;
  /* What a field can hold of the words in an address: undefined for anything else. */
  const fitting = (field, text) => {
    const number = Number(text);
    if (field.tagName === "SELECT") {
      const known = [...field.options].some((option) => option.value === text);
      return known ? (Number.isNaN(number) ? text : number) : undefined;
    }
    if (text === "" || Number.isNaN(number)) return undefined;
    return play.within(number, Number(field.min), Number(field.max));
  };
  const pick = (fields, inputs) =>
    Object.fromEntries(
      fields.map(([name]) => [name, inputs[name] * (SCALE[name] ?? 1)])
    );

  const withoutSequence = Object.fromEntries(
    Object.entries(estimates.models).map(([name, { context, ...sizes }]) => [name, sizes])
  );

  class CostCalculator extends play.Player {
    static label = "Cost of a training step";

    build() {
      this.inputs = { ...START };
      this.fields = {};
      this.stage.before(this.state); // the sentence first, then the tables
      this.group("Model");
      // choosing a model keeps the sequence, which is the job's
      this.presets("model", "Parameters", withoutSequence);
      this.numbers([SEQUENCE]);
      this.details("Sizes of the model", SIZES);
      this.group("Cluster");
      this.presets("cluster", "Devices and network", estimates.clusters);
      this.numbers([NODES, SHARE]);
      this.reached = make("p", { class: "reached" });
      this.controls.append(this.reached);
      this.details("Numbers of the cluster", DEVICES);
      this.group("Job", "whole");
      this.numbers(JOB);
      this.price();
      this.answer = make("p", { class: "answer", "aria-live": "polite" });
      this.found = make("div");
      this.groups.append(make("div", { class: "layouts" }, this.answer, this.found));
      this.group("Layout", "whole");
      this.numbers(LAYOUT);
      for (const one of CHOICES) this.select(...one);
      this.numbers([["chunks", "Chunks per stage", 1, 100]]);
      this.readAddress();
      window.addEventListener("hashchange", () => {
        this.readAddress();
        this.update();
      });
    }

    group(title, width = "half") {
      this.groups ??= this.controls;
      this.controls = make("div", { class: "controls" });
      const legend = make("legend", {}, title);
      this.groups.append(make("fieldset", { class: width }, legend, this.controls));
    }

    details(title, fields) {
      const outer = this.controls;
      this.controls = make("div", { class: "controls" });
      const folded = make("details", {}, make("summary", {}, title), this.controls);
      outer.append(folded);
      this.numbers(fields);
      this.controls = outer;
    }

    numbers(fields) {
      for (const [name, label, least, most] of fields) {
        const exact = name in SCALE || name === "budget";
        const set = (value) =>
          this.change({ [name]: exact ? value : Math.round(value) });
        const field = this.number(label, [least, most], this.inputs[name], set);
        if (exact) field.step = "any";
        this.fields[name] = field;
      }
    }

    select(name, label, choices) {
      const number = Array.isArray(choices);
      const set = (value) => this.change({ [name]: number ? Number(value) : value });
      const now = String(this.inputs[name]);
      this.fields[name] = this.choice(label, { ...choices }, now, set);
    }

    /* A choice that fills several fields; it says "own" when they fit none. */
    presets(name, label, all) {
      const names = Object.keys(all).map((one) => [one, one]);
      const choices = { own: "my own numbers", ...Object.fromEntries(names) };
      this.fields[name] = this.choice(label, choices, "own", (one) =>
        this.change(all[one] ?? {})
      );
    }

    /* A field that may be empty: nobody's price is everybody's. */
    price() {
      const input = make("input", { type: "number", min: 0, max: 1e6, step: "any" });
      input.addEventListener("change", () => {
        const empty = input.value === "" || Number(input.value) < 0;
        this.change({ price: empty ? "" : Number(input.value) });
        this.update();
      });
      this.controls.append(make("label", {}, make("span", {}, "Price of a GPU-hour"), input));
      this.fields.price = input;
    }

    change(some) {
      const now = this.inputs;
      const before = now.per_node;
      Object.assign(now, some);
      const touched = (...names) => names.some((name) => name in some);
      if ("nodes" in some || now.per_node !== before) this.spread();
      else if ("batch" in some) this.fillBatch();
      else if (touched("data", "tensor", "context_ranks", "pipeline")) now.nodes = nodesOf(now);
      if (touched("data", "micro_batch", "micro_batches")) now.batch = batchOf(now);
      this.writeAddress();
    }

    /* All devices of the nodes get a rank: the data axis takes what the others leave. */
    spread() {
      const now = this.inputs;
      const ranks = now.nodes * now.per_node;
      const others = () => now.tensor * now.context_ranks * now.pipeline;
      if (ranks % others()) [now.tensor, now.context_ranks, now.pipeline] = [1, 1, 1];
      now.data = ranks / others();
      if ((now.data * now.context_ranks) % now.expert_ranks) now.expert_ranks = 1;
      this.fillBatch();
    }

    /* As many micro-batches as the batch needs, at least one. */
    fillBatch() {
      const now = this.inputs;
      const needed = Math.round(now.batch / (now.data * now.micro_batch));
      now.micro_batches = Math.max(needed, 1);
    }

    /* What differs from the start, as #data=8&stage=1; nodes and batch only if they
       don't follow from the layout. */
    writeAddress() {
      const now = this.inputs;
      const follows = { nodes: nodesOf(now), batch: batchOf(now) };
      const changed = Object.entries(now).filter(
        ([name, value]) => value !== (follows[name] ?? START[name])
      );
      const hash = `#${new URLSearchParams(changed)}`;
      window.history.replaceState(null, "", hash);
    }

    readAddress() {
      const given = new URLSearchParams(window.location.hash.slice(1));
      this.inputs = { ...START };
      const read = new Set();
      for (const [name, text] of given) {
        const field = this.fields[name];
        const value = name in START ? fitting(field, text) : undefined;
        if (value === undefined) continue;
        this.inputs[name] = value;
        read.add(name);
      }
      if (!read.has("nodes")) this.inputs.nodes = nodesOf(this.inputs);
      else if (!read.has("data")) this.spread();
      if (!read.has("batch")) this.inputs.batch = batchOf(this.inputs);
      else if (!read.has("micro_batches")) this.fillBatch();
    }

    draw() {
      this.fill();
      const given = [pick(MODEL, this.inputs), { ...this.inputs }, pick(CLUSTER, this.inputs)];
      const trouble = formulas.why_not(...given);
      this.stage.replaceChildren(...(trouble ? [] : this.results(...given)));
      this.search(given[0], given[2]);
      return trouble ? `This layout isn't possible: ${trouble}` : this.say(...given);
    }

    results(model, layout, cluster) {
      const parts = estimates.held(model, layout);
      return [
        estimates.bar(parts, cluster.memory),
        estimates.legend(),
        this.table("Memory of a rank", this.memoryRows(parts)),
        this.table("One step of a rank", this.timeRows(model, layout, cluster)),
        this.table("All of training", this.jobRows(model, layout, cluster)),
      ];
    }

    /* Ask the worker, and show its answer unless the inputs have changed since. */
    async search(model, cluster) {
      const { nodes, batch } = this.inputs;
      const question = JSON.stringify([model, cluster, nodes, batch]);
      if (question === this.question) return;
      this.question = question;
      const answer = await play.searchLayouts(model, cluster, nodes, cluster.memory, batch);
      if (question === this.question) this.showFound(answer, nodes * cluster.per_node);
    }

    showFound({ found, least }, devices) {
      const { batch, memory } = this.inputs;
      const where = `${short(batch)} sequences on ${short(devices)} devices`;
      const room = gigabytes(ROOM * memory * 1e9);
      const none = least
        ? `No layout fits: with ${where}, the smallest takes ${gigabytes(least)} of ${room}.`
        : `No layout divides ${where} evenly.`;
      const [best] = found;
      const some = `${found.length} layouts of ${where} fit into ${room}.`;
      this.answer.textContent = best
        ? `${some} The fastest is ${estimates.words(best.layout)}.`
        : none;
      this.found.replaceChildren(...(best ? [this.foundTable(found)] : []));
    }

    foundTable(found) {
      const head = ["Layout", "GB", "Step", "MFU", "Tokens/s"].map((text) =>
        make("th", { scope: "col" }, text)
      );
      const rows = found.slice(0, SHOWN).map(({ layout, bytes, seconds, mfu, tokens }) => {
        const words = estimates.words(layout);
        const use = play.button(words, () => {
          // without interleaving, the chunks mean nothing and stay as they are
          const interleaved = layout.schedule === "interleaved";
          const chunks = interleaved ? layout.chunks : this.inputs.chunks;
          const parallel = Number(layout.sequence_parallel);
          this.change({ ...layout, chunks, sequence_parallel: parallel });
          this.update();
        });
        use.setAttribute("aria-label", `Use ${words}`);
        const numbers = [short(bytes / 1e9), time(seconds), `${short(100 * mfu)} %`];
        return make(
          "tr",
          {},
          make("th", { scope: "row" }, use),
          ...[...numbers, short(tokens)].map((text) => make("td", {}, text))
        );
      });
      const caption = make("caption", {}, "Layouts that fit, best first");
      return make("table", { class: "costs found" }, caption, make("tr", {}, ...head), ...rows);
    }

    fill() {
      for (const [name, value] of Object.entries(this.inputs)) {
        if (this.fields[name]) this.fields[name].value = String(value);
      }
      const known = (all) =>
        Object.keys(all).find((one) =>
          Object.entries(all[one]).every(([name, value]) => this.inputs[name] === value)
        ) ?? "own";
      this.fields.model.value = known(withoutSequence);
      this.fields.cluster.value = known(estimates.clusters);
      const range = estimates.reached[this.inputs.peak];
      this.reached.textContent = range
        ? `Published runs without experts need ${range[0]} to ${range[1]} %, see below.`
        : "";
    }

    table(title, rows) {
      const line = ([name, ...values]) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, name),
          ...values.map((value) => make("td", {}, value))
        );
      const caption = make("caption", {}, title);
      return make("table", { class: "costs" }, caption, ...rows.map(line));
    }

    memoryRows(parts) {
      const rows = Object.entries(parts).map(([name, bytes]) => [name, gigabytes(bytes)]);
      return [...rows, ["all of it", gigabytes(estimates.sum(parts))]];
    }

    /* [what, how much, seconds], without the axes that have one rank. */
    timeRows(...given) {
      const [model, layout] = given;
      const f = formulas;
      const flops = f.step_flops(model, layout, layout.recompute) / f.all_ranks(layout);
      const computing = f.compute_seconds(...given);
      return [
        ["computing", estimates.flops(flops), time(computing)],
        ...(layout.tensor > 1 ? this.tensorRows(...given) : []),
        ...(layout.context_ranks > 1 ? this.contextRows(...given) : []),
        ...(layout.expert_ranks > 1 ? this.expertRows(...given) : []),
        ...(layout.pipeline > 1 ? this.pipelineRows(...given) : []),
        ...(layout.data * layout.context_ranks > 1 ? this.dataRows(...given) : []),
        ["the step", "", time(f.step_seconds(...given))],
      ];
    }

    tensorRows(...given) {
      const sent = gigabytes(formulas.tensor_bytes(...given));
      return [["tensor axis", sent, time(formulas.tensor_seconds(...given))]];
    }

    contextRows(...given) {
      const seconds = formulas.context_seconds(...given);
      const hidden = seconds - formulas.context_exposed(...given);
      return [
        ["context axis", gigabytes(formulas.context_bytes(...given)), time(seconds)],
        ["of that, hidden by attention", "", time(hidden)],
      ];
    }

    expertRows(...given) {
      const sent = gigabytes(formulas.expert_bytes(...given));
      return [["expert axis", sent, time(formulas.expert_seconds(...given))]];
    }

    pipelineRows(...given) {
      const [model, layout] = given;
      const f = formulas;
      const sent = f.pipeline_bytes(model, layout);
      const axes = [f.tensor_seconds, f.context_exposed, f.expert_seconds];
      const busy = axes.reduce((all, axis) => all + axis(...given), f.compute_seconds(...given));
      const bubble = f.bubble_share(layout);
      return [
        ["pipeline axis", gigabytes(sent), time(f.pipeline_seconds(...given))],
        ["pipeline bubble", `${short(100 * bubble)} %`, time(bubble * busy)],
      ];
    }

    dataRows(...given) {
      const seconds = formulas.data_seconds(...given);
      const exposed = formulas.exposed_seconds(...given);
      const after = formulas.gather_seconds(...given);
      return [
        ["data axis", gigabytes(formulas.data_bytes(...given)), time(seconds)],
        ["of that, hidden", "", time(seconds - exposed)],
        ...(after ? [["gathered after the step", "", time(after)]] : []),
      ];
    }

    /* Rates, and what the budget of tokens takes; the price only if there is one. */
    jobRows(...given) {
      const { budget, price, peak } = this.inputs;
      const [model, layout, cluster] = given;
      const hours = (efficiency) => {
        const other = { ...cluster, efficiency };
        const rate = formulas.device_tokens(model, layout, other);
        return (budget * 1e9) / rate / HOUR;
      };
      const days = (efficiency) => hours(efficiency) / 24 / formulas.all_ranks(layout);
      const now = hours(cluster.efficiency);
      const range = estimates.reached[peak];
      const [most, least] = (range ?? []).map((share) => short(days(share / 100)));
      return [
        ["MFU", `${short(100 * formulas.mfu(...given))} %`],
        ["tokens/s of a device", short(formulas.device_tokens(...given))],
        ["days", short(days(cluster.efficiency))],
        ...(range ? [[`days, with ${range[1]} to ${range[0]} % of the peak`, `${least} to ${most}`]] : []),
        ["GPU-hours", short(now)],
        ...(price === "" ? [] : [["price", short(now * price)]]),
      ];
    }

    say(model, layout, cluster) {
      const held = estimates.sum(estimates.held(model, layout));
      const ranks = formulas.all_ranks(layout);
      const seconds = formulas.step_seconds(model, layout, cluster);
      const tokens = formulas.step_tokens(model, layout);
      const share = 100 * formulas.mfu(model, layout, cluster);
      const start = `${short(ranks)} ${ranks === 1 ? "rank holds" : "ranks hold"}`;
      return [
        `${start} ${gigabytes(held)} each, which ${this.room(held, cluster.memory)}.`,
        `A step of ${short(tokens)} tokens takes ${time(seconds)}, at ${short(share)} % MFU.`,
        this.binding(model, layout, cluster),
        ...(model.experts ? [this.used(model)] : []),
      ].join(" ");
    }

    used(model) {
      const all = estimates.count(formulas.gpt_parameters(model));
      const used = estimates.count(formulas.used_parameters(model));
      return `A token uses ${used} of the ${all} parameters.`;
    }

    room(held, memory) {
      if (held > memory) return `does not fit into ${gigabytes(memory)}`;
      if (held <= ROOM * memory) return `fits into ${gigabytes(memory)}`;
      return `leaves less than a tenth of ${gigabytes(memory)} free`;
    }

    binding(...given) {
      const ranks = formulas.binding_ranks(...given);
      return ranks
        ? `With this global batch, the data axis binds from ${short(ranks)} data ranks on: it takes longer than the computation that could hide it.`
        : "With this global batch, the data axis never binds: computation can hide it.";
    }
  }

  play.define("cost-calculator", CostCalculator);
}
