"""A term of the glossary shows its definition to the mouse and to the keyboard.

The definition's first paragraph becomes ``data-definition`` of each link to the term;
``_static/js/definitions.js`` shows it at the term.
"""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from sphinx import addnodes

GLOSSARY = "docs/glossary"
LINK = re.compile(
    r'(<a class="reference internal" href="[^"]*#(term-[^"]+)")'
    r'(>\s*<span class="xref std std-term)'
)


def definitions(glossary: nodes.document) -> dict[str, str]:
    """The first paragraph of each definition, by the id of its term."""
    found = {}
    for box in glossary.findall(addnodes.glossary):
        for item in box.findall(nodes.definition_list_item):
            first = item.next_node(nodes.definition).next_node(nodes.paragraph)
            for term in item.findall(nodes.term):
                found |= dict.fromkeys(term["ids"], " ".join(first.astext().split()))
    return found


def read_glossary(app, builder) -> None:
    if GLOSSARY in app.env.found_docs:
        builder.definitions = definitions(app.env.get_doctree(GLOSSARY))


def show_definitions(app, pagename, templatename, context, doctree) -> None:
    known = getattr(app.builder, "definitions", {})

    def tell(link: re.Match) -> str:
        if link[2] not in known:
            return link[0]
        return f'{link[1]} data-definition="{escape(known[link[2]])}"{link[3]}'

    if "body" in context:
        context["body"] = LINK.sub(tell, context["body"])


def setup(app) -> dict:
    app.connect("write-started", read_glossary)
    app.connect("html-page-context", show_definitions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
