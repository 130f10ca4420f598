/* The ring all-reduce, step by step: what each rank holds, sends, and has sent so far.

   <ring-player ranks="4" elements="1000">; the order is that of
   src/03_ring_all_reduce.py, and tests compare the formulas with that program. */
{
  const { make, formulas } = play;
  const FLOAT32 = 4; // bytes
  const LETTERS = "abcdefgh";
  const mod = (number, ranks) => ((number % ranks) + ranks) % ranks;
  const range = (count) => [...Array(count).keys()];

  /* The ranks whose numbers are summed in chunk c of rank r: [rank][chunk], sorted. */
  formulas.ring_held = (ranks, steps) => {
    const later = steps - (ranks - 1); // steps of phase 2
    const held = (rank, chunk) => {
      if (mod(rank + 1 - chunk, ranks) <= later) return range(ranks);
      const added = mod(rank - chunk, ranks); // chunk c starts on rank c
      if (added > steps) return [rank];
      const sum = range(added + 1).map((more) => mod(chunk + more, ranks));
      return sum.sort((one, other) => one - other);
    };
    return range(ranks).map((rank) => range(ranks).map((chunk) => held(rank, chunk)));
  };

  /* The chunk that each rank sends to the next one in a step, counted from 0. */
  formulas.ring_sends = (ranks, step) => {
    const first = step < ranks - 1 ? 0 : 1;
    const back = step < ranks - 1 ? step : step - (ranks - 1);
    return range(ranks).map((rank) => mod(rank + first - back, ranks));
  };

  /* The bytes that each rank has sent after some steps; elements are float32. */
  formulas.ring_sent = (ranks, elements, steps) => {
    const size = (chunk) =>
      FLOAT32 * (Math.floor(elements / ranks) + (chunk < elements % ranks ? 1 : 0));
    const sent = Array(ranks).fill(0);
    for (const step of range(steps)) {
      const chunks = formulas.ring_sends(ranks, step);
      chunks.forEach((chunk, rank) => (sent[rank] += size(chunk)));
    }
    return sent;
  };

  /* 0, 0+1, or 5…2 for a run of more neighbors; sum if no rank is missing. */
  const words = (parts, chunk, ranks) => {
    if (parts.length === ranks) return "sum";
    if (ranks <= 4 || parts.length <= 2) return parts.join("+");
    return `${chunk}…${mod(chunk + parts.length - 1, ranks)}`;
  };

  class RingPlayer extends play.Player {
    static label = "Ring all-reduce, step by step";

    build() {
      this.ranks = this.option("ranks", 4);
      this.elements = this.option("elements", 1000);
      this.step = 0;
      this.slider("Ranks", [2, 6], this.ranks, (ranks) => {
        this.ranks = ranks;
        this.go(0);
      });
      this.number("Elements (float32)", [1, 1e9], this.elements, (elements) => {
        this.elements = Math.round(elements);
      });
      this.steps = this.slider("Step", [0, this.last], 0, (step) => this.go(step));
      this.back = this.press("Previous step", () => this.go(this.step - 1));
      this.next = this.press("Next step", () => this.go(this.step + 1));
    }

    get last() {
      return 2 * (this.ranks - 1);
    }

    go(step) {
      this.step = play.within(step, 0, this.last);
      this.steps.set(this.step, this.last);
    }

    draw() {
      this.back.setAttribute("aria-disabled", this.step === 0);
      this.next.setAttribute("aria-disabled", this.step === this.last);
      this.stage.replaceChildren(this.table(), this.legend());
      return `${this.whatHappened()} ${this.howMuch()}`;
    }

    table() {
      const ranks = range(this.ranks);
      const held = formulas.ring_held(this.ranks, this.step);
      const sent = formulas.ring_sent(this.ranks, this.elements, this.step);
      const sends =
        this.step < this.last ? formulas.ring_sends(this.ranks, this.step) : [];
      const head = (text, scope) => make("th", { scope }, text);
      const cell = (rank, chunk) => {
        const parts = held[rank][chunk];
        const kind = ["", "orange", "green"][
          parts.length === this.ranks ? 2 : parts.length > 1 ? 1 : 0
        ];
        const out = sends[rank] === chunk ? "sends" : "";
        return make(
          "td",
          { class: `${kind} ${out}`.trim() },
          words(parts, chunk, this.ranks)
        );
      };
      const row = (rank) =>
        make(
          "tr",
          {},
          head(`rank ${rank}`, "row"),
          ...ranks.map((chunk) => cell(rank, chunk)),
          make("td", { class: "number" }, sent[rank].toLocaleString("en-US"))
        );
      const letters = ranks.map((chunk) => head(LETTERS[chunk], "col"));
      const top = make(
        "tr",
        {},
        head("chunk", "col"),
        ...letters,
        head("bytes sent", "col")
      );
      return make("table", { class: "ring" }, top, ...ranks.map(row));
    }

    legend() {
      const last = this.ranks - 1;
      const runs = last > 3 ? `, and ${last}…1 of all from ${last} around to 1` : "";
      const text = `A cell lists the ranks whose numbers are summed in it: 0+1 is the sum of two${runs}. A framed chunk is sent down in the next step.`;
      return make("p", { class: "legend" }, text);
    }

    whatHappened() {
      if (this.step === 0) {
        return "Start: every rank has only its own numbers. In the next step each rank sends its framed chunk to the rank below it, and the last rank sends to rank 0.";
      }
      const last = this.ranks - 1;
      const chunk = LETTERS[formulas.ring_sends(this.ranks, this.step - 1)[last]];
      const adding = this.step <= last;
      const phase = adding ? "reduce-scatter" : "all-gather";
      const did = adding
        ? `added chunk ${chunk} from rank ${last} to its own`
        : `replaced its chunk ${chunk} with the complete one from rank ${last}`;
      const then = {
        [this.last]: " Every rank holds the whole sum.",
        [last]: " Every rank now holds one complete chunk.",
      };
      const end = then[this.step] ?? "";
      return `After step ${this.step} of ${this.last} (${phase}): rank 0 ${did}.${end}`;
    }

    howMuch() {
      const chunks = this.step === 1 ? "1 chunk" : `${this.step} chunks`;
      const bytes = (FLOAT32 * this.elements).toLocaleString("en-US");
      return `So far each rank has sent ${chunks}: ${this.step}/${this.ranks} of S, and S is ${bytes} bytes.`;
    }
  }

  play.define("ring-player", RingPlayer);
}
