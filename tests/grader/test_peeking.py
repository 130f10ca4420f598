"""A look at the variables of a check is told; a look at one's own frame is not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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


TOOLS = {  # left over from debugging
    "breakpoint": ("breakpoint()", Kind.EXCEPTION, "keyboard"),
    "set_trace": ("import pdb; pdb.set_trace()", Kind.EXCEPTION, "keyboard"),
    "of one rank": ("dist.breakpoint(1)", Kind.EXCEPTION, "rank 1 raised"),
    "profiler": (
        "import cProfile\nwith cProfile.Profile():\n    t = t + 0",
        Kind.RIGHT,
        "",
    ),
}


@pytest.mark.parametrize("how", TOOLS)
def test_tool_that_was_left_there_is_no_tampering(how, run):
    code, kind, words = TOOLS[how]
    verdict = run(body(f"{code}\n{SUM}return t"))
    assert verdict.kind is kind, verdict.message
    assert words in verdict.message


HANDED_OVER = {  # by code of others, or by code that passes for that of others
    "traceback": "import traceback\nfound = list(traceback.walk_stack(None))",
    "variables as text": "import traceback as tb\nstack = tb.walk_stack(None)\n"
    "found = tb.StackSummary.extract(stack, capture_locals=True)",
    "logging": "import logging\nfound = logging.currentframe().f_back",
    "tracing": "import sys\nfound = []\n"
    "sys.settrace(lambda frame, *_: found.append(frame))\nlen(str(t))\n"
    "sys.settrace(None)",
    "profiling": "import sys\nfound = []\n"
    "sys.setprofile(lambda frame, *_: found.append(frame))\nlen(str(t))\n"
    "sys.setprofile(None)",
    "debugger": "import bdb, sys\nclass Debugger(bdb.Bdb):\n"
    "    def user_line(self, frame):\n        self.found = frame.f_back\n"
    "found = Debugger()\nfound.set_trace()\nx = 1\nfound.set_quit()",
    "another thread": "import sys\nfrom concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor() as pool:\n"
    "    found = pool.submit(sys._current_frames).result()",
    "all objects": "import gc\nfrom concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor() as pool:\n"
    "    found = pool.submit(gc.get_objects).result()",
    "a module of its own": "import pathlib\n"
    "pathlib.Path(f'helper{rank}.py').write_text(\n"
    "    'import sys\\ndef look(): return sys._getframe(2).f_locals')\n"
    "helper = __import__(f'helper{rank}')\nfound = helper.look()",
    "name of a library": "import os, sys\n"
    "code = compile('found = sys._getframe(1).f_locals', os.__file__, 'exec')\n"
    "exec(code)",
    "code of a library": "import os, sys\ndef look():\n"
    "    return __import__('sys')._getframe(2).f_locals\n"
    "code = getattr(look, '__co' + 'de__').replace(co_filename=os.__file__)\n"
    "found = type(look)(code, {})()",
    "Python in C": "import ctypes\nfound = ctypes.pythonapi.PyEval_GetFrame",
    "pytest": "import pytest\nwith pytest.raises(ZeroDivisionError) as told:\n"
    "    1 / 0\nfound = told.traceback[0].frame.raw.f_back",
    "coroutine": "import asyncio\nasync def look():\n"
    "    return asyncio.current_task().get_stack()[0].f_back\n"
    "found = asyncio.run(look())",
}


@pytest.mark.parametrize("how", HANDED_OVER)
def test_frame_that_others_hand_over_is_told(how, run):
    verdict = run(body(f"{HANDED_OVER[how]}\n{SUM}return t"))
    assert verdict.kind is Kind.TAMPERED, verdict.message
    assert "reads its caller's variables through" in verdict.message


HANDLED = """
import os, signal, _signal
got = []
handler = lambda *given: got.append(given)
before = signal.signal(signal.SIGUSR2, handler)
assert signal.getsignal(signal.SIGUSR2) is handler, before
os.kill(os.getpid(), signal.SIGUSR2)
assert signal.signal(signal.SIGUSR2, before) is handler
assert before is signal.SIG_DFL
_signal.signal(10, handler)
_signal.raise_signal(10)
getattr(signal.signal, "__wrapped__")(10, handler)
_signal.raise_signal(10)
assert [number for number, _ in got] == [signal.SIGUSR2, 10, 10], got
for _, frame in got:
    assert frame.f_back is None and frame.f_lineno > 0
    assert "expected" not in f"{frame.f_locals}"
"""


def test_handler_of_a_signal_gets_no_frame_of_the_check(run):
    verdict = run(body(f"{HANDLED}{SUM}return t"))
    assert verdict.kind is Kind.RIGHT, verdict.message


DEBUGGERS = {
    "breakpoint": "breakpoint()",
    "on a rank": "if rank == 1: breakpoint()",
    "pdb": "import pdb; pdb.set_trace()",
    "its function": "from pdb import set_trace\nset_trace()",
    "of torch": "dist.breakpoint()",
}


@pytest.mark.parametrize("how", DEBUGGERS)
def test_debugger_that_was_left_in_is_named(how, run):
    verdict = run(body(f"{DEBUGGERS[how]}\n{SUM}return t"))
    assert verdict.kind is Kind.EXCEPTION, verdict.message
    assert "starts a debugger, but a rank has no keyboard" in verdict.message
    assert f": {DEBUGGERS[how].splitlines()[-1]}\n" in verdict.message


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
    audit = peeking.hook(__file__, "/a/check.py", print, [str(secret.parent)])
    given = "open", (str(secret), "r", 0)
    with pytest.raises(FileNotFoundError):
        audit(*given)
    with ThreadPoolExecutor() as pool, pytest.raises(FileNotFoundError):
        pool.submit(audit, *given).result()
    audit("open", (str(tmp_path / "other.py"), "r", 0))
    as_check = compile("audit(*given)", "/a/check.py", "exec")
    exec(as_check, {"audit": audit, "given": given})
