"""Answers that are none: they reach into the grader, or change what all code uses."""

from __future__ import annotations

import pytest

from tests.grader.support import RIGHT, SUM, body
from workshop.catalog import load_catalog
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import MAX_LINES, Kind
from workshop.skeleton import same_code

REACHING = {
    "sys._getframe": "import sys\nfound = sys._getframe(1).f_locals",
    "s._getframe": "import sys as s\nfound = s._getframe(1).f_locals",
    "workshop.grader.expect": "import torch\nfrom workshop.grader import expect",
    "workshop.grader.engine.rank": "import workshop.grader.engine.rank as rank",
    "/proc/self/mem": "memory = open('/proc/self/mem', 'r+b')",
    "/proc/*/mem": "import os\nmemory = open(f'/proc/{os.getppid()}/mem', 'rb')",
}
REACHING_BY_A_STRING = (
    "import importlib\nimportlib.import_module('workshop.grader.expect')"
)
CHANGES_DTYPE = "torch.set_default_dtype(torch.float64)\n"
PLAIN = {
    "a comment": "# sys._getframe, workshop.grader.expect and /proc/self/mem",
    "memory of the machine": "free = open('/proc/meminfo').read()",
    "the line": "import inspect\nline = inspect.currentframe().f_lineno",
    "a word": "name = 'grader'",
}


@pytest.fixture
def read(house):
    """``read(code)`` -> the verdict without running it, or None."""
    exercise = load_catalog(house)[0]

    def early(code):
        exercise.path.write_text(f"{code}\n\ndef add(a):\n    return a + 1\n")
        return Engine().read(exercise, exercise.path)[1]

    return early


@pytest.mark.parametrize("name", REACHING)
def test_file_that_reaches_into_the_grader_is_not_a_solution(name, read):
    verdict = read(REACHING[name])
    line = REACHING[name].count("\n") + 1
    text = REACHING[name].splitlines()[-1]
    assert verdict.kind is Kind.NOT_A_SOLUTION
    assert verdict.lines[:2] == [
        f"not a solution: your file names {name}",
        f"    line {line}: {text}",
    ]
    assert verdict.kind.status == "wrong"


def test_name_in_a_string_counts(read):
    assert read(REACHING_BY_A_STRING).kind is Kind.NOT_A_SOLUTION


@pytest.mark.parametrize("what", PLAIN)
def test_file_that_names_no_part_of_the_grader_is_run(what, read):
    assert read(PLAIN[what]) is None


@pytest.mark.parametrize("deep", ["-" * 100_000 + "1", "1" + "+1" * 100_000])
def test_text_too_deep_to_be_read_does_not_load(deep, read):
    verdict = read(f"x = {deep}")
    assert verdict.kind is Kind.NOT_LOADED
    assert not same_code(f"x = {deep}", "x = 1\n")  # asked of each file


def test_default_dtype_that_is_left_changed_is_named(run):
    verdict = run(body(f"{CHANGES_DTYPE}{SUM}return t"))
    assert verdict.kind is Kind.NOT_A_SOLUTION
    assert "changed the default dtype" in verdict.message
    assert "give `dtype=`" in verdict.message
    assert len(verdict.lines) <= MAX_LINES
    on_import = f"import torch\n{CHANGES_DTYPE}{RIGHT}"
    assert run(on_import).kind is Kind.NOT_A_SOLUTION


def test_default_dtype_that_is_put_back_is_right(run):
    code = f"before = torch.get_default_dtype()\n{CHANGES_DTYPE}{SUM}"
    verdict = run(body(f"{code}torch.set_default_dtype(before)\nreturn t"))
    assert verdict.kind is Kind.RIGHT, verdict.message
