"""Draw GPipe and 1F1B on four ranks, from what the ranks of two runs recorded.

torchrun --standalone --nproc-per-node=4 src/instruments/13_timeline.py \\
    --json docs/figures/13_gpipe.json src/13_pipeline_by_hand.py 2 --schedule gpipe
torchrun --standalone --nproc-per-node=4 src/instruments/13_timeline.py \\
    --json docs/figures/13_1f1b.json src/13_pipeline_by_hand.py 2 --schedule 1f1b
"""

import json
import sys
from pathlib import Path

from svg import Drawing

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "src"))

from common.parallel.pipeline import Action, bubble, most_live, slots  # noqa: E402

LEFT, CELL, ROW = 74, 29, 34  # px


def orders(name):
    """The actions of each rank in the order in which it did them."""
    ranks = json.loads((HERE / name).read_text())["ranks"]
    return [[Action(e["what"], e["micro_batch"]) for e in own] for own in ranks]


def panel(top, title, name):
    """One row for each rank, one cell for each action, in the slot it can begin."""
    found = orders(name)
    share = bubble(found)
    drawing.text(15, top, f"{title}: idle over useful {share}", weight="bold")
    for rank, placed in enumerate(slots(found)):
        y = top + 12 + rank * ROW
        held = most_live(found[rank])
        drawing.text(15, y + 19, f"rank {rank}", size=14)
        for (what, k), slot in placed.items():
            x = LEFT + slot * CELL
            fill = "blue" if what == "forward" else "orange"
            drawing.box(x, y, CELL - 2, ROW - 6, str(k), fill=fill, size=13, radius=2)
        drawing.text(LEFT + 22 * CELL + 10, y + 19, f"holds {held}", size=13)


drawing = Drawing(
    800,
    376,
    "GPipe and 1F1B on four ranks",
    "Two tables of slots, each with four ranks and micro-batches 0 to 7. With GPipe "
    "every rank does its eight forwards one after the other, rank r beginning r slots "
    "late, and then, after an idle gap, its eight backwards, the last rank first. With "
    "1F1B rank 0 does four forwards, idles, and then does one backward and one forward "
    "in turn; rank 3 alternates from its first slot on. Both need 22 slots, of which "
    "each rank uses 16: idle over useful is 3/8. With GPipe every rank holds eight "
    "micro-batches at a time, with 1F1B the ranks hold four, three, two and one.",
)
panel(26, "GPipe", "13_gpipe.json")
panel(194, "1F1B", "13_1f1b.json")
drawing.legend(
    15, 364, [("blue", "forward of micro-batch k"), ("orange", "backward of it")]
)
drawing.save(__file__)
