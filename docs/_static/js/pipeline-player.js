/* Pipeline schedules as timelines: where ranks idle, and how much they hold.

   <pipeline-player ranks="4" micro-batches="8">. A forward takes one slot, a backward two:
   one for the gradient of the input, one for those of the weights. Zero bubble runs
   these two apart. Tests compare the orders with PyTorch's and with src/common. */
// Needs formulas.js
{
  const { make, formulas } = play;
  const range = (count) => [...Array(count).keys()];
  const SLOTS = { forward: 1, backward: 2, input: 1, weight: 1 };
  const NAMES = {
    gpipe: "GPipe",
    "1f1b": "1F1B",
    interleaved: "Interleaved 1F1B",
    "zb-h1": "Zero bubble (ZB-H1)",
  };

  /* How many forwards a rank runs before its first backward. */
  const ahead = (schedule, rank, ranks, microBatches, chunks) => {
    if (schedule === "gpipe") return microBatches;
    const later = ranks - 1 - rank;
    const first = schedule === "interleaved" ? (chunks - 1) * ranks + 2 * later : later;
    return Math.min(first, microBatches * chunks);
  };

  /* What one rank computes, first to last: [what, chunk, micro-batch].

     GPipe (arXiv 1811.06965), 1F1B and interleaved 1F1B (arXiv 2104.04473, section 2.2),
     ZB-H1 (arXiv 2401.10241, section 2.3). Chunks are the parts of the model on a rank:
     one, but for interleaved, where the micro-batches are a multiple of the ranks. */
  formulas.pipeline_order = (schedule, rank, ranks, microBatches, chunks) => {
    const total = microBatches * chunks;
    const warmUp = ahead(schedule, rank, ranks, microBatches, chunks);
    const place = (k, turned) => {
      const chunk = Math.floor(k / ranks) % chunks;
      const round = Math.floor(k / (ranks * chunks));
      const microBatch = chunks === 1 ? k : round * ranks + (k % ranks);
      return [turned ? chunks - 1 - chunk : chunk, microBatch];
    };
    const split = schedule === "zb-h1";
    const order = range(warmUp).map((k) => ["forward", ...place(k, false)]);
    for (const k of range(total)) {
      if (warmUp + k < total) order.push(["forward", ...place(warmUp + k, false)]);
      order.push([split ? "input" : "backward", ...place(k, true)]);
      // the later the rank, the more weight gradients it keeps for the end
      if (split && k >= rank) order.push(["weight", ...place(k - rank, true)]);
    }
    const kept = split ? range(Math.min(rank, total)) : [];
    for (const k of kept) {
      order.push(["weight", ...place(total - kept.length + k, true)]);
    }
    return order;
  };

  /* What an action waits for: keys of the actions of other stages. */
  const needs = ([what, chunk, k], rank, ranks, chunks) => {
    const stage = chunk * ranks + rank;
    if (what === "forward") return stage ? [`forward ${stage - 1} ${k}`] : [];
    if (what === "weight" || stage === ranks * chunks - 1) return [];
    return [`back ${stage + 1} ${k}`];
  };

  /* For each rank the slots in which its actions begin, each as soon as it can. */
  formulas.pipeline_starts = (schedule, ranks, microBatches, chunks) => {
    const orders = range(ranks).map((rank) =>
      formulas.pipeline_order(schedule, rank, ranks, microBatches, chunks)
    );
    const starts = orders.map(() => []);
    const free = Array(ranks).fill(0);
    const done = new Map();
    let waiting = orders.flat().length;
    while (waiting) {
      const before = waiting;
      orders.forEach((order, rank) => {
        while (starts[rank].length < order.length) {
          const action = order[starts[rank].length];
          const needed = needs(action, rank, ranks, chunks);
          if (!needed.every((key) => done.has(key))) return;
          const start = Math.max(free[rank], ...needed.map((key) => done.get(key)));
          const [what, chunk, k] = action;
          starts[rank].push(start);
          free[rank] = start + SLOTS[what];
          const kind = what === "forward" ? "forward" : what === "weight" ? what : "back";
          done.set(`${kind} ${chunk * ranks + rank} ${k}`, free[rank]);
          waiting -= 1;
        }
      });
      if (waiting === before) throw new Error(`${schedule} waits forever`);
    }
    return starts;
  };

  /* Slots from the first action to the end of the last, of all ranks. */
  const length = (schedule, ranks, microBatches, chunks) => {
    const inputs = [schedule, ranks, microBatches, chunks];
    const starts = formulas.pipeline_starts(...inputs);
    const ends = starts.map((own, rank) => {
      const [what] = formulas.pipeline_order(schedule, rank, ...inputs.slice(1)).at(-1);
      return own.at(-1) + SLOTS[what];
    });
    return Math.max(...ends);
  };

  /* Idle over useful time of all ranks. */
  formulas.pipeline_bubble = (schedule, ranks, microBatches, chunks) => {
    const useful = 3 * microBatches * chunks;
    return (length(schedule, ranks, microBatches, chunks) - useful) / useful;
  };

  /* The most activations that each rank holds, in those of one micro-batch on one rank.

     They are held from the forward until all of the backward is done. */
  formulas.pipeline_peaks = (schedule, ranks, microBatches, chunks) =>
    range(ranks).map((rank) => {
      let [held, most] = [0, 0];
      const inputs = [schedule, rank, ranks, microBatches, chunks];
      for (const [what] of formulas.pipeline_order(...inputs)) {
        held += { forward: 1, input: 0, backward: -1, weight: -1 }[what];
        most = Math.max(most, held);
      }
      return most / chunks;
    });

  /* Bars without numbers, and without borders, if a lane has that many slots. */
  const crowd = (slots) => {
    if (slots > 280) return " crowded packed";
    return slots > 70 ? " crowded" : "";
  };

  /* 3/8, reduced. */
  const fraction = (top, bottom) => {
    const divisor = (one, other) => (other ? divisor(other, one % other) : one);
    const common = divisor(top, bottom);
    return `${top / common}/${bottom / common}`;
  };

  class PipelinePlayer extends play.Player {
    static label = "Pipeline schedules, compared";

    build() {
      this.schedule = this.getAttribute("schedule") ?? "1f1b";
      this.ranks = this.option("ranks", 4);
      this.microBatches = this.option("micro-batches", 8);
      this.chunks = 2;
      this.choice("Schedule", NAMES, this.schedule, (name) => (this.schedule = name));
      this.slider("Ranks p", [2, 16], this.ranks, (p) => (this.ranks = p));
      this.slider("Micro-batches m", [1, 64], this.microBatches, (m) => {
        this.microBatches = m;
      });
      const cut = this.slider("Stages per rank v", [2, 4], this.chunks, (v) => {
        this.chunks = v;
      });
      this.cut = cut.input.parentElement;
    }

    /* All schedules but interleaved have one chunk. */
    get inputs() {
      const { schedule, ranks, microBatches } = this;
      const chunks = schedule === "interleaved" ? this.chunks : 1;
      return [schedule, ranks, microBatches, chunks];
    }

    draw() {
      this.cut.hidden = this.schedule !== "interleaved";
      const [schedule, ranks, microBatches, chunks] = this.inputs;
      // interleaved takes whole rounds of p micro-batches
      if (schedule === "interleaved" && microBatches % ranks) {
        this.stage.replaceChildren();
        return formulas.interleaving_refused(ranks, microBatches);
      }
      const starts = formulas.pipeline_starts(...this.inputs);
      const peaks = formulas.pipeline_peaks(...this.inputs);
      // a slot of all schedules is as wide as one of GPipe, a chunk's is 1/v of it
      const whole = 3 * (microBatches + ranks - 1) * chunks;
      const rows = starts.map((own, rank) => {
        const order = formulas.pipeline_order(schedule, rank, ranks, microBatches, chunks);
        const bars = order.map((action, i) => this.bar(action, own[i], whole));
        const lane = make("div", { class: `lane${crowd(whole)}` }, ...bars);
        const held = String(Number(peaks[rank].toFixed(2)));
        return make(
          "tr",
          {},
          make("th", { scope: "row" }, `rank ${rank}`),
          make("td", {}, lane),
          make("td", { class: "number" }, held)
        );
      });
      const head = ["rank", "time, left to right", "holds"];
      const top = make(
        "tr",
        {},
        ...head.map((text) => make("th", { scope: "col" }, text))
      );
      this.stage.replaceChildren(
        make("table", { class: "pipeline" }, top, ...rows),
        this.legend(chunks)
      );
      return this.sentence(...this.inputs, peaks);
    }

    bar([what, chunk, k], start, whole) {
      const later = chunk % 2 ? " later" : "";
      const bar = make("span", { class: `${what}${later}`, "aria-hidden": "true" }, `${k}`);
      bar.style.left = `${(100 * start) / whole}%`;
      bar.style.width = `${(100 * SLOTS[what]) / whole}%`;
      return bar;
    }

    legend(chunks) {
      const split = this.schedule === "zb-h1";
      const kinds = split
        ? { forward: "forward", input: "gradient of the input", weight: "of the weights" }
        : { forward: "forward", backward: "backward" };
      const parts = Object.entries(kinds).map(([name, words]) =>
        make("span", {}, make("i", { class: name }), ` ${words}`)
      );
      const every = chunks > 1 ? "; shaded: every second stage of the rank" : "";
      return make("p", { class: "legend" }, ...parts, `of micro-batch k${every}`);
    }

    sentence(schedule, ranks, microBatches, chunks, peaks) {
      const useful = 3 * microBatches * chunks;
      const idle = length(schedule, ranks, microBatches, chunks) - useful;
      const bubble = idle ? fraction(idle, useful) : "0";
      const most = Number(Math.max(...peaks).toFixed(2));
      return `${NAMES[schedule]} with ${ranks} ranks and ${microBatches} micro-batches: the bubble, idle over useful time, is ${bubble} (${((100 * idle) / useful).toFixed(1)}%). A rank holds the activations of at most ${most} micro-batches.`;
    }
  }

  play.define("pipeline-player", PipelinePlayer);
}
