"""Phrases that no engineer would say, kept out of everything that learners read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.docs.pages import ROOT, sources

BETTER = {
    r"for ever": "forever",
    r"anew": "again, from scratch",
    r"a training(?! (?:run|step|loop|program|script|set|job|image|mode)s?\b)": (
        "training, a training run"
    ),
    r"nobody|whoever": "no rank, the one who",
    r"in vain": "until it timed out",
    r"brings? (?:it|them) back": "restores",
    r"as it came": "unchanged",
    r"(?:is|are|was|were|been) (?:not )?told": "gets, doesn't get",
    r"(?:come|comes) to (?:an|its) end": "end, finish",
    r"shall": "must",
    r"(?<!all )but for": "except for",
    r"(?:go|goes|going|gone|went) on": "continue, resume",
    r"difference to": "diff against",
    r"travels?|traveled": "is sent",
    r"mere": "only",
    r"rubbish": "meaningless values",
    r"line ends(?= of\b|$)|windows line ends": "line endings",
    r"(?:ends?|ended) with \d+": "exits with status",
    r"nothing of (?:it|them|that|the others)": "none of",
    r"(?:has|have|had) (?:it |them )?whole": "holds all of",
    r"draws? the (?:first |same )?weights": "initializes the weights",
    r"behind a(?= `+[&|])": "started with",
    r"by its own loss": "because of its own",
    r"says? just that": "reports only",
    r"(?:do|does) as well": "work too",
    r"how often (?:has|have|does|did|it|they|the|a|each)": "how many times",
}
CATALOGS = (  # hints, cures, rows of pages
    "exercises/catalog.toml",
    "gallery/catalog.toml",
    "workshop/diagnose/mistakes.toml",
)
IDIOMS = {re.compile(rf"\b(?:{words})\b"): say for words, say in BETTER.items()}


def strings(text: str) -> Iterator[str]:
    """The strings of a program, docstrings among them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def docstrings(text: str) -> Iterator[str]:
    with_one = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, with_one):
            yield ast.get_docstring(node) or ""


def comments(text: str) -> Iterator[str]:
    yield " ".join(re.findall(r"^ *# (.*)$", text, re.M))


def read_by_learners() -> Iterator[tuple[str, str]]:
    """(where, a text) of everything that is checked."""
    names = ("README.md", "CONTRIBUTING.md", *CATALOGS)
    for page in [*sources(), *(ROOT / name for name in names)]:
        yield page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")
    for pattern, find in (
        ("exercises/*.py", docstrings),
        ("exercises/*.sbatch", comments),
        ("exercises/*.pbs", comments),
        ("job_scripts/*.sbatch", comments),
        ("job_scripts/*.pbs", comments),
        ("exercises/*.yaml", comments),
        ("tests/exercises/*/checks.py", strings),
        ("workshop/**/*.py", strings),
        ("src/*.py", strings),
        ("src/instruments/*.py", strings),
        ("gallery/*.py", docstrings),
        ("gallery/*.py", comments),  # the cures
        ("src/common/**/*.py", strings),
        ("src/starter/*.py", strings),
        ("docs/_ext/*.py", strings),
        ("tools/*.py", strings),
    ):
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            for found in find(text):
                yield path.relative_to(ROOT).as_posix(), found


def idioms(text: str) -> list[tuple[str, str]]:
    """(what is said, what to say) for each idiom of a text."""
    line = " ".join(text.lower().split())
    pairs = IDIOMS.items()
    return [(hit[0], say) for idiom, say in pairs for hit in idiom.finditer(line)]


def test_nothing_that_learners_read_has_an_idiom_of_the_list():
    found = [
        f"{where}: {said!r}: say {better!r}"
        for where, text in read_by_learners()
        for said, better in idioms(text)
    ]
    assert not found, "\n".join(found)


def test_the_list_finds_what_it_should():
    wrong = "Nobody is\nnot told: a training goes on for ever, but for rank 0."
    assert sorted(said for said, _ in idioms(wrong)) == [
        "a training",
        "but for",
        "for ever",
        "goes on",
        "is not told",
        "nobody",
    ]
    of_the_last_reading = {
        "pbsdsh always ends with 0": "ends with 0",
        "give it the line ends of Linux": "line ends",
        "on rank 1, nothing of it": "nothing of it",
        "gradients that no rank has whole": "has whole",
        "rank 0 draws the first weights": "draws the first weights",
        "what runs behind a `&`": "behind a",
        "it stops by its own loss": "by its own loss",
        "and says just that": "says just that",
        "its four nodes do as well.": "do as well",
        "how often the job was requeued": "how often the",
    }
    for sentence, part in of_the_last_reading.items():
        assert [said for said, _ in idioms(sentence)] == [part]
    assert not idioms("17 runs: how often to save, and a line that ends with a comma.")
    right = "A training run stalled for everyone; all but four ranks continue forever."
    assert not idioms(right)
