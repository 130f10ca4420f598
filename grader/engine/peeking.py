"""Does the learner's code look at the variables of the check that calls it?

Python tells an audit hook of each look at a frame. A hook cannot be taken away again.
Where checks have no world of their own, it keeps the learner's code from the answers.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

from grader.engine.own_frames import lines_with_own_frames

LOOKS = {
    "sys._getframe",
    "sys._current_frames",
    "gc.get_objects",
    "gc.get_referrers",
    "gc.get_referents",
}
OF_A_FRAME = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
OF_A_FUNCTION = ("__code__", "__defaults__")  # which nobody may replace
EVENTS = {*LOOKS, "open", "object.__getattr__", "object.__setattr__"}


class Peeking:
    """Notes the lines of the file at ``path`` that look at frames of others.

    Args:
        hidden: folders that code called from that file cannot read.
        source: the text of that file.
    """

    def __init__(self, path: str, hidden: Iterable[str] = (), source: str = ""):
        self.path, self.hidden = path, tuple(map(os.path.realpath, hidden))
        self.source = source
        self.own: set[int] | None = None
        self.seen: list[dict[str, Any]] = []
        self._busy = False

    def begin(self) -> None:
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple) -> None:
        if self._busy or event not in EVENTS:
            return
        self._busy = True  # what follows looks at frames itself
        try:
            self._judge(event, arguments, sys._getframe(1))
        finally:
            self._busy = False

    def _judge(self, event: str, arguments: tuple, frame: FrameType) -> None:
        if event == "open":
            return self._keep_out(arguments[0], frame)
        if event == "object.__getattr__" and arguments[1] not in OF_A_FRAME:
            return None
        if event == "object.__setattr__" and arguments[1] not in OF_A_FUNCTION:
            return None
        caller: FrameType | None = frame
        while caller and _tells_others(caller.f_code.co_filename):
            caller = caller.f_back
        if caller and caller.f_code.co_filename == self.path:
            what = event if event in LOOKS else str(arguments[1])
            if what == "sys._getframe" and self._is_own(caller.f_lineno):
                return None
            self.seen.append({"line": caller.f_lineno, "what": what})
        return None

    def _is_own(self, line: int) -> bool:
        """Whether this line looks at its own frame, and at nothing beyond."""
        if self.own is None:
            self.own = lines_with_own_frames(self.source)
        return line in self.own

    def _keep_out(self, name: Any, frame: FrameType) -> None:
        if not self.hidden or not isinstance(name, (str, bytes)):
            return
        path = os.path.realpath(os.fsdecode(name))
        if not any(path.startswith(folder + os.sep) for folder in self.hidden):
            return
        caller: FrameType | None = frame
        while caller and caller.f_code.co_filename != self.path:
            caller = caller.f_back
        if caller:
            raise FileNotFoundError(2, "No such file or directory", path)


def _tells_others(name: str) -> bool:
    """Whether code of this file looks at frames for its caller."""
    return name == inspect.__file__ or not os.path.isabs(name)  # as of exec and eval
