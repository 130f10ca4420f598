"""The attention of a block on four ranks: whole heads on each."""

from readable import RANK_COLORS
from svg import Drawing

RANKS, HEADS = 4, 12
TOP, ROW = 84, 62  # px: the first rank, from rank to rank

drawing = Drawing(
    740,
    356,
    "The attention of a block on four ranks",
    "Four rows, rank 0 to rank 3, and twelve heads. All ranks hold the whole input x, "
    "96 numbers for each byte. After the border f, rank 0 computes query, key and "
    "value of the heads 0, 1 and 2, which are 24 numbers each; rank 1 those of the "
    "heads 3, 4 and 5; rank 2 of 6, 7 and 8; rank 3 of 9, 10 and 11. Each head "
    "gathers from its own values only, so no rank needs anything of another. The "
    "layer out turns the 24 numbers of a rank into a share of all 96 outputs, and at "
    "the border g an all_reduce adds the four shares up.",
)
for x, name in ((128, "f"), (626, "g")):
    drawing.box(x, 46, 26, RANKS * ROW + 34, fill="gray", radius=4)
    drawing.text(x + 13, 38, name, weight="bold", anchor="middle", size=17)
for x, title in ((245, "query, key, value"), (420, "heads"), (570, "out")):
    drawing.text(x, 66, title, size=13, anchor="middle", weight="bold")
for rank in range(RANKS):
    y = TOP + rank * ROW
    middle = y + 21
    color = RANK_COLORS[rank]
    drawing.text(14, middle + 5, f"rank {rank}", weight="bold", size=14)
    drawing.text(76, middle + 5, "x", size=14)
    drawing.arrow(92, middle, 128, middle)
    drawing.arrow(154, middle, 178, middle)
    drawing.box(180, y, 130, 42, "3 x 24 of\n96 outputs", fill=color, size=13)
    drawing.arrow(310, middle, 340, middle)
    own = HEADS // RANKS
    for number in range(own):
        head = str(rank * own + number)
        drawing.box(342 + 54 * number, y + 4, 48, 34, head, fill=color, size=14)
    drawing.arrow(498, middle, 532, middle)
    drawing.box(534, y, 72, 42, "24 of 96\ninputs", fill=color, size=13)
    drawing.arrow(606, middle, 626, middle)
    drawing.arrow(652, middle, 688, middle)
    drawing.text(698, middle + 5, "y", size=14)
drawing.save(__file__)
