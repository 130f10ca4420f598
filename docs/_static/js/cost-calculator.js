/* What a training step will cost: model, cluster and layout in; memory, bytes, seconds
   and MFU out. The address keeps the inputs, so a link shows the same estimate.

   The formulas are those of src/common/cost/formulas.py. */
// Needs formulas.js
// Needs estimates.js
{
  const { make, formulas, estimates } = play;
  const { gigabytes, short, time } = estimates;
  const SCALE = { memory: 1e9, peak: 1e12, efficiency: 0.01 };
  Object.assign(SCALE, { inside: 1e9, between: 1e9, latency: 1e-6 });

  /* [name, label, least, most]: a field for a number. */
  const MODEL = [
    ["layers", "Layers L", 1, 1000],
    ["width", "Width H", 64, 1e5],
    ["heads", "Heads", 1, 1000],
    ["context", "Tokens T", 16, 1e7],
    ["vocabulary", "Vocabulary V", 2, 1e7],
  ];
  const CLUSTER = [
    ["per_node", "Devices per node", 1, 1000],
    ["memory", "GB per device", 1, 1e4],
    ["peak", "Peak TFLOP/s", 1, 1e5],
    ["efficiency", "% of it reached", 1, 100],
    ["inside", "GB/s in a node", 0.1, 1e4],
    ["between", "GB/s between nodes", 0.01, 1e4],
    ["latency", "Latency in µs", 0, 1e6],
  ];
  const LAYOUT = [
    ["data", "Data ranks d", 1, 1e5],
    ["tensor", "Tensor ranks t", 1, 1000],
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
    ...{ data: 64, tensor: 1, pipeline: 1, micro_batch: 4, micro_batches: 2 },
    ...{ stage: 3, recompute: "selective", sequence_parallel: 0 },
    ...{ schedule: "1f1b", chunks: 2, group: 0 },
  };
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

  class CostCalculator extends play.Player {
    static label = "Cost of a training step";

    build() {
      this.inputs = { ...START };
      this.fields = {};
      this.stage.before(this.state); // the sentence first, then the tables
      this.group("Model");
      this.presets("model", "Parameters", estimates.models);
      this.details("Sizes of the model", MODEL);
      this.group("Cluster");
      this.presets("cluster", "Nodes and network", estimates.clusters);
      this.details("Numbers of the cluster", CLUSTER);
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
        const exact = name in SCALE;
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

    change(some) {
      Object.assign(this.inputs, some);
      this.writeAddress();
    }

    /* What differs from the start, as #data=8&stage=1. */
    writeAddress() {
      const changed = Object.entries(this.inputs).filter(
        ([name, value]) => value !== START[name]
      );
      const hash = `#${new URLSearchParams(changed)}`;
      window.history.replaceState(null, "", hash);
    }

    readAddress() {
      const given = new URLSearchParams(window.location.hash.slice(1));
      this.inputs = { ...START };
      for (const [name, text] of given) {
        const field = this.fields[name];
        const value = name in START ? fitting(field, text) : undefined;
        if (value !== undefined) this.inputs[name] = value;
      }
    }

    draw() {
      this.fill();
      const given = [pick(MODEL, this.inputs), { ...this.inputs }, pick(CLUSTER, this.inputs)];
      const trouble = this.trouble(...given);
      this.stage.replaceChildren(...(trouble ? [] : this.results(...given)));
      return trouble ? `This layout isn't possible: ${trouble}` : this.say(...given);
    }

    results(model, layout, cluster) {
      const parts = estimates.held(model, layout);
      return [
        estimates.bar(parts, cluster.memory),
        estimates.legend(),
        this.table("Memory of a rank", this.memoryRows(parts)),
        this.table("One step of a rank", this.timeRows(model, layout, cluster)),
      ];
    }

    fill() {
      for (const [name, value] of Object.entries(this.inputs)) {
        if (this.fields[name]) this.fields[name].value = String(value);
      }
      const known = (all) =>
        Object.keys(all).find((one) =>
          Object.entries(all[one]).every(([name, value]) => this.inputs[name] === value)
        ) ?? "own";
      this.fields.model.value = known(estimates.models);
      this.fields.cluster.value = known(estimates.clusters);
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
      return [...rows, ["all four", gigabytes(estimates.sum(parts))]];
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
        ...(layout.pipeline > 1 ? this.pipelineRows(...given) : []),
        ...(layout.data > 1 ? this.dataRows(...given) : []),
        ["the step", "", time(f.step_seconds(...given))],
      ];
    }

    tensorRows(...given) {
      const sent = gigabytes(formulas.tensor_bytes(...given));
      return [["tensor axis", sent, time(formulas.tensor_seconds(...given))]];
    }

    pipelineRows(...given) {
      const [model, layout] = given;
      const f = formulas;
      const sent = f.pipeline_sends(layout) * f.stream_bytes(model, layout);
      const busy = f.compute_seconds(...given) + f.tensor_seconds(...given);
      return [
        ["pipeline axis", gigabytes(sent), time(f.pipeline_seconds(...given))],
        ["pipeline bubble", "", time(f.bubble_share(layout) * busy)],
      ];
    }

    dataRows(...given) {
      const seconds = formulas.data_seconds(...given);
      const hidden = Math.min(seconds, formulas.hiding_seconds(...given));
      return [
        ["data axis", gigabytes(formulas.data_bytes(...given)), time(seconds)],
        ["of that, hidden", "", time(hidden)],
      ];
    }

    /* Why this layout can't be built, or nothing. */
    trouble(model, layout) {
      const { tensor, pipeline, chunks, schedule, data, group } = layout;
      const parts = schedule === "interleaved" ? chunks : 1;
      if (model.heads % tensor) return `${tensor} tensor ranks can't share ${model.heads} heads.`;
      if (pipeline * parts > model.layers)
        return `${pipeline * parts} stages need as many layers; there are ${model.layers}.`;
      if (group && layout.stage < 3) return "HSDP needs ZeRO-3.";
      if (group && data % group)
        return `${data} data ranks can't form groups of ${group}.`;
      return "";
    }

    say(model, layout, cluster) {
      const held = estimates.sum(estimates.held(model, layout));
      const ranks = formulas.all_ranks(layout);
      const fits = held <= cluster.memory ? "fits" : "does not fit";
      const seconds = formulas.step_seconds(model, layout, cluster);
      const tokens =
        layout.data * layout.micro_batch * layout.micro_batches * model.context;
      const share = 100 * formulas.mfu(model, layout, cluster);
      const start = `${short(ranks)} ${ranks === 1 ? "rank holds" : "ranks hold"}`;
      return [
        `${start} ${gigabytes(held)} each, which ${fits} into ${gigabytes(cluster.memory)}.`,
        `A step of ${short(tokens)} tokens takes ${time(seconds)}, at ${short(share)} % MFU.`,
        this.binding(model, layout, cluster),
      ].join(" ");
    }

    binding(...given) {
      const ranks = formulas.binding_ranks(...given);
      return ranks
        ? `With this global batch, the data axis binds from ${short(ranks)} data ranks on.`
        : "With this global batch, the data axis never binds.";
    }
  }

  play.define("cost-calculator", CostCalculator);
}
