"""The MLP of a block on two ranks: parts of the weights, and the borders f and g."""

from readable import RANK_COLORS
from svg import Drawing

RANKS = 2
TOP, ROW = 84, 150  # px: the first rank, from rank to rank

drawing = Drawing(
    740,
    422,
    "The MLP of a block on two ranks",
    "Two rows, rank 0 and rank 1; the data flows from left to right. Both ranks hold "
    "the whole input x, 96 numbers for each byte. At the border f nothing happens in "
    "forward. Of the weight of the first layer, up, with 384 rows and 96 columns, "
    "rank 0 holds the upper 192 rows and rank 1 the lower 192. So each computes 192 "
    "of the 384 hidden numbers, and their gelu. Of the weight of the second layer, "
    "down, with 96 rows and 384 columns, rank 0 holds the left 192 columns and rank 1 "
    "the right 192. Each gets a share of all 96 outputs. At the border g an "
    "all_reduce adds the shares up, and both ranks have the whole output y.",
)


def weight(x, y, w, h, rank, rows):
    """A whole weight as a dashed frame, and in it the part of a rank."""
    drawing.box(x, y, w, h, fill="white", dashed=True, radius=0)
    if rows:
        part = (x, y + rank * h / RANKS, w, h / RANKS)
    else:
        part = (x + rank * w / RANKS, y, w / RANKS, h)
    drawing.box(*part, fill=RANK_COLORS[rank], radius=0)


for x, name in ((140, "f"), (610, "g")):
    drawing.box(x, 44, 26, 2 * ROW + 22, fill="gray", radius=4)
    drawing.text(x + 13, 36, name, weight="bold", anchor="middle", size=17)
for rank in range(RANKS):
    y = TOP + rank * ROW
    middle = y + 50
    color = RANK_COLORS[rank]
    drawing.text(14, y - 20, f"rank {rank}", weight="bold", size=14)
    drawing.box(14, middle - 22, 76, 44, "x\n[.., 96]", size=13)
    drawing.arrow(90, middle, 140, middle)
    drawing.arrow(166, middle, 196, middle)
    weight(198, y, 50, 100, rank, rows=True)
    drawing.text(223, y - 8, "up [384, 96]", size=12, anchor="middle")
    drawing.arrow(248, middle, 286, middle)
    drawing.box(
        288, middle - 30, 100, 60, "hidden\n[.., 192]\ngelu", size=13, fill=color
    )
    drawing.arrow(388, middle, 416, middle)
    weight(418, y + 25, 90, 50, rank, rows=False)
    drawing.text(463, y + 14, "down [96, 384]", size=12, anchor="middle")
    drawing.arrow(508, middle, 610, middle)
    drawing.text(558, middle - 10, "share", size=13, anchor="middle")
    drawing.text(558, middle + 20, "[.., 96]", size=13, anchor="middle")
    drawing.arrow(636, middle, 656, middle)
    drawing.box(658, middle - 22, 72, 44, "y\n[.., 96]", size=13)
drawing.text(14, 400, "forward:", size=14, weight="bold")
drawing.text(153, 400, "nothing", size=14, anchor="middle")
drawing.text(623, 400, "all_reduce", size=14, anchor="middle")
drawing.save(__file__)
