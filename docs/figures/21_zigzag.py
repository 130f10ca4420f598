"""Draw which pairs of chunks each of four ranks computes, in order and in zigzag."""

from readable import RANK_COLORS
from svg import Drawing

RANKS = 4
CHUNKS = 2 * RANKS
CELL, TOP = 34, 76
LEFTS = {"in order": 60, "zigzag": 430}
IN_ORDER = [chunk // 2 for chunk in range(CHUNKS)]  # the rank of each chunk
ZIGZAG = [min(chunk, CHUNKS - 1 - chunk) for chunk in range(CHUNKS)]

drawing = Drawing(
    720,
    480,
    "Pairs of chunks under a causal mask",
    "Two grids of eight rows and eight columns, for the chunks of a sequence: a row "
    "for the queries of each chunk, a column for the keys. A query sees only keys up "
    "to its own, so only the lower triangle is filled, each cell with the rank that "
    "has the queries. Left, chunks in order: rank 0 has rows 0 and 1, rank 3 rows 6 "
    "and 7. The ranks have 3, 7, 11 and 15 cells. Right, zigzag: rank 0 has rows 0 "
    "and 7, rank 1 rows 1 and 6, rank 2 rows 2 and 5, rank 3 rows 3 and 4. Each has 9"
    " cells.",
)


def draw(title: str, left: int, ranks: list[int]) -> None:
    """One grid: the lower triangle, and how many cells each rank has."""
    drawing.text(left, 28, title, weight="bold")
    drawing.text(left + CHUNKS * CELL / 2, 52, "keys", size=13, anchor="middle")
    for chunk, rank in enumerate(ranks):
        y = TOP + chunk * CELL
        x = left + chunk * CELL
        drawing.text(x + CELL / 2, TOP - 8, str(chunk), size=12, anchor="middle")
        drawing.text(left - 14, y + CELL * 0.65, str(chunk), size=12, anchor="middle")
        for key in range(chunk + 1):
            drawing.box(
                left + key * CELL,
                y,
                CELL,
                CELL,
                str(rank),
                fill=RANK_COLORS[rank],
                size=13,
                radius=0,
            )
    for rank in range(RANKS):
        cells = sum(chunk + 1 for chunk, of in enumerate(ranks) if of == rank)
        x = left + rank * 2 * CELL
        y = TOP + CHUNKS * CELL + 24
        label = f"rank {rank}:\n{cells} pairs"
        drawing.box(x, y, 2 * CELL - 6, 44, label, fill=RANK_COLORS[rank], size=12)


draw("Chunks in order", LEFTS["in order"], IN_ORDER)
draw("Zigzag", LEFTS["zigzag"], ZIGZAG)
drawing.text(12, TOP - 24, "queries", size=13)
drawing.text(LEFTS["zigzag"] - 48, TOP - 24, "queries", size=13)
drawing.text(
    360,
    462,
    "A cell is a pair of chunks; its number is the rank that has the queries.",
    size=13,
    anchor="middle",
)
drawing.save(__file__)
