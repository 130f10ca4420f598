"""One check in one rank: the learner's file is loaded, the check called, all noted."""

from __future__ import annotations

import contextlib
import importlib.machinery
import inspect
import linecache
import os
import random
import sys
import threading
import types
from pathlib import Path
from typing import Any

import torch

from workshop.grader import expect
from workshop.grader.engine import (
    check_file,
    leaving,
    rendezvous,
    settings,
    told,
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
from workshop.grader.ledger.ledger import Ledger
from workshop.grader.verdicts.outcome import Job


class Session:
    """One check in one rank.

    Args:
        state: the rank's numbers that it shares with the supervisor.
    """

    def __init__(self, job: Job, rank: int, state, reporter: Reporter):
        self.job, self.rank, self.state, self.reporter = job, rank, state, reporter
        self.path = job.exercise_path
        self.ledger = Ledger(self.path, self._tell_call)
        self.main_thread = threading.main_thread().ident or 0
        self.scheduler: Any = None
        self.handed: Handed | None = None

    def _tell_call(self, row: dict[str, Any]) -> None:
        if self.reporter.from_this_process:
            self.reporter.send({"status": "call", "row": row})

    def run(self) -> dict[str, Any]:
        """Load the exercise, call the check; what is to be reported of it."""
        leaving.report_calls(self.reporter, self.path)
        try:
            self._check()
            report: dict[str, Any] = {"status": "ok"}
        except BaseException as error:
            report = told.of_error(error, self._seen())
        for stream in (sys.stdout, sys.stderr):  # of the learner's, perhaps
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        report |= self._what_was_done()
        report |= self._what_was_left()
        self.state[PHASE] = REPORTED
        return report

    def _seen(self) -> told.Seen:
        return told.Seen(
            path=self.path,
            check_path=self.job.check_path,
            loading=self.state[PHASE] == LOADING,
            called=any(row.line for row in self.ledger.rows),
            handed=self.handed,
        )

    # -- the check ---------------------------------------------------------------
    def _check(self) -> None:
        torch.default_generator.manual_seed(self._own_seed)
        random.seed(self._own_seed)
        self.ledger.works.watch()
        self.state[PHASE] = LOADING
        self.scheduler = self._make_scheduler()
        module = self._load_exercise()
        if module is not None:
            self.handed = Handed(module)
        self.state[PHASE] = JOINING
        check = check_file.load(self.job.check_path, self.job.function)
        rendezvous.join(self.job, self.rank)
        self.state[PHASE] = CHECKING
        with self.ledger:
            check(**self._arguments(check))

    @property
    def _own_seed(self) -> int:
        """Ranks draw other global numbers: what must agree, they have to share."""
        return self.job.seed + 1000 * self.rank

    def _load_exercise(self) -> types.ModuleType | None:
        """The learner's module, made from the source that all ranks share."""
        source, name = self.job.source, self.job.exercise
        lines = source.splitlines(keepends=True)
        linecache.cache[self.path] = (len(source), None, lines, self.path)
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

    def _arguments(self, check) -> dict[str, Any]:
        """What the check asks for by the names of its parameters."""
        known = {
            "exercise": self.handed,
            "exercise_path": Path.cwd() / os.path.basename(self.path),
            "rank": self.rank,
            "world_size": self.job.world_size,
            "seed": self.job.seed,
            "ledger": self.ledger,
            "shared_dir": Path.cwd(),
            "scheduler": self.scheduler,
        }
        names = inspect.signature(check).parameters
        if "exercise_again" in names:
            again = self._load_exercise()
            known["exercise_again"] = again and Handed(again)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise TypeError(
                f"a check cannot ask for {', '.join(unknown)}: "
                f"it can ask for {', '.join(known)}"
            )
        return {name: known[name] for name in names}

    def _make_scheduler(self):
        """What job scripts are submitted to, if the check asks for it."""
        if self.job.scheduler is None:
            return None
        from workshop.cluster.jobs.scheduler import Scheduler

        return Scheduler(Path.cwd(), **self.job.scheduler)

    # -- the report --------------------------------------------------------------
    def _what_was_done(self) -> dict[str, Any]:
        """Calls of torch.distributed and of the learner's functions, and jobs."""
        done: dict[str, Any] = {
            "phase": self.state[PHASE],
            "passed": expect.passed,
            "entered": Calls.entered,
            "ended_by": Calls.ended_by,
            "ledger": self.ledger.report(),
            "unwaited": self.ledger.works.unwaited(),
            "used_early": self.ledger.works.used_early,
            "calls": len(self.ledger.rows),
            "untried": [],
            "missing": [],
            "jobs": 0,
        }
        if self.scheduler:
            done["untried"] = self.scheduler.untried
            done["missing"] = self.scheduler.missing
            done["jobs"] = self.scheduler.submitted
        return done

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
