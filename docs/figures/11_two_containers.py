"""Draw two containers as two nodes: who resolves which name."""

from readable import RANK_COLORS
from svg import Drawing

drawing = Drawing(
    720,
    380,
    "Two containers are two nodes",
    "Two frames, the containers node0 and node1, each with torchrun and two ranks: 0 "
    "and 1 in the first, 2 and 3 in the second. In each frame localhost stands for "
    "the container itself. Both frames are connected with a bar below them, the "
    "network cluster, which holds a table of names: node0 and node1, the names of the "
    "services, each with the address of its container. Both torchruns go to "
    "node0:29500, where that of node0 listens.",
)
for node, x in enumerate((20, 380)):
    drawing.group(x, 20, 320, 216, f"container node{node}")
    drawing.box(x + 16, 58, 288, 62, "", fill="gray")
    word = "listens at port 29500" if node == 0 else "connects to node0:29500"
    drawing.text(x + 28, 82, "torchrun", weight="bold", behind="gray")
    drawing.text(x + 28, 106, word, size=13, behind="gray")
    for local in (0, 1):
        rank = 2 * node + local
        color = RANK_COLORS[rank]
        drawing.box(x + 16 + local * 150, 132, 138, 40, f"rank {rank}", fill=color)
    drawing.text(x + 16, 200, "localhost: this container", size=13, behind="white")
    drawing.text(x + 16, 222, "/dev/shm, PIDs: its own", size=13, behind="white")
    drawing.arrow(x + 160, 238, x + 160, 276, both=True)
drawing.box(20, 278, 680, 82, "", fill="yellow")
drawing.text(36, 304, "network cluster", weight="bold", behind="yellow")
drawing.text(36, 328, "node0: 172.18.0.2", size=13, behind="yellow")
drawing.text(36, 348, "node1: 172.18.0.3", size=13, behind="yellow")
drawing.text(
    240,
    328,
    "service names, which resolve only on this network",
    size=13,
    behind="yellow",
)
drawing.text(
    240,
    348,
    "not localhost: each container has its own",
    size=13,
    behind="yellow",
)
drawing.save(__file__)
