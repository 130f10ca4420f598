"""Draw what a learner sees of a deadlock: four ranks that wait, then the verdict.

From the recorded transcript ``using_check_deadlock``. The parts appear one after the
other in less than five seconds, once; where motion is not wanted all are there at once.
There are two drawings: ``start_deadlock.svg``, and ``start_deadlock_narrow.svg`` for a
phone, whose text is as large there as it is drawn.
"""

import re
import textwrap
from contextlib import contextmanager
from pathlib import Path

from readable import INK, MUTED, RANK_COLORS
from svg import Drawing

TRANSCRIPT = Path(__file__).parent.parent / "transcripts" / "using_check_deadlock.txt"
WAITS = re.compile(r" *rank (\d): waits in (send)\(.*, to rank (\d)\) (at line \d+)")
SIZE = 12  # px of a letter in the terminal
HIGH, TOP = 58, 16  # px: a rank, and what is above the first
STEP, FADE = 0.1, 0.35  # seconds
FAINT = 0.4  # opacity of a part before its turn: the picture is complete at once

command, *printed = TRANSCRIPT.read_text(encoding="utf-8").splitlines()[:-2]
waiting = [match.groups() for match in map(WAITS.match, printed) if match]
DESCRIPTION = (
    f"{len(waiting)} ranks in a ring. Each waits in send for the next, the last one "
    "for rank 0, so none of them ever receives. Below, a terminal shows what workshop "
    "check 03_deadlock printed: wrong, deadlock; for each rank, what it waits in, and "
    "at which line of the learner's file; then the mistake that it looks like, and the "
    "page that explains it."
)


class Moving(Drawing):
    """A drawing whose parts get their full colors one after the other, once."""

    steps = 0

    @contextmanager
    def step(self):
        """What is drawn inside has its turn together, after what was drawn before."""
        delay = f"{self.steps * STEP:.2f}s"
        self._parts.append(f'<g class="appears" style="animation-delay: {delay}">')
        yield
        self._parts.append("</g>")
        self.steps += 1

    def svg(self) -> str:
        style = (
            f"<style>@keyframes appears {{ from {{ opacity: {FAINT} }} }}\n"
            f".appears {{ animation: appears {FADE}s both }}\n"
            "@media (prefers-reduced-motion: reduce), print "
            "{ .appears { animation: none } }</style>"
        )
        head, rest = super().svg().split("</desc>\n", 1)
        return f"{head}</desc>\n{style}\n{rest}"

    def rank(self, x: float, y: float, width: float, rank: str) -> None:
        color = RANK_COLORS[int(rank)]
        self.box(x, y, width, HIGH, fill=color)
        self.text(x + 12, y + 23, f"rank {rank}", weight="bold", behind=color)

    def waits(self, x: float, y: float, rank: str, line: str) -> None:
        color = RANK_COLORS[int(rank)]
        self.text(x + 12, y + 45, f"waits {line}", size=13, behind=color)


def breakable(line: str, longest: int) -> str:
    """With a space after the last slash of a path that has no room on one line."""
    for word in line.split():
        if len(word) > longest and "/" in word:
            folder, _, file = word.rpartition("/")
            line = line.replace(word, f"{folder}/ {file}")
    return line


def wrapped(columns: int, deeper: int) -> list[list[str]]:
    """Each printed line in pieces of so many columns, the later ones indented."""
    lines = []
    for line in printed:
        margin = line[: len(line) - len(line.lstrip())]
        later = margin + " " * deeper
        # two spaces between words stay two
        pieces = textwrap.wrap(
            breakable(line, columns - len(later)),
            columns,
            drop_whitespace=False,
            break_on_hyphens=False,
            subsequent_indent=later,
        )
        lines.append([pieces[0], *(later + piece.strip() for piece in pieces[1:])])
    return lines


def terminal(drawing: Moving, top: float, lines: list[list[str]], leading: int) -> None:
    """The recorded command and what it printed, from ``top`` to the lower edge."""
    edge, inside = (8, 20) if drawing.width > 400 else (4, 12)
    drawing.box(
        edge, top, drawing.width - 2 * edge, drawing.height - top - edge, radius=8
    )
    y = top + 26
    drawing.text(
        inside, y, command, size=SIZE, mono=True, weight="bold", behind="white"
    )
    for pieces in lines:
        color = "red" if re.match(r"\w+: wrong|  hang", pieces[0]) else INK
        if pieces[0].lstrip().startswith(("check", "read", "A hint")):
            color = MUTED
        with drawing.step():
            for piece in pieces:
                y += leading
                drawing.text(
                    inside,
                    y,
                    piece,
                    size=SIZE,
                    mono=True,
                    color=color,
                    behind="white",
                )


def wide() -> Moving:
    """All ranks in one row: the way back to the first is below them."""
    width, box, gap, leading = 760, 130, 56, 18
    top, lines = TOP + HIGH + 64, wrapped(100, deeper=4)
    high = 34 + leading * (1 + sum(map(len, lines)))
    drawing = Moving(
        width, top + high, "Four ranks in a deadlock, and the verdict", DESCRIPTION
    )
    left = (width - len(waiting) * box - (len(waiting) - 1) * gap) / 2
    places = [left + number * (box + gap) for number in range(len(waiting))]
    for place, (rank, *_) in zip(places, waiting, strict=True):
        drawing.rank(place, TOP, box, rank)
    for place, (rank, operation, peer, line) in zip(places, waiting, strict=True):
        middle = TOP + HIGH / 2
        with drawing.step():
            drawing.waits(place, TOP, rank, line)
            if int(peer) > int(rank):
                start = place + box + 4
                drawing.arrow(start, middle, start + gap - 8, middle, operation)
            else:
                below, under = TOP + HIGH + 24, places[0] + box / 2
                corner = place + box / 2
                path = [(corner, TOP + HIGH + 2), (corner, below), (under, below)]
                drawing.polyline(path, color=INK)
                drawing.arrow(under, below, under, TOP + HIGH + 3)
                drawing.text(width / 2, below + 16, operation, size=13, anchor="middle")
    terminal(drawing, top, lines, leading)
    return drawing


def narrow() -> Moving:
    """Two by two, around the ring: no wider than a phone has place for."""
    width, box, down, leading = 336, 134, 48, 17
    top, lines = TOP + 2 * HIGH + down + 18, wrapped(42, deeper=2)
    high = 34 + leading * (1 + sum(map(len, lines)))
    drawing = Moving(
        width, top + high, "Four ranks in a deadlock, for a narrow screen", DESCRIPTION
    )
    right, lower = width - box - 8, TOP + HIGH + down
    places = [(8, TOP), (right, TOP), (right, lower), (8, lower)]
    upper_middle, lower_middle = TOP + HIGH / 2, lower + HIGH / 2
    arrows = [
        (box + 12, upper_middle, right - 4, upper_middle),
        (right + 60, TOP + HIGH + 4, right + 60, lower - 4),
        (right - 4, lower_middle, box + 12, lower_middle),
        (68, lower - 4, 68, TOP + HIGH + 4),
    ]
    for place, (rank, *_) in zip(places, waiting, strict=True):
        drawing.rank(*place, box, rank)
    for place, arrow, (rank, operation, _, line) in zip(
        places, arrows, waiting, strict=True
    ):
        with drawing.step():
            drawing.waits(*place, rank, line)
            drawing.arrow(*arrow, operation)
    terminal(drawing, top, lines, leading)
    return drawing


for drawing, name in ((wide(), ""), (narrow(), "_narrow")):
    assert drawing.steps * STEP + FADE <= 2.2, "readers want to read, not to wait"
    drawing.save(Path(__file__).with_name(f"{Path(__file__).stem}{name}"))
