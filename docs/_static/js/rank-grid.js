/* A grid of ranks on nodes: choose a rank, see its group along each mesh axis.

   <rank-grid replicas="1" data="2" tensor="4" per-node="4">. Tests compare the groups with
   those of PyTorch's init_device_mesh. */
{
  const { make, formulas } = play;
  const range = (count) => [...Array(count).keys()];
  const COLORS = { replica: "violet", data: "green", tensor: "blue" };

  /* The place of a rank along each axis; the last axis varies fastest. */
  const placeOf = (sizes, rank) => {
    const place = [];
    for (const size of [...sizes].reverse()) {
      place.unshift(rank % size);
      rank = Math.floor(rank / size);
    }
    return place;
  };

  /* Along each axis, the ranks of the group that a rank belongs to. */
  formulas.mesh_groups = (sizes, rank) => {
    const place = placeOf(sizes, rank);
    return sizes.map((size, axis) => {
      const stride = sizes.slice(axis + 1).reduce((one, other) => one * other, 1);
      const first = rank - place[axis] * stride;
      return range(size).map((step) => first + step * stride);
    });
  };

  /* "4", "4 and 5", "4, 5 and 6" */
  const list = (numbers) =>
    numbers.length > 1
      ? `${numbers.slice(0, -1).join(", ")} and ${numbers.at(-1)}`
      : `${numbers[0]}`;

  class RankGrid extends play.Player {
    static label = "Ranks and their groups in a mesh";

    build() {
      const read = (name, otherwise) => this.option(name, otherwise);
      this.sizes = {
        replica: read("replicas", 1),
        data: read("data", 2),
        tensor: read("tensor", 4),
      };
      this.perNode = read("per-node", 4);
      this.rank = read("rank", 6);
      for (const [axis, most] of [["replica", 2], ["data", 4], ["tensor", 4]]) {
        const name = axis[0].toUpperCase() + axis.slice(1);
        this.slider(`${name} ranks`, [1, most], this.sizes[axis], (size) => {
          this.sizes[axis] = size;
          this.place();
        });
      }
      this.slider("Ranks per node", [1, 8], this.perNode, (count) => {
        this.perNode = count;
        this.place();
      });
      this.place();
    }

    get world() {
      return Object.values(this.sizes).reduce((one, other) => one * other, 1);
    }

    /* One radio button for each rank: the arrow keys move from rank to rank. */
    place() {
      this.rank = Math.min(this.rank, this.world - 1);
      this.cells = range(this.world).map((rank) => this.cell(rank));
      const nodes = range(Math.ceil(this.world / this.perNode)).map((node) => {
        const ranks = this.cells.slice(node * this.perNode, (node + 1) * this.perNode);
        const title = make("p", {}, `node ${node}`);
        const kind = this.perNode > 2 ? "node" : "small node";
        return make("div", { class: kind }, title, make("div", {}, ...ranks));
      });
      const name = { class: "grid", "aria-label": "Choose a rank" };
      this.stage.replaceChildren(make("fieldset", name, ...nodes));
    }

    cell(rank) {
      const input = make("input", {
        type: "radio",
        name: "rank",
        value: rank,
        checked: rank === this.rank,
        change: () => this.choose(rank),
      });
      const group = make("small");
      const cell = make("label", {}, input, `rank ${rank}`, group);
      cell.addEventListener("pointerenter", (event) => {
        if (event.pointerType !== "mouse") return;
        input.checked = true;
        this.choose(rank);
      });
      return cell;
    }

    choose(rank) {
      this.rank = rank;
      this.update();
    }

    draw() {
      const axes = Object.keys(this.sizes);
      const groups = formulas.mesh_groups(Object.values(this.sizes), this.rank);
      this.cells.forEach((cell, rank) => {
        const axis = axes.find((_, place) => groups[place].includes(rank));
        const own = rank === this.rank;
        cell.className = own ? "own" : (COLORS[axis] ?? "");
        cell.querySelector("small").textContent = own ? "chosen" : (axis ?? "");
      });
      const place = placeOf(Object.values(this.sizes), this.rank);
      const own = axes.map((axis, number) => ({
        where: `${axis} place ${place[number]}`,
        group: this.tell(axis, groups[number]),
        ranks: groups[number].length,
      }));
      const long = own.filter(({ ranks }) => ranks > 1);
      if (!long.length) return "One rank alone: it sends nothing.";
      const where = list(long.map((axis) => axis.where));
      const told = long.map((axis) => axis.group).join(" ");
      return `Rank ${this.rank} is at ${where}. ${told}`;
    }

    tell(axis, ranks) {
      const nodes = [...new Set(ranks.map((rank) => Math.floor(rank / this.perNode)))];
      const on =
        nodes.length === 1 ? `within node ${nodes[0]}` : `across nodes ${list(nodes)}`;
      return `Its ${axis} group is ranks ${list(ranks)}, ${on}.`;
    }
  }

  play.define("rank-grid", RankGrid);
}
