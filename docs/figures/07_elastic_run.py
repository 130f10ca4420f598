"""Draw the life of an elastic run with a kill, from times that were recorded.

export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
python src/instruments/07_kill_a_rank.py --rank 1 --after "Step 40" --delay 0.5 \\
    --json docs/figures/07_elastic_run.json \\
    torchrun --standalone --nproc-per-node=2 --max-restarts=3 src/07_elastic.py
"""

import json
import re
from pathlib import Path

from readable import MUTED
from svg import Drawing

LEFT, RIGHT = 96, 744  # px: between them lies the time
TOP, ROW, HIGH = 52, 46, 32
COLORS = {0: "blue", 1: "green"}

run = json.loads(Path(__file__).with_suffix(".json").read_text())
killed = run["killed"]["at"]
scale = (RIGHT - LEFT) / run["ends"]
steps = [(at, re.match(r"Step (\d+) ", line)) for at, line in run["lines"]]
saved = [(at, int(match[1])) for at, match in steps if match]
(resumed,) = [at for at, line in run["lines"] if line.startswith("Starting from step")]
restart = min(life["begins"] for life in run["lives"] if life["restart"] == 1)


def x(seconds):
    return LEFT + seconds * scale


def row(number):
    return TOP + number * ROW


drawing = Drawing(
    760,
    330,
    "The life of an elastic run with a kill",
    "Four rows over the time of one run. The agent of torchrun lives from the "
    "beginning to the end. Rank 0 and rank 1 each have two bars, the first start and "
    "the restart. The snapshots of steps 20 and 40 are saved during the first start. "
    "Then rank 1 is killed by SIGKILL; rank 0 ends a moment later. What was trained "
    "after step 40 is lost. Both ranks are started again as new processes, read the "
    "snapshot of step 40, and save those of steps 60, 80 and 100.",
)
drawing.text(15, row(0) + 21, "torchrun", size=14)
drawing.box(x(0), row(0), x(run["ends"]) - x(0), HIGH, fill="gray", radius=2)
drawing.text(x(0) + 10, row(0) + 21, "the agent", size=13, behind="gray")
for rank in (0, 1):
    drawing.text(15, row(1 + rank) + 21, f"rank {rank}", size=14)
for life in run["lives"]:
    begins, ends = life["begins"], life["ends"] or run["ends"]
    start = "restart 1, a new process" if life["restart"] else "first start"
    drawing.box(
        x(begins),
        row(1 + life["rank"]),
        x(ends) - x(begins),
        HIGH,
        start,
        fill=COLORS[life["rank"]],
        size=13,
        radius=2,
    )
drawing.text(15, row(3) + 21, "snapshot", size=14)
for at, step in saved:
    drawing.box(x(at) - 14, row(3), 28, HIGH, str(step), fill="yellow", size=12)
after_40 = next(at for at, step in saved if step == 40)
drawing.line(x(killed), 34, x(killed), row(4) + 34, color="red", dashed=True, width=2)
drawing.text(
    x(killed),
    26,
    f"SIGKILL to rank 1 after {killed:.1f} s",
    size=13,
    anchor="middle",
    color="red",
    weight="bold",
)
drawing.line(x(after_40), row(3) + HIGH, x(after_40), row(4) + 34, dashed=True)
drawing.line(x(after_40), row(4) + 30, x(killed), row(4) + 30, color="red", width=4)
drawing.text(
    x(after_40) - 6,
    row(4) + 34,
    "lost: the steps since the snapshot",
    size=13,
    anchor="end",
    color="red",
)
drawing.arrow(
    x(after_40) + 15, row(3) + HIGH + 2, x(resumed), row(3) - 14, color="violet"
)
drawing.text(
    x(resumed) + 6,
    row(4) + 8,
    "both ranks resume from step 40",
    size=13,
    color="violet",
)
drawing.text(
    x(restart),
    row(4) + 52,
    f"new processes {restart - killed:.1f} s after the kill, "
    f"training {resumed - killed:.1f} s after it",
    size=13,
    anchor="middle",
)
drawing.text(
    15,
    320,
    "One run of src/07_elastic.py on two CPU cores. Most of the time goes into "
    "starting processes and importing.",
    size=12,
    color=MUTED,
    italic=True,
)
drawing.save(__file__)
