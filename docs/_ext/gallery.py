"""``.. failures:: hangs``: a card for each failure of gallery/ with this symptom.

``.. causes:: GPUs`` is a folded table of the causes of this group that workshop
diagnose knows from elsewhere: those of workshop/diagnose/causes.toml. What the search
compares a line with is in knowledge.js (see knowledge.py).

A card is folded. Its permanent link is ``failure-NAME``; ``:ref:`failure-NAME``` leads
there, and failure-search.js opens it. What a card shows comes from the catalog, the
recorded transcript ``19_NAME``, and the whole program with what cures it.
"""

from __future__ import annotations

import re
import sys
from difflib import unified_diff
from pathlib import Path
from textwrap import indent

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

sys.path.append(str(Path(__file__).resolve().parents[2] / "src"))
from common.gallery import Failure, GalleryError, load_gallery, tomllib
from workshop.diagnose.words import row_id

CODE = re.compile(r"`([^`]+)`")
# A frame of torch's own code, its line, and the marks below that; frames of C++;
# torchrun's advice; and its report, which begins when it ends the other ranks.
FRAME = r'(?:\[rank\d\]: )? +File "[^"]*/(?:site-packages|lib/python[\d.]+)/.*'
OTHERS_LINE = r"\n(?:\[rank\d\]: )? {4}.*"
LEFT_OUT = (
    re.compile(rf"^{FRAME}(?:{OTHERS_LINE})*\n", re.M),
    re.compile(
        r"^(?:Exception raised from|frame #\d+:|<omitting python frames>).*\n\n?", re.M
    ),
    re.compile(r"^W\d{4} .*torch/distributed/run\.py.*\n", re.M),
    re.compile(
        r"^[WE]\d{4} .*/(?:multiprocessing/api|agent/server/api)\.py.*\n"
        r"(?:.*\n)*={40,}\n(?=(?:\[exit status \d+\]\n)?\Z)",
        re.M,
    ),
)
NOTES = (
    (LEFT_OUT[-1], "The final report of torchrun is left out."),
    (LEFT_OUT[0], "Torch's own frames are left out."),
)


def shortened(output: str) -> str:
    """A recorded output without what a reader skips: torch's frames, torchrun's report.

    What ends with ``[exit status N]`` still does.
    """
    output = output.rstrip("\n") + "\n"
    for pattern in LEFT_OUT:
        output = pattern.sub("", output)
    return output.rstrip("\n")


def note_on(output: str) -> str:
    """What is left out of this output, in a sentence or two."""
    output = output.rstrip("\n") + "\n"
    found = [note for pattern, note in NOTES if pattern.search(output)]
    return " ".join(found[::-1]) or "Frames of C++ and torchrun's advice are left out."


def markup(text: str) -> str:
    """Plain text with `code` as reStructuredText."""
    return CODE.sub(r"``\1``", text)


class FailuresDirective(SphinxDirective):
    """Cards of one symptom, in the order of the catalog."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        path = root / "gallery" / "catalog.toml"
        self.env.note_dependency(str(path))
        try:
            failures = load_gallery(path).values()
        except GalleryError as error:
            raise self.error(str(error)) from None
        cards = [self._card(f) for f in failures if f.symptom == self.arguments[0]]
        if not cards:
            raise self.error(f"no failure has the symptom {self.arguments[0]!r}")
        return cards

    def _card(self, failure: Failure) -> nodes.admonition:
        label = f"failure-{failure.name}"
        card = nodes.admonition(
            classes=["failure"], ids=[nodes.make_id(label)], collapsible="closed"
        )
        self.set_source_info(card)
        inline, _ = self.parse_inline(markup(failure.title), lineno=self.lineno)
        card += nodes.title(failure.title, "", *inline)
        card += self.parse_text_to_nodes(self._text(failure))
        self._shorten(card)
        self._set_label(label, card)
        return card

    def _text(self, failure: Failure) -> str:
        """The card's body as reStructuredText."""
        return "\n\n".join(
            [
                f"**Ask:** {markup(failure.question)}",
                f"**Tool:** {markup(failure.tool)}",
                f"**Cure:** {markup(failure.cure)} See :ref:`lesson-{failure.lesson}`.",
                f".. transcript:: 19_{failure.name}",
                markup(failure.note),
                self._difference(failure),
            ]
        )

    def _difference(self, failure: Failure) -> str:
        """The whole program, with what the cure changes, as a listing."""
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / failure.program))
        folder = root / "gallery"
        try:
            texts = [failure.text(folder), failure.cured_text(folder)]
        except GalleryError as error:
            raise self.error(str(error)) from None
        before, after = [text.splitlines() for text in texts]
        names = [failure.program, f"{failure.program}, cured"]
        lines = unified_diff(before, after, *names, n=len(before), lineterm="")
        shown = [line for line in lines if not line.startswith("@@ ")]
        return ".. code-block:: diff\n\n" + indent("\n".join(shown), "   ")

    def _shorten(self, card: nodes.admonition) -> None:
        for listing in card.findall(nodes.literal_block):
            if "output" not in listing["classes"]:
                continue
            text = shortened(listing.astext())
            if text != listing.astext():
                place = listing.parent.index(listing) + 1
                said = note_on(listing.astext())
                note = nodes.paragraph("", said, classes=["left-out"])
                listing.parent.insert(place, note)
            listing.rawsource = text
            listing.children = [nodes.Text(text)]

    def _set_label(self, label: str, card: nodes.admonition) -> None:
        domain = self.env.domains.standard_domain
        place = (self.env.docname, card["ids"][0])
        domain.anonlabels[label] = place
        domain.labels[label] = (*place, card.next_node(nodes.title).astext())


CAUSES = Path(__file__).resolve().parents[2] / "workshop/diagnose/causes.toml"
# what is set as code in a title or a cure: options, variables, calls, names with dots
CODE_LIKE = re.compile(
    r"(?<![\w-])(--?[a-zA-Z][\w=:-]*(?:[.,]\w[\w=:-]*)*|"
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:=\S*\w)?|"
    r"[\w.]+\([^()]*\)|[a-z]+_\w+(?:\.\w+)*)"
)
LONGEST = 150  # characters of a line in a table
MESSAGE = "message"  # class of such a line


class CausesDirective(SphinxDirective):
    """The causes of one group as a table."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(CAUSES))
        causes = tomllib.loads(CAUSES.read_text(encoding="utf-8"))["cause"]
        group = self.arguments[0]
        shown = [cause for cause in causes if cause.get("group") == group]
        if not shown:
            raise self.error(f"no cause has the group {group!r}")
        box = nodes.admonition(classes=["attention"], collapsible="closed")
        box += nodes.title("", f"{group[0].upper()}{group[1:]}: {len(shown)} causes")
        box += self._table(shown)
        return [box]

    def _table(self, causes: list[dict]) -> nodes.table:
        table = nodes.table(classes=["causes"])
        group = nodes.tgroup(cols=2)
        table += group
        group += [nodes.colspec(colwidth=44), nodes.colspec(colwidth=56)]
        head = nodes.thead()
        titles = [nodes.paragraph("", text) for text in ("Line", "What to do")]
        head += row_of(*titles)
        body = nodes.tbody()
        body += [self._row(cause) for cause in causes]
        group += [head, body]
        return table

    def _row(self, cause: dict) -> nodes.row:
        line = cause["lines"][0]
        cut = line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."
        message = nodes.literal(cut, cut, classes=[MESSAGE])
        shown = nodes.paragraph("", "", message)
        told = nodes.paragraph()
        told += with_code(f"{cause['title']}. {cause['cure']}")
        told += [nodes.Text(" To be sure: "), *with_code(ended(cause["confirm"]))]
        if cause.get("torch"):
            told += nodes.Text(f" (PyTorch {cause['torch']})")
        for source in cause["sources"]:
            repository, number = source.split("#")
            address = f"https://github.com/{repository}/issues/{number}"
            link = nodes.reference("", source.split("/")[1], refuri=address)
            told += [nodes.Text(" "), link]
        row = row_of(shown, told)
        row["ids"] = [row_id(cause)]
        return row


def row_of(*cells: nodes.paragraph) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", cell)
    return row


def ended(text: str) -> str:
    """With a full stop, if it ends with no mark."""
    return text if text[-1] in ".?!" else f"{text}."


def with_code(text: str) -> list[nodes.Node]:
    """Plain text in which options, variables and calls are code."""
    parts = CODE_LIKE.split(text)
    found: list[nodes.Node] = []
    for number, part in enumerate(parts):
        if number % 2 == 1:
            found.append(nodes.literal(part, part, is_one_word=True))
        else:
            found.append(nodes.Text(part))
    return found


def needs_no_spans(node: nodes.literal) -> bool:
    """In the tables here, around each word they'd be a fifth of the page."""
    return MESSAGE in node["classes"] or "is_one_word" in node


def visit_literal(self: HTML5Translator, node: nodes.literal) -> None:
    HTML5Translator.visit_literal(self, node)
    if needs_no_spans(node):
        self.protect_literal_text -= 1


def depart_literal(self: HTML5Translator, node: nodes.literal) -> None:
    if needs_no_spans(node):
        self.protect_literal_text += 1
    HTML5Translator.depart_literal(self, node)


def setup(app) -> dict:
    app.add_node(nodes.literal, override=True, html=(visit_literal, depart_literal))
    app.add_directive("causes", CausesDirective)
    app.add_directive("failures", FailuresDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
