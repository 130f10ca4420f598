"""Draw figures as SVG that everybody can read: few shapes, checked text, no library.

A figure is a script ``docs/figures/NAME.py`` that writes ``docs/figures/NAME.svg``::

    from svg import Drawing

    drawing = Drawing(360, 120, "Two ranks", "Rank 0 sends one tensor to rank 1.")
    drawing.box(20, 40, 110, 50, "rank 0", fill="blue")
    drawing.box(230, 40, 110, 50, "rank 1", fill="green")
    drawing.arrow(130, 65, 230, 65, label="send(t)")
    drawing.save(__file__)

``make figures`` runs every script. The same script always writes the same bytes,
and a test draws every figure again to compare. What a reader could not make out is
refused while drawing: a text that leaves its box or the canvas, or whose color has
a contrast under 4.5 to 1 against what lies behind it (WCAG 2.2, 1.4.3). The colors
are in ``readable.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from pathlib import Path

from readable import (
    INK,
    MIN_CONTRAST,
    PALETTE,
    PAPER,
    DrawingError,
    colors,
    contrast,
    text_width,
)

SANS = "sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def _n(value: float) -> str:
    """A number in the file: at most two decimals, no ``-0``, no trailing zeros."""
    return f"{round(value, 2) + 0:.2f}".rstrip("0").rstrip(".")


class Drawing:
    """A canvas of ``width`` x ``height`` px; x grows to the right, y downwards.

    ``title`` names the figure in a few words; ``description`` says in full what it
    shows, for readers who do not see it. Both are stored in the file; give the page's
    ``:alt:`` the same full description.
    """

    def __init__(self, width: float, height: float, title: str, description: str):
        if not title.strip() or not description.strip():
            raise DrawingError("a figure needs a title and a description")
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        self._parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        label: str = "",
        *,
        fill: str = "white",
        size: float = 15,
        weight: str = "normal",
        mono: bool = False,
        dashed: bool = False,
        radius: float = 6,
        stroke_width: float = 1.5,
    ) -> None:
        """A rectangle from its top left corner, the label centered in it.

        ``fill`` is a palette name or ``#rrggbb``; ``\\n`` in the label starts a new
        line.
        """
        inside, outline = colors(fill)
        self._inside(x, y, x + w, y + h, f"the box {label!r}")
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" '
            f'rx="{_n(radius)}" fill="{inside}" stroke="{outline}" '
            f'stroke-width="{_n(stroke_width)}"{dash}/>'
        )
        lines = label.split("\n") if label else []
        if lines and (len(lines) * size * 1.25 > h + 2):
            raise DrawingError(f"{label!r} is higher than its box of {_n(h)} px")
        top = y + h / 2 - (len(lines) - 1) * size * 0.625
        for number, line in enumerate(lines):
            if text_width(line, size, mono) > w - 4:
                raise DrawingError(
                    f"{line!r} needs {text_width(line, size, mono):.0f} px, "
                    f"its box has {_n(w - 4)}: widen it, break the line, or use size="
                )
            self.text(
                x + w / 2,
                top + number * size * 1.25 + size * 0.35,
                line,
                size=size,
                anchor="middle",
                weight=weight,
                mono=mono,
                behind=inside,
            )

    def text(
        self,
        x: float,
        y: float,
        s: str,
        *,
        size: float = 15,
        anchor: str = "start",
        weight: str = "normal",
        color: str = INK,
        mono: bool = False,
        italic: bool = False,
        behind: str = PAPER,
    ) -> None:
        """One line of text on the baseline ``y``; ``anchor`` start, middle or end.

        ``color`` is a palette name (its dark tone) or ``#rrggbb``; ``behind`` is the
        color under the text, for the contrast check.
        """
        color = PALETTE[color][1] if color in PALETTE else color
        behind = PALETTE[behind][0] if behind in PALETTE else behind
        if size < 11:
            raise DrawingError(
                f"{s!r} at {_n(size)} px is too small to read: use 11 or more"
            )
        if contrast(color, behind) < MIN_CONTRAST:
            raise DrawingError(
                f"{s!r}: {color} on {behind} has a contrast of "
                f"{contrast(color, behind):.1f}, {MIN_CONTRAST} is needed"
            )
        width = text_width(s, size, mono)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        self._inside(
            left, y - size * 0.8, left + width, y + size * 0.2, f"the text {s!r}"
        )
        style = ' font-weight="bold"' if weight == "bold" else ""
        style += ' font-style="italic"' if italic else ""
        style += f' font-family="{MONO}"' if mono else ""
        self._parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" '
            f'text-anchor="{anchor}" fill="{color}"{style} '
            f'xml:space="preserve">{escape(s, quote=False)}</text>'
        )

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        color: str = INK,
        width: float = 1.5,
        dashed: bool = False,
    ) -> None:
        """A straight line; ``color`` is a palette name (its dark tone) or a color."""
        self._path(f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}", color, width, dashed)

    def polyline(
        self,
        points: Iterable[tuple[float, float]],
        *,
        color: str = INK,
        width: float = 2,
        dashed: bool = False,
    ) -> None:
        """A line through several points, for curves of measured numbers."""
        self._path(
            "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points), color, width, dashed
        )

    def arrow(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        label: str = "",
        *,
        color: str = INK,
        width: float = 2,
        dashed: bool = False,
        bend: float = 0,
        head: float = 9,
        size: float = 13,
        mono: bool = False,
        both: bool = False,
    ) -> None:
        """An arrow from (x1, y1) to (x2, y2), its label beside the middle.

        ``bend`` moves the middle to the left of the direction by that many px (to the
        right if negative); ``both`` puts a head at each end.
        """
        length = math.hypot(x2 - x1, y2 - y1)
        if length < head:
            raise DrawingError(f"the arrow {label!r} is shorter than its head")
        # the unit normal on the left of the direction, y pointing down
        nx, ny = (y2 - y1) / length, -(x2 - x1) / length
        cx, cy = (x1 + x2) / 2 + 2 * bend * nx, (y1 + y2) / 2 + 2 * bend * ny
        start = self._head(cx, cy, x1, y1, color, head) if both else (x1, y1)
        end = self._head(cx, cy, x2, y2, color, head)
        middle = f"Q{_n(cx)} {_n(cy)} " if bend else "L"
        self._path(
            f"M{_n(start[0])} {_n(start[1])}{middle}{_n(end[0])} {_n(end[1])}",
            color,
            width,
            dashed,
        )
        if label:
            self._beside(label, x1, y1, x2, y2, nx, ny, bend, size, mono, color)

    def group(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        label: str,
        *,
        color: str = "gray",
        size: float = 14,
    ) -> None:
        """A dashed frame round several shapes, its label inside at the top left.

        Draw the frame before what it holds.
        """
        self._inside(x, y, x + w, y + h, f"the group {label!r}")
        outline = colors(color)[1]
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" rx="10" '
            f'fill="#ffffff" stroke="{outline}" stroke-width="1.5" '
            'stroke-dasharray="6 4"/>'
        )
        self.text(
            x + 12,
            y + size + 8,
            label,
            size=size,
            weight="bold",
            color=outline,
            behind="#ffffff",
        )

    def legend(
        self,
        x: float,
        y: float,
        entries: Iterable[tuple[str, str]],
        *,
        size: float = 13,
    ) -> None:
        """A row of colored squares with their meaning: ``[("blue", "rank 0"), ...]``.

        Never let a color alone carry the meaning: label the shapes as well.
        """
        for fill, label in entries:
            inside, outline = colors(fill)
            self._parts.append(
                f'<rect x="{_n(x)}" y="{_n(y - size * 0.8)}" width="{_n(size)}" '
                f'height="{_n(size)}" rx="3" fill="{inside}" stroke="{outline}" '
                'stroke-width="1.5"/>'
            )
            self.text(x + size + 6, y, label, size=size)
            x += size + 6 + text_width(label, size) + 18

    def svg(self) -> str:
        """The whole file as text."""
        w, h = _n(self.width), _n(self.height)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
                f'viewBox="0 0 {w} {h}" role="img" aria-labelledby="title desc" '
                f'font-family="{SANS}">',
                f'<title id="title">{escape(self.title, quote=False)}</title>',
                f'<desc id="desc">{escape(self.description, quote=False)}</desc>',
                f'<rect width="{w}" height="{h}" rx="8" fill="{PAPER}"/>',
                *self._parts,
                "</svg>",
                "",
            ]
        )

    def save(self, path: str | Path) -> Path:
        """Write the file; give it ``__file__`` and ``.py`` becomes ``.svg``."""
        path = Path(path).with_suffix(".svg")
        path.write_text(self.svg(), encoding="utf-8", newline="\n")
        return path

    def _inside(self, x1: float, y1: float, x2: float, y2: float, what: str) -> None:
        if x1 < 0 or y1 < 0 or x2 > self.width + 0.5 or y2 > self.height + 0.5:
            raise DrawingError(
                f"{what} leaves the canvas of {_n(self.width)} x {_n(self.height)}: "
                f"it reaches from ({x1:.0f}, {y1:.0f}) to ({x2:.0f}, {y2:.0f})"
            )

    def _path(self, d: str, color: str, width: float, dashed: bool) -> None:
        color = PALETTE[color][1] if color in PALETTE else color
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._parts.append(
            f'<path d="{d}" fill="none" stroke="{color}" stroke-width="{_n(width)}" '
            f'stroke-linejoin="round"{dash}/>'
        )

    def _head(
        self, fx: float, fy: float, x: float, y: float, color: str, size: float
    ) -> tuple[float, float]:
        """Draw an arrow head that comes from (fx, fy); where its line should end."""
        color = PALETTE[color][1] if color in PALETTE else color
        length = math.hypot(x - fx, y - fy)
        ux, uy = (x - fx) / length, (y - fy) / length
        bx, by = x - size * ux, y - size * uy
        half = size * 0.5
        points = [
            (x, y),
            (bx - half * uy, by + half * ux),
            (bx + half * uy, by - half * ux),
        ]
        listed = " ".join(f"{_n(px)},{_n(py)}" for px, py in points)
        self._parts.append(f'<polygon points="{listed}" fill="{color}"/>')
        return x - size * 0.8 * ux, y - size * 0.8 * uy

    def _beside(self, label, x1, y1, x2, y2, nx, ny, bend, size, mono, color) -> None:
        """The label on the left of the arrow, or above it if the arrow is level."""
        if ny > 0 or (abs(ny) < 0.3 and nx < 0 and not bend):
            nx, ny = (-nx, -ny) if not bend else (nx, ny)
        side = 1 if bend >= 0 else -1
        mx = (x1 + x2) / 2 + (bend + side * 9) * nx
        my = (y1 + y2) / 2 + (bend + side * 9) * ny
        anchor = "middle"
        if abs(nx) > 0.5:
            anchor = "start" if nx * side > 0 else "end"
        if ny * side > 0.5:
            my += size * 0.7
        elif abs(nx) > 0.5:
            my += size * 0.35
        self.text(mx, my, label, size=size, anchor=anchor, mono=mono, color=color)
