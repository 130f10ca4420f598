"""What happens inside one rank: limits, the learner's file, one check, one report.

The supervisor forks this process from a warm parent that has imported torch and
never computed. The rank reports over a socket and then stays alive until the
supervisor ends it, so that no other rank ever sees "connection closed by peer"
because of one that was merely quicker. It leaves by ``os._exit``: destructors of
process groups, which can hang, are never run.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import inspect
import linecache
import os
import random
import sys
import threading
import traceback
import types
from pathlib import Path
from typing import Any

import torch

from workshop.grader import expect
from workshop.grader.engine import (
    check_file,
    rendezvous,
    sandbox,
    settings,
    whereabouts,
)
from workshop.grader.engine.channel import (
    CHECKING,
    JOINING,
    LOADING,
    PHASE,
    REPORTED,
    Reporter,
)
from workshop.grader.engine.handed import Calls, Handed
from workshop.grader.engine.whereabouts import Watcher, communicates, learners_frame
from workshop.grader.ledger.ledger import Ledger
from workshop.grader.verdicts.classics.exceptions import of_exception
from workshop.grader.verdicts.evidence import CONSEQUENCES

MAX_MESSAGE = 2000
MAX_FRAMES = 12

_exit = os._exit  # a Session puts another one in its place, which reports


def main(job: dict, rank: int, reporter: Reporter, output: int, state) -> None:
    """Run the job's check as ``rank`` and report; never returns.

    Args:
        job: what :class:`workshop.grader.engine.engine.Engine` sends; plain data.
        reporter: of this process, to the supervisor.
        output: file descriptor that becomes stdout and stderr.
        state: this rank's ``FIELDS`` float64 numbers, shared with the supervisor.
    """
    try:
        reporter.send(_report(job, rank, reporter, output, state))
        threading.Event().wait()  # until the supervisor ends this rank
    finally:
        _exit(70)


def _report(job: dict, rank: int, reporter: Reporter, output: int, state) -> dict:
    try:
        _make_the_thread_pool()
        sandbox.enter(job, rank, output)
        session = Session(job, rank, state, reporter)
        Watcher(job, state, reporter, session.ledger).start()
        return session.run()
    except BaseException as error:  # a fault of the grader, never of the learner
        text = "".join(traceback.format_exception(error))[-MAX_MESSAGE:]
        return {"status": "broken", "message": text}


def _make_the_thread_pool() -> None:
    """Make torch's pool of threads while this process has one thread.

    A forked process makes its own on first use. Builds with CUDA start threads of
    autograd that do so side by side, and now and then one finds none ("Invalid thread
    pool!") and aborts the rank.
    """
    torch.set_num_threads(1)


class Session:
    """One check in one rank."""

    def __init__(self, job: dict, rank: int, state, reporter: Reporter):
        self.job, self.rank, self.state, self.reporter = job, rank, state, reporter
        self.path = job["exercise_path"]
        self.ledger = Ledger(self.path, self._tell_call)
        self.main_thread = threading.main_thread().ident or 0
        self.scheduler: Any = None
        self.handed: Handed | None = None

    def _tell_call(self, row: dict[str, Any]) -> None:
        if self.reporter.from_this_process:
            self.reporter.send({"status": "call", "row": row})

    # -- the main thread ---------------------------------------------------------
    def run(self) -> dict[str, Any]:
        """Load the exercise, call the check; what is to be reported of it."""
        self._record_how_it_leaves()
        try:
            self._check()
            report: dict[str, Any] = {"status": "ok"}
        except expect.Mismatch as error:
            report = self._mismatch(error)
        except SystemExit as error:
            where = self._where(error)
            report = {"status": "exit", "code": str(error.code), **where}
        except BaseException as error:
            report = self._raised(error)
        for stream in (sys.stdout, sys.stderr):  # of the learner's, perhaps
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        report["untried"] = self.scheduler.untried if self.scheduler else []
        report["missing"] = self.scheduler.missing if self.scheduler else []
        report["jobs"] = self.scheduler.submitted if self.scheduler else 0
        report["phase"] = self.state[PHASE]
        report["passed"] = expect.passed
        report["entered"] = Calls.entered
        report["ledger"] = self.ledger.report()
        report["unwaited"] = self.ledger.works.unwaited()
        report["used_early"] = self.ledger.works.used_early
        report["calls"] = len(self.ledger.rows)
        report |= self._what_was_left()
        self.state[PHASE] = REPORTED
        return report

    def _check(self) -> None:
        torch.default_generator.manual_seed(self._own_seed)
        random.seed(self._own_seed)
        self.ledger.works.watch()
        self.state[PHASE] = LOADING
        scheduler = self._scheduler()
        module = self._load_exercise()
        if module is not None:
            self.handed = Handed(module)
        self.state[PHASE] = JOINING
        check = check_file.load(self.job["check_path"], self.job["function"])
        rendezvous.join(self.job, self.rank)
        self.state[PHASE] = CHECKING
        with self.ledger:
            check(**self._arguments(check, scheduler))

    @property
    def _own_seed(self) -> int:
        """Ranks draw other global numbers: what must agree, they have to share."""
        return self.job["seed"] + 1000 * self.rank

    def _load_exercise(self) -> types.ModuleType | None:
        """The learner's module, made from the source that all ranks share."""
        source, name = self.job["source"], self.job["exercise"]
        linecache.cache[self.path] = (
            len(source),
            None,
            source.splitlines(keepends=True),
            self.path,
        )
        if not self.path.endswith(".py"):
            return None
        module = types.ModuleType(name)
        module.__file__ = os.path.join(os.getcwd(), os.path.basename(self.path))
        module.__spec__ = importlib.machinery.ModuleSpec(
            name, None, origin=module.__file__
        )
        sys.modules.setdefault(name, module)  # pickle knows the first one's classes
        exec(compile(source, self.path, "exec"), module.__dict__)
        return module

    def _arguments(self, check, scheduler) -> dict[str, Any]:
        """What the check asks for by the names of its parameters."""
        known = {
            "exercise": self.handed,
            "exercise_path": Path.cwd() / os.path.basename(self.path),
            "rank": self.rank,
            "world_size": self.job["world_size"],
            "seed": self.job["seed"],
            "ledger": self.ledger,
            "shared_dir": Path.cwd(),
            "scheduler": scheduler,
        }
        names = inspect.signature(check).parameters
        if "exercise_again" in names:
            again = self._load_exercise()
            known["exercise_again"] = again and Handed(again)
        if unknown := [name for name in names if name not in known]:
            raise TypeError(
                f"a check cannot ask for {', '.join(unknown)}: "
                f"it can ask for {', '.join(known)}"
            )
        return {name: known[name] for name in names}

    def _scheduler(self):
        """What job scripts are submitted to, if the check asks for it."""
        asked = self.job.get("scheduler")
        if asked is None:
            return None
        from workshop.cluster.jobs.scheduler import Scheduler

        self.scheduler = Scheduler(Path.cwd(), **asked)
        return self.scheduler

    # -- what is told of an exception --------------------------------------------
    def _mismatch(self, error: expect.Mismatch) -> dict[str, Any]:
        return {
            "status": "mismatch",
            "what": error.what,
            "problem": str(error.problem)[:MAX_MESSAGE],
            "suspicion": error.suspicion,
            "way": error.way,
            **self._where(error),
        }

    def _raised(self, error: BaseException) -> dict[str, Any]:
        """An exception; a wrong value if that is why the check itself failed."""
        report = self._exception(error)
        wrong = self._reason(error, report) if report["fault"] else None
        if wrong is None:
            return report
        return self._mismatch(wrong) | {"frames": report["frames"]}

    def _reason(self, error: BaseException, report: dict) -> expect.Mismatch | None:
        """What the learner's code left behind that a check could not work with."""
        if wrong := (self.handed and self.handed.wrong) or settings.left_changed():
            return wrong
        said = f"{report['type']}: {report['message'][:300]}"
        if self.handed is not None and (wrong := self.handed.not_computable(said)):
            return wrong
        frames = report["frames"]
        function = frames[-1]["function"] if frames else ""
        if function == "forward" and any(frame["own"] for frame in frames):
            sentence = "the module that your code calls cannot compute with its input"
            return expect.Mismatch("", f"{sentence}: {said}")
        inner = _innermost(error)
        if autograd := whereabouts.of_autograd(inner):
            return expect.Mismatch(autograd, f"cannot run, {said}")
        if "process group has not been initialized" in said:
            return expect.Mismatch("", "your code left no process group for its caller")
        called = any(row.line for row in self.ledger.rows)
        lost = any(words in said for words in CONSEQUENCES)
        if called and not lost and communicates(inner):
            sentence = "a collective of the check failed after your calls"
            return expect.Mismatch("", f"{sentence}: is each message received? {said}")
        return None

    def _is_fault_of_check(
        self, message: str, error: BaseException, frames: list[dict]
    ) -> bool:
        """Whether the check's own code failed, not a line of the learner.

        The innermost frame of the two decides. What a check raises on purpose (`raise`,
        `assert`) in a function that the learner calls is meant for the learner, and so
        is what fails below a function of the check that stands in for another one.
        """
        if self.state[PHASE] == LOADING or self.path in message:  # of a child process
            return False
        if not frames or frames[-1]["own"]:
            return not frames
        own = any(frame["own"] for frame in frames)
        if own and whereabouts.stands_in(error, self.job["check_path"]):
            return False
        if isinstance(error, AssertionError):
            return _innermost(error).f_code.co_filename != self.job["check_path"]
        return not frames[-1]["text"].startswith("raise")

    def _where(self, error: BaseException) -> dict[str, Any]:
        """The frames of the learner's file and of the check, the innermost last."""
        frames = [
            {
                "line": frame.lineno,
                "function": frame.name,
                "text": (frame.line or "").strip()[:200],
                "own": frame.filename == self.path,
                "check": frame.filename == self.job["check_path"],
                "file": os.path.basename(frame.filename),
            }
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename in (self.path, self.job["check_path"])
        ]
        if isinstance(line := getattr(error, "line_of_script", None), int):
            text = linecache.getline(self.path, line).strip()
            place = {"line": line, "function": "", "text": text, "file": self.path}
            frames.append({**place, "own": True, "check": False})
        return {"frames": frames[-MAX_FRAMES:]}

    def _exception(self, error: BaseException) -> dict[str, Any]:
        try:
            message = str(error)
        except BaseException:
            message = "(its message cannot be shown)"
        if isinstance(error, SyntaxError) and error.filename == self.path:
            message = f"{error.msg} (line {error.lineno})"
        cut = expect.NOISE.sub("", message[:MAX_MESSAGE])
        kind, where = type(error).__name__, self._where(error)
        own = [frame["text"] for frame in where["frames"] if frame["own"]]
        return {
            "status": "raised",
            "type": kind,
            "message": cut,
            "length": len(message),
            "suspicion": of_exception(kind, cut, "".join(own[-1:])),
            "fault": self._is_fault_of_check(message, error, where["frames"]),
            **where,
        }

    def _what_was_left(self) -> dict[str, Any]:
        """Threads still running, a missing folder, a setting of torch."""
        try:
            gone = not os.path.isdir(os.getcwd())
        except OSError:
            gone = True
        return {
            "threads": whereabouts.threads_left(self.main_thread),
            "folder_gone": gone,
            "default_dtype": settings.default_dtype(),
        }

    def _record_how_it_leaves(self) -> None:
        """Have calls that end a process report the line they are called from."""

        def recorded(module, name):
            original = getattr(module, name)

            def leaving(*args, **kwargs):
                own = self.reporter.from_this_process
                ends = name in ("_exit", "abort") or args[:1] in ((os.getpid(),), (0,))
                if own and ends:
                    frame = learners_frame(sys._getframe(1), self.path)
                    how = f"os.{name}({', '.join(map(repr, args))})"
                    self.reporter.send({"status": "leaving", "how": how, **frame})
                return original(*args, **kwargs)

            setattr(module, name, leaving)

        for name in ("_exit", "abort", "kill", "killpg"):
            recorded(os, name)


def _innermost(error: BaseException) -> types.FrameType:
    """The frame in which ``error`` was raised."""
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
