"""What the first page says of the course as a whole: its time, its paths, its address.

``.. course-time::`` is a sentence with the sums of all lessons' minutes.
``.. learning-paths::`` shows the ``[[path]]`` entries of ``exercises/catalog.toml`` as
cards: their stations in order, their hours, and the command that follows them.
``.. clone::`` is the line that fetches the workshop, with the address from ``conf.py``;
where that has none, it says so, and whom to ask.
``.. books::`` links the PDF and the EPUB that Read the Docs makes of the pages;
elsewhere it says how to make them.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from urllib.parse import urljoin

import catalogs
from docutils import nodes
from exercise import reading_minutes
from sphinx.util.docutils import SphinxDirective

from workshop.catalog import Exercise
from workshop.errors import UserError
from workshop.learning_paths import LearningPath, load_paths
from workshop.lesson_pages import first_page, lesson_names

HERE = "In the folder of your copy of the workshop, which has the ``Makefile``:"
NO_ADDRESS = (
    "No copy yet? These pages were built without their repository's address. Ask the "
    "person who published them, then run ``git clone ADDRESS``."
)

NO_BOOKS = (
    "``make epub`` and ``make pdf`` make a book of these pages, to be read offline.\n"
)


def hours(minutes: int) -> str:
    """``45`` -> ``45 min``; ``200`` -> ``3½ h``: to the next half of an hour."""
    if minutes < 60:
        return f"{minutes} min"
    halves = round(minutes / 30)
    return f"{halves // 2}{'½' * (halves % 2)} h"


class CourseDirective(SphinxDirective):
    """What the directives of this module share: the catalog and the pages."""

    @property
    def root(self) -> Path:
        return Path(self.env.srcdir)

    def catalog(self) -> list[Exercise]:
        self.env.note_dependency(str(self.root / "exercises" / "catalog.toml"))
        return catalogs.exercises(self.root)

    def reading(self, lessons: list[str] | tuple[str, ...]) -> int:
        pages = [first_page(self.root, name) for name in lessons]
        for page in pages:
            self.env.note_dependency(str(page))
        return sum(map(reading_minutes, pages))

    def run(self) -> list[nodes.Node]:
        try:
            text = self.text()
        except (UserError, OSError) as error:
            raise self.error(str(error)) from None
        return self.parse_text_to_nodes(text)

    def text(self) -> str:
        raise NotImplementedError


class CourseTimeDirective(CourseDirective):
    """``20 lessons, 68 exercises: about 15 h of reading and 20 h of practice.``"""

    def text(self) -> str:
        catalog = self.catalog()
        lessons = lesson_names(self.root)  # one of them has no exercises
        practice = sum(exercise.minutes for exercise in catalog)
        return (
            f"**{len(lessons)} lessons, {len(catalog)} exercises**: about "
            f"{hours(self.reading(lessons))} of reading and {hours(practice)} of "
            "practice.\n"
        )


class LearningPathsDirective(CourseDirective):
    """A grid of cards, one for each path."""

    def text(self) -> str:
        catalog = self.catalog()
        cards = [self.card(path) for path in load_paths(self.root, catalog)]
        grid = ".. grid:: 1 1 2 2\n   :gutter: 3\n   :class-container: doors paths\n\n"
        return grid + "\n".join(textwrap.indent(card, "   ") for card in cards)

    def card(self, path: LearningPath) -> str:
        every = len(path.lessons) > 9  # a list so long is the lesson map
        stations = ":ref:`All lessons, in order <lessons>`\n"
        if not every:
            stations = "\n".join(self.station(path, one) for one in path.lessons)
            if path.starter:
                stations += f"\n#. Copy ``{path.starter}`` and make it yours\n"
        facts = (
            f"{hours(self.reading(path.lessons))} reading, {hours(path.minutes)} "
            f"exercises. Follow it with ``workshop next --path {path.name}``."
        )
        body = "\n\n".join([path.promise, stations, facts])
        return f".. grid-item-card:: {path.title}\n\n" + textwrap.indent(body, "   ")

    def station(self, path: LearningPath, lesson: str) -> str:
        """The lesson, and below it the exercises if the path has not all of them."""
        mine = path.of_lesson(lesson)
        whole = [one for one in self.catalog() if one.lesson == lesson]
        page = first_page(self.root, lesson).relative_to(self.root).with_suffix("")
        lines = [f"#. :doc:`/{page.as_posix()}`"]
        if len(mine) < len(whole):
            links = [f":ref:`{one.title} <exercise-{one.name}>`" for one in mine]
            lines.append(f"   (exercise: {', '.join(links)})")
        return "\n".join(lines)


class CloneDirective(CourseDirective):
    """How to get the workshop, if conf.py knows the address, and the first commands."""

    def text(self) -> str:
        address = self.config.repository
        fetch = f"   $ git clone {address} distributed-pytorch\n"
        enter = "   $ cd distributed-pytorch\n"
        first = "   $ make tour\n   $ . .venv/bin/activate\n   $ workshop next\n"
        if address:
            return f".. code-block:: console\n\n{fetch}{enter}{first}"
        return f"{HERE}\n\n.. code-block:: console\n\n{first}\n{NO_ADDRESS}\n"


class BooksDirective(CourseDirective):
    """Where the pages are as a book; Read the Docs keeps those of each version."""

    def text(self) -> str:
        language = os.environ.get("READTHEDOCS_LANGUAGE")
        version = os.environ.get("READTHEDOCS_VERSION")
        if not (language and version and self.config.html_baseurl):
            return NO_BOOKS
        books = f"/_/downloads/{language}/{version}"
        pdf, epub = (
            urljoin(self.config.html_baseurl, f"{books}/{kind}/")
            for kind in ("pdf", "epub")
        )
        return f"These pages are also a book: `PDF <{pdf}>`_, `EPUB <{epub}>`_.\n"


def setup(app) -> dict:
    app.add_config_value("repository", "", "env", [str])
    app.add_directive("course-time", CourseTimeDirective)
    app.add_directive("learning-paths", LearningPathsDirective)
    app.add_directive("clone", CloneDirective)
    app.add_directive("books", BooksDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
