"""A pytest plugin: run only the tests that may start one of some programs.

    pytest -p tests.dependents --dependents-of mpirun,mpiexec tests/jobs

What a test depends on isn't declared anywhere that one could trust: a test that forgets
to say that it needs a program is just the one to find. So a test is kept if a program's
name stands in its id, its marks, its parameters, its own text, or the text of what it
uses: fixtures, functions under tests/ at any distance, and short texts.

The parameters of some tests don't count, as they start nothing: in the browser they are
what it types or clicks there, for the linter scripts to read, for `diagnose` logs.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

TESTS = Path(__file__).resolve().parent
LONGEST = 1000  # characters: longer texts are tables that name everything
BROWSER = "browser"  # the fixture; what needs chromium names it
READS = re.compile(r"/tests/(lint/|grader/test_diagnose)")  # scripts, logs


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--dependents-of", default="", help="programs, as in ssh,sshd")
    parser.addoption("--near", action="store_true", help="only those that name one")


def pytest_collection_modifyitems(config, items) -> None:
    programs = config.getoption("--dependents-of").split(",")
    alternatives = "|".join(map(re.escape, programs))
    word = re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])")
    near = config.getoption("--near")
    kept = [item for item in items if names_one(item, word, near)]
    config.hook.pytest_deselected(items=[one for one in items if one not in kept])
    items[:] = kept


def names_one(item: pytest.Item, word: re.Pattern, near: bool) -> bool:
    """Whether one of the programs is named by the test, or by what it uses.

    ``near``: by the test itself, or by a fixture beside it that skips.
    """
    own = [getattr(item, "originalname", item.name), *map(repr, own_markers(item))]
    reads = BROWSER in item.fixturenames or READS.search(item.path.as_posix())
    if hasattr(item, "callspec") and not reads:
        own.append(item.name)
        values = item.callspec.params.values()
        own += [str(getattr(value, "needs", value))[:LONGEST] for value in values]
    if any(word.search(text) for text in own):
        return True
    fixtures = getattr(item, "_fixtureinfo", None)
    functions = [getattr(item, "function", None)]
    if fixtures:
        for definitions in fixtures.name2fixturedefs.values():
            used = [one.func for one in definitions]
            functions += [one for one in used if not near or skips_in(one, item.path)]
    return any(word.search(text) for text in texts_of(functions, near))


def own_markers(item: pytest.Item) -> list[pytest.Mark]:
    """Its marks, without the lists of all parameters; its own are looked at apart."""
    return [mark for mark in item.iter_markers() if mark.name != "parametrize"]


def skips_in(fixture: FunctionType, path: Path) -> bool:
    """Whether a fixture of this file skips where something is missing."""
    code = inspect.unwrap(fixture).__code__
    return Path(code.co_filename) == path and "skip_without" in code.co_names


def texts_of(functions: list, near: bool) -> list[str]:
    """The sources of functions under tests/ and of what they name, each once."""
    waiting, seen, texts = list(functions), set(), []
    while waiting:
        one = waiting.pop()
        if one is not None:
            one = inspect.unwrap(one)
        if not isinstance(one, FunctionType) or one in seen or not is_ours(one):
            continue
        seen.add(one)
        texts.append(source_of(one))
        if near:
            continue
        for name in names_in(one.__code__):
            value = one.__globals__.get(name)
            if isinstance(value, FunctionType):
                waiting.append(value)
            elif isinstance(value, ModuleType):
                attributes = names_in(one.__code__)
                waiting += [vars(value).get(name) for name in attributes]
            elif isinstance(value, str) and len(value) <= LONGEST:
                texts.append(value)
    return texts


source_of = cache(inspect.getsource)  # most tests use the same functions


def names_in(code: CodeType) -> set[str]:
    """Every name that a function uses, also in functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names


def files_that_name(programs: tuple[str, ...]) -> list[Path]:
    """The files of tests in which a program is named, or what needs it may be."""
    word = re.compile(
        "|".join(rf"(?<![\w-]){re.escape(one)}(?![\w-])" for one in programs)
    )
    return [
        path
        for path in sorted(TESTS.rglob("test_*.py"))
        if word.search(path.read_text(encoding="utf-8"))
    ]


@cache
def is_ours(function: FunctionType) -> bool:
    """Whether it is a test's own; tests/needs.py lists every program there is."""
    file = Path(function.__code__.co_filename).resolve()
    return file.is_relative_to(TESTS) and file != TESTS / "needs.py"
