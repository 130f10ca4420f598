"""Lessons carry their numbers: in titles, the menu, and wherever a page names one.

The number is that of the folder, ``docs/lessons/05_ddp_spawn``, and is typed nowhere
else. The title becomes "05 DDP: ...", that of its part in ``2_wrap.rst`` "5.2 ...", and
with it the menu, the breadcrumbs and the buttons at the foot; ``:ref:`lesson-05` ``
reads "lesson 05" and tells its title to the mouse.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes

PAGE = re.compile(r"docs/lessons/(\d\d)_\w+(?:/(?:index|(\d)_\w+))?$")
LABEL = re.compile(r"lesson-(\d\d)")
LINK = re.compile(r"\.html#lesson-(\d\d)$")
BEFORE_A_SENTENCE = re.compile(r"(^|[.!?]\s)$")


def number_title(app, doctree: nodes.document) -> None:
    """Put the number in front of a lesson's title."""
    found = PAGE.match(app.env.docname)
    title = doctree.next_node(nodes.title)
    if found and title is not None:
        lesson, part = found.groups()
        text = f"{int(lesson)}.{part}" if part else lesson
        number = nodes.inline("", text, classes=["lesson-number"])
        title[:] = [number, nodes.Text(" "), *title.children]


def name_lessons(app, doctree: nodes.document) -> None:
    """Let a reference without words of its own read "lesson 05"."""
    for reference in doctree.findall(addnodes.pending_xref):
        found = LABEL.fullmatch(reference.get("reftarget", ""))
        if found and reference["reftype"] == "ref" and not reference["refexplicit"]:
            word = "Lesson" if _begins_a_sentence(reference) else "lesson"
            reference["refexplicit"] = True
            reference[:] = [nodes.inline("", f"{word} {found[1]}")]


def _begins_a_sentence(node: nodes.Node) -> bool:
    paragraph = node.parent
    before = "".join(
        part.astext() for part in paragraph.children[: paragraph.index(node)]
    )
    return bool(BEFORE_A_SENTENCE.search(before))


def tell_titles(app, doctree: nodes.document, docname: str) -> None:
    """Give a link to a lesson the lesson's title."""
    labels = app.env.domains.standard_domain.anonlabels
    for link in doctree.findall(nodes.reference):
        found = LINK.search(link.get("refuri", ""))
        if found:
            place = labels[f"lesson-{found[1]}"]
            link["reftitle"] = app.env.titles[place[0]].astext()


def setup(app) -> dict:
    # before Sphinx collects the titles
    app.connect("doctree-read", number_title, priority=100)
    app.connect("doctree-read", name_lessons)
    app.connect("doctree-resolved", tell_titles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
