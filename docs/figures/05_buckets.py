"""Draw when DDP sends its buckets, from what src/instruments/05_timeline.py recorded.

python src/instruments/05_timeline.py --json docs/figures/05_buckets_2_mb.json
python src/instruments/05_timeline.py --bucket-mb 25 \\
    --json docs/figures/05_buckets_25_mb.json
"""

import json
import re
from pathlib import Path

from readable import text_width
from svg import Drawing

LEFT, RIGHT = 106, 700  # px: between them lies the time
ROW, HIGH = 40, 28
HERE = Path(__file__).parent


def read(name):
    """What rank 0 saw: list of (ms, what)."""
    return json.loads((HERE / name).read_text())["ranks"][0]


def layers(events):
    """(layer, begins, ends) in ms: each begins when the one before is complete."""
    begins, found = 0.0, []
    for ms, what in events:
        if match := re.fullmatch(r"gradients of layer (\d) complete", what):
            found.append((match[1], begins, ms))
            begins = ms
    return found


def times(pattern, events):
    """What the pattern's group matches -> ms of that event."""
    found = [(re.match(pattern, what), ms) for ms, what in events]
    return {match[1]: ms for match, ms in found if match}


def buckets(events):
    """(name, begins, ends) in ms."""
    begins = times(r"bucket (\d) begins", events)
    ends = times(r"bucket (\d) averaged", events)
    return [(name, begins[name], ends[name]) for name in begins]


def panel(top, title, events, scale):
    """Title and two rows: what the rank computes, and what travels meanwhile."""

    def x(ms):
        return LEFT + ms * scale

    def bar(y, name, begins, ends, fill):
        width = max(2.0, x(ends) - x(begins))
        names = (name, name.split()[-1], "")
        label = next(n for n in names if text_width(n, 13) <= width - 4 or not n)
        drawing.box(x(begins), y, width, HIGH, label, fill=fill, size=13, radius=2)

    drawing.text(15, top, title, weight="bold")
    computes, travels = top + 14, top + 14 + ROW
    drawing.text(15, computes + 19, "backward", size=13)
    drawing.text(15, travels + 19, "all_reduce", size=13)
    for layer, begins, ends in layers(events):
        bar(computes, layer, begins, ends, "blue")
    for name, begins, ends in buckets(events):
        bar(travels, f"bucket {name}", begins, ends, "orange")
    times = {what: ms for ms, what in events}
    end, step = times["backward ends"], times["step ends"]
    bar(computes, "step", end, step, "green")
    drawing.line(x(end), computes - 6, x(end), travels + HIGH + 6, dashed=True)
    label = f"backward ends after {end:.0f} ms"
    drawing.text(x(end), travels + HIGH + 20, label, size=12, anchor="middle")


small, large = read("05_buckets_2_mb.json"), read("05_buckets_25_mb.json")
longest = max(small[-1][0], large[-1][0])
drawing = Drawing(
    720,
    330,
    "When DDP's buckets travel",
    "Two timelines of one backward pass on rank 0, from layer 6 down to layer 1. With "
    "buckets of 2 MiB there are three buckets of two layers each: bucket 0 begins when "
    "layers 6 and 5 are complete and travels while layers 4 and 3 are computed, bucket "
    "1 begins after layers 4 and 3, bucket 2 after layers 2 and 1. With buckets of 25 "
    "MiB there is one bucket: it begins when all six layers are complete, and nothing "
    "is computed meanwhile. Backward ends when the last bucket is averaged, and "
    "the step of the optimizer follows without any communication.",
)
scale = (RIGHT - LEFT - 70) / longest
panel(24, "Buckets of 2 MiB", small, scale)
panel(168, "One bucket of 25 MiB", large, scale)
drawing.legend(
    15,
    316,
    [
        ("blue", "computes gradients of layer"),
        ("orange", "bucket under way"),
        ("green", "optimizer step"),
    ],
)
drawing.save(__file__)
