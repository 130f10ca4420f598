/* DDP's buckets beside the backward pass: which all-reduces hide behind it.

   <bucket-timeline layers="6" layer-bytes="1050624" layer-ms="5">. An all-reduce takes a
   fixed cost and its bytes over the link's speed, and one runs at a time. Tests compare
   the buckets with those that PyTorch lays out. */
{
  const { make, formulas } = play;
  const range = (count) => [...Array(count).keys()];
  const MIB = 1024 * 1024;
  const CAPS = range(6).map((index) => index + 1); // MiB

  /* Layers in each bucket, last layer first: a bucket is full once it has its cap. */
  formulas.bucket_layers = (layers, layerBytes, cap) => {
    const counts = [];
    let open = 0;
    for (const _ of range(layers)) {
      open += 1;
      if (open * layerBytes < cap) continue;
      counts.push(open);
      open = 0;
    }
    return open ? [...counts, open] : counts;
  };

  /* [begins, ends] of each bucket's all-reduce in ms, from the start of backward. */
  formulas.bucket_times = (layers, layerBytes, cap, layerMs, cost, bytesPerMs) => {
    let [complete, free] = [0, 0];
    return formulas.bucket_layers(layers, layerBytes, cap).map((count) => {
      complete += count;
      const begins = Math.max(complete * layerMs, free);
      free = begins + cost + (count * layerBytes) / bytesPerMs;
      return [begins, free];
    });
  };

  class BucketTimeline extends play.Player {
    static label = "Buckets of DDP and the backward pass";

    build() {
      this.layers = this.option("layers", 6);
      this.layerBytes = this.option("layer-bytes", 1050624);
      this.layerMs = this.option("layer-ms", 5);
      [this.cap, this.cost, this.speed] = [2, 1, 1];
      const last = CAPS.length;
      this.slider("Bucket size, MiB", [1, last], this.cap, (cap) => (this.cap = cap));
      this.slider("Fixed cost, ms", [0, 10], this.cost, (cost) => (this.cost = cost));
      this.slider("Link, MB per ms", [1, 10], this.speed, (speed) => {
        this.speed = speed;
      });
    }

    times(cap) {
      const { layers, layerBytes, layerMs, cost, speed } = this;
      return formulas.bucket_times(
        layers,
        layerBytes,
        cap * MIB,
        layerMs,
        cost,
        speed * 1e6
      );
    }

    draw() {
      const times = this.times(this.cap);
      const ends = CAPS.map((cap) => this.times(cap).at(-1)[1]);
      this.whole = Math.max(...ends); // the slowest choice fills the width
      const { layers, layerMs } = this;
      const computes = range(layers).map((index) =>
        this.bar("blue", layers - index, index * layerMs, (index + 1) * layerMs)
      );
      const sends = times.map(([begins, end], bucket) =>
        this.bar("orange", bucket, begins, end)
      );
      const row = (name, bars) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, name),
          make("td", {}, make("div", { class: "lane" }, ...bars))
        );
      this.stage.replaceChildren(
        make(
          "table",
          { class: "buckets" },
          row("backward, layer", computes),
          row("all-reduce, bucket", sends)
        )
      );
      return this.sentence(times);
    }

    bar(color, text, begins, ends) {
      const bar = make("span", { class: color, "aria-hidden": "true" }, `${text}`);
      bar.style.left = `${(100 * begins) / this.whole}%`;
      bar.style.width = `${(100 * (ends - begins)) / this.whole}%`;
      return bar;
    }

    sentence(times) {
      const ms = (number) => `${Number(number.toFixed(1))} ms`;
      const computes = this.layers * this.layerMs;
      const end = times.at(-1)[1];
      const busy = times.reduce((sum, [begins, ends]) => sum + ends - begins, 0);
      const hidden = busy - (end - computes);
      const calls = times.length === 1 ? "one all-reduce" : `${times.length} all-reduces`;
      return `Buckets of ${this.cap} MiB: ${calls}, ${ms(busy)} in total, of which ${ms(hidden)} overlap with backward. Computing takes ${ms(computes)}, and the last bucket is averaged after ${ms(end)}.`;
    }
  }

  play.define("bucket-timeline", BucketTimeline);
}
