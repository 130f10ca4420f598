"""Draw hybrid sharding: the shards within a node, a replica of them on each node."""

from svg import Drawing

REPLICAS, SHARDS = 2, 4
COLORS = ("blue", "green", "orange", "violet")
LEFT, BOX, GAP = 150, 104, 24

drawing = Drawing(
    720,
    270,
    "Two replicas of four shards",
    "Two rows of four boxes. Node 0 holds ranks 0 to 3 with the shards A, B, C, D; "
    "node 1 holds ranks 4 to 7 with the same shards A, B, C, D. Along a row, the data "
    "axis, the ranks gather each other's shards and reduce-scatter gradients. Along a "
    "column, the replica axis, ranks 0 and 4, 1 and 5, 2 and 6, 3 and 7 hold the same "
    "shard and average its gradient, once in a step.",
)
for node in range(REPLICAS):
    top = 40 + node * 120
    drawing.group(LEFT - 18, top - 30, 4 * (BOX + GAP) + 12, 92, f"node {node}")
    drawing.text(12, top + 24, "data group", size=13, weight="bold")
    drawing.text(12, top + 42, "all shards", size=13)
    for column, color in enumerate(COLORS):
        x = LEFT + column * (BOX + GAP)
        label = f"rank {node * SHARDS + column}\nshard {'ABCD'[column]}"
        drawing.box(x, top, BOX, 48, label, fill=color, weight="bold")
        if column:
            drawing.arrow(x - GAP + 1, top + 24, x - 1, top + 24, both=True, head=7)
        if node:
            middle = x + 0.75 * BOX
            drawing.arrow(middle, top - 71, middle, top - 1, both=True, dashed=True)
drawing.text(
    LEFT - 18,
    254,
    "replica groups: 0 and 4, 1 and 5, 2 and 6, 3 and 7: the same shard",
    size=13,
    weight="bold",
)
drawing.save(__file__)
