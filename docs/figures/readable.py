"""The colors of figures, their contrast, and the width of text.

A color is a name of :data:`PALETTE`, or ``#rrggbb``. A page shows a figure in its own
theme: :data:`DARK` has the partner of each color on dark pages, and
``docs/_ext/inline_figures.py`` puts it there. The file itself is light.
"""

from __future__ import annotations

INK = "#1f2933"
PAPER = "#fbfcfd"
RULE = "#d5dce3"
MUTED = "#4f5b66"

# name -> (fill, outline): outlines are dark enough for lines and text on paper
PALETTE = {
    "blue": ("#dbe9fb", "#1d4f91"),
    "green": ("#d7f0e2", "#0b6351"),
    "orange": ("#fde6cb", "#8a4b08"),
    "violet": ("#e9def5", "#5b2c83"),
    "red": ("#fadbd7", "#a3261a"),
    "yellow": ("#fdf2c0", "#6f5400"),
    "teal": ("#d3eef2", "#0f5766"),
    "gray": ("#e6ebf0", "#4f5b66"),
    "white": ("#ffffff", "#4f5b66"),
}

# What stands for each of these on a dark page; lines keep their contrast there.
DARK = {
    INK: "#e6ecf2",
    PAPER: "#1b2229",
    RULE: "#3a4550",
    "#dbe9fb": "#1b3a5c",
    "#1d4f91": "#8fbdf2",
    "#d7f0e2": "#143f33",
    "#0b6351": "#7fd6b5",
    "#fde6cb": "#4a3113",
    "#8a4b08": "#f2b873",
    "#e9def5": "#3a2a52",
    "#5b2c83": "#cfaef2",
    "#fadbd7": "#4f2320",
    "#a3261a": "#ffa79c",
    "#fdf2c0": "#413712",
    "#6f5400": "#ecd06f",
    "#d3eef2": "#123d47",
    "#0f5766": "#84d2e2",
    "#e6ebf0": "#303a44",
    "#4f5b66": "#b3bfca",
    "#ffffff": "#252e37",
}

# One color per rank, in every figure the same.
RANK_COLORS = ("blue", "green", "orange", "violet", "teal", "red", "yellow", "gray")

MIN_CONTRAST = 4.5


class DrawingError(ValueError):
    """Something a reader could not make out; the sentence says what and where."""


def luminance(color: str) -> float:
    """Relative luminance of ``#rrggbb``, from 0 to 1 (WCAG 2.2)."""
    if len(color) != 7 or color[0] != "#":
        raise DrawingError(f"write the color {color!r} as #rrggbb or as a name")
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two ``#rrggbb`` colors, from 1 to 21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def text_width(text: str, size: float, mono: bool = False) -> float:
    """How wide ``text`` may become in px: measured on DejaVu, a wide font."""
    if mono:
        return 0.603 * size * len(text)
    return size * sum(map(_glyph, text))


def _glyph(char: str) -> float:
    if char in "ijlI.,:;'|!()[] ft":
        return 0.38
    if char in "mwMW%@→←↔≥≤":
        return 0.95
    return 0.68 if char.isupper() else 0.62


def colors(name: str) -> tuple[str, str]:
    """Fill and outline of a palette name, or of any ``#rrggbb``."""
    if name in PALETTE:
        return PALETTE[name]
    luminance(name)
    return name, INK
