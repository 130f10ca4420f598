"""Draw two nodes with two ranks each: agents, the store they connect to, addresses."""

from readable import RANK_COLORS
from svg import Drawing

drawing = Drawing(
    720,
    400,
    "Two nodes with two ranks each",
    "Two nodes with two processes each. Node 0 holds rank 0 and rank 1, which have the "
    "local ranks 0 and 1; node 1 holds rank 2 and rank 3, which have the local ranks 0 "
    "and 1, too. An agent of torchrun on each node starts its two ranks. Both agents "
    "connect to the store, which the agent of node 0 has opened at the endpoint n1, "
    "port 29500. Ranks talk to each other directly, from address 10.77.0.11 on node 0 "
    "to address 10.77.0.12 on node 1. Only rank 0 writes the snapshot.",
)
NODES = ((15, "node 0: n1, 10.77.0.11"), (405, "node 1: n2, 10.77.0.12"))
for node, (x, name) in enumerate(NODES):
    drawing.group(x, 15, 300, 290, name)
    for local in (0, 1):
        rank = 2 * node + local
        left = x + 12 + 144 * local
        drawing.box(
            left,
            212,
            132,
            70,
            f"rank {rank}\nlocal rank {local}\ndevice {local}",
            fill=RANK_COLORS[rank],
            size=14,
        )
drawing.box(165, 60, 138, 52, "store\nn1:29500", fill="yellow", size=14)
drawing.box(27, 60, 110, 52, "agent\n(torchrun)", fill="gray", size=14)
drawing.box(417, 60, 110, 52, "agent\n(torchrun)", fill="gray", size=14)
drawing.arrow(137, 86, 165, 86)
drawing.arrow(417, 86, 303, 86)
drawing.text(360, 74, "endpoint", size=13, anchor="middle")
for x in (80, 470):
    drawing.arrow(x, 112, x + 12, 212)
    drawing.arrow(x, 112, x + 132, 212)
    drawing.text(x + 112, 165, "starts", size=13, behind="white")
drawing.arrow(303, 262, 417, 262, both=True, color="blue", width=3)
drawing.text(360, 246, "gradients", size=13, anchor="middle")
drawing.box(30, 345, 135, 36, "snapshot", fill="white", dashed=True, size=14)
drawing.arrow(97, 282, 97, 345)
drawing.text(185, 368, "only rank 0 writes, on node 0", size=14)
drawing.save(__file__)
