"""A block on two ranks, without and with slices of the context between its layers."""

from readable import RANK_COLORS
from svg import Drawing

drawing = Drawing(
    740,
    392,
    "A block on two ranks, without and with sequence parallel",
    "Two panels, each with the residual stream of two ranks from left to right: norm, "
    "attention, addition, norm, MLP, addition. Without sequence parallel both ranks "
    "hold all places of the context outside of attention and MLP and compute the same "
    "there; before attention and MLP stands f, behind them g, an all_reduce. With "
    "sequence parallel rank 0 holds the first half of the places there and rank 1 the "
    "second half. Before attention and MLP an all_gather gives both ranks all places, "
    "behind them a reduce_scatter leaves each the sum for its own half. In backward "
    "the two change places.",
)
STEPS = (
    (70, 62, "norm", False),
    (212, 84, "attention", True),
    (376, 32, "+", False),
    (416, 62, "norm", False),
    (558, 56, "MLP", True),
    (694, 32, "+", False),
)
PANELS = (
    (14, "Without: both ranks hold all places", False, "f", "g"),
    (
        206,
        "With slices: each rank holds its places",
        True,
        "all_\ngather",
        "reduce_\nscatter",
    ),
)
for top, title, sliced, enter, leave in PANELS:
    drawing.text(14, top + 16, title, weight="bold", size=15)
    for rank in range(2):
        y = top + 40 + rank * 66
        drawing.text(14, y + 30, f"rank {rank}", size=13, weight="bold")
        for x, w, name, parallel in STEPS:
            if parallel:
                drawing.box(x, y, w, 50, name, fill=RANK_COLORS[rank], size=14)
            elif sliced:
                half = RANK_COLORS[rank]
                drawing.box(x, y, w, 50, dashed=True)
                drawing.box(x, y + rank * 25, w, 25, name, fill=half, size=13)
            else:
                drawing.box(x, y, w, 50, name, fill="yellow", size=14)
    for x, label in ((138, enter), (302, leave), (484, enter), (620, leave)):
        drawing.box(x, top + 36, 68, 124, label, fill="gray", size=13, radius=4)
drawing.save(__file__)
