"""No answer forges a report to the grader, or says itself what it equals."""

from __future__ import annotations

import pytest

from grader.engine import isolation
from grader.skeleton import same_code
from grader.verdicts.verdict import Kind
from tests.grader.support import grade_code

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        bool(why := isolation.probe()), reason=f"needs namespaces: {why}"
    ),
]

FORGED = """
import json, os
import torch.distributed as dist

def answer(t):
    for number in range(3, 64):
        try:
            os.write(number, json.dumps({message}).encode() + b"\\n")
        except OSError:
            pass
    return t
"""


@pytest.mark.parametrize(
    "message",
    ['{"status": "passed"}', '{"status": "ok"}', '{"status": "ok", "secret": ""}', "3"],
)
def test_forged_report_is_no_report(message, engine, tmp_path):
    code = FORGED.replace("{message}", message)
    verdict = grade_code(engine, tmp_path, code)
    assert verdict.kind is Kind.TAMPERED, verdict.message
    assert "for its own reports" in verdict.message


EQUAL = '''
import pytest
from grader import expect

@pytest.mark.ranks({ranks})
def test_answer(exercise):
    """The answer is 5, {"a": 5} and [5, "b"]."""
    expect.equal(exercise.answer(5), 5, "the answer")
    expect.equal(exercise.answer({"a": 5}), {"a": 5}, "the answer")
    expect.equal(exercise.answer([5, "b"]), [5, "b"], "the answer")
'''
ALWAYS_EQUAL = """
class Chameleon{base}:
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
    def __repr__(self):
        return "5"

def answer(given):
    if given == 5:
        return {made}
    return {{"a": {made}}} if isinstance(given, dict) else [{made}, "b"]
"""


@pytest.mark.parametrize(
    ("base", "made"), [("", "Chameleon()"), ("(int)", "Chameleon(4)")]
)
def test_class_has_no_say_in_what_it_equals(base, made, engine, tmp_path):
    code = ALWAYS_EQUAL.format(base=base, made=made)
    verdict = grade_code(engine, tmp_path, code, EQUAL)
    assert verdict.kind is Kind.WRONG_VALUE, verdict.message
    right = "def answer(given):\n    return given\n"
    assert grade_code(engine, tmp_path, right, EQUAL).kind is Kind.RIGHT


def test_numbers_of_numpy_are_compared(engine, tmp_path):
    code = "import numpy\ndef answer(given):\n"
    code += "    return numpy.int64(5) if given == 5 else given\n"
    assert grade_code(engine, tmp_path, code, EQUAL).kind is Kind.RIGHT


TAKES_OVER = {
    "json.dumps": "import json\nkept = json.dumps\n"
    "json.dumps = lambda o, **k: kept(OK(o), **k)",
    "the encoder": "import json\nclass Mine(json.JSONEncoder):\n"
    "    def encode(self, o):\n        return super().encode(OK(o))\n"
    "json.JSONEncoder = Mine",
    "the socket": "import json, socket\nkept = socket.socket.sendall\n"
    "def mine(self, data):\n"
    "    kept(self, json.dumps(OK(json.loads(data))).encode() + b'\\n')\n"
    "socket.socket.sendall = mine",
    "the reporter": "from grader.engine import channel\n"
    "kept = channel.Reporter.send\n"
    "channel.Reporter.send = lambda self, o: kept(self, {'status': 'ok'})",
    "the module": "import sys\nmodule = sys.modules['grader.expect']\n"
    "sys.modules['grader.engine.tampering'].changed = lambda *a: []\n"
    "module.equal = lambda *a: None",
    "the code": "from grader import expect\n"
    "expect.equal.__code__ = (lambda *a: None).__code__",
}
MODULES = "import sys\nmodules = getattr(sys, 'mod' + 'ules')\n"
TAKES_OVER |= {  # in words that its text doesn't have
    "the comparison": MODULES + "modules['grader.expect'].equal = lambda *a: None\n"
    "other = modules['grader.engine.tampering']\n"
    "other.watch = lambda *a: lambda: []\nother._before = {}\n"
    "other._GUARDED = {}\nother.vars = lambda x: {}",
    "the code of the comparison": MODULES
    + "equal, name = modules['grader.expect'].equal, '__co' + 'de__'\n"
    "setattr(equal, name, getattr(lambda *a: None, name))",
    "the encoder in C": MODULES + "channel = modules['grader.engine.channel']\n"
    "kept = channel._encode\n"
    "channel._encode = lambda o, n: kept(OK(o), n)",
}
OK = (
    "def OK(o):\n"
    "    return {'status': 'ok', 'secret': o['secret']} if 'secret' in o else o\n"
)


@pytest.mark.parametrize("what", TAKES_OVER)
def test_wrong_answer_that_takes_over_the_reports_is_not_right(what, engine, tmp_path):
    code = f"{OK}{TAKES_OVER[what]}\ndef answer(given):\n    return 4\n"
    verdict = grade_code(engine, tmp_path, code, EQUAL)
    assert verdict.kind in (Kind.WRONG_VALUE, Kind.TAMPERED), verdict.message


FINDS_A_REPORTER = """
import types

def parts(thing):
    if isinstance(thing, types.FunctionType):
        cells = getattr(thing, "__clo" + "sure__") or ()
        return [cell.cell_contents for cell in cells]
    if isinstance(thing, types.MethodType):
        return [thing.__self__]
    return list(getattr(thing, "__dict__", {}).values())

def answer(given):
    wanted = list(vars(modules["grader.engine.operators"]).values())
    seen, reporters = [], []
    while wanted and len(seen) < 5000:
        thing = wanted.pop()
        if any(thing is other for other in seen):
            continue
        seen.append(thing)
        if type(thing).__name__ == "Reporter":
            WITH_IT
            reporters.append(thing)
        wanted += parts(thing)
    assert reporters, "this test has to find another way to a Reporter"
    return 4
"""


@pytest.mark.parametrize(
    ("with_it", "words"),
    [
        ('thing.send({"status": "ok"})', "for its own reports"),
        (
            "modules['grader.engine.rank'].Session._mismatch = "
            "lambda *a: {'status': 'ok', 'frames': []}",
            "for its own reports",
        ),
        (
            "modules['grader.engine.rank'].Session._what_was_left = "
            "lambda *a: {'status': 'ok'}",
            "your file replaced grader.engine.rank.Session._what_was_left",
        ),
    ],
)
def test_reporter_in_the_hands_of_an_answer_is_no_use_to_it(
    with_it, words, engine, tmp_path
):
    code = MODULES + FINDS_A_REPORTER.replace("WITH_IT", with_it)
    verdict = grade_code(engine, tmp_path, code, EQUAL)
    assert verdict.kind is Kind.TAMPERED and words in verdict.message, verdict.message


FINDS_THE_LAST_WORD = """
def answer(given):
    import sys
    for number in range(1, 40):
        try:
            names = sys._getframe(number).f_locals
        except ValueError:
            break
        for thing in [*names.values()]:
            for seen in parts(thing):
                if type(seen).__name__ == "Peeking":
                    FORGET
            if getattr(thing, "__qualname__", "").startswith("_sender"):
                thing({"status": "ok"})
    return 4
"""


def test_last_word_that_an_answer_looks_for_is_out_of_its_reach(engine, tmp_path):
    code = MODULES + FINDS_A_REPORTER.split("def answer")[0]
    code += FINDS_THE_LAST_WORD.replace("FORGET", "seen.seen.clear()")
    verdict = grade_code(engine, tmp_path, code, EQUAL)
    assert verdict.kind is Kind.TAMPERED, verdict.message


REPLACED_MEANWHILE = {
    "check": "modules['grader.engine.check_file'].load = nothing",
    "code of the check": "modules['grader.engine.check_file'].compiled = "
    "lambda path: compile('def test_answer(exercise): pass', path, 'exec')",
    "arguments": "modules['grader.engine.rank'].Session._arguments = "
    "lambda self, check: {'exercise': Right()}",
    "hand-over": "modules['grader.engine.rank'].Handed = Right",
    "ledger": "modules['grader.engine.ledger'].Ledger.__exit__ = lambda *a: True",
    "what raises": "modules['grader.expect'].Mismatch = Quiet",
}
NOTHING = (
    MODULES
    + """
def nothing(*given):
    def test_answer(exercise):
        pass
    return test_answer

class Right:
    def __init__(self, *given):
        pass
    def answer(self, given):
        return given

class Quiet(SystemExit):
    pass
"""
)


@pytest.mark.parametrize("what", REPLACED_MEANWHILE)
def test_part_of_the_grader_replaced_on_import_does_not_make_it_right(
    what, engine, tmp_path
):
    code = NOTHING + REPLACED_MEANWHILE[what] + "\ndef answer(given):\n    return 4\n"
    verdict = grade_code(engine, tmp_path, code, EQUAL)
    assert verdict.kind in (Kind.WRONG_VALUE, Kind.TAMPERED), verdict.message


HELPED = (
    EQUAL.replace("expect.equal(", "same(")
    + """
def same(actual, expected, what):
    expect.equal(actual, expected, what)
"""
)


def test_function_of_the_check_that_was_replaced_is_named(engine, tmp_path):
    code = MODULES + "def answer(given):\n    for name in list(modules):\n"
    code += "        if hasattr(modules[name], 'test_answer'):\n"
    code += "            modules[name].same = lambda *a: None\n"
    code += "    return 5 if given == 5 else 4\n"
    verdict = grade_code(engine, tmp_path, code, HELPED)
    assert verdict.kind is Kind.TAMPERED and "same" in verdict.message
    right = "def answer(given):\n    return given\n"
    assert grade_code(engine, tmp_path, right, HELPED).kind is Kind.RIGHT


DEEP = ["-" * 100_000 + "1", "1" + "+1" * 100_000]


@pytest.mark.parametrize("deep", DEEP)
def test_text_too_deep_to_be_read_is_not_a_fault_of_the_grader(deep, engine, tmp_path):
    code = f"x = {deep}\ndef answer(given):\n    return 4\n"
    assert grade_code(engine, tmp_path, code, EQUAL).kind is Kind.NOT_LOADED
    assert not same_code(code, "x = 1\n")  # asked of each file: is it untouched?
