"""Draw four documents in rows of eight tokens: a row for each, and packed."""

from readable import MUTED
from svg import Drawing

LENGTHS = (3, 11, 5, 4)  # END counted
COLORS = ("blue", "green", "orange", "violet")
ROW, CELL, TOP = 8, 36, 72
LEFTS = {"alone": 24, "packed": 400}

drawing = Drawing(
    720,
    262,
    "One document per row, and packed rows",
    "Four documents of 3, 11, 5 and 4 tokens, and rows of 8 tokens. Left, a row for "
    "each document: 5, 0, 3 and 4 of the 8 cells are padding, and 3 tokens of the "
    "second document are cut off. Right, packed: the first row has 3 tokens of "
    "document a and 5 of b, the second 6 more of b and 2 of c, the third 3 of c, 4 of "
    "d and one cell of padding. Nothing is cut off.",
)
drawing.text(LEFTS["alone"], 28, "A row for each document", weight="bold")
drawing.text(LEFTS["packed"], 28, "Packed", weight="bold")


def draw_row(left: float, row: int, cells: list[int]) -> None:
    """The cells of a row, each with the number of its document; the rest is padding."""
    y = TOP + row * CELL
    for slot in range(ROW):
        x = left + slot * CELL
        if slot < len(cells):
            document = cells[slot]
            label, fill = "abcd"[document], COLORS[document]
        else:
            label, fill = "", "gray"
        drawing.box(x, y, CELL, CELL - 6, label, fill=fill, radius=0, dashed=not label)


tokens = [number for number, length in enumerate(LENGTHS) for _ in range(length)]
for number, length in enumerate(LENGTHS):
    draw_row(LEFTS["alone"], number, [number] * min(length, ROW))
for row in range(-(-len(tokens) // ROW)):
    draw_row(LEFTS["packed"], row, tokens[row * ROW : (row + 1) * ROW])
alone = sum(max(0, ROW - length) for length in LENGTHS)
cut = sum(max(0, length - ROW) for length in LENGTHS)
packed = -len(tokens) % ROW
rows = len(LENGTHS) * ROW
drawing.text(
    LEFTS["alone"],
    TOP + 4 * CELL + 24,
    f"{alone} of {rows} cells are padding, {cut} tokens are lost",
    size=13,
    color=MUTED,
)
drawing.text(
    LEFTS["packed"],
    TOP + 4 * CELL + 24,
    f"{packed} of {-(-len(tokens) // ROW) * ROW} cells is padding, no token is lost",
    size=13,
    color=MUTED,
)
drawing.save(__file__)
