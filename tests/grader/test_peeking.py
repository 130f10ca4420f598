"""A look at the variables of a check is told; a look at one's own frame is not."""

from __future__ import annotations

import sys

import pytest

from grader.engine import peeking
from grader.verdicts.verdict import Kind
from tests.grader.support import SUM, body

PEEKS = {
    "frame": "sys._getframe(1).f_locals",
    "inspect": "inspect.currentframe().f_back.f_locals",
    "stack": "inspect.stack()[1].frame.f_locals",
    "eval": "eval('sys._getframe(1).f_locals')",
    "threads": "sys._current_frames()",
    "garbage": "gc.get_objects()",
    "generator": "(x for x in '').gi_frame.f_back",
    "own and another": "inspect.currentframe().f_code, sys._getframe(1).f_locals",
    "another name": "(print := sys._getframe)(inspect.currentframe().f_lineno)",
}
OWN_FRAMES = {
    "line": "f'line {inspect.currentframe().f_lineno}'",
    "function": "print(sys._getframe().f_code.co_name)",
    "variables": "len(inspect.currentframe().f_locals)",
}


@pytest.mark.parametrize("how", PEEKS)
def test_look_at_the_variables_of_the_check_is_told(how, run):
    code = body(f"import gc, inspect, sys\nfound = {PEEKS[how]}\n{SUM}return t")
    verdict = run(code)
    assert verdict.kind is Kind.TAMPERED, verdict.message
    assert "reads its caller's variables through" in verdict.message
    assert "line 10: found = " in verdict.message


@pytest.mark.parametrize("how", OWN_FRAMES)
def test_look_at_its_own_frame_is_no_tampering(how, run):
    verdict = run(
        body(f"import inspect, sys\nfound = {OWN_FRAMES[how]}\n{SUM}return t")
    )
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_own_frame_with_a_name_is_harmless_until_it_is_followed(run):
    code = "import inspect\nhere = inspect.currentframe()\n"
    code += f"print(here.f_lineno)\n{SUM}return t"
    assert run(body(code)).kind is Kind.RIGHT
    followed = code.replace("f_lineno", "f_back")
    verdict = run(body(followed))
    assert verdict.kind is Kind.TAMPERED, verdict.message


def test_look_by_an_exception_is_told(run):
    code = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
    code += f"    frame = error.__traceback__.tb_frame\n{SUM}return t"
    verdict = run(body(code))
    assert verdict.kind is Kind.TAMPERED, verdict.message
    assert "through tb_frame" in verdict.message


def test_looks_of_others_at_frames_are_no_tampering(run):
    code = "import collections, logging, traceback, warnings\n"
    code += "Point = collections.namedtuple('Point', 'x y')\n"
    code += "logging.getLogger().warning('careful')\nwarnings.warn('careful')\n"
    code += "try:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\n"
    verdict = run(body(f"{code}{SUM}return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


def test_without_isolation_hidden_folders_stay_hidden(tmp_path):
    (tmp_path / "hidden").mkdir()
    secret = tmp_path / "hidden" / "solution.py"
    secret.touch()
    seen = peeking.Peeking(__file__, [secret.parent])
    with pytest.raises(FileNotFoundError):
        seen._judge("open", (str(secret), "r", 0), sys._getframe())
    seen._judge("open", (str(tmp_path / "other.py"), "r", 0), sys._getframe())
