"""What a rank tells of an exception: whose fault it is, where, and in which words."""

from __future__ import annotations

import linecache
import os
import traceback
import types
from dataclasses import dataclass
from typing import Any

from workshop.grader import expect
from workshop.grader.engine import settings, whereabouts
from workshop.grader.engine.handed import Handed
from workshop.grader.engine.whereabouts import communicates
from workshop.grader.verdicts.classics.exceptions import of_exception
from workshop.grader.verdicts.evidence import CONSEQUENCES

MAX_MESSAGE = 2000
MAX_FRAMES = 12


@dataclass(frozen=True)
class Seen:
    """What is known of the run in which the exception was raised."""

    path: str  # of the learner's file
    check_path: str
    loading: bool  # the learner's file was being imported
    called: bool  # the learner's code had called torch.distributed
    handed: Handed | None  # the learner's module, once it was imported


def of_error(error: BaseException, seen: Seen) -> dict[str, Any]:
    """The message of a rank whose check ended with this exception."""
    if isinstance(error, expect.Mismatch):
        return _mismatch(error, _frames(error, seen))
    if isinstance(error, SystemExit):
        frames = _frames(error, seen)
        return {"status": "exit", "code": str(error.code), "frames": frames}
    report = _exception(error, seen)
    if not report["fault"]:
        return report
    wrong = _reason(error, report, seen)
    if wrong is None:
        return report
    return _mismatch(wrong, report["frames"])


def _mismatch(error: expect.Mismatch, frames: list[dict]) -> dict[str, Any]:
    return {
        "status": "mismatch",
        "what": error.what,
        "problem": str(error.problem)[:MAX_MESSAGE],
        "suspicion": error.suspicion,
        "way": error.way,
        "frames": frames,
    }


def _exception(error: BaseException, seen: Seen) -> dict[str, Any]:
    try:
        message = str(error)
    except BaseException:
        message = "(its message cannot be shown)"
    if isinstance(error, SyntaxError) and error.filename == seen.path:
        message = f"{error.msg} (line {error.lineno})"
    shortened = expect.NOISE.sub("", message[:MAX_MESSAGE])
    kind, frames = type(error).__name__, _frames(error, seen)
    own = [frame["text"] for frame in frames if frame["own"]]
    return {
        "status": "raised",
        "type": kind,
        "message": shortened,
        "length": len(message),
        "suspicion": of_exception(kind, shortened, "".join(own[-1:])),
        "fault": _is_fault_of_check(message, error, frames, seen),
        "frames": frames,
    }


def _reason(
    error: BaseException, report: dict[str, Any], seen: Seen
) -> expect.Mismatch | None:
    """What the learner's code left behind that a check could not work with."""
    wrong = (seen.handed and seen.handed.wrong) or settings.left_changed()
    if wrong:
        return wrong
    said = f"{report['type']}: {report['message'][:300]}"
    not_computable = seen.handed and seen.handed.not_computable(said)
    if not_computable:
        return not_computable
    frames = report["frames"]
    function = frames[-1]["function"] if frames else ""
    if function == "forward" and any(frame["own"] for frame in frames):
        sentence = "the module that your code calls cannot compute with its input"
        return expect.Mismatch("", f"{sentence}: {said}")
    inner = _innermost(error)
    autograd = whereabouts.of_autograd(inner)
    if autograd:
        return expect.Mismatch(autograd, f"cannot run, {said}")
    if "process group has not been initialized" in said:
        return expect.Mismatch("", "your code left no process group for its caller")
    if "Sharding propagation failed" in said:  # of DTensor, in a step of the check
        sentence = (
            "the layers that your code divided don't fit each other: one returns what "
            "is cut in another way than the next one takes"
        )
        return expect.Mismatch("", f"{sentence}: {said}")
    lost = any(words in said for words in CONSEQUENCES)
    if seen.called and not lost and communicates(inner):
        sentence = "a collective of the check failed after your calls"
        return expect.Mismatch("", f"{sentence}: is each message received? {said}")
    return None


def _is_fault_of_check(
    message: str, error: BaseException, frames: list[dict], seen: Seen
) -> bool:
    """Whether the check's own code failed, not a line of the learner.

    The innermost frame of the two decides. What a check raises on purpose (`raise`,
    `assert`) in a function that the learner calls is meant for the learner, and so
    is what fails below a function of the check that stands in for another one.
    """
    if seen.loading or seen.path in message:  # the latter of a child process
        return False
    if not frames or frames[-1]["own"]:
        return not frames
    own = any(frame["own"] for frame in frames)
    if own and whereabouts.stands_in(error, seen.check_path):
        return False
    if isinstance(error, AssertionError):
        return _innermost(error).f_code.co_filename != seen.check_path
    return not frames[-1]["text"].startswith("raise")


def _frames(error: BaseException, seen: Seen) -> list[dict[str, Any]]:
    """The frames of the learner's file and of the check, the innermost last."""
    frames = [
        {
            "line": frame.lineno,
            "function": frame.name,
            "text": (frame.line or "").strip()[:200],
            "own": frame.filename == seen.path,
            "check": frame.filename == seen.check_path,
            "file": os.path.basename(frame.filename),
        }
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in (seen.path, seen.check_path)
    ]
    line = getattr(error, "line_of_script", None)
    if isinstance(line, int):
        text = linecache.getline(seen.path, line).strip()
        place = {"line": line, "function": "", "text": text, "file": seen.path}
        frames.append({**place, "own": True, "check": False})
    return frames[-MAX_FRAMES:]


def _innermost(error: BaseException) -> types.FrameType:
    """The frame in which ``error`` was raised."""
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
