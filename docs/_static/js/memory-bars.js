/* What one rank holds under each kind of parallelism, as bars beside a device's memory.

   <memory-bars model="6.7 B" ranks="64" memory="80" try="Double the ranks.">; the
   formulas are those of src/common/cost/formulas.py. */
// Needs formulas.js
// Needs estimates.js
{
  const { make, formulas, estimates } = play;
  const { gigabytes } = estimates;
  const listed = (names) =>
    names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  const powers = (most) => {
    const all = {};
    for (let ranks = 1; ranks <= most; ranks *= 2) all[ranks] = String(ranks);
    return all;
  };

  class MemoryBars extends play.Player {
    static label = "Memory of one rank";

    build() {
      const { models, RECOMPUTE } = estimates;
      this.controls.before(make("p", { class: "try" }, this.getAttribute("try") ?? ""));
      this.model = this.getAttribute("model") ?? "6.7 B";
      this.ranks = this.option("ranks", 8);
      this.memory = this.option("memory", 80);
      this.layout = { micro_batch: 1, recompute: "selective", schedule: "1f1b" };
      const names = Object.fromEntries(Object.keys(models).map((name) => [name, name]));
      this.choice("Parameters", names, this.model, (name) => (this.model = name));
      this.choice("Ranks", powers(1024), String(this.ranks), (ranks) => {
        this.ranks = Number(ranks);
      });
      this.number("GB of a device", [1, 1000], this.memory, (memory) => {
        this.memory = memory;
      });
      this.number("Micro-batch size", [1, 64], 1, (count) => {
        this.layout.micro_batch = Math.round(count);
      });
      this.choice("Recompute", RECOMPUTE, "selective", (what) => {
        this.layout.recompute = what;
      });
    }

    /* [name, layout, or why there is none] for each way to use the ranks. */
    ways() {
      const { layers, heads } = estimates.models[this.model];
      const ranks = this.ranks;
      const axes = { tensor: 1, context_ranks: 1, expert_ranks: 1, pipeline: 1, data: 1 };
      const base = { ...axes, stage: 0, micro_batches: 1 };
      const data = (stage) => ({ ...base, ...this.layout, data: ranks, stage });
      const cut = (axis) => ({
        ...base,
        ...this.layout,
        [axis]: ranks,
        micro_batches: ranks,
        sequence_parallel: true,
      });
      const tensor = heads % ranks ? `can't cut ${heads} heads` : cut("tensor");
      const pipeline = ranks > layers ? `only ${layers} layers` : cut("pipeline");
      return [
        ["DDP", data(0)],
        ["ZeRO-1", data(1)],
        ["ZeRO-2", data(2)],
        ["FSDP (ZeRO-3)", data(3)],
        ["Tensor", tensor],
        ["Pipeline", pipeline],
      ];
    }

    draw() {
      const model = estimates.models[this.model];
      const fits = [];
      const rows = this.ways().map(([name, layout]) => {
        if (typeof layout === "string") return this.row(name, "", layout);
        const parts = estimates.held(model, layout);
        const total = estimates.sum(parts);
        if (total <= this.memory * 1e9) fits.push(name);
        const bar = estimates.bar(parts, this.memory * 1e9);
        return this.row(name, bar, gigabytes(total));
      });
      this.stage.replaceChildren(
        make("table", { class: "memory" }, ...rows),
        estimates.legend()
      );
      return this.say(model, fits);
    }

    row(name, bar, words) {
      const head = make("th", { scope: "row" }, name);
      return make("tr", {}, head, make("td", {}, bar), make("td", {}, words));
    }

    say(model, fits) {
      const parameters = estimates.count(formulas.gpt_parameters(model));
      const ranks = this.ranks === 1 ? "1 rank" : `${this.ranks} ranks`;
      const start = `${parameters} parameters on ${ranks} with ${this.memory} GB each`;
      if (!fits.length) return `${start}: none of these fits.`;
      return `${start}: ${listed(fits)} ${fits.length > 1 ? "fit" : "fits"}.`;
    }
  }

  play.define("memory-bars", MemoryBars);
}
