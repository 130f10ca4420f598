"""Draw a grid of 2 x 4 ranks, and who holds which part of a matrix."""

from readable import RANK_COLORS
from svg import Drawing

DATA, TENSOR = 2, 4
LEFT, BOX, GAP = 150, 104, 24

drawing = Drawing(
    720,
    540,
    "A grid of two by four ranks",
    "Above, two rows of four boxes. The first row, node 0, is ranks 0, 1, 2, 3; the "
    "second, node 1, is ranks 4, 5, 6, 7. Each row is a tensor group: its ranks see "
    "the same text and add up what they computed, many times in a step. Each column is "
    "a data group: ranks 0 and 4, 1 and 5, 2 and 6, 3 and 7; they see different text "
    "and gather each other's shards. Below, the matrix mlp.down.weight, 96 x 384, "
    "cut in the same way into two rows of four parts of 48 x 96: the tensor axis cuts "
    "the columns, the data axis the rows, and rank r holds the part drawn where rank r "
    "stands in the grid.",
)
for node in range(DATA):
    top = 40 + node * 120
    drawing.group(LEFT - 18, top - 30, 4 * (BOX + GAP) + 12, 92, f"node {node}")
    drawing.text(12, top + 24, "tensor group", size=13, weight="bold")
    drawing.text(12, top + 42, "same text", size=13)
    for column in range(TENSOR):
        rank = node * TENSOR + column
        x = LEFT + column * (BOX + GAP)
        drawing.box(
            x, top, BOX, 48, f"rank {rank}", fill=RANK_COLORS[rank], weight="bold"
        )
        if column:
            drawing.arrow(x - GAP + 1, top + 24, x - 1, top + 24, both=True, head=7)
        if node:
            middle = x + 0.75 * BOX
            drawing.arrow(middle, top - 71, middle, top - 1, both=True, dashed=True)
drawing.text(
    LEFT - 18,
    252,
    "data groups: 0 and 4, 1 and 5, 2 and 6, 3 and 7: different text",
    size=13,
    weight="bold",
)
drawing.text(LEFT - 18, 310, "mlp.down.weight, 96 x 384:", weight="bold", mono=True)
for row in range(DATA):
    drawing.text(24, 352 + row * 72, "rows", size=13)
    drawing.text(24, 370 + row * 72, f"{48 * row} to {48 * row + 47}", size=13)
    for column in range(TENSOR):
        rank = row * TENSOR + column
        drawing.box(
            LEFT + column * 122,
            326 + row * 72,
            122,
            72,
            f"48 x 96\non rank {rank}",
            size=14,
            fill=RANK_COLORS[rank],
            radius=0,
        )
for column in range(TENSOR):
    drawing.text(
        LEFT + column * 122 + 61,
        490,
        f"{96 * column} to {96 * column + 95}",
        size=12,
        anchor="middle",
    )
drawing.text(
    LEFT + 244,
    516,
    "columns: cut by the tensor axis; rows: by the data axis",
    size=13,
    anchor="middle",
)
drawing.save(__file__)
