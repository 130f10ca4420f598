"""The pytest plugin: ``pytest`` grades ``exercises/``, each check in fresh ranks.

The files ``tests/exercises/NN_name/checks.py`` are not imported by pytest: their
check functions become items that hand the learner's file to the engine. So ``-k``,
``-x``, ``-n`` of pytest-xdist, ``--junitxml`` and Ctrl-C work as for any test.

Options: ``--solutions`` grades ``solutions/``, ``--exercises DIR`` another folder,
``--seeds 1,2`` chooses the seeds of the inputs. ``-v`` shows all that was seen.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pytest

from workshop.catalog import Exercise, find_root, load_catalog
from workshop.errors import UserError
from workshop.grader.checks import SEEDS, Check, checks_in
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind, Verdict
from workshop.learner.exposure import SENTENCE
from workshop.versions import problem_with_torch

ENGINE = pytest.StashKey[Engine]()
CATALOG = pytest.StashKey[dict[Path, Exercise]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("workshop", "distributed training workshop")
    group.addoption(
        "--solutions", action="store_true", help="grade solutions/, not exercises/"
    )
    group.addoption(
        "--exercises", metavar="DIR", type=Path, help="grade the files in this folder"
    )
    group.addoption(
        "--seeds",
        type=_seeds,
        default=SEEDS,
        help="seeds of the checks' inputs, as in 1,2",
    )


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "ranks(N, ..., init=True, limit=5): run the check in N fresh ranks",
    )
    folder = config.getoption("--exercises")
    if folder is not None and not folder.is_dir():
        raise pytest.UsageError(f"--exercises: there is no folder {folder}")
    try:
        catalog = load_catalog(find_root(config.rootpath))
    except UserError:
        catalog = []
    config.stash[CATALOG] = {e.checks.resolve(): e for e in catalog}
    config.stash[ENGINE] = Engine(seeds=config.getoption("--seeds") or SEEDS)


def pytest_unconfigure(config: pytest.Config) -> None:
    if engine := config.stash.get(ENGINE, None):
        engine.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector):
    """Find the checks of an exercise, whose files aren't called test_*.py."""
    if parent.session.isinitpath(file_path):
        return None  # named on the command line: the next function is asked
    return _check_file(file_path, parent)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector):
    """Collect the checks of an exercise without importing their file."""
    return _check_file(module_path, parent)


def _check_file(path: Path, parent: pytest.Collector):
    exercise = parent.config.stash[CATALOG].get(path.resolve())
    if exercise is None:
        return None
    return CheckFile.from_parent(parent, path=path, exercise=exercise)


def pytest_collection_finish(session: pytest.Session) -> None:
    """End here if checks are to run, and there is no torch that suits the grader.

    A worker of pytest-xdist can't end the others: there each check says the sentence.
    """
    config = session.config
    if config.getoption("collectonly") or hasattr(config, "workerinput"):
        return
    if any(isinstance(item, CheckItem) for item in session.items):
        problem = problem_with_torch()
        if problem:
            pytest.exit(problem, returncode=3)


class CheckFile(pytest.File):
    """The checks of one exercise."""

    def __init__(self, *, exercise: Exercise, **kwargs):
        super().__init__(**kwargs)
        self.exercise = exercise

    def collect(self):
        config = self.config
        if not config.getoption("collectonly") and not _is_controller(config):
            with contextlib.suppress(UserError):  # said when the collection ends
                config.stash[ENGINE].warm()
        try:
            checks = checks_in(self.path, config.stash[ENGINE].seeds)
        except UserError as error:
            raise self.CollectError(str(error)) from None
        for check in checks:
            name = f"{check.function}[{check.world_size}-{check.seed}]"
            yield CheckItem.from_parent(self, name=name, check=check)

    def file_to_grade(self) -> Path:
        if self.config.getoption("--solutions"):
            return self.exercise.solution
        folder = self.config.getoption("--exercises")
        return folder / self.exercise.file if folder else self.exercise.path


class CheckItem(pytest.Item):
    """One check function at one world size with one seed."""

    parent: CheckFile

    def __init__(self, *, check: Check, **kwargs):
        super().__init__(**kwargs)
        self.check = check
        self.add_marker(pytest.mark.ranks(check.world_size))

    def runtest(self) -> None:
        exercise, engine = self.parent.exercise, self.config.stash[ENGINE]
        path = self.parent.file_to_grade()
        source, verdict = engine.read(exercise, path)
        if verdict is None:
            verdict = engine.run_check(self.check, source, path, exercise.page)
        self.user_properties.append(("exercise", exercise.name))
        self.user_properties.append(("verdict", verdict.kind.value))
        if verdict.kind is Kind.NOT_STARTED:
            pytest.skip("not started")
        if verdict.kind is Kind.NOT_FULLY:
            pytest.skip(" ".join(line.strip() for line in verdict.lines))
        if verdict.kind is Kind.ENVIRONMENT and not verdict.check:  # it never ran
            pytest.skip(verdict.lines[0].removeprefix(f"{verdict.kind.value}: "))
        if verdict.kind is not Kind.RIGHT:
            raise CheckFailed(verdict)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, CheckFailed):
            verdict = excinfo.value.verdict
            lines = list(verdict.lines)
            if self.config.get_verbosity() > 0:
                lines += ["", "details:", *verdict.details]
            return "\n".join(lines)
        if isinstance(excinfo.value, UserError):
            return f"{Kind.ENVIRONMENT.value}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        name = f"{self.parent.exercise.name}: {self.check.sentence}"
        return self.path, self.check.line - 1, name


class CheckFailed(Exception):
    """Carries a verdict to the report."""

    def __init__(self, verdict: Verdict):
        message = verdict.lines[0] if verdict.lines else verdict.kind.value
        super().__init__(message)
        self.verdict = verdict


def pytest_terminal_summary(terminalreporter) -> None:
    """One line per exercise: right, not started, or the first bad verdict."""
    states: dict[str, list[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            found = dict(getattr(report, "user_properties", []))
            if "exercise" in found and getattr(report, "when", "") == "call":
                states.setdefault(found["exercise"], []).append(found["verdict"])
    if not states:
        return
    terminalreporter.section("exercises")
    for name, kinds in sorted(states.items()):
        count = Counter(kinds)
        partial = [k for k in kinds if k == Kind.NOT_FULLY.value]
        bad = [k for k in kinds if k not in ("right", "not started", *partial)]
        bad = bad or partial
        state = bad[0] if bad else kinds[0]
        ran = f"{count['right']} of {len(kinds)} checks right" if bad else ""
        terminalreporter.write_line(f"{name:<28} {state:<17} {ran}".rstrip())
    engine = terminalreporter.config.stash[ENGINE]
    if engine.exposed:
        terminalreporter.write_line(SENTENCE.format(why=engine.exposed))


def _is_controller(config: pytest.Config) -> bool:
    """Whether pytest-xdist's workers do the work, not this process."""
    return bool(config.getoption("numprocesses", None)) and not hasattr(
        config, "workerinput"
    )
