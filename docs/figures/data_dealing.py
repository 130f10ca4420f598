"""Draw how the order of an epoch is divided into steps, among ranks and workers."""

from readable import MUTED, RANK_COLORS
from svg import Drawing

ORDER = (5, 0, 7, 3, 9, 2, 1, 11, 4, 8, 6, 12, 10, 13)  # of windows, made up
RANKS, BATCH_SIZE, WORKERS = 2, 2, 2
CELL, GAP, LEFT, TOP = 42, 16, 24, 66
IN_STEP = RANKS * BATCH_SIZE
STEPS = [ORDER[first : first + IN_STEP] for first in range(0, len(ORDER), IN_STEP)]

drawing = Drawing(
    760,
    290,
    "Steps, ranks and workers",
    "A row of fourteen windows in the order of the epoch: 5, 0, 7, 3, then 9, 2, 1, "
    "11, then 4, 8, 6, 12, then 10 and 13. Each group of four is a step, the last one "
    "has two. In a step, rank 0 has the first and the third window, rank 1 the second "
    "and the fourth. Below, one row for each rank: the batches of rank 0 are 5 and 7, "
    "9 and 1, 4 and 6, and 10. Those of rank 1 are 0 and 3, 2 and 11, 8 and 12, and "
    "13. Worker 0 of each rank reads the batches of steps 0 and 2, worker 1 those of "
    "steps 1 and 3.",
)
drawing.text(LEFT, 26, "The order of the epoch, in steps of 4 windows", weight="bold")
x = LEFT
for step, windows in enumerate(STEPS):
    drawing.text(x, TOP - 10, f"step {step}", size=13, color=MUTED)
    for slot, window in enumerate(windows):
        color = RANK_COLORS[slot % RANKS]
        drawing.box(x + slot * CELL, TOP, CELL - 4, 34, str(window), fill=color)
    for rank in range(RANKS):
        y = TOP + 62 + rank * 70
        label = f"rank {rank}, worker {step % WORKERS}"
        drawing.text(x, y, label, size=13, color=MUTED)
        for slot, window in enumerate(windows[rank::RANKS]):
            color = RANK_COLORS[rank]
            drawing.box(x + slot * CELL, y + 8, CELL - 4, 34, str(window), fill=color)
    x += IN_STEP * CELL + GAP
drawing.text(
    LEFT,
    270,
    "Each rank's loader takes step 0 from worker 0, step 1 from worker 1, step 2 from "
    "worker 0, ...",
    size=13,
)
drawing.save(__file__)
