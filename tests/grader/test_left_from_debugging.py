"""What stays in an answer from debugging: a debugger is named, the rest is let be."""

from __future__ import annotations

import pytest

from tests.grader.support import SUM, body
from workshop.grader.verdicts.verdict import Kind

DEBUGGERS = {
    "breakpoint": "breakpoint()",
    "on a rank": "if rank == 1: breakpoint()",
    "pdb": "import pdb; pdb.set_trace()",
    "its function": "from pdb import set_trace\nset_trace()",
    "of torch": "dist.breakpoint(1)",
}
HARMLESS = {
    "profiler": "import cProfile\nwith cProfile.Profile():\n    t = t + 0",
    "number of the line": "import inspect\nprint(inspect.currentframe().f_lineno)",
    "stack": "import traceback\ntraceback.print_stack()",
    "objects": "import gc\nprint(len(gc.get_objects()))",
    "threads": "import threading\nprint(threading.enumerate())",
    "log": "import logging\nlogging.getLogger().warning('careful')",
}


@pytest.mark.parametrize("how", DEBUGGERS)
def test_debugger_that_was_left_in_is_named(how, run):
    verdict = run(body(f"{DEBUGGERS[how]}\n{SUM}return t"))
    assert verdict.kind is Kind.EXCEPTION, verdict.message
    assert "starts a debugger, but a rank has no keyboard" in verdict.message
    assert f": {DEBUGGERS[how].splitlines()[-1]}\n" in verdict.message


@pytest.mark.parametrize("what", HARMLESS)
def test_right_answer_that_looks_at_itself_is_right(what, run):
    verdict = run(body(f"{HARMLESS[what]}\n{SUM}return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message
