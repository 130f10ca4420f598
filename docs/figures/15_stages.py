"""Draw what one rank keeps in each stage of ZeRO, from what the script has counted.

The numbers are those of docs/transcripts/15_stages.txt.
"""

import re
from pathlib import Path

from readable import MUTED
from svg import Drawing

TEXT = Path(__file__).resolve().parent.parent / "transcripts" / "15_stages.txt"
FILLS = {"parameters": "blue", "gradients": "orange", "optimizer state": "green"}


def counted() -> list[dict[str, int]]:
    """For each stage the bytes of each kind that rank 0 has counted."""
    stages: list[dict[str, int]] = []
    for line in TEXT.read_text(encoding="utf-8").splitlines():
        if line.startswith("bytes on rank 0"):
            stages.append({})
        found = re.match(r"(parameters|gradients|optimizer state) +([\d,]+) ", line)
        if found and stages:
            stages[-1][found[1]] = int(found[2].replace(",", ""))
    return stages


STAGES = counted()
NUMBERS = STAGES[0]["parameters"] // 2  # stage 0 has all, of two bytes each
FULL = sum(STAGES[0].values())
LEFT, WIDTH = 96, 540
FORMULAS = ("16 P", "4 P + 12 P / N", "2 P + 14 P / N", "16 P / N")

totals = [sum(stage.values()) for stage in STAGES]
said = ", ".join(f"stage {n} {total:,}" for n, total in enumerate(totals))
drawing = Drawing(
    720,
    290,
    "What one rank of four keeps",
    "Four horizontal bars, the bytes that one of four ranks keeps of a model of "
    f"{NUMBERS:,} parameters in mixed precision: {said}. In stage 0 three quarters of "
    "the bar are optimizer state, the rest parameters and gradients in equal parts. "
    "Stage 1 has a quarter of the optimizer state, stage 2 a quarter of the gradients "
    "as well, stage 3 a quarter of everything.",
)
for number, stage in enumerate(STAGES):
    y = 24 + number * 58
    drawing.text(LEFT - 12, y + 25, f"stage {number}", anchor="end")
    x = float(LEFT)
    for kind, fill in FILLS.items():
        width = WIDTH * stage[kind] / FULL
        drawing.box(x, y, width, 38, fill=fill, radius=2)
        x += width
    label = f"{totals[number]:,}"
    if number == 0:
        drawing.text(x - 12, y + 16, label, size=13, anchor="end", behind="green")
        drawing.text(x - 12, y + 33, FORMULAS[0], size=13, anchor="end", behind="green")
    else:
        drawing.text(x + 12, y + 16, label, size=13)
        drawing.text(x + 12, y + 33, FORMULAS[number], size=13, color=MUTED)
drawing.legend(
    LEFT,
    276,
    [("blue", "parameters"), ("orange", "gradients"), ("green", "optimizer state")],
)
drawing.save(__file__)
