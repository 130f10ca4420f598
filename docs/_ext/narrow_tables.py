"""Tables with sentences in them become cards on a phone, one for each row.

Here each cell gets the heading of its column as ``data-label``, and the table the class
``cards``; the style sheet does the rest. Tables of short words and numbers fit as they
are.
"""

from __future__ import annotations

from html import escape

from docutils import nodes
from sphinx.writers.html5 import HTML5Translator

FITS = 36  # characters of a row that a phone shows side by side


def mark_cards(app, doctree: nodes.document) -> None:
    for table in doctree.findall(nodes.table):
        head = table.next_node(nodes.thead)
        rows = table.findall(nodes.row)
        widest = max(sum(len(cell.astext()) for cell in row) for row in rows)
        if head is None or widest <= FITS or "lesson-map" in table["classes"]:
            continue
        table["classes"].append("cards")
        labels = [cell.astext() for cell in head.next_node(nodes.row)]
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
