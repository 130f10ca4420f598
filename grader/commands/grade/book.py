"""Grades many learners' folders: none of them stops or changes another's grade.

All submissions are read before the first is run. What cannot be read gets a
sentence in its own row. Results go to files again and again while grading goes
on, and once more at the end or at Ctrl-C.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import queue
import re
import signal
import stat
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from grader.catalog import Exercise
from grader.commands.progress import read_bytes, write_atomically
from grader.errors import UserError

if TYPE_CHECKING:
    from grader.commands.display import Screen
    from grader.engine.engine import Engine

WRITE_EVERY = 2.0  # seconds between two writings of the results
NOT_GRADED = "not graded"
UNREADABLE = "unreadable"
ENVIRONMENT = "environment"
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STARTED = ("right", "wrong", "not started")


@dataclass
class Cell:
    """One learner's answer to one exercise, and what became of it."""

    exercise: Exercise
    content: bytes | None = None
    status: str = NOT_GRADED
    verdict: str = ""
    message: str = ""
    seconds: float = 0.0

    @property
    def points(self) -> int:
        return self.exercise.points if self.status == "right" else 0


@dataclass
class Row:
    """One learner."""

    learner: str
    folder: Path
    cells: list[Cell]
    remarks: list[str] = field(default_factory=list)

    @property
    def points(self) -> int:
        return sum(cell.points for cell in self.cells)

    @property
    def possible(self) -> int:
        return sum(cell.exercise.points for cell in self.cells)

    def counts(self) -> Counter:
        return _counts(self.cells)

    def notes(self) -> list[str]:
        """Sentences on what could not be graded, and remarks on the folder."""
        told = [
            f"{cell.exercise.name}: {cell.message.splitlines()[0]}"
            for cell in self.cells
            if cell.status in (UNREADABLE, ENVIRONMENT) and cell.message
        ]
        return self.remarks + told


class Gradebook:
    """The rows, and what can be said about all of them."""

    def __init__(self, catalog: list[Exercise], rows: list[Row]):
        self.catalog, self.rows = catalog, rows

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row.cells]

    @property
    def total(self) -> int:
        return len(self.cells)

    @property
    def graded(self) -> int:
        return sum(cell.status != NOT_GRADED for cell in self.cells)

    @property
    def environment_broken(self) -> bool:
        return any(cell.status == ENVIRONMENT for cell in self.cells)

    def by_exercise(self) -> list[tuple[str, Counter, str]]:
        """(name, counts, the most common bad verdict) for each exercise."""
        found = []
        for number, exercise in enumerate(self.catalog):
            cells = [row.cells[number] for row in self.rows]
            bad = Counter(cell.verdict for cell in cells if cell.status == "wrong")
            common = bad.most_common(1)[0][0] if bad else ""
            found.append((exercise.name, _counts(cells), common))
        return found

    # -- formats -----------------------------------------------------------------
    def to_json(self) -> str:
        learners = [
            {
                "learner": _text(row.learner),
                "folder": _text(str(row.folder)),
                "points": row.points,
                "possible": row.possible,
                "remarks": [_text(remark) for remark in row.remarks],
                "exercises": [
                    {
                        "name": cell.exercise.name,
                        "status": cell.status,
                        "verdict": cell.verdict,
                        "points": cell.points,
                        "possible": cell.exercise.points,
                        "message": _text(cell.message),
                        "seconds": round(cell.seconds, 3),
                    }
                    for cell in row.cells
                ],
            }
            for row in self.rows
        ]
        done = {"complete": self.graded == self.total, "learners": learners}
        return json.dumps(done, indent=1, ensure_ascii=False) + "\n"

    def to_csv(self) -> str:
        """A row per learner; two columns per exercise: points and verdict."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = [exercise.name for exercise in self.catalog]
        heads = [head for name in names for head in (name, f"{name} verdict")]
        counted = ["right", "wrong", "not started", "other"]
        writer.writerow(["learner", "points", "possible", *counted, *heads])
        for row in self.rows:
            counts = row.counts()
            cells = [
                one
                for cell in row.cells
                for one in (cell.points, cell.verdict or cell.status)
            ]
            writer.writerow(
                [_harmless(_text(row.learner)), row.points, row.possible]
                + [counts[name] for name in counted]
                + cells
            )
        return text.getvalue()

    def to_junit(self) -> str:
        """A test suite per learner, a test case per exercise."""
        top = ElementTree.Element("testsuites", name="workshop grade")
        for row in self.rows:
            counts = row.counts()
            suite = ElementTree.SubElement(
                top,
                "testsuite",
                name=_text(row.learner),
                tests=str(len(row.cells)),
                failures=str(counts["wrong"]),
                errors=str(counts["other"]),
                skipped=str(counts["not started"]),
                time=f"{sum(cell.seconds for cell in row.cells):.3f}",
            )
            for cell in row.cells:
                case = ElementTree.SubElement(
                    suite,
                    "testcase",
                    classname=_text(row.learner),
                    name=cell.exercise.name,
                    time=f"{cell.seconds:.3f}",
                )
                self._outcome(case, cell)
        ElementTree.indent(top)
        body = ElementTree.tostring(top, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'

    @staticmethod
    def _outcome(case: ElementTree.Element, cell: Cell) -> None:
        if cell.status == "right":
            return
        tags = {"wrong": "failure", "not started": "skipped"}
        tag = tags.get(cell.status, "error")
        message = _text(cell.message)
        first = message.splitlines()[0] if message else cell.status
        attributes = {"message": first}
        if tag != "skipped":
            attributes["type"] = cell.verdict or cell.status
        element = ElementTree.SubElement(case, tag, attributes)
        if tag != "skipped":
            element.text = message


class Outputs:
    """The files that results are written to; tried out before grading starts."""

    def __init__(
        self,
        csv: Path | None = None,
        json: Path | None = None,
        junit: Path | None = None,
    ):
        wanted = {"csv": csv, "json": json, "junit": junit}
        self.paths = {kind: path for kind, path in wanted.items() if path is not None}
        self.problem = ""
        self._written = 0.0
        self._told = -1  # number of grades in what was written last

    def try_out(self) -> None:
        """Raises a UserError if one of the files could not be written later."""
        seen: dict[str, str] = {}
        for kind, path in self.paths.items():
            real = os.path.realpath(path)
            if real in seen:
                raise UserError(
                    f"--{seen[real]} and --{kind} both name {path}: give two files"
                )
            seen[real] = kind
            self._try_one(kind, path)

    def _try_one(self, kind: str, path: Path) -> None:
        cure = "name another file"
        if path.is_dir():
            raise UserError(f"--{kind} {path} is a folder: {cure}")
        if not path.parent.is_dir():
            raise UserError(f"--{kind} {path}: there is no folder {path.parent}")
        # Replacing /dev/null or a pipe by a file would break other programs.
        if path.exists() and not path.is_file():
            raise UserError(f"--{kind} {path} is not a plain file: {cure}")
        try:
            if path.exists():
                with open(path, "a"):
                    pass
            folder = os.path.dirname(os.path.realpath(path))
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".workshop-"):
                pass
        except OSError as error:
            reason = error.strerror
            raise UserError(
                f"--{kind} {path} cannot be written ({reason}): {cure}"
            ) from error

    def write(self, book: Gradebook, now: bool = False) -> None:
        """Write all of them, at most every WRITE_EVERY seconds unless ``now``."""
        clock = time.monotonic()
        graded = book.graded
        if not now and (graded == self._told or clock - self._written < WRITE_EVERY):
            return
        texts = {"csv": book.to_csv, "json": book.to_json, "junit": book.to_junit}
        self.problem = ""
        for kind, path in self.paths.items():
            try:
                write_atomically(path, texts[kind]())
            except OSError as error:
                self.problem = f"--{kind} {path} was not written: {error.strerror}"
        self._written, self._told = time.monotonic(), graded

    def where(self) -> str:
        """``; their results are in a.csv`` for the last sentence."""
        names = ", ".join(str(path) for path in self.paths.values())
        return f"; their results are in {names}" if names else ""


# -- reading the folders -----------------------------------------------------------
def collect(folders: list[Path], catalog: list[Exercise], each: bool) -> list[Row]:
    """Read every learner's files; nothing is run.

    Raises:
        UserError: a folder that is none, is given twice, or whose learner's name
            another one has; or folders of folders without ``--each``.
    """
    chosen = _learners(folders) if each else folders
    _refuse_doubles(chosen)
    if not each and not any(_find_files(folder, catalog) for folder in chosen):
        for folder in chosen:
            inside = [d for d in _subfolders(folder) if _find_files(d, catalog)]
            if inside:
                raise UserError(
                    f"{folder} has no exercise, but folders in it have: "
                    "add --each if each of them is one learner"
                )
    return [_read_row(folder, catalog) for folder in chosen]


def _learners(folders: list[Path]) -> list[Path]:
    chosen: list[Path] = []
    for folder in folders:
        _refuse_no_folder(folder)
        inside = _subfolders(folder)
        if not inside:
            raise UserError(f"--each: there is no folder in {folder}")
        chosen += inside
    return chosen


def _subfolders(folder: Path) -> list[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [one for one in found if one.is_dir() and not one.name.startswith(".")]


def _refuse_no_folder(folder: Path) -> None:
    if not os.path.lexists(folder):
        raise UserError(f"there is no folder {folder}")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that it lies in")


def _refuse_doubles(folders: list[Path]) -> None:
    places: dict[str, Path] = {}
    names: dict[str, Path] = {}
    for folder in folders:
        _refuse_no_folder(folder)
        real = os.path.realpath(folder)
        if real in places:
            raise UserError(f"{folder} is given twice: name each folder once")
        places[real] = folder
        name = learner_name(folder)
        if name in names:
            raise UserError(
                f"{names[name]} and {folder} are both the learner {name!r}: "
                "rename one of the folders"
            )
        names[name] = folder


def learner_name(folder: Path) -> str:
    """The folder's own name; for ``alice/exercises`` it is ``alice``."""
    path = Path(os.path.abspath(folder))
    return path.parent.name if path.name == "exercises" else path.name


def _find_files(folder: Path, catalog: list[Exercise]) -> dict[str, list[Path]]:
    """Exercise name -> where its file lies (``exercises/`` first)."""
    found: dict[str, list[Path]] = {}
    for exercise in catalog:
        places = (folder / "exercises" / exercise.file, folder / exercise.file)
        there = [path for path in places if os.path.lexists(path)]
        if there:
            found[exercise.name] = there
    return found


def _read_row(folder: Path, catalog: list[Exercise]) -> Row:
    row = Row(learner_name(folder), Path(os.path.abspath(folder)), [])
    try:
        os.listdir(folder)
        inner = folder / "exercises"
        if inner.is_dir():
            os.listdir(inner)
    except OSError as error:
        message = f"{folder} cannot be read: {error.strerror}"
        row.cells = [
            Cell(exercise, status=UNREADABLE, verdict=UNREADABLE, message=message)
            for exercise in catalog
        ]
        return row
    files = _find_files(folder, catalog)
    if not files:
        row.remarks.append("no exercise file in this folder")
    for exercise in catalog:
        places = files.get(exercise.name, [])
        row.cells.append(_read_cell(exercise, folder, places))
        if len(places) > 1:
            kept, other = (path.relative_to(folder) for path in places)
            row.remarks.append(f"graded {kept}, not the other copy {other}")
    return row


def _read_cell(exercise: Exercise, folder: Path, places: list[Path]) -> Cell:
    cell = Cell(exercise)
    if not places:
        cell.status = cell.verdict = "not started"
        cell.message = f"{exercise.file} is missing"
        return cell
    try:
        cell.content = _read_inside(folder, places[0])
    except UserError as error:
        cell.status = cell.verdict = UNREADABLE
        cell.message = str(error)
    return cell


def _read_inside(folder: Path, path: Path) -> bytes:
    """The file's content, if it really lies in the learner's folder."""
    real, root = os.path.realpath(path), os.path.realpath(folder)
    if os.path.commonpath([real, root]) != root:
        raise UserError(f"{path.name} is a link out of the folder: not followed")
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            raise UserError(f"{path.name} is not a plain file")
        return read_bytes(Path(real))
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}") from error


# -- grading -----------------------------------------------------------------------
STOP: Any = object()  # in the queue of graded cells: a signal asked to stop


class Pool:
    """``jobs`` threads, each with an engine of its own, take cells from a queue.

    A thread with its own server cannot be held up by what another one grades.
    """

    def __init__(self, make_engine: Callable[[], Engine], jobs: int, folder: Path):
        self.make_engine, self.folder = make_engine, folder
        self.todo: queue.SimpleQueue[Cell | None] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Cell | None] = queue.SimpleQueue()
        self.stopping = threading.Event()
        self.engines: list[Engine] = []
        self.threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(jobs)
        ]

    def start(self, cells: list[Cell]) -> None:
        for cell in cells:
            self.todo.put(cell)
        for thread in self.threads:
            self.todo.put(None)
            thread.start()

    def stop(self) -> None:
        """End what runs; the threads then leave."""
        self.stopping.set()
        for thread in self.threads:
            while thread.is_alive():
                for engine in list(self.engines):
                    engine.cancel()
                thread.join(0.05)

    def _work(self, number: int) -> None:
        try:
            with self.make_engine() as engine:
                self.engines.append(engine)
                while (cell := self.todo.get()) is not None:
                    if self.stopping.is_set():
                        break
                    self._grade(engine, cell, self.folder / str(number))
                    self.done.put(cell)
                self.engines.remove(engine)
        finally:
            self.done.put(None)

    def _grade(self, engine: Engine, cell: Cell, folder: Path) -> None:
        """Fills in the cell; whatever goes wrong is told in it."""
        started = time.monotonic()
        try:
            folder.mkdir(exist_ok=True)
            path = folder / cell.exercise.file
            path.write_bytes(cell.content or b"")
            result = engine.grade(cell.exercise, path=path, on_check=self._go_on)
            cell.status, verdict = result.status, result.verdict
            cell.verdict, cell.message = verdict.kind.value, verdict.message
        except Exception as error:
            if self.stopping.is_set():
                return  # cancelled: stays "not graded"
            cell.status = cell.verdict = ENVIRONMENT
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            cell.message = f"{kind}{error}"
        cell.seconds = time.monotonic() - started

    def _go_on(self, check, verdict) -> None:
        if self.stopping.is_set():
            raise InterruptedError("stopped between two checks")


def grade_all(
    book: Gradebook,
    make_engine: Callable[[], Engine],
    jobs: int,
    outputs: Outputs,
    make_screen: Callable[[], Screen],
) -> bool:
    """Grade every cell that has a content; False if it was interrupted.

    SIGTERM and SIGHUP (a closed terminal) end it as Ctrl-C does: results so far
    are written and shown.
    """
    waiting = [cell for cell in book.cells if cell.content is not None]
    jobs = min(jobs, max(1, len(waiting)))
    with tempfile.TemporaryDirectory(prefix="workshop-grade-") as folder:
        pool = Pool(make_engine, jobs, Path(folder))
        screen = None
        try:
            with _signals_stop(pool):
                pool.start(waiting)
                screen = make_screen()
                finished = _follow(book, pool, outputs, screen)
        except KeyboardInterrupt:
            finished = False
        finally:
            with _no_more_signals():
                pool.stop()
                outputs.write(book, now=True)
    with contextlib.suppress(BrokenPipeError):
        (screen or make_screen()).gradebook(book)
    return finished


def _follow(book: Gradebook, pool: Pool, outputs: Outputs, screen: Screen) -> bool:
    """Wait for all threads; show and write what arrives; False if told to stop."""
    owner = {id(cell): row for row in book.rows for cell in row.cells}
    open_cells = Counter(id(owner[id(c)]) for c in book.cells if c.content is not None)
    live = len(pool.threads)
    with screen.grading(book.total) as progress:
        task = progress.task_ids[0]
        progress.update(task, completed=book.graded)
        while live:
            try:
                cell = pool.done.get(timeout=WRITE_EVERY)
            except queue.Empty:
                outputs.write(book)  # what came since the last writing
                continue
            if cell is STOP:
                return False
            if cell is None:
                live -= 1
                continue
            row = owner[id(cell)]
            text = f"{row.learner[:20]} {cell.exercise.name}"
            progress.update(task, advance=1, description=_text(text))
            outputs.write(book)
            open_cells[id(row)] -= 1
            if not screen.interactive and not open_cells[id(row)]:
                screen.say(f"{row.learner}: {row.points} of {row.possible} points")
    if book.graded < book.total:
        raise UserError(
            "a grading thread ended before its work was done: grade again",
            exit_status=3,
        )
    return True


@contextlib.contextmanager
def _signals_stop(pool: Pool):
    """SIGINT, SIGTERM and SIGHUP ask the main loop to stop; a second one raises.

    An exception raised from a handler is lost if it arrives in the wrong moment
    (while Python imports, for one); what is put into the queue is not.
    """
    asked = False

    def ask(number, frame):
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        pool.done.put(STOP)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in ENDING_SIGNALS:
            before[number] = signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _no_more_signals():
    """A second, impatient Ctrl-C must not lose the results that are being written."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in ENDING_SIGNALS:
            before[number] = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- small things ------------------------------------------------------------------
def _counts(cells: list[Cell]) -> Counter:
    counts = Counter(
        cell.status if cell.status in STARTED else "other" for cell in cells
    )
    return counts


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(text: str) -> str:
    """What every format can hold: no control characters, no broken bytes."""
    return _NOT_IN_XML.sub("?", text)


def _harmless(text: str) -> str:
    """Spreadsheets run a cell that begins like a formula: quote it."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text
