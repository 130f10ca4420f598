"""Draw what a learner sees of a deadlock: four ranks that wait, then the verdict.

From the recorded transcript ``using_check_deadlock``. The parts appear one after the
other in less than five seconds, once; where motion is not wanted all are there at once.
"""

import re
import textwrap
from contextlib import contextmanager
from pathlib import Path

from readable import INK, MUTED, RANK_COLORS
from svg import Drawing

TRANSCRIPT = Path(__file__).parent.parent / "transcripts" / "using_check_deadlock.txt"
WAITS = re.compile(r" *rank (\d): waits in (send)\(.*, to rank (\d)\) (at line \d+)")
COLUMNS, SIZE, LEADING = 100, 12, 18
BOX, HIGH, GAP, TOP = 130, 58, 56, 16  # px: a rank, and the way to the next one
STEP, FADE = 0.28, 0.35  # seconds
WIDTH = 760

command, *printed = TRANSCRIPT.read_text(encoding="utf-8").splitlines()[:-2]
waiting = [match.groups() for match in map(WAITS.match, printed) if match]
lines = [
    piece
    for line in printed
    for piece in textwrap.wrap(
        line,
        COLUMNS,
        drop_whitespace=False,
        break_on_hyphens=False,
        subsequent_indent=" " * (4 + len(line) - len(line.lstrip())),
    )
]
terminal = TOP + HIGH + 64
height = terminal + 34 + LEADING * (len(lines) + 1)


class Moving(Drawing):
    """A drawing whose parts appear one after the other."""

    steps = 0

    @contextmanager
    def step(self):
        """What is drawn inside appears together, after what was drawn before."""
        delay = f"{self.steps * STEP:.2f}s"
        self._parts.append(f'<g class="appears" style="animation-delay: {delay}">')
        yield
        self._parts.append("</g>")
        self.steps += 1

    def svg(self) -> str:
        style = (
            "<style>@keyframes appears { from { opacity: 0 } }\n"
            f".appears {{ animation: appears {FADE}s both }}\n"
            "@media (prefers-reduced-motion: reduce), print "
            "{ .appears { animation: none } }</style>"
        )
        head, rest = super().svg().split("</desc>\n", 1)
        return f"{head}</desc>\n{style}\n{rest}"


drawing = Moving(
    WIDTH,
    height,
    "Four ranks in a deadlock, and the verdict",
    f"{len(waiting)} ranks in a ring. Each waits in send for the next, the last one "
    "for rank 0, so none of them ever receives. Below, a terminal shows what workshop "
    "check 03_deadlock printed: wrong, deadlock; for each rank, what it waits in, and "
    "at which line of the learner's file; then the mistake that it looks like, and the "
    "page that explains it.",
)
left = (WIDTH - len(waiting) * BOX - (len(waiting) - 1) * GAP) / 2
places = [left + number * (BOX + GAP) for number in range(len(waiting))]
for place, (rank, *_) in zip(places, waiting, strict=True):
    color = RANK_COLORS[int(rank)]
    drawing.box(place, TOP, BOX, HIGH, fill=color)
    drawing.text(place + 12, TOP + 23, f"rank {rank}", weight="bold", behind=color)
for place, (rank, operation, peer, line) in zip(places, waiting, strict=True):
    color, middle = RANK_COLORS[int(rank)], TOP + HIGH / 2
    with drawing.step():
        waits = f"waits {line}"
        drawing.text(place + 12, TOP + 45, waits, size=13, behind=color)
        if int(peer) > int(rank):
            start = place + BOX + 4
            drawing.arrow(start, middle, start + GAP - 8, middle, operation)
        else:
            below, under = TOP + HIGH + 24, places[0] + BOX / 2
            corner = place + BOX / 2
            path = [(corner, TOP + HIGH + 2), (corner, below), (under, below)]
            drawing.polyline(path, color=INK)
            drawing.arrow(under, below, under, TOP + HIGH + 3)
            drawing.text(WIDTH / 2, below + 16, operation, size=13, anchor="middle")
drawing.box(8, terminal, WIDTH - 16, height - terminal - 8, radius=8)
y = terminal + 26
drawing.text(20, y, command, size=SIZE, mono=True, weight="bold", behind="#ffffff")
for line in lines:
    y += LEADING
    color = "red" if re.match(r"\w+: wrong|  hang", line) else INK
    color = MUTED if line.lstrip().startswith(("check", "read", "A hint")) else color
    with drawing.step():
        drawing.text(20, y, line, size=SIZE, mono=True, color=color, behind="#ffffff")
assert drawing.steps * STEP + FADE <= 5, "a longer movement needs a way to stop it"
drawing.save(__file__)
