"""What every rank holds before and after each collective, for four ranks."""

from readable import RANK_COLORS
from svg import Drawing

RANKS = 4
CELL_W, CELL_H = 30, 22
PANEL_W, PANEL_H = 336, 134
SUM = "sum"

# A cell is (rank on which the number was born, its place there), a sum ("sum", place),
# or None for nothing of use.
OWN = [[(rank, place) for place in range(RANKS)] for rank in range(RANKS)]
FIRST = [[(rank, 0)] for rank in range(RANKS)]
NOTHING = [None] * RANKS
SUMS = [(SUM, place) for place in range(RANKS)]

PANELS = [
    ("broadcast", "from rank 0", OWN, [OWN[0]] * RANKS),
    (
        "scatter",
        "from rank 0",
        [OWN[0], NOTHING, NOTHING, NOTHING],
        [[(0, place)] for place in range(RANKS)],
    ),
    (
        "gather",
        "to rank 0",
        FIRST,
        [[(rank, 0) for rank in range(RANKS)], NOTHING, NOTHING, NOTHING],
    ),
    ("reduce", "sum, to rank 0", OWN, [SUMS, NOTHING, NOTHING, NOTHING]),
    ("all_reduce", "sum", OWN, [SUMS] * RANKS),
    ("all_gather", "", FIRST, [[(rank, 0) for rank in range(RANKS)]] * RANKS),
    ("reduce_scatter", "sum", OWN, [[(SUM, place)] for place in range(RANKS)]),
    (
        "all_to_all",
        "",
        OWN,
        [[(rank, place) for rank in range(RANKS)] for place in range(RANKS)],
    ),
]


def label(cell):
    """10r + place, as in src/03_collectives.py; that place summed over the ranks."""
    born, place = cell
    if born == SUM:
        return str(sum(10 * rank + place for rank in range(RANKS)))
    return str(10 * born + place)


def draw_grid(drawing, x, y, rows):
    for rank, row in enumerate(rows):
        for place, cell in enumerate(row):
            if cell is not None:
                fill, weight = "yellow", "bold"
                if cell[0] != SUM:
                    fill, weight = RANK_COLORS[cell[0]], "normal"
                drawing.box(
                    x + place * CELL_W,
                    y + rank * CELL_H,
                    CELL_W - 2,
                    CELL_H - 2,
                    label(cell),
                    fill=fill,
                    size=12,
                    weight=weight,
                    radius=2,
                    stroke_width=1,
                )


def main():
    drawing = Drawing(
        2 * PANEL_W + 16,
        4 * PANEL_H + 52,
        "Eight collectives on four ranks",
        "Eight pairs of tables, before and after, one line per rank. Rank r starts "
        "with 10r, 10r+1, 10r+2, 10r+3, or with 10r alone. broadcast: every rank "
        "holds 0 1 2 3 of rank 0. scatter: rank r holds number r of rank 0. gather: "
        "rank 0 holds 0 10 20 30. reduce: rank 0 holds the sums 60 64 68 72. "
        "all_reduce: every rank holds them. all_gather: every rank holds 0 10 20 30. "
        "reduce_scatter: rank r holds only sum number r. all_to_all: the table is "
        "transposed, rank 1 holds 1 11 21 31.",
    )
    for number, (name, detail, before, after) in enumerate(PANELS):
        x = 16 + (number % 2) * PANEL_W
        y = 10 + (number // 2) * PANEL_H
        drawing.text(x, y + 18, name, size=14, weight="bold", mono=True)
        drawing.text(x + 150, y + 18, detail, size=13)
        top = y + 28
        for rank in range(RANKS):
            drawing.text(x, top + rank * CELL_H + 15, str(rank), size=12)
        draw_grid(drawing, x + 18, top, before)
        middle = top + 2 * CELL_H - 1
        drawing.arrow(x + 144, middle, x + 174, middle)
        draw_grid(drawing, x + 182, top, after)
    born = [(RANK_COLORS[rank], f"born on rank {rank}") for rank in range(RANKS)]
    drawing.legend(16, 4 * PANEL_H + 34, [*born, ("yellow", "sum")], size=12)
    drawing.save(__file__)


if __name__ == "__main__":
    main()
