"""Does the learner's code look at the variables of the check that calls it?

Python tells an audit hook of each look at a frame. A hook cannot be taken away again.
Where checks have no world of their own, it keeps the learner's code from the answers.
"""

from __future__ import annotations

import _lsprof  # pyright: ignore[reportMissingImports], of CPython
import _signal  # pyright: ignore[reportMissingImports], of CPython
import _thread
import cProfile
import inspect
import os
import pdb
import signal
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from grader.engine.ledger import GRADER, TORCH
from grader.engine.own_frames import lines_with_own_frames

OF_ALL = frozenset(  # code of others has no reason to do this in the learner's name
    {
        "sys._current_frames",
        "sys._current_exceptions",
        "sys.settrace",
        "sys.setprofile",
        "gc.get_objects",
        "gc.get_referrers",
        "gc.get_referents",
    }
)
IN_C = frozenset({"ctypes.dlsym", "ctypes.dlsym/handle"})
OF_MEMORY = {"ctypes.PyObj_FromPtr", "ctypes.cdata"}
LOOKS = frozenset({"sys._getframe", *OF_MEMORY, *IN_C, *OF_ALL})
OF_A_FRAME = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
# Which no code may replace
OF_A_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")
NAMES_CODE = frozenset({"compile", "code.__new__", "exec"})  # like a file of Python?
EVENTS = LOOKS | NAMES_CODE | {"object.__getattr__", "object.__setattr__", "open"}
HAND_OVER = (  # functions of others that give their caller a frame
    ("traceback.py", ("walk_stack", "walk_tb", "extended_frame_gen")),
    ("logging/__init__.py", ("<lambda>", "currentframe")),
    ("asyncio/base_tasks.py", ("_task_get_stack",)),
    ("torch/_jit_internal.py", ("createResolutionCallbackFromFrame",)),
)
HANDS_OVER = (inspect.__file__, "/ctypes/__init__.py")
PYTHON = os.path.dirname(os.__file__) + os.sep
LIBRARIES = (PYTHON, os.path.dirname(TORCH.rstrip(os.sep)) + os.sep)
OTHERS = (*LIBRARIES, GRADER)


def hook(
    path: str,
    check: str,
    tell: Callable[[dict[str, Any]], None],
    hidden: Iterable[str] = (),
    source: str = "",
) -> Callable[[str, tuple], None]:
    """The audit hook that tells of the first look at frames of others.

    It keeps nothing that could be emptied, and what it uses is its own.

    Args:
        path: of the learner's file, whose text is ``source``.
        check: the file of the check, which may look.
        tell: gets the line and the name of the look.
        hidden: folders that code called from the learner's file cannot read.
    """
    own, out_of_sight = lines_with_own_frames(source), _keeps_out(hidden, check)
    frame_at, thread, hands_over = sys._getframe, _thread.get_ident, _hands_over()
    events, looks, of_all, names_code = EVENTS, LOOKS, OF_ALL, NAMES_CODE
    read, written, in_c = OF_A_FRAME, OF_A_FUNCTION, IN_C
    others, for_all = (*OTHERS, check), (TORCH, GRADER, check)
    busy: set[int] = set()
    told: list[bool] = []

    def audit(event: str, arguments: tuple) -> None:
        if event not in events or thread() in busy:
            return
        busy.add(thread())  # what follows looks at frames itself
        try:
            judge(event, arguments, frame_at(1))
        finally:
            busy.discard(thread())

    def judge(event: str, arguments: tuple, frame: FrameType) -> None:
        if event == "open":
            out_of_sight(arguments[0], frame)
        elif not told and (what := look(event, arguments, frame)):
            told.append(True)
            tell({"status": "peeked", "line": line_of(frame), "what": what})

    def look(event: str, arguments: tuple, frame: FrameType) -> str:
        """What the learner's code looks through, or ""."""
        if event == "object.__getattr__" and arguments[1] not in read:
            return ""
        if event == "object.__setattr__" and arguments[1] not in written:
            return ""
        if event in in_c and "Py" not in f"{arguments[1]}"[:3]:  # one of Python itself
            return ""
        direct = frame.f_code.co_filename
        if event in names_code:
            code = arguments[event != "exec"]  # exec: the code; else: its file
            name = getattr(code, "co_filename", code)
            if not f"{name}".startswith(others) or direct.startswith(("<", *others)):
                return ""
            return f"code that is called {name}"
        if event in of_all and direct.startswith(for_all):
            return ""
        if event == "sys.settrace" and direct.endswith("/bdb.py"):
            return "a debugger"
        caller: FrameType | None = frame
        while caller and hands_over(caller):
            caller = caller.f_back
        at = caller.f_code.co_filename if caller else ""
        if event not in of_all and (not caller or at.startswith(others)):
            return ""
        if caller and event == "sys._getframe" and at == path:
            return "" if caller.f_lineno in own else event
        return event if event in looks else f"{arguments[1]}"

    def line_of(frame: FrameType | None) -> int:
        while frame and frame.f_code.co_filename != path:
            frame = frame.f_back
        return frame.f_lineno if frame else 0

    return audit


def _hands_over() -> Callable[[FrameType], bool]:
    """What tells whether the code of a frame looks at frames for its caller."""
    whole, functions = HANDS_OVER, HAND_OVER

    def hands_over(frame: FrameType) -> bool:
        name, function = frame.f_code.co_filename, frame.f_code.co_name
        if not name.startswith("/") or name.endswith(whole) or "/_pytest/" in name:
            return True  # the first: code of exec and eval
        if name.endswith("/traceback.py") and frame.f_locals.get("capture_locals"):
            return True
        for file, names in functions:
            if function in names and name.endswith(file):
                return True
        return False

    return hands_over


def _keeps_out(hidden: Iterable[str], check: str) -> Callable[[Any, FrameType], None]:
    """What raises FileNotFoundError unless the grader or a check opens what is hidden.

    Also for a library without a caller: a thread whose function the learner chose.
    """
    folders = tuple(os.path.realpath(folder) + os.sep for folder in hidden)

    def keep_out(name: Any, frame: FrameType | None) -> None:
        if not folders or not isinstance(name, (str, bytes)):
            return
        real = os.path.realpath(os.fsdecode(name))
        if not real.startswith(folders) or real.startswith(LIBRARIES):
            return
        while frame and frame.f_code.co_filename.startswith(("<", *LIBRARIES)):
            frame = frame.f_back
        if not frame or not frame.f_code.co_filename.startswith((GRADER, check)):
            raise FileNotFoundError(2, "No such file or directory", real)

    return keep_out


def hide_frames_from_handlers() -> None:
    """Handlers of signals get a frame without callers, instead of their own."""
    plain, plain_get = _signal.signal, _signal.getsignal
    empty: Any = (_ for _ in ())
    lonely = empty.gi_frame  # its f_back is None
    given: dict[Any, Any] = {}

    def set_handler(number: int, handler: Any) -> Any:
        if not callable(handler):  # SIG_DFL, SIG_IGN
            return given.get(before := plain(number, handler), before)

        def without_frame(number: int, frame: FrameType | None) -> Any:
            return handler(number, lonely)

        before = plain(number, without_frame)
        given[without_frame] = handler
        return given.get(before, before)

    def get_handler(number: int) -> Any:
        return given.get(now := plain_get(number), now)

    _signal.signal, _signal.getsignal = set_handler, get_handler
    for function in (signal.signal, signal.getsignal):
        vars(function)["__wrapped__"] = getattr(_signal, function.__name__)


def tools_are_no_looks() -> None:
    """``breakpoint()`` raises: it was left there. ``cProfile`` may be enabled."""

    def refuse(*_: object, **__: object) -> None:
        cure = "a rank has no keyboard: remove `breakpoint()`"
        raise EOFError(f"this starts a debugger, but {cure}")

    def here(method: Callable[..., None]) -> Callable[..., None]:
        """Called from this file: ``method`` hands over no frames."""
        return lambda profiler, *args, **kwargs: method(profiler, *args, **kwargs)

    pdb.set_trace = pdb.Pdb.set_trace = refuse
    for name in ("enable", "disable"):
        setattr(cProfile.Profile, name, here(getattr(_lsprof.Profiler, name)))
