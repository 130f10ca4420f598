"""Draw speedup over ranks: measured, by Amdahl's law, and ideal.

The times are those of the page's transcript:
python tools/transcripts.py record 18_scaling
"""

import re
from pathlib import Path

from readable import RULE
from svg import Drawing

RUN = Path(__file__).parent.parent / "transcripts" / "18_scaling.txt"
STRONG, WEAK = RUN.read_text(encoding="utf-8").split("Weak scaling")
LEFT, RIGHT, TOP, BOTTOM = 60, 560, 30, 310  # px
RANKS = 4


def measured(table):
    """Speedup by number of ranks."""
    rows = re.findall(r"^ +(\d+) .* (\d+\.\d\d) +\d+%$", table, re.M)
    return {int(ranks): float(speedup) for ranks, speedup in rows}


def point(ranks, speedup):
    x = LEFT + (RIGHT - LEFT) * (ranks - 1) / (RANKS - 1)
    return x, BOTTOM + (TOP - BOTTOM) * speedup / RANKS


strong, weak = measured(STRONG), measured(WEAK)
serial = (1 / strong[2] - 1 / 2) / (1 - 1 / 2)  # the share that gains nothing
every = [1 + step / 20 for step in range(20 * (RANKS - 1) + 1)]

drawing = Drawing(
    720,
    370,
    "Speedup on one to four ranks",
    "Speedup over the number of ranks. The ideal line rises to 4. Below it is Amdahl's "
    "law, which agrees with the measured strong scaling on two ranks and rises "
    "further. Measured strong and weak scaling both fall from two ranks to four.",
)
for value in range(RANKS + 1):
    _, y = point(1, value)
    drawing.line(LEFT, y, RIGHT, y, color=RULE, width=1)
    drawing.text(LEFT - 10, y + 5, str(value), size=13, anchor="end")
for ranks in range(1, RANKS + 1):
    x, _ = point(ranks, 0)
    drawing.text(x, BOTTOM + 20, str(ranks), size=13, anchor="middle")
drawing.text((LEFT + RIGHT) / 2, BOTTOM + 44, "ranks", size=14, anchor="middle")
drawing.text(12, TOP - 10, "speedup", size=14)
lines = {
    "ideal": ([(n, n) for n in (1, RANKS)], "gray", True),
    "Amdahl": ([(n, 1 / (serial + (1 - serial) / n)) for n in every], "blue", True),
    "weak, measured": (list(weak.items()), "green", False),
    "strong, measured": (list(strong.items()), "red", False),
}
for name, (points, color, dashed) in lines.items():
    pixels = [point(*pair) for pair in points]
    drawing.polyline(pixels, color=color, dashed=dashed)
    drawing.text(RIGHT + 10, pixels[-1][1] + 5, name, size=13, color=color)
drawing.save(__file__)
