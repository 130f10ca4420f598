"""How the ``workshop`` command looks: verdicts, tables, progress bars.

Everything that comes from a learner (messages, file names, output) is shown as
text: no markup is read from it and no control character reaches the terminal.
Only ASCII is written here, and colors say nothing that words do not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from workshop.catalog import Exercise
from workshop.grader.verdicts.verdict import MAX_LINES, NOTHING_WRONG, Result, Verdict
from workshop.learning_paths import LearningPath
from workshop.system.paths import shown_path
from workshop.terminal import tables
from workshop.terminal.console import STYLES, make_console, printable

BAR_WIDTH = 30


class Screen:
    """Everything the commands print. ``console`` decides on colors and width."""

    def __init__(self, console: Console | None = None):
        self.console = console or make_console()

    @property
    def interactive(self) -> bool:
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def say(self, text: str = "", style: str | None = None) -> None:
        """One sentence or more, wrapped at words on a terminal, never elsewhere."""
        self.console.print(
            Text(printable(text), style=style or ""),
            soft_wrap=not self.console.is_terminal,
        )

    def clear(self) -> None:
        if self.interactive:
            self.console.clear()

    def line(self, *parts: tuple[str, str] | str) -> None:
        """One line made of pieces, each plain or with its style."""
        text = Text()
        for part in parts:
            plain, style = (part, "") if isinstance(part, str) else part
            text.append(printable(plain), style)
        self.console.print(text, soft_wrap=not self.console.is_terminal)

    @contextmanager
    def waiting(self, text: str) -> Iterator[Waiting]:
        """A moving sign on a terminal while something runs; elsewhere nothing."""
        if not self.interactive:
            yield Waiting(None)
            return
        with self.console.status(Text(text), spinner="line") as status:
            yield Waiting(status)

    # -- verdicts ----------------------------------------------------------------
    def result(self, exercise: Exercise, result: Result, verbose: bool = False) -> None:
        """The headline of an exercise and, unless it is right, its verdict."""
        status = result.status
        label = {"environment": "environment broken"}.get(status, status)
        self.line(
            (f"{exercise.name}: ", "bold"),
            (label, f"bold {STYLES[status]}"),
            (_checks(result), "dim"),
        )
        if status != "right":
            self.verdict(result.verdict)
        if verbose:
            for verdict in result.verdicts:
                self.details(verdict)

    def verdict(self, verdict: Verdict) -> None:
        """At most 15 lines, longer ones wrapped at words with their indent kept.

        If wrapping makes too many of them, the indented ones (a line per rank, the
        learner's code) are cut at the width instead: ``-v`` prints all of them.
        """
        lines = [printable(one).replace("\n", " ") for one in verdict.lines]
        lines = lines[:MAX_LINES]
        shown = [piece for line in lines for piece in self._hanging(line)]
        if len(shown) > MAX_LINES:
            shown = [
                piece
                for line in lines
                for piece in self._hanging(line, cut=line.startswith("  "))
            ]
        for piece in shown:
            self.console.print(piece, soft_wrap=True)

    def _hanging(self, line: str, cut: bool = False) -> list[Text]:
        """The line as it is printed: whole without a terminal, else wrapped or cut."""
        style = "dim" if line.startswith(("check, ", "read: ")) else ""
        body = line.lstrip()
        indent = 2 + len(line) - len(body)
        room = self.console.width - indent
        text = Text(body, style=style)
        if not self.console.is_terminal or room < 20:
            return [Text(" " * indent) + text]
        if cut:
            text.truncate(room, overflow="ellipsis")
            return [Text(" " * indent) + text]
        first, *more = text.wrap(self.console, room)
        if more:  # continued lines stand two columns further in
            rest = Text(body[len(first.plain) :].lstrip(), style=style)
            more = rest.wrap(self.console, room - 2)
        pieces = [Text(" " * indent) + first]
        pieces += [Text(" " * (indent + 2)) + piece for piece in more]
        for piece in pieces:
            piece.rstrip()
        return pieces

    def details(self, verdict: Verdict) -> None:
        """What ``-v`` adds: everything that was seen, uncut."""
        ranks = f"{verdict.world_size} rank{'s' * (verdict.world_size != 1)}"
        head = f"{verdict.check or 'the exercise'}: {verdict.kind.value}"
        if verdict.world_size:
            head += f" ({ranks}, seed {verdict.seed}, {verdict.seconds:.2f} s)"
        self.line(("  " + head, STYLES.get(verdict.kind.status, "")))
        for line in verdict.details:
            for part in line.splitlines() or [""]:
                self.console.print(Text("    " + printable(part)), soft_wrap=True)

    def not_started(self, exercise: Exercise) -> None:
        self.say(f"  Open {shown_path(exercise.path)} and fill its TODOs.")

    # -- tables ------------------------------------------------------------------
    def catalog(self, catalog: list[Exercise], states: dict[str, str]) -> None:
        """Every exercise in order with its state, then the progress bar."""
        self.console.print(tables.of_catalog(self.console, catalog, states))
        if "changed" in states.values():
            self.say("changed: not checked since the last change (workshop check NAME)")
        if "not fully checked" in states.values():
            self.say(
                "not fully checked: right as far as this machine could try it "
                "(workshop check NAME says what it lacks)"
            )
        if "missing" in states.values():
            self.say("missing: the file is gone (workshop reset NAME restores it)")
        self.progress(states)

    def progress(self, states: dict[str, str]) -> None:
        """``[------    ] 3 of 9 right, 1 not fully checked``"""
        right = sum(state == "right" for state in states.values())
        partial = sum(state == "not fully checked" for state in states.values())
        total = len(states)
        told = f"{right} of {total} right"
        if partial:
            told += f", {partial} not fully checked"
        if self.console.is_terminal:
            grid = Table.grid(padding=(0, 1))
            bar = ProgressBar(total=max(total, 1), completed=right, width=BAR_WIDTH)
            grid.add_row(bar, Text(told))
            self.console.print(grid)
        else:
            done = BAR_WIDTH * right // max(total, 1)
            bar = "#" * done + "-" * (BAR_WIDTH - done)
            self.console.print(f"[{bar}] {told}", soft_wrap=True)

    def finished(self, states: dict[str, str]) -> None:
        """No exercise is left; which of them could not be checked fully here."""
        partial = [name for name, state in states.items() if state != "right"]
        if not partial:
            self.say("Every exercise is right.", "bold green")
            return
        names = ", ".join(partial)
        told = f"Every other exercise is right; not fully checked here: {names}"
        self.say(told, "bold cyan")

    def next(self, exercise: Exercise) -> None:
        """Where to continue: the file, its minutes, its page."""
        minutes = f"about {exercise.minutes} minutes"
        minutes += ", optional" * exercise.optional
        self.line("Next:  ", (shown_path(exercise.path), "bold"), f"  ({minutes})")
        self.line(f"       {exercise.title}")
        self.line(f"       The page: {exercise.page}")

    def next_on_path(self, path: LearningPath, states: dict[str, str]) -> None:
        """How far the path is walked, then its next exercise or what comes after it."""
        finished = ("right", "not fully checked")
        left = [one for one in path.exercises if states[one.name] not in finished]
        done = f"{len(states) - len(left)} of {len(states)} right"
        if not left:
            self.say(f"Path {path.name}: {done}. You've finished it.", "bold green")
            if path.starter:
                self.line("Now copy ", (path.starter, "bold"), " and make it yours.")
            if path.then:
                self.say(f"To continue: workshop next --path {path.then}")
            return
        minutes = sum(one.minutes for one in left)
        self.say(f"Path {path.name}: {done}, about {minutes} minutes of exercises left")
        self.next(left[0])

    def hints(self, exercise: Exercise, shown: int) -> None:
        """The first ``shown`` hints; the newest stands last."""
        total = len(exercise.hints)
        for number, hint in enumerate(exercise.hints[:shown], start=1):
            head = f"Hint {number} of {total}: "
            style = "bold" if number == shown else "dim"
            self.line((head, style), hint)
        if shown < total:
            left = total - shown
            self.say(f"({left} more: workshop hint {exercise.name})", "dim")
        else:
            self.say(f"(no more hints; the page: {exercise.page})", "dim")

    def diff(self, lines: Iterable[str]) -> None:
        styles = {"+": "green", "-": "red", "@": "cyan"}
        for line in lines:
            style = styles.get(line[:1], "")
            text = Text(printable(line.rstrip("\n")), style=style)
            self.console.print(text, soft_wrap=True)

    def doctor(self, checks: Iterable) -> None:
        """What works on this machine, and the cure for what does not."""
        self.console.print(tables.of_doctor(self.console, checks))

    # -- the instructor's table --------------------------------------------------
    def grading(self, total: int) -> Progress:
        """A progress bar over submissions times exercises (terminal only)."""
        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=BAR_WIDTH),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.interactive,
            transient=True,
        )
        progress.add_task("grading", total=total)
        return progress

    def gradebook(self, book) -> None:
        """A row per learner, then a row per exercise (which one is hard?)."""
        self.console.print(tables.of_learners(self.console, book))
        if len(book.rows) > 1:
            self.console.print()
            self.console.print(tables.of_exercises(self.console, book))
        for row in book.rows:
            for note in row.notes():
                self.line((f"{row.learner}: ", "bold"), note)


class Waiting:
    """The text beside the moving sign; nothing happens without a terminal."""

    def __init__(self, status) -> None:
        self._status = status

    def update(self, text: str) -> None:
        if self._status is not None:
            self._status.update(Text(printable(text)))


def _checks(result: Result) -> str:
    """``(5 checks, 0.4 s)`` or ``(check 2 of 5, 0.1 s)``, torch's import excluded."""
    ran = [verdict for verdict in result.verdicts if verdict.world_size]
    if not ran:
        return ""
    seconds = sum(verdict.seconds for verdict in ran)
    wrong = [
        number
        for number, one in enumerate(ran, start=1)
        if one.kind not in NOTHING_WRONG
    ]
    if wrong:
        planned = max(result.planned, len(ran))
        return f"  (check {wrong[0]} of {planned}, {seconds:.1f} s)"
    return f"  ({len(ran)} check{'s' * (len(ran) != 1)}, {seconds:.1f} s)"
