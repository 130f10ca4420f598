"""Draw the rows of two ranks before and after dispatch, and their counts."""

from readable import RANK_COLORS
from svg import Drawing

EXPERTS = 4
PER_RANK = 2
ROWS = {0: [0, 0, 1, 3], 1: [0, 2, 2, 2, 3, 3]}  # the expert of each row
CELL = 34
LEFTS = {"sorted by expert": 70, "after dispatch": 310, "sorted by expert again": 550}
TOPS = {0: 70, 1: 170}

drawing = Drawing(
    800,
    370,
    "Rows before and after dispatch",
    "Two ranks, and experts 0 and 1 on rank 0, 2 and 3 on rank 1. Left, the rows of "
    "each rank, sorted by expert: rank 0 has rows for experts 0, 0, 1, 3, rank 1 for "
    "experts 0, 2, 2, 2, 3, 3. Middle, after dispatch: rank 0 has 0, 0, 1 from rank 0 "
    "and 0 from rank 1; rank 1 has 3 from rank 0 and 2, 2, 2, 3, 3 from rank 1. Right, "
    "sorted by expert: rank 0 has 0, 0, 0, 1, rank 1 has 2, 2, 2, 3, 3, 3. Below, the "
    "counts that are sent first: rank 0 sends 2, 1 to rank 0 and 0, 1 to rank 1; rank "
    "1 sends 1, 0 to rank 0 and 3, 2 to rank 1.",
)


def dispatched(rank: int) -> list[tuple[int, int]]:
    """(sender, expert) of each row on a rank, in the order of arrival."""
    return [
        (sender, expert)
        for sender, experts in ROWS.items()
        for expert in experts
        if expert // PER_RANK == rank
    ]


def draw(title: str, rank: int, rows: list[tuple[int, int]]) -> None:
    """The rows of one rank under a title."""
    left, top = LEFTS[title], TOPS[rank]
    drawing.text(left, 40, title, weight="bold", size=14)
    for index, (sender, expert) in enumerate(rows):
        fill = RANK_COLORS[sender]
        x = left + index * CELL
        drawing.box(x, top, CELL, CELL, str(expert), fill=fill, size=14, radius=0)


for rank, top in TOPS.items():
    drawing.text(8, top + 22, f"rank {rank}", size=14)
    draw("sorted by expert", rank, [(rank, expert) for expert in ROWS[rank]])
    draw("after dispatch", rank, dispatched(rank))
    by_expert = sorted(dispatched(rank), key=lambda row: row[1])
    draw("sorted by expert again", rank, by_expert)

drawing.text(70, 252, "Counts, which are sent first", weight="bold", size=14)
for sender, experts in ROWS.items():
    counts = [experts.count(expert) for expert in range(EXPERTS)]
    for rank in TOPS:
        own = counts[rank * PER_RANK : (rank + 1) * PER_RANK]
        listed = " and ".join(map(str, own))
        y = 280 + 24 * rank
        x = 70 + 300 * sender
        text = f"rank {sender} sends rank {rank}: {listed} rows"
        drawing.text(x, y, text, size=14)
drawing.text(
    400,
    350,
    "The color of a row is the rank that has its token; the number is its expert.",
    size=13,
    anchor="middle",
)
drawing.save(__file__)
