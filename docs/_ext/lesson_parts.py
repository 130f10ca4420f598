"""A lesson in parts: a page of contents, a line of facts on each part, old addresses.

``docs/lessons/05_ddp_spawn/index.rst`` says how long the whole lesson takes to read.
Here its parts get their shares of these minutes, by their words: a figure, listing or
transcript counts as 40 words, and so do all cards of one kind of failure, which readers
look up. An exercise counts as none, because the catalog has its minutes.

``.. lesson-contents::`` on that page is a table of the parts: what each is about (its
first paragraph), its minutes, its exercises. Every part has a line of facts below its
first paragraph. A lesson was one page once, ``docs/lessons/05_ddp_spawn.html``; a page
at this address leads on to the part that has what the address names, without a server.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path

import catalogs
from docutils import nodes
from exercise import reading_minutes
from sphinx.util.docutils import SphinxDirective

from workshop.catalog import Exercise
from workshop.errors import UserError
from workshop.lesson_pages import first_page, lesson_names, page_text, parts_of

PART = re.compile(r"docs/lessons/(?P<lesson>\d\d_\w+)/(?P<number>\d)_\w+$")
SHOWN = re.compile(
    r"^ *\.\. (?:figure|image|literalinclude|transcript|play|failures)::", re.M
)
WORDS_OF_ONE = 40  # a figure, a listing or a transcript
OF_THE_SITE = re.compile(r"id\d+|sd-tab-.*")  # ids that change with every build
MOVED = "moved.json"  # in docs/lessons: anchors of old pages that no part has
RENUMBERED = "renumbered"  # there: old address of a part -> its new one, beside it


@dataclass(frozen=True)
class Part:
    """One page of a lesson."""

    path: Path
    reading: int  # minutes
    exercises: tuple[Exercise, ...]

    @property
    def practice(self) -> int:
        """Minutes of its exercises."""
        return sum(exercise.minutes for exercise in self.exercises)


def weight(text: str) -> int:
    """How long a page is: its words, and 40 for whatever it shows."""
    return len(text.split()) + WORDS_OF_ONE * len(SHOWN.findall(text))


def shares(total: int, weights: list[int]) -> list[int]:
    """Whole minutes in proportion to the weights; their sum is the total."""
    exact = [total * one / sum(weights) for one in weights]
    minutes = [int(one) for one in exact]
    rest = [whole - one for whole, one in zip(minutes, exact, strict=True)]
    largest_rest_first = sorted(range(len(exact)), key=rest.__getitem__)
    for index in largest_rest_first[: total - sum(minutes)]:
        minutes[index] += 1
    return minutes


def parts(root: Path, lesson: str) -> list[Part]:
    """The parts of a lesson, in order."""
    paths = parts_of(root, lesson)
    if not paths:
        return []
    weights = [weight(page_text(path)) for path in paths]
    total = reading_minutes(first_page(root, lesson))
    mine = [one for one in catalogs.exercises(root) if one.lesson == lesson]
    return [
        Part(path, minutes, tuple(one for one in mine if one.part == path.stem))
        for path, minutes in zip(paths, shares(total, weights), strict=True)
    ]


def first_paragraph(text: str) -> str:
    """What stands first below the title of a page."""
    below = re.split(r"^={3,}\n", text, maxsplit=1, flags=re.M)[1]
    return re.split(r"\n\s*\n", below.strip("\n"), maxsplit=1)[0]


class LessonContentsDirective(SphinxDirective):
    """A table of the parts: their titles and first paragraphs, their minutes."""

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        lesson = Path(self.env.docname).parent.name
        self.env.note_dependency(str(root / "exercises" / "catalog.toml"))
        try:
            found = parts(root, lesson)
        except (UserError, OSError) as error:
            raise self.error(str(error)) from None
        if not found:
            raise self.error(f"docs/lessons/{lesson} has no parts")
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 66 12 22"]
        lines += ["   :class: lesson-contents", ""]
        lines += ["   * - Part", "     - Reading", "     - Exercises"]
        for part in found:
            self.env.note_dependency(str(part.path))
            about = first_paragraph(part.path.read_text(encoding="utf-8"))
            lines += [f"   * - :doc:`{part.path.stem}`", ""]
            lines += [f"       {line}" for line in about.splitlines()]
            lines += ["", f"     - {part.reading} min", f"     - {practice_of(part)}"]
        return self.parse_text_to_nodes("\n".join(lines) + "\n")


def practice_of(part: Part) -> str:
    """``35 min, 2 exercises``; empty if the part has none."""
    if not part.exercises:
        return ""
    number = "exercise" if len(part.exercises) == 1 else "exercises"
    return f"{part.practice} min, {len(part.exercises)} {number}"


def add_facts(app, doctree: nodes.document) -> None:
    """Say below a part's first paragraph which part it is, and how long it takes."""
    found = PART.match(app.env.docname)
    first = doctree.next_node(nodes.paragraph)
    if not found or first is None:
        return
    root, docname = Path(app.srcdir), app.env.docname
    every = parts(root, found["lesson"])
    for part in every:
        app.env.note_dependency(str(part.path))
    (mine,) = [part for part in every if part.path.stem == Path(docname).name]
    facts = f"Part {found['number']} of {len(every)} · {mine.reading} min to read"
    if mine.exercises:
        facts += f" · {mine.practice} min of exercises"
    line = nodes.line("", facts)
    below = nodes.line_block("", line, classes=["lesson-facts"])
    first.parent.insert(first.parent.index(first) + 1, below)


# Old addresses

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="robots" content="noindex">
<title>{title}</title>
<link rel="canonical" href="{canonical}">
<script>
const places = {places};
const named = decodeURIComponent(location.hash.slice(1));
location.replace(places[named] ?? {first});
</script>
<noscript><meta http-equiv="refresh" content="0; url={first_address}"></noscript>
</head>
<body>
<p>This lesson has several pages now: <a href="{first_address}">{title}</a></p>
</body>
</html>
"""


def ids_of(doctree: nodes.document) -> list[str]:
    """Every name by which an address can point into a page."""
    found = (name for node in doctree.findall(nodes.Element) for name in _names(node))
    return [name for name in found if not OF_THE_SITE.fullmatch(name)]


def _names(node: nodes.Element) -> list[str]:
    refid = node.get("refid") if isinstance(node, nodes.target) else None
    return [*node.get("ids", []), *([refid] if refid else [])]


def places_of(app, lesson: str) -> dict[str, str]:
    """Anchor -> address from docs/lessons, of all that the lesson's pages have."""
    root = Path(app.srcdir)
    moved = root / "docs" / "lessons" / MOVED
    places: dict[str, str] = {}
    for page in [*parts_of(root, lesson), first_page(root, lesson)]:
        docname = page.relative_to(root).with_suffix("").as_posix()
        for name in ids_of(app.env.get_doctree(docname)):
            places.setdefault(name, f"{lesson}/{page.stem}.html#{name}")
    if moved.is_file():
        told = json.loads(moved.read_text(encoding="utf-8")).get(lesson, {})
        places |= {name: f"{lesson}/{place}" for name, place in told.items()}
    return places


def lead_on(app, exception) -> None:
    """Write a page at each lesson's old address."""
    if exception or app.builder.name != "html":
        return
    root = Path(app.srcdir)
    for lesson in lesson_names(root):
        if not parts_of(root, lesson):
            continue
        first = f"{lesson}/index.html"
        title = app.env.titles[f"docs/lessons/{lesson}/index"].astext()
        base = app.config.html_baseurl
        canonical = f"{base}docs/lessons/{first}" if base else first
        text = PAGE.format(
            title=html.escape(title),
            canonical=canonical,
            places=json.dumps(places_of(app, lesson)).replace("<", "\\u003c"),
            first=json.dumps(first),
            first_address=first,
        )
        target = Path(app.outdir) / "docs" / "lessons" / f"{lesson}.html"
        target.write_text(text, encoding="utf-8")


RENUMBERED_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="robots" content="noindex">
<title>Moved</title>
<link rel="canonical" href="{address}">
<script>location.replace("{address}" + location.hash);</script>
<noscript><meta http-equiv="refresh" content="0; url={address}"></noscript>
</head>
<body>
<p>This page has another number now: <a href="{address}">{address}</a></p>
</body>
</html>
"""


def lead_to_new_numbers(app, exception) -> None:
    """Write a page at the old address of each part that has another number now."""
    if exception or app.builder.name != "html":
        return
    moved = Path(app.srcdir) / "docs" / "lessons" / MOVED
    told = json.loads(moved.read_text(encoding="utf-8")) if moved.is_file() else {}
    for old, address in told.get(RENUMBERED, {}).items():
        target = Path(app.outdir) / "docs" / "lessons" / f"{old}.html"
        target.write_text(RENUMBERED_PAGE.format(address=address), encoding="utf-8")


def setup(app) -> dict:
    app.add_directive("lesson-contents", LessonContentsDirective)
    app.connect("doctree-read", add_facts)
    app.connect("build-finished", lead_on)
    app.connect("build-finished", lead_to_new_numbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
