"""Draw when FSDP gathers, computes and frees, from recorded events.

torchrun --standalone --nproc-per-node=2 src/instruments/15_timeline.py \
    --json docs/figures/15_fsdp.json
"""

import json
from pathlib import Path

from readable import MUTED
from svg import Drawing

EVENTS = json.loads(Path(__file__).with_suffix(".json").read_text())["events"]
ROWS = ("the root", "blocks.0", "blocks.1", "blocks.2")
LEFT, TOP, STEP, HEIGHT = 96, 66, 23.5, 44


def place(number: float) -> float:
    """Where an event is: the same distance from one to the next."""
    return LEFT + number * STEP


drawing = Drawing(
    720,
    316,
    "When FSDP gathers, computes, frees and reduces",
    "A table with four rows, the root and three blocks, and time from left to right: "
    "one step of rank 0. The root, with embedding and head, is gathered first and "
    "stays whole to the end. In forward block 0 is gathered, computes and is freed, "
    "then block 1, then block 2. In backward block 2 is gathered again. Before block 2 "
    "computes, block 1 is gathered; then block 2 is freed and its gradients are "
    "reduced. Before block 1 computes, block 0 is gathered, and so on. At the end the "
    "root is freed and reduced.",
)
drawing.text(LEFT, 30, "forward", weight="bold")
middle = next(n for n, event in enumerate(EVENTS) if event == "backward the root") - 1
drawing.text(place(middle), 30, "backward", weight="bold")
for row, layer in enumerate(ROWS):
    y = TOP + row * (HEIGHT + 10)
    drawing.text(
        LEFT - 12, y + 27, layer.replace("blocks.", "block "), size=13, anchor="end"
    )
    drawing.line(LEFT, y + HEIGHT + 5, 712, y + HEIGHT + 5, color="gray", width=0.5)
    since = None
    for number, event in enumerate(EVENTS):
        what, _, of = event.partition(" ")
        if of != layer:
            continue
        if what == "gather":
            since = number
        elif what == "free" and since is not None:
            x, width = place(since), (number - since) * STEP
            drawing.box(x, y, width, HEIGHT, fill="yellow", radius=3)
            for inner, name in enumerate(EVENTS[since:number], start=since):
                letter = {"forward": "F", "backward": "B"}.get(name.split()[0])
                if letter and name.endswith(f" {layer}"):
                    fill = "blue" if letter == "F" else "violet"
                    drawing.box(
                        place(inner) + 2,
                        y + 9,
                        STEP - 5,
                        26,
                        letter,
                        fill=fill,
                        size=12,
                    )
            drawing.box(x + 2, y + 9, STEP - 6, 26, "G", fill="orange", size=12)
        elif what == "reduce-scatter":
            drawing.box(place(number), y + 9, STEP - 4, 26, "R", fill="green", size=12)
drawing.line(place(middle) - 4, 14, place(middle) - 4, 284, color="gray", dashed=True)
drawing.legend(
    14,
    304,
    [
        ("yellow", "whole on this rank"),
        ("orange", "G gather"),
        ("blue", "F forward"),
        ("violet", "B backward"),
        ("green", "R reduce-scatter"),
    ],
    size=12,
)
drawing.text(712, 30, "one step, event by event", size=12, anchor="end", color=MUTED)
drawing.save(__file__)
