"""A file of checks is compiled once for all runs, and again when it is edited."""

import os

import pytest

from workshop.grader.checks import checks_in
from workshop.grader.engine import check_file

CHECKS = '''
import pytest

@pytest.mark.ranks(1)
def test_it(exercise):
    """A sum."""
    assert exercise.two() == {expected}
'''


@pytest.fixture
def checked(engine, tmp_path):
    """``checked(expected)``: whether an answer passes, if 2 or another is right."""
    file = tmp_path / "answer.py"
    file.write_text("def two():\n    return 2\n")
    checks = tmp_path / "checks.py"

    def passes(expected: int) -> bool:
        checks.write_text(CHECKS.format(expected=expected))
        (check, *_) = checks_in(checks)
        verdict = engine.run_check(check, file.read_text(), file)
        return verdict.kind.value == "right"

    return passes


@pytest.mark.full
def test_an_edited_check_is_the_one_that_runs(checked):
    """In one server, whose ranks can't read the file themselves."""
    assert checked(2)
    assert not checked(3)
    assert checked(2)


def test_a_file_is_compiled_once_as_long_as_it_stays_the_same(tmp_path, monkeypatch):
    compiled = []
    compile_file = check_file._compile

    def counted(path):
        compiled.append(path)
        return compile_file(path)

    monkeypatch.setattr(check_file, "_compile", counted)
    path = tmp_path / "checks.py"
    path.write_text("number = 1\n")
    for _ in range(3):
        check_file.prepare(str(path))
    assert len(compiled) == 1
    path.write_text("number = 2\n")
    os.utime(path, ns=(1, 1))
    check_file.prepare(str(path))
    assert len(compiled) == 2


def test_a_rank_gets_what_was_compiled_though_the_file_is_gone(tmp_path):
    path = tmp_path / "checks.py"
    path.write_text("def test_it():\n    return 5\n")
    check_file.prepare(str(path))
    path.unlink()
    assert check_file.load(str(path), "test_it")() == 5
