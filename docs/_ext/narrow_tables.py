"""Tables with sentences in them become cards on a phone, one for each row.

Here each cell gets the heading of its column as ``data-label``, and the table the class
``cards``; the style sheet does the rest. Tables of short words and numbers fit as they
are, and one that readers compare column by column has the class ``stays-table``.
A label is plain text: the build warns of a heading with a formula.
"""

from __future__ import annotations

from html import escape

from docutils import nodes
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)

STAY = {"lesson-map", "stays-table"}
FITS = 36  # characters of a row that a phone shows side by side


def mark_cards(app, doctree: nodes.document) -> None:
    for table in doctree.findall(nodes.table):
        head = table.next_node(nodes.thead)
        rows = table.findall(nodes.row)
        widest = max(sum(len(cell.astext()) for cell in row) for row in rows)
        if head is None or widest <= FITS or STAY & {*table["classes"]}:
            continue
        labels = [cell.astext() for cell in head.next_node(nodes.row)]
        for label in labels:
            if "\\" in label:  # a command of LaTeX
                words = "a phone shows this table's heading as %r: write it in words"
                LOGGER.warning(words, label, location=table)
        table["classes"].append("cards")
        for row in table.next_node(nodes.tbody):
            for label, cell in zip(labels, row, strict=False):
                cell["label"] = label


def visit_entry(self: HTML5Translator, node: nodes.entry) -> None:
    HTML5Translator.visit_entry(self, node)
    if node.get("label"):
        label = f' data-label="{escape(node["label"])}"'
        tag, rest = self.body[-1][:3], self.body[-1][3:]
        self.body[-1] = tag + label + rest


def setup(app) -> dict:
    app.add_node(
        nodes.entry, override=True, html=(visit_entry, HTML5Translator.depart_entry)
    )
    app.connect("doctree-read", mark_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
