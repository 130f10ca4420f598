"""``.. exercise:: NAME``: an exercise as the learner meets it, from its own files.

Title, minutes, points and hints come from ``exercises/catalog.toml``, the statement
from the docstring of ``exercises/NAME.py``, the folded solution from the answers in
``solutions/NAME.py``. What the page's author writes in the directive's body stands
before the statement. Nothing is typed twice, so nothing can drift.

Boxes whose title begins with "Predict" are marked as questions.

``.. lesson-map::`` is the table of all lessons with their minutes.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import catalogs
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from workshop.catalog import Exercise, find_exercise
from workshop.errors import UserError
from workshop.learning_paths import is_optional
from workshop.lesson_pages import first_page, lesson_names
from workshop.skeleton import holes, parse, read_solution

LANGUAGES = {".py": "python", ".yaml": "yaml"}
HINT_NAMES = ("Hint 1: where to look", "Hint 2: nearer", "Hint 3: nearly the code")


def statement(path: Path) -> str:
    """The docstring of an exercise, without what the page says in its own way.

    The paragraph with the check command and the one that names the lesson's page are
    left out. In a shell script the first comment block takes the docstring's place.
    """
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        doc = ast.get_docstring(ast.parse(source)) or ""
    else:
        block = re.search(r"^(?:#(?: (?!SBATCH|PBS)[^\n]*)?\n)+", source, re.M)
        doc = (
            textwrap.dedent(re.sub(r"^# ?", "", block[0], flags=re.M)) if block else ""
        )
    paragraphs = re.split(r"\n[ \t]*\n", doc.strip("\n"))
    return "\n\n".join(p for p in paragraphs if not _said_by_the_page(p, path)).strip()


def _said_by_the_page(paragraph: str, path: Path) -> bool:
    words = paragraph.replace(f"workshop check {path.stem}", "").split()
    short = len(words) <= 12
    page = "docs/lessons/" in paragraph or "docs/production/" in paragraph
    return short and (page or "workshop check" in paragraph)


def answers(exercise: Exercise) -> list[str]:
    """The code of each hole, at indentation 0.

    Raises:
        UserError: the solution cannot be read or its markers are wrong.
    """
    found = holes(parse(read_solution(exercise.solution), exercise.solution.name))
    return [textwrap.dedent("\n".join(hole.answer)).strip("\n") for hole in found]


class ExerciseDirective(SphinxDirective):
    """The Exercise admonition: statement, command, three hints, the solution."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        name = self.arguments[0]
        try:
            exercise = find_exercise(catalogs.exercises(root), name)
            if exercise.name != name:
                raise UserError(f"{name!r} is not the whole name of an exercise")
            for path in (exercise.path, exercise.solution):
                self.env.note_dependency(str(path))
            self.env.note_dependency(str(root / "exercises" / "catalog.toml"))
            text = self._text(exercise)
        except (UserError, OSError, SyntaxError) as error:
            raise self.error(f"exercise {name}: {error}") from None
        return self._nodes(exercise, text)

    def _nodes(self, exercise: Exercise, text: str) -> list[nodes.Node]:
        label = f"exercise-{exercise.name}"
        box = nodes.admonition(classes=["todo", "exercise"], ids=[nodes.make_id(label)])
        self.set_source_info(box)
        title = f"Exercise: {exercise.title}"
        box += nodes.title(title, title)
        box += self.parse_content_to_nodes()
        box += self.parse_text_to_nodes(text)
        for listing in box.findall(nodes.literal_block):
            if "language" not in listing and not _is_python(listing.astext()):
                listing["language"] = "text"
        domain = self.env.domains.standard_domain
        place = (self.env.docname, box["ids"][0])
        domain.anonlabels[label] = place
        domain.labels[label] = (*place, title)
        return [box]

    def _text(self, exercise: Exercise) -> str:
        """The admonition's body as reStructuredText."""
        points = f"{exercise.points} point" + "s" * (exercise.points != 1)
        language = LANGUAGES.get(exercise.suffix, "bash")
        parts = [
            ".. rst-class:: exercise-facts",
            f"{exercise.minutes} min · {points}{' · optional' * exercise.optional}"
            f" · edit ``exercises/{exercise.file}``",
            statement(exercise.path),
            ".. code-block:: console\n\n"
            + textwrap.indent(f"$ workshop check {exercise.name}", "   "),
            _folded(
                "The file you edit",
                f".. literalinclude:: /exercises/{exercise.file}\n"
                f"   :language: {language}\n",
            ),
        ]
        parts += [
            _folded(*pair) for pair in zip(HINT_NAMES, exercise.hints, strict=False)
        ]
        found = answers(exercise)
        listings = []
        for number, code in enumerate(found, start=1):
            if len(found) > 1:
                listings.append(f"TODO {number} of {len(found)}:")
            listings.append(
                f".. code-block:: {language}\n\n" + textwrap.indent(code, "   ")
            )
        parts.append(_folded("Solution", "\n\n".join(listings)))
        return "\n\n".join(parts) + "\n"


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _folded(title: str, body: str) -> str:
    """A closed admonition around ``body``."""
    return (
        f".. admonition:: {title}\n   :class: solution\n   :collapsible: closed\n\n"
        + textwrap.indent(body, "   ")
    )


MINUTES = re.compile(r"tutorial[^\n]*?(?P<minutes>\d+)\s*min", re.I)


def reading_minutes(page: Path) -> int:
    """What a lesson's first page says, 0 if it says nothing."""
    found = MINUTES.search(page.read_text(encoding="utf-8"))
    return int(found["minutes"]) if found else 0


class LessonMapDirective(SphinxDirective):
    """A table: each lesson, its minutes to read and to practice."""

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / "exercises" / "catalog.toml"))
        try:
            catalog = catalogs.exercises(root)
        except UserError as error:
            raise self.error(str(error)) from None
        rows = [["Lesson", "Reading", "Exercises"]]
        for lesson in lesson_names(root):
            page = first_page(root, lesson)
            self.env.note_dependency(str(page))
            rows.append(self._row(root, lesson, page, catalog))
        if len(rows) == 1:
            return []
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 62 14 24"]
        lines += ["   :class: lesson-map", ""]
        for row in rows:
            first, *others = row
            lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
        return self.parse_text_to_nodes("\n".join(lines) + "\n")

    def _row(
        self, root: Path, lesson: str, page: Path, catalog: list[Exercise]
    ) -> list[str]:
        reading = reading_minutes(page)
        mine = [exercise for exercise in catalog if exercise.lesson == lesson]
        practice = sum(exercise.minutes for exercise in mine)
        number = "exercise" if len(mine) == 1 else "exercises"
        optional = " (optional)" * is_optional(lesson, catalog)
        name = page.relative_to(root).with_suffix("").as_posix()
        return [
            f":doc:`/{name}`{optional}",
            f"{reading} min" if reading else "",
            f"{practice} min, {len(mine)} {number}" if mine else "",
        ]


def mark_questions(app, doctree: nodes.document) -> None:
    """Let every "Predict first" box look the same, whatever class its author chose."""
    for box in doctree.findall(nodes.admonition):
        title = box.next_node(nodes.title)
        if title is not None and title.astext().lower().startswith("predict"):
            box["classes"].append("predict")


def setup(app) -> dict:
    app.add_directive("exercise", ExerciseDirective)
    app.add_directive("lesson-map", LessonMapDirective)
    app.connect("doctree-read", mark_questions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
