"""``.. failures:: hangs``: a card for each failure of gallery/ with this symptom.

A card is folded. Its permanent link is ``failure-NAME``; ``:ref:`failure-NAME``` leads
there, and failure-search.js opens it. What a card shows comes from the catalog, the
recorded transcript ``19_NAME``, and the whole program with what cures it.
"""

from __future__ import annotations

import html
import json
import re
import sys
from difflib import unified_diff
from pathlib import Path
from textwrap import indent

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.append(str(Path(__file__).resolve().parents[2] / "src"))
from common.gallery import Failure, GalleryError, load_gallery

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
        card += self._messages(failure)
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
                self._difference(f"gallery/{failure.name}.py"),
            ]
        )

    def _difference(self, name: str) -> str:
        """The whole program, with what the cured one changes, as a listing."""
        names = [name, name.replace("gallery/", "gallery/cured/")]
        paths = [Path(self.env.srcdir) / each for each in names]
        for path in paths:
            self.env.note_dependency(str(path))
        texts = [path.read_text(encoding="utf-8").splitlines() for path in paths]
        lines = [*unified_diff(*texts, *names, n=len(texts[0]), lineterm="")]
        shown = [line for line in lines if not line.startswith("@@ ")]
        return ".. code-block:: diff\n\n" + indent("\n".join(shown), "   ")

    def _messages(self, failure: Failure) -> nodes.raw:
        """What failure-search.js compares a line with."""
        data = html.escape(json.dumps([failure.name, *failure.messages]), quote=True)
        span = f'<span hidden="hidden" data-messages="{data}"></span>'
        return nodes.raw("", span, format="html")

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


def setup(app) -> dict:
    app.add_directive("failures", FailuresDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
