"""Draw two nodes with four processes each: node rank, local rank, rank."""

from readable import RANK_COLORS
from svg import Drawing

NODES, PER_NODE = 2, 4
WIDTH, BOX, GAP = 720, 76, 8

drawing = Drawing(
    WIDTH,
    302,
    "Two nodes with four processes each",
    "Two frames. The first is node rank 0 and holds four boxes: local ranks 0, 1, 2, 3 "
    "with the ranks 0, 1, 2, 3. The second is node rank 1 and holds local ranks 0, 1, "
    "2, 3 with the ranks 4, 5, 6, 7. Under each box is its device: device 0, 1, 2, 3 "
    "on both nodes. The box of node rank 1 and local rank 1 is worked out below: "
    "rank = 1 x 4 + 1 = 5.",
)
for node in range(NODES):
    left = 10 + node * 355
    drawing.group(left, 10, 345, 196, f"node rank {node}")
    for local in range(PER_NODE):
        x = left + 10 + local * (BOX + GAP)
        rank = node * PER_NODE + local
        drawing.box(
            x, 46, BOX, 56, f"rank\n{rank}", fill=RANK_COLORS[rank], weight="bold"
        )
        drawing.text(x + BOX / 2, 124, f"local rank {local}", size=12, anchor="middle")
        drawing.arrow(x + BOX / 2, 132, x + BOX / 2, 156)
        drawing.box(x, 158, BOX, 34, f"device {local}", size=13, fill="gray")
drawing.text(
    WIDTH / 2,
    240,
    "rank = node rank x processes per node + local rank",
    anchor="middle",
    weight="bold",
)
drawing.text(
    WIDTH / 2,
    266,
    "rank 5  =  1 x 4 + 1,  and back:  5 // 4 = 1,  5 % 4 = 1",
    anchor="middle",
)
drawing.text(
    WIDTH / 2,
    290,
    "world size = 2 x 4 = 8, local world size = 4",
    size=13,
    anchor="middle",
    color="gray",
)
drawing.save(__file__)
