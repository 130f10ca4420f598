"""What differs where the pages are a book or on paper: EPUB, PDF by LaTeX, a printer.

Neither has tabs, so each tab is a paragraph with its name, and then its content. A PDF
can't fold either: hints, answers and differences are left out there, and one line names
them. LaTeX can't read the drawings, so librsvg's ``rsvg-convert`` makes PDFs of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.transforms.post_transforms.images import ImageConverter

ANSWER = re.compile(r"Hint \d|Solution|Answer|The file you edit")
LINE = "left-out"
LEFT_OUT = "Folded on the site, left out here: "


class PlainTabs(SphinxPostTransform):
    """``.. tab-set::`` without the switches that a web page has."""

    default_priority = 150  # before sphinx-design makes the switches

    def run(self, **options) -> None:
        if self.app.builder.name not in ("epub", "latex"):
            return
        for tabs in list(self.document.findall(_is("tab-set"))):
            tabs.replace_self([part for tab in tabs for part in _plain(tab)])


def _is(component: str):
    return lambda node: (
        isinstance(node, nodes.container) and node.get("design_component") == component
    )


def _plain(tab: nodes.Element) -> list[nodes.Node]:
    """Its name in bold, and what it holds."""
    name, content = tab.children
    bold = nodes.strong("", "", nodes.Text(f"{name.astext()}:"))
    return [nodes.paragraph("", "", bold), *content.children]


class NothingFolds(SphinxPostTransform):
    """Closed boxes in a PDF: without a frame, or left out if they hold an answer.

    LaTeX can't frame what is many pages long.
    """

    default_priority = 150

    def run(self, **options) -> None:
        if self.app.builder.name != "latex":
            return
        for box in list(self.document.findall(_is_closed)):
            title = box.next_node(nodes.title).astext()
            before = _line_before(box)
            if not _holds_an_answer(box):
                bold = nodes.strong("", "", nodes.Text(title))
                box.replace_self([nodes.paragraph("", "", bold), *box.children[1:]])
            elif before is not None:
                before += nodes.Text(f"; {title}")
                box.parent.remove(box)
            else:
                line = nodes.paragraph("", f"{LEFT_OUT}{title}", classes=[LINE])
                box.replace_self(line)


class MarkAnswers(SphinxPostTransform):
    """Closed boxes with an answer get a class: a printed page keeps them closed."""

    default_priority = 150

    def run(self, **options) -> None:
        if self.app.builder.format != "html":
            return
        for box in self.document.findall(_is_closed):
            if _holds_an_answer(box):
                box["classes"].append("answer")


def _is_closed(node: nodes.Node) -> bool:
    return isinstance(node, nodes.admonition) and "collapsible" in node


def _holds_an_answer(box: nodes.admonition) -> bool:
    return bool(ANSWER.match(box.next_node(nodes.title).astext())) or any(
        listing.get("language") == "udiff"
        for listing in box.findall(nodes.literal_block)
    )


def _line_before(box: nodes.admonition) -> nodes.paragraph | None:
    """The line that names what was left out just before."""
    before = box.parent[max(box.parent.index(box) - 1, 0)]
    found = isinstance(before, nodes.paragraph) and LINE in before["classes"]
    return before if found else None


class DrawingConverter(ImageConverter):
    """SVG to PDF."""

    conversion_rules: ClassVar = [("image/svg+xml", "application/pdf")]

    def is_available(self) -> bool:
        return shutil.which("rsvg-convert") is not None

    def convert(self, source: Path, target: Path) -> bool:
        command = ["rsvg-convert", "--format=pdf", "--output", str(target), str(source)]
        return subprocess.run(command).returncode == 0


def setup(app) -> dict:
    app.add_post_transform(PlainTabs)
    app.add_post_transform(NothingFolds)
    app.add_post_transform(MarkAnswers)
    app.add_post_transform(DrawingConverter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
