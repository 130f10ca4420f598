"""The ring all-reduce of four ranks, step by step: what each one holds and sends."""

from svg import Drawing

RANKS = 4
CELL_W, CELL_H, GAP = 62, 22, 11  # the gap between two rows holds the arrow
PANEL_W, PANEL_H = 318, 178
CHUNKS = "abcd"


def exchange(state, chunk_of):
    """Every rank sends one chunk to the right; what each rank receives, by rank."""
    return {(r + 1) % RANKS: (chunk_of(r), state[r][chunk_of(r)]) for r in range(RANKS)}


def run():
    """(title, state before the step, chunk sent by each rank) of every panel."""
    state = [[{rank} for _ in CHUNKS] for rank in range(RANKS)]
    panels = []
    for phase in (1, 2):
        for step in range(RANKS - 1):

            def chunk_of(rank, step=step, shift=phase - 1):
                return (rank + shift - step) % RANKS

            sent = [chunk_of(rank) for rank in range(RANKS)]
            panels.append((f"step {step}", [row[:] for row in state], sent))
            for rank, (chunk, parts) in exchange(state, chunk_of).items():
                new = state[rank][chunk] | parts if phase == 1 else parts
                state[rank][chunk] = new
        panels.append(("end", [row[:] for row in state], None))
    assert all(parts == set(range(RANKS)) for row in state for parts in row)
    return panels


def fill(parts):
    if len(parts) == RANKS:
        return "green"
    return "orange" if len(parts) > 1 else "white"


def draw_panel(drawing, x, y, title, state, sent):
    drawing.text(x, y + 13, title, size=14, weight="bold")
    left, top = x + 56, y + 30
    for chunk, letter in enumerate(CHUNKS):
        middle = left + chunk * CELL_W + (CELL_W - 4) / 2
        drawing.text(middle, y + 13, letter, size=13, anchor="middle", italic=True)
    for rank, row in enumerate(state):
        level = top + rank * (CELL_H + GAP)
        drawing.text(x, level + 16, f"rank {rank}", size=13)
        for chunk, parts in enumerate(row):
            label = "+".join(str(part) for part in sorted(parts))
            label = "sum" if len(parts) == RANKS else label
            leaves = sent is not None and sent[rank] == chunk
            weight, stroke_width = "normal", 1
            if leaves:
                weight, stroke_width = "bold", 3
            drawing.box(
                left + chunk * CELL_W,
                level,
                CELL_W - 4,
                CELL_H,
                label,
                fill=fill(parts),
                size=13,
                weight=weight,
                radius=3,
                stroke_width=stroke_width,
            )
            if leaves:
                middle = left + chunk * CELL_W + (CELL_W - 4) / 2
                below = level + CELL_H
                drawing.arrow(middle, below, middle, below + GAP, head=8)
                if rank == RANKS - 1:  # the ring closes: in again at the top
                    drawing.arrow(middle, top - GAP, middle, top, head=8)


def main():
    drawing = Drawing(
        2 * PANEL_W + 24,
        4 * PANEL_H + 54,
        "Ring all-reduce with four ranks",
        "Eight tables of four ranks by four chunks a to d; a cell names the ranks "
        "whose numbers are summed in it, or sum if all are. Left, phase 1: in each "
        "step every rank sends one chunk to the next rank, rank 3 to rank 0, where "
        "it is added. In step 0 rank 0 sends a, rank 1 b, rank 2 c, rank 3 d. After "
        "three steps chunk b is complete on rank 0, c on rank 1, d on rank 2 and a "
        "on rank 3. Right, phase 2: the complete chunks are sent the same way and "
        "replace what is there, until after three steps every rank holds all four.",
    )
    for column, heading in enumerate(
        ("Phase 1: reduce-scatter", "Phase 2: all-gather")
    ):
        x = 16 + column * (PANEL_W + 8)
        drawing.text(x, 28, heading, size=16, weight="bold")
        drawing.text(
            x,
            46,
            ("what arrives is added", "what arrives replaces what was there")[column],
            size=13,
        )
    for number, (title, state, sent) in enumerate(run()):
        x = 16 + (number // 4) * (PANEL_W + 8)
        draw_panel(drawing, x, 60 + (number % 4) * PANEL_H, title, state, sent)
    drawing.save(__file__)


if __name__ == "__main__":
    main()
