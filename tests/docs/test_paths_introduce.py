"""Before an exercise of a path needs a word or a call, a page of that path has it.

Needed are the words of the glossary in the exercise's text, and the names of
``torch.distributed`` and its like in its answers. They may stand on any page of the
path's lessons before the exercise, above it on its own page, in the exercise itself, or
in its first two hints. What only another lesson explains is missing to those who follow
the path and read nothing else.
"""

from __future__ import annotations

import ast
import re
from html import unescape
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from workshop.catalog import Exercise, load_catalog
from workshop.learning_paths import LearningPath, load_paths
from workshop.lesson_pages import pages_of
from workshop.skeleton import holes, parse, skeleton_text

pytestmark = pytest.mark.full

CATALOG = load_catalog(ROOT)
PATHS = load_paths(ROOT, CATALOG)
ANSWER = re.compile(r'<details class="[^"]*\banswer\b.*?</details>', re.DOTALL)
MODULES = ("torch.distributed", "torch.utils.data", "torch.multiprocessing")
# what every reader of these pages has met in a first PyTorch course
KNOWN = {"DataLoader", "Dataset", "TensorDataset", "Subset"}
EVERYDAY = {  # words of the glossary that these exercises use in another sense
    ("01_exact_accuracy", "trace"),  # "must leave no trace"
    ("08_meeting_point", "container"),  # the network of Docker, where it's said
    ("12_micro_batches", "stage"),  # a class that is given, and explained there
    ("16_mesh_api", "scheduler"),  # of the learning rate
}
TERM = re.compile(r"^   ((?:[A-Za-z]|\[).*)$", re.MULTILINE)


def glossary_terms() -> list[str]:
    """The words that the glossary defines."""
    text = (ROOT / "docs" / "glossary.rst").read_text(encoding="utf-8")
    _, _, entries = text.partition(".. glossary::")
    return [line.strip() for line in TERM.findall(entries)]


TERMS = glossary_terms()


def solution_of(exercise: Exercise) -> str:
    return exercise.solution.read_text(encoding="utf-8")


def needed_names(exercise: Exercise) -> set[str]:
    """Names of torch.distributed and its like in the answers of a Python exercise."""
    if exercise.suffix != ".py":
        return set()
    text = solution_of(exercise)
    imported: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(MODULES):
            imported |= {alias.asname or alias.name for alias in node.names}
    answers = "\n".join("\n".join(hole.answer) for hole in holes(parse(text)))
    words = set(re.findall(r"\b\w+\b", answers))
    called = set(re.findall(r"\bdist\.(\w+)", answers))
    return (imported & words) | called - KNOWN


def needed_words(exercise: Exercise) -> set[str]:
    """Terms of the glossary in what the learner reads in the file."""
    text = skeleton_text(solution_of(exercise), exercise.suffix)
    text = re.sub(r".*workshop check.*", "", text)  # the command, not the word
    found = {term for term in TERMS if says(text, term)}
    return {term for term in found if (exercise.name, term) not in EVERYDAY}


def says(text: str, term: str) -> bool:
    """Whether the term stands there, in the singular or the plural."""
    words = re.escape(term).replace(r"\ ", r"[\s-]+").replace(r"\-", r"[\s-]+")
    return bool(re.search(rf"(?<![\w.]){words}(s|es)?(?![\w(])", text, re.IGNORECASE))


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", ANSWER.sub(" ", html)))


def read_until(site: Path, path: LearningPath, exercise: Exercise) -> str:
    """What a follower of the path has read when the exercise begins."""
    read = []
    for lesson in path.lessons:
        for page in pages_of(ROOT, lesson):
            html = site / page.relative_to(ROOT).with_suffix(".html")
            text = html.read_text(encoding="utf-8").partition('role="main"')[2]
            mark = f'id="exercise-{exercise.name.replace("_", "-")}"'
            if mark in text:
                return text_of(" ".join([*read, text.partition(mark)[0]]))
            read.append(text)
    raise AssertionError(f"{exercise.name} is on no page of the path {path.name}")


@pytest.mark.nightly
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_path_introduces_what_its_exercises_need(site, path):
    missing = []
    for exercise in path.exercises:
        read = read_until(site, path, exercise)
        own = skeleton_text(solution_of(exercise), exercise.suffix)
        given = " ".join([own, *exercise.hints[:2]])
        lacking = {
            name
            for name in needed_names(exercise)
            if not re.search(rf"\b{name}\b", read + given)
        }
        lacking |= {term for term in needed_words(exercise) if not says(read, term)}
        missing += [f"{exercise.name}: {', '.join(sorted(lacking))}"] * bool(lacking)
    assert not missing, "\n".join(missing)
