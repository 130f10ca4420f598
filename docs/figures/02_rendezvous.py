"""Draw the rendezvous: all ranks connect to rank 0, then to each other."""

from readable import RANK_COLORS
from svg import Drawing

drawing = Drawing(
    720,
    300,
    "The rendezvous of four ranks",
    "Left: step 1. Rank 0 listens at MASTER_ADDR, port MASTER_PORT, and holds a store "
    "of names and values. Ranks 1, 2 and 3 connect to it and write their own addresses "
    "into the store. Right: step 2. Each of the four ranks has read the addresses of "
    "the others from the store and is connected with every other rank directly.",
)
drawing.text(15, 26, "1  All ranks connect to one address", weight="bold")
drawing.group(20, 44, 300, 96, "rank 0")
drawing.box(130, 62, 176, 64, "store: names and\nvalues", fill=RANK_COLORS[0], size=13)
drawing.text(32, 88, "listens at", size=12, behind="white")
drawing.text(32, 106, "MASTER_ADDR", size=12, behind="white")
drawing.text(32, 124, "MASTER_PORT", size=12, behind="white")
for rank in (1, 2, 3):
    x = 20 + (rank - 1) * 105
    drawing.box(x, 216, 90, 40, f"rank {rank}", fill=RANK_COLORS[rank])
    drawing.arrow(x + 45, 214, 190 + (rank - 2) * 40, 128, both=True)
drawing.text(20, 284, "“I am rank 3, you reach me at n2:40123”", size=13, italic=True)
drawing.text(385, 26, "2  Then all to all (gloo)", weight="bold")
corners = {0: (400, 60), 1: (600, 60), 2: (400, 210), 3: (600, 210)}
centers = {rank: (x + 45, y + 22) for rank, (x, y) in corners.items()}
for a in range(4):
    for b in range(a + 1, 4):
        drawing.line(*centers[a], *centers[b], color="gray")
for rank, (x, y) in corners.items():
    drawing.box(x, y, 90, 44, f"rank {rank}", fill=RANK_COLORS[rank])
drawing.text(385, 284, "collectives go over these connections", size=13)
drawing.save(__file__)
