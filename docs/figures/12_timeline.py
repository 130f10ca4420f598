"""When each of two devices computes, from what src/instruments/12_timeline.py recorded.

python src/instruments/12_timeline.py --json docs/figures/12_timeline_1.json
python src/instruments/12_timeline.py --micro-batches 4 \
    --json docs/figures/12_timeline_4.json
"""

import json
from pathlib import Path

from readable import text_width
from svg import Drawing

LEFT, RIGHT = 90, 700  # px: between them lies the time
ROW, HIGH = 40, 30
HERE = Path(__file__).parent


def read(name):
    """For each device a list of (task, begins, ends) in ms."""
    return json.loads((HERE / name).read_text())["devices"]


def panel(top, title, devices, scale):
    """A row for each device; what is empty is a device that waits."""
    drawing.text(15, top, title, weight="bold")
    whole = max(end for tasks in devices for _, _, end in tasks)
    for number, tasks in enumerate(devices):
        y = top + 14 + number * ROW
        drawing.text(15, y + 20, f"device {number}", size=13)
        drawing.box(LEFT, y, whole * scale, HIGH, fill="white", radius=0, dashed=True)
        for name, begins, ends in tasks:
            width = (ends - begins) * scale
            label = name if text_width(name, 13) <= width - 4 else ""
            fill = "blue" if name.startswith("F") else "orange"
            x = LEFT + begins * scale
            drawing.box(x, y, width, HIGH, label, fill=fill, size=13, radius=2)
    y = top + 14 + 2 * ROW + 10
    label = f"{whole:.0f} ms"
    drawing.text(LEFT + whole * scale, y, label, size=12, anchor="end")


one, four = read("12_timeline_1.json"), read("12_timeline_4.json")
longest = max(end for step in (one, four) for tasks in step for _, _, end in tasks)
drawing = Drawing(
    720,
    300,
    "When each of two devices computes",
    "Two timelines of one training step on two devices, recorded. In the first the "
    "batch is in one piece: device 0 computes its forward, then device 1 its forward "
    "and its backward while device 0 waits, then device 0 its backward while device 1 "
    "waits. At no time do both compute. In the second the batch is in four "
    "micro-batches: device 1 begins with the first as soon as device 0 hands it over, "
    "and from then on both compute most of the time; device 1 waits at the beginning "
    "and at the end, device 0 between its last forward and its first backward.",
)
scale = (RIGHT - LEFT) / longest
panel(24, "The batch in one piece", one, scale)
panel(154, "In 4 micro-batches", four, scale)
drawing.legend(
    15, 290, [("blue", "F: forward"), ("orange", "B: backward"), ("white", "waits")]
)
drawing.save(__file__)
