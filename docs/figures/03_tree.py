"""A broadcast from rank 0 to six ranks by a tree: who sends to whom in which round."""

from svg import Drawing

RANKS = 6
BOX_W, BOX_H, STEP_X, STEP_Y = 74, 34, 100, 84


def main():
    drawing = Drawing(
        2 * 16 + 100 + RANKS * STEP_X - 26,
        4 * STEP_Y - 14,
        "Broadcast by a tree, six ranks",
        "Four rows of six ranks. At the start only rank 0 has the tensor. Round of "
        "distance 1: rank 0 sends to rank 1. Distance 2: rank 0 sends to 2, rank 1 "
        "to 3. Distance 4: rank 0 sends to 4, rank 1 to 5; ranks 2 and 3 have no "
        "partner. After three rounds and five messages every rank has it.",
    )
    distance = 1
    for row in range(4):
        y = 20 + row * STEP_Y
        has = 2**row
        name = "start" if row == 0 else f"distance {2 ** (row - 1)}"
        drawing.text(16, y + 22, name, size=14)
        for rank in range(RANKS):
            x = 16 + 100 + rank * STEP_X
            fill = "green" if rank < has else "gray"
            weight = "bold" if rank < has else "normal"
            drawing.box(
                x, y, BOX_W, BOX_H, f"rank {rank}", fill=fill, size=14, weight=weight
            )
            if row < 3 and rank < distance and rank + distance < RANKS:
                there = x + distance * STEP_X
                drawing.arrow(
                    x + BOX_W / 2, y + BOX_H, there + BOX_W / 2 - 6, y + STEP_Y
                )
        distance *= 2
    drawing.save(__file__)


if __name__ == "__main__":
    main()
