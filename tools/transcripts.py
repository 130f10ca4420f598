"""Record what the commands on the pages really print, and check that they still do.

    python tools/transcripts.py record            # all of docs/transcripts/catalog.toml
    python tools/transcripts.py record NAME...
    python tools/transcripts.py check NAME...     # run again and compare

A command runs in a fresh copy of the working tree, as a learner's clone would be,
so it may alter files. Where it ran is not shown: the folder becomes ``~/workshop``,
the machine's name ``laptop``. What else differs from run to run is declared in the
catalog, one pattern at a time, and applied to both sides of a comparison.

Exit status: 0 all recorded or alike, 1 something differs, 2 bad input.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

if not importlib.util.find_spec("torch"):
    cure = "activate the environment first: source .venv/bin/activate"
    print(f"transcripts: {sys.executable} has no torch, {cure}", file=sys.stderr)
    sys.exit(2)
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `python tools/transcripts.py`
from tools.fresh_copy import fresh_copy  # noqa: E402
from tools.transcript_catalog import (  # noqa: E402
    Entry,
    TranscriptError,
    load_catalog,
    select,
)

# What an agent of torchrun says, or not, if it leaves after the one whose node keeps
# the store: who of them is first is chance.
LATE_FAREWELL = re.compile(
    r"""^(?:
        \[W.*TCPStore\.cpp.*(?:recv|send)\w+\ failed.*\n
      | Exception\ raised\ from\ (?:recv|send)Bytes.*\n
      | <omitting\ python\ frames>\n
      | frame\ \#\d+:.*\n\n?
      | W\d+.*has\ failed\ to\ (?:shutdown|send\ a\ keep-alive\ heartbeat\ to)
            \ the\ rendezvous.*\n
    )""",
    re.MULTILINE | re.VERBOSE,
)
# The same of an agent that was waiting for the others: some lines with one time stamp.
LEFT_ALONE = re.compile(
    r"^(E\d+ [\d:.]+ \d+) .*\] Error waiting on exit barrier", re.MULTILINE
)


# Running


def run(entry: Entry, short: bool = False) -> str:
    """Run the entry's commands in a fresh copy: commands, output, exit status."""
    with fresh_copy() as tree:
        if entry.after:
            run_in(tree, load_catalog()[entry.after], short)
        return run_in(tree, entry, short)


def run_in(tree: Path, entry: Entry, short: bool = False) -> str:
    """Run the entry's commands in ``tree``, a copy in which others may have run.

    ``short`` means with the numbers of ``entry.fewer``.

    Raises:
        TranscriptError: the set-up failed, the exit status was not the expected one,
            the command ran past its limit, or it didn't show what it must.
    """
    if short:
        entry = replace(entry, command=entry.shortened(entry.command))
    try:
        status, lines = _run_in(tree, entry)
    finally:
        if entry.cleanup:
            _shell(entry, entry.cleanup, tree)
    if status != entry.status:
        raise TranscriptError(
            f"{entry.name}: the command ended with status {status}, "
            f"expected {entry.status}; it printed:\n" + "\n".join(lines[-25:])
        )
    if status:
        lines.append(f"[exit status {status}]")
    text = "\n".join(lines) + "\n"
    if not re.search(entry.shows, text, flags=re.MULTILINE):
        raise TranscriptError(f"{entry.name} doesn't show {entry.shows}:\n{text}")
    return text


def _run_in(tree: Path, entry: Entry) -> tuple[int, list[str]]:
    """The exit status of the last command, and the lines of all."""
    if entry.setup:
        status, output = _shell(entry, entry.setup, tree)
        if status:
            raise TranscriptError(
                f"{entry.name}: the set-up ended with status {status}: "
                f"{_last_line(output)}"
            )
    status, lines = 0, []
    for command in entry.commands:
        words = command
        if entry.inside:
            words = f"{entry.inside} bash -c {shlex.quote(command)}"
        status, output = _shell(entry, words, tree)
        lines.append(f"$ {command}")
        lines.extend(_clean(output, tree))
    return status, lines


def _shell(entry: Entry, command: str, tree: Path) -> tuple[int, str]:
    """The exit status of the command and all it printed; none of it is left running."""
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=tree,
        env=_environment(entry, command, tree),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=entry.limit)
    except subprocess.TimeoutExpired:
        raise TranscriptError(
            f"{entry.name}: {command!r} was still running after {entry.limit} s"
        ) from None
    finally:
        # The whole session: ranks of a command that hung or was interrupted, too.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, output.decode("utf-8", "replace")


def _environment(entry: Entry, command: str, tree: Path) -> dict[str, str]:
    """That of a reader who has set nothing: neither a test nor a launcher has."""
    foreign = re.compile(
        r"PYTEST_|PYTHONPATH|FORCE_COLOR|RANK$|LOCAL_|WORLD_SIZE|MASTER_"
        r"|OMPI_|PMI|TORCHELASTIC|GROUP_|SLURM|PBS_"
    )
    own = Path(sys.executable).parent  # of .venv, or its wrappers in tests
    environment = {
        **{key: text for key, text in os.environ.items() if not foreign.match(key)},
        "PATH": f"{own}{os.pathsep}{os.environ.get('PATH', '')}",
        "COLUMNS": "88",
        "LINES": "40",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(tree.parent / "tmp"),
        # nobody's start files of the shell: a login shell runs them
        "HOME": str(tree.parent / "home"),
        "WORKSHOP_CLUSTER": str(tree.parent / "cluster"),
        # mpirun refuses root, whom a container that records may be
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    if any(map(command.count, entry.cold)):
        environment["COLD_PYTHON"] = "1"
    return environment


def _clean(output: str, tree: Path) -> list[str]:
    """The lines of an output as any reader's machine would show them."""
    places = [
        (str(tree.parent / "tmp"), "/tmp"),
        (str(tree.parent / "cluster"), "/tmp/workshop-cluster-1000"),
        (f"{tree}/", ""),
        (str(tree), "~/workshop"),
        (f"{ROOT}/", ""),
        (str(ROOT), "~/workshop"),
        (sys.base_prefix if sys.base_prefix != "/usr" else "", "/usr"),
        (str(tree.parent / "home"), "~"),
        (str(Path.home()), "~"),
    ]
    output = output.replace("\0", "")  # no terminal shows it, and no page may have it
    for place, shown in places:
        if len(place) > 1:
            # a clone may be /workshop, which is in what was shown already
            output = re.sub(rf"(?<!~){re.escape(place)}", shown, output)
    for name in {socket.gethostname(), socket.getfqdn()} - {"localhost", ""}:
        output = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "laptop", output)
    # Of a line that was redrawn with carriage returns, a reader sees the last state.
    lines = [line.rstrip("\r").split("\r")[-1].rstrip() for line in output.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]


# Recording and comparing


def record(entry: Entry) -> None:
    """Write the entry's file; an interrupted recording leaves the old one."""
    text = run(entry)
    torch = importlib.metadata.version("torch")
    today = datetime.date.today().isoformat()
    text += f"Recorded with torch {torch} on {today}\n"
    partial = entry.path.with_suffix(".txt.tmp")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(entry.path)
    except OSError as error:
        raise TranscriptError(f"cannot write {entry.path}: {error}") from error


def check(entry: Entry, tree: Path | None = None) -> str:
    """Run again and compare; returns a readable difference, empty if alike.

    It runs with the numbers of ``entry.fewer``, in ``tree``, as in the clone of
    somebody who types page after page, or in a fresh copy.

    Raises:
        TranscriptError: nothing is recorded, or the command fails otherwise.
    """
    recorded = entry.shortened(body(entry))
    now = run_in(tree, entry, short=True) if tree else run(entry, short=True)
    left, right = comparable(entry, recorded), comparable(entry, now)
    if left == right:
        return ""
    difference = difflib.unified_diff(left, right, "recorded", "now", lineterm="", n=2)
    return "\n".join(difference)


def body(entry: Entry) -> str:
    """The recorded text without its footer."""
    try:
        text = entry.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TranscriptError(
            f"{entry.name} is not recorded ({error}): "
            f"python tools/transcripts.py record {entry.name}"
        ) from error
    lines = text.rstrip("\n").split("\n")
    if not lines[-1].startswith("Recorded with torch "):
        raise TranscriptError(
            f"{entry.path.name} was not written by this tool, it has no last line "
            f"'Recorded with ...': python tools/transcripts.py record {entry.name}"
        )
    return "\n".join(lines[:-1]) + "\n"


def comparable(entry: Entry, text: str) -> list[str]:
    """The lines of a transcript with what may differ put out of sight."""
    if entry.shows:
        return [str(bool(re.search(entry.shows, text, flags=re.MULTILINE)))]
    text = LATE_FAREWELL.sub("", text)
    for stamp in LEFT_ALONE.findall(text):
        text = re.sub(rf"^{re.escape(stamp)} .*\n", "", text, flags=re.MULTILINE)
    for pattern, replacement in entry.normalize:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    lines = text.splitlines()
    return sorted(lines) if entry.sort_lines else lines


# The command


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("record", "check", "list"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    options = parser.parse_args(arguments)
    entries = select(load_catalog(), options.names)
    if options.action == "list":
        print("\n".join(entry.name for entry in entries))
        return 0
    failures = 0
    for number, entry in enumerate(entries, start=1):
        outcome = _one(options.action, entry)
        failures += outcome.startswith("FAILED")
        print(f"[{number}/{len(entries)}] {entry.name}: {outcome}", flush=True)
    if failures:
        print(f"{failures} of {len(entries)} transcripts failed", file=sys.stderr)
    return 1 if failures else 0


def _one(action: str, entry: Entry) -> str:
    """Record or check one entry; one failure does not stop the others."""
    if missing := entry.missing_programs():
        return f"skipped, this machine has no {', '.join(missing)}"
    try:
        if action == "record":
            record(entry)
            return "recorded"
        difference = check(entry)
    except TranscriptError as error:
        return f"FAILED: {error}"
    return f"FAILED: the output differs\n{difference}" if difference else "alike"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TranscriptError as error:
        print(f"transcripts: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
