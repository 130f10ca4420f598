/* Which layouts fit on a cluster, the fastest first: src/common/cost/search.py in
   JavaScript. tests/docs/test_cost_calculator.py compares both.

   In a page, play.searchLayouts(question) runs the search in a worker. */
// Needs formulas.js
{
  /* A function of the formulas that needs nothing else: a worker gets its text. */
  play.search = (formulas) => {
    const ROOM = 0.9; // of a device's memory
    const MOST_STAGES = 64;
    const SIZES = [1, 2, 4, 8];
    const RECOMPUTE = ["none", "selective", "ops", "full"];
    const CHUNKS = [1, 2, 4];
    const LONG = 8192; // tokens: only longer sequences are cut
    const CONTEXT_RANKS = [2, 4, 8, 16];
    const EXPERT_RANKS = [2, 4, 8, 16, 32, 64];

    /* A stage of ZeRO comes with the ranks that shard, which are a group for HSDP. */
    function* choices({ pipeline, context_ranks }, data, sequences, node) {
      const sharded = [[0, 0]];
      if (data * context_ranks > 1) sharded.push([1, 0], [2, 0], [3, 0]);
      if (1 < node && node < data && data % node === 0) sharded.push([3, node]);
      for (const micro_batch of SIZES) {
        if (sequences % micro_batch) continue;
        const counts = { micro_batch, micro_batches: sequences / micro_batch };
        for (const [stage, group] of sharded) {
          for (const recompute of RECOMPUTE) {
            for (const chunks of pipeline > 1 ? CHUNKS : [1]) {
              const schedule = chunks > 1 ? "interleaved" : "1f1b";
              yield { stage, group, ...counts, recompute, schedule, chunks };
            }
          }
        }
      }
    }

    function* possible_layouts(model, cluster, nodes, batch) {
      const ranks = nodes * cluster.per_node;
      const most = Math.min(MOST_STAGES, model.layers);
      const spreads = model.experts ? [1, ...EXPERT_RANKS] : [1];
      const contexts = model.context > LONG ? [1, ...CONTEXT_RANKS] : [1];
      for (let tensor = 1; tensor <= cluster.per_node; tensor += 1) {
        if (cluster.per_node % tensor) continue;
        for (const context_ranks of contexts) {
          for (let pipeline = 1; pipeline <= most; pipeline += 1) {
            const others = tensor * context_ranks * pipeline;
            const data = ranks / others;
            if (ranks % others || batch % data) continue;
            const axes = { tensor, context_ranks, pipeline };
            const node = Math.floor(cluster.per_node / (tensor * context_ranks)); // its data ranks
            const parallel = { data, sequence_parallel: tensor > 1 };
            for (const more of choices(axes, data, batch / data, node)) {
              for (const expert_ranks of spreads) {
                const layout = { ...axes, ...parallel, ...more, expert_ranks };
                if (!formulas.why_not(model, layout)) yield layout;
              }
            }
          }
        }
      }
    }

    /* Fewer tensor ranks, context ranks, expert ranks, stages, a lower stage of ZeRO. */
    const AXES = ["tensor", "context_ranks", "expert_ranks", "pipeline", "stage"];
    const simpler = (one, other) =>
      AXES.map((axis) => one[axis] - other[axis]).find((more) => more) ?? 0;

    function layouts_that_fit(model, cluster, nodes, memory, batch) {
      const best = new Map();
      for (const layout of possible_layouts(model, cluster, nodes, batch)) {
        const bytes = formulas.rank_bytes(model, layout);
        if (bytes > ROOM * memory) continue;
        const seconds = formulas.step_seconds(model, layout, cluster);
        const time = Math.floor(1e6 * seconds + 0.5);
        const size = Math.floor(1e-6 * bytes + 0.5);
        const kind = AXES.map((axis) => layout[axis]).join(" ");
        const now = best.get(kind);
        const better = !now || time < now.time || (time === now.time && size < now.size);
        if (better) best.set(kind, { layout, bytes, seconds, time, size });
      }
      const ranked = [...best.values()].sort(
        (one, other) => one.time - other.time || simpler(one.layout, other.layout)
      );
      return ranked.map(({ layout, bytes, seconds }) => {
        const mfu = formulas.mfu(model, layout, cluster);
        const tokens = formulas.device_tokens(model, layout, cluster);
        return { layout, bytes, seconds, mfu, tokens };
      });
    }

    function least_bytes(model, cluster, nodes, batch) {
      let least = 0;
      for (const layout of possible_layouts(model, cluster, nodes, batch)) {
        const bytes = formulas.rank_bytes(model, layout);
        if (!least || bytes < least) least = bytes;
      }
      return least;
    }

    return { layouts_that_fit, least_bytes };
  };
  Object.assign(play.formulas, play.search(play.formulas));

  /* What a worker runs: the text of both functions, so a page opened from a file, which
     may not load a script into a worker, has one as well. */
  const source = () => `
    const formulas = (${play.cost})();
    const { layouts_that_fit, least_bytes } = (${play.search})(formulas);
    onmessage = ({ data: [number, model, cluster, nodes, memory, batch] }) => {
      const found = layouts_that_fit(model, cluster, nodes, memory, batch);
      const least = found.length ? 0 : least_bytes(model, cluster, nodes, batch);
      postMessage({ number, found, least });
    };`;

  let worker;
  let asked = 0;
  const waiting = new Map();

  const start = () => {
    const address = URL.createObjectURL(new Blob([source()], { type: "text/javascript" }));
    worker = new Worker(address);
    worker.onmessage = ({ data: { number, ...answer } }) => {
      waiting.get(number)(answer);
      waiting.delete(number);
    };
  };

  /* { found: [...], least }: the layouts, or the bytes of the smallest if none fits. */
  play.searchLayouts = (model, cluster, nodes, memory, batch) => {
    if (!worker) start();
    asked += 1;
    worker.postMessage([asked, model, cluster, nodes, memory, batch]);
    return new Promise((answer) => waiting.set(asked, answer));
  };
}
