"""What ``workshop diagnose`` prints: first rank, cause, cure, and where to read.

It never claims more than the log shows: if several causes fit, it says so.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from workshop.diagnose.causes import (
    MAYBE,
    PAGE,
    SURE,
    WHICH_RANK,
    Found,
    candidates,
    load,
)
from workshop.diagnose.first import (
    CONSEQUENCE,
    OF_LAUNCHERS,
    chain_from,
    end_of_chain,
    first_failed,
    is_consequence,
    is_own_error,
    lead,
    look,
)
from workshop.diagnose.kinds import (
    CODE,
    EXCEPTION,
    NOISE,
    PROGRESS,
    REQUEUED,
    RESTARTS,
    SURVIVED,
)
from workshop.diagnose.lines import Line
from workshop.diagnose.logs import Log
from workshop.diagnose.numbers import read_line
from workshop.diagnose.ranks import First, listed
from workshop.diagnose.recorder import compare, without_file
from workshop.diagnose.stacks import dumps_in, stacks_beside, tell_stacks
from workshop.diagnose.state import LOSS
from workshop.diagnose.vendors import for_these_gpus

ABORT = re.compile(
    r"terminate called|core dumped|^Fatal Python error|^\s*what\(\): |Bus error|"
    r"^Segmentation fault|^Illegal instruction|double free|"
    r"\*\*\* Process received signal"
)
REFUSAL = re.compile(
    r"^(?:srun|sbatch|salloc|slurmstepd): (?:error|fatal)|^qsub: |not enough slots|"
    r": (?:command )?not found$|\b(?:ORTE|PRTE) |^mpirun (?:has|was|noticed)|"
    r"PBS: job killed|exited with non-zero status|MPI_ABORT was|CANCELLED AT|"
    r"OOMKilled|^TERM_|^\[mpiexec@.*(?:unable|error)|"
    r"^(?:Job|job) \S+ killed "
)
ERROR = re.compile(
    r"\bERROR\b|^\[?E\d{4} |\[E(?:\d{3,4})? |"
    r"^(?:\S+: )?(?i:error|fatal(?: error)?)\b[: ]|"
    r"NCCL WARN|\bfailed \(exitcode|\bFATAL\b|(?:^|: )Killed$|"
    r": line \d+: +\d+ Killed\b|\bhas failed\b|stopping training|"
    r"\.(?:c|cc|cpp|cu):\d+ +Error: |"
    r"^\S+: (?:cannot|could not|couldn't|can't) "
)
# what to quote, best first
REST = (ABORT, REFUSAL, CONSEQUENCE, ERROR, re.compile("Traceback"))
OF_NCCL = re.compile(r"^(\S+):\d+:\d+ \[(\d+)\] .*NCCL WARN")
PROMPT = re.compile(r"^\$ ")  # a command that somebody typed
LONGEST = 160  # characters of a quoted line
MOST_LINES = 4
MOST_RANK_LINES = 8
INTERRUPTED = "interrupted"  # a cause
PRESSED = re.compile(r"^KeyboardInterrupt\b")
LOADER = re.compile(r'File "[^"]*torch/utils/data/dataloader\.py"')
IN_LOADER = (
    "It waited for a batch of its data loader: look at the storage, try num_workers=0, "
    "and give the loader a timeout="
)
NOTHING = (
    ", nor in their numbers. If the run hangs, is slow or wrong, its questions are in "
    f'{PAGE}, "Hangs", "Is slow" and "Runs and is wrong"'
)
LOST = "This log only says that another rank has left. Read those of the other ranks:"
FAILED = "This log only says that a process has failed. Read that process's own error:"
SETTLE = (
    "To settle it: the logs of all ranks and nodes, also the launcher's and the "
    "scheduler's, or the stacks of a run that hangs (py-spy dump)"
)
KEEP = (
    "torchrun only tells how its processes ended. To keep what each of them says, run "
    "again with --tee 3 or --log-dir FOLDER, or put @record on your main()"
)
OWN_LINES = 5  # of what the first rank said last


def diagnose(log: Log, root: Path) -> tuple[list[str], bool]:
    """(what to print, whether one cause is named)."""
    if log.records:
        return tell_records(log, root)
    first = first_failed(log)
    found = candidates(load(root), log, first)
    error = first_error(log, first)
    if not first and error is None:
        found = [unproved(each, log) for each in found]
    if not first and all(is_survived(each) for each in found):
        told = tell_no_failure(log, found, error)
        if told:
            return told, False
    return tell_failure(log, first, found, error)


def tell_no_failure(log: Log, found: list[Found], error: Line | None) -> list[str]:
    """What a log shows in which no rank failed; [] if its error tells more."""
    launcher = words_of_launcher(log)
    if error is None and launcher and not found:
        return [FAILED, f"    {quote(launcher)}"]
    if error is None:
        dumps = dumps_in(log.lines)
        if dumps:
            return [*tell_stacks(dumps), f"Read: {WHICH_RANK}"]
        return [nothing(log)]
    if not found and is_consequence(error.text):
        return [LOST, f"    {quote(error)}"]
    return []


def tell_failure(
    log: Log, first: First | None, found: list[Found], error: Line | None
) -> tuple[list[str], bool]:
    """Who failed first, of what, and what else the log says of it."""
    sure = named(found)
    told = tell_first(first, found) + tell_victims(log, first)
    if sure:
        told += tell(sure)
    elif found:
        told += tell_unsure(found, log)
    else:
        told += tell_unknown(error, log, first)
    if not sure and not (found and found[0].quiet):
        told += own_words(log, first)
    if not sure and not is_known(first):
        told += stacks_beside(dumps_in(log.lines))
    shown = [line.text for each in found[:2] for line in each.lines]
    if error:
        shown.append(error.text)
    told += where_it_stood(found, log)
    told += nccl_words(log, shown)
    told += nan_before(log, found)
    told += ended_before(log, found)
    return for_these_gpus(told, log), sure is not None


def tell_records(log: Log, root: Path) -> tuple[list[str], bool]:
    """What the flight recorder's files show; the lines of logs beside them, too."""
    difference, files = compare(log.records), without_file(log.records)
    told = [f"No file of {listed(files)}: read theirs as well"] if files else []
    if log.lines:
        beside = Log(log.lines, log.error_files, log.files)
        told += [*diagnose(beside, root)[0], "What the flight recorder kept:"]
    if difference is None:
        ranks = listed(sorted(log.records))
        same = f"The records of {ranks} don't differ in any collective that all kept"
        return [*told, same, SETTLE], False
    cause = next(c for c in load(root) if c.name == difference.cause)
    told += tell_first(difference.first, [])
    told.append(f"Cause: {cause.title}")
    told += [f"    {line}" for line in difference.lines[:MOST_RANK_LINES]]
    told += [f"Cure: {cause.cure}", f"Read: {cause.read}"]
    return told, True


def unproved(found: Found, log: Log) -> Found:
    """Words before steps that follow, in a log without an error, prove nothing."""
    if found.quiet or not any(is_step(line) for line in after(log, found.lines)):
        return found
    return replace(found, weight=min(found.weight, MAYBE))


def after(log: Log, lines: tuple[Line, ...]) -> list[Line]:
    cited = [line.place for line in log.lines]
    known = [cited.index(line.place) for line in lines if line.place in cited]
    return log.lines[max(known) + 1 :] if known else []


def is_step(line: Line) -> bool:
    return bool(PROGRESS.search(line.text))


def is_survived(found: Found) -> bool:
    return not found.quiet and all(line.kind == SURVIVED for line in found.lines)


def nothing(log: Log) -> str:
    """No failure; and what the run survived, if it did."""
    lines, files = len(log.lines), log.files
    looked = f"{lines:,} line{'s' * (lines != 1)}"
    where = f" of {files} files" if files > 1 else ""
    survived = next((line for line in log.lines if line.kind == SURVIVED), None)
    said = f"; {continued(log, survived)}" if survived else ""
    return f"No failure found in {looked}{where}{NOTHING}{said}"


def continued(log: Log, survived: Line) -> str:
    """How the run continued after an error."""
    if REQUEUED.search(survived.text):
        said = "the job was put back into the queue once, and the run finished"
        return f"{said}: {quote(survived)}"
    restarted = any(RESTARTS.search(line.text) for line in log.lines)
    if not restarted:
        return f"the run continued after {quote(survived)}"
    who = "a rank" if survived.rank is None else f"rank {survived.rank}"
    said = f"{who} failed once, torchrun restarted it, and the run finished"
    return f"{said}: {quote(survived)}"


def named(found: list[Found]) -> Found | None:
    """The one cause that is sure, if there is exactly one."""
    sure = [f for f in found if f.weight == SURE]
    of_first = [f for f in sure if f.by_first]
    if len(sure) == 1:
        return sure[0]
    return of_first[0] if len(of_first) == 1 else None


def tell_victims(log: Log, first: First | None) -> list[str]:
    """Ranks that failed because of it, and ranks of which there is no line."""
    if first is None:
        return []
    seen = look(log)
    lost = {*seen.lost, *seen.own, *seen.ended} - set(first.ranks)
    silent = seen.ranks - seen.spoke - set(first.ranks) - set(seen.codes) - lost
    told = []
    if lost and first.ranks:
        told.append(f"    Failed because of it, or later: {listed(sorted(lost))}")
    if silent and seen.spoke:
        told.append(f"    No sign of life in this log: {listed(sorted(silent))}")
    return told


def own_words(log: Log, first: First | None) -> list[str]:
    """The error of the rank that failed first, whole, with the lines before it."""
    own = look(log).own
    rank = next((r for r in first.ranks if r in own), None) if first else None
    if rank is None or own[rank].kind != EXCEPTION:
        return []
    if OF_LAUNCHERS.search(own[rank].text):
        return []
    return [f"Rank {rank}'s own words:", *last_words(own[rank], log)]


def last_words(error: Line, log: Log) -> list[str]:
    """An exception, whole, with the lines before it by the same rank."""
    lines = [line for line in log.lines if line.rank == error.rank]
    end = lines.index(error)
    before = lines[max(0, end - OWN_LINES) : end + 1]
    return [f"    {line.text.rstrip()}" for line in before]


def nccl_words(log: Log, shown: list[str]) -> list[str]:
    """What NCCL itself says of the failure, before torch wraps it."""
    lines = [line for line in log.lines if line.kind not in (NOISE, CODE)]
    for number, line in enumerate(lines):
        told = line
        if line.text.strip() == "Last error:" and number + 1 < len(lines):
            told = lines[number + 1]
        elif "NCCL WARN" not in line.text or is_consequence(line.text):
            continue
        if any(told.text in text for text in shown):
            return []
        return ["NCCL's own words:", f"    {quote(told)}"]
    return []


def where_it_stood(found: list[Found], log: Log) -> list[str]:
    """The frames in which Ctrl-C met a run that may have been hanging."""
    if not found or found[0].cause.name != INTERRUPTED:
        return []
    line = next((row for row in log.lines if PRESSED.match(row.text)), None)
    if line is None:
        return []
    told = ["It stood here:", *last_words(line, log)]
    before = [row for row in log.lines[: log.lines.index(line)] if row.kind == CODE]
    waited = any(row.rank == line.rank and LOADER.search(row.text) for row in before)
    return [*told, IN_LOADER] if waited else told


def ended_before(log: Log, found: list[Found]) -> list[str]:
    """That Slurm had stopped the job once, before it failed of another cause."""
    failed = [line.place for line in (found[0].lines if found else ())]
    for line in log.lines:
        if line.place in failed:
            return []
        if REQUEUED.search(line.text):
            return ["Before that, the job had been stopped once:", f"    {quote(line)}"]
    return []


def nan_before(log: Log, found: list[Found]) -> list[str]:
    """A loss that had become nan, whatever failed later."""
    if found and found[0].quiet:
        return []
    for line in log.lines:
        if "nan" not in line.text.lower() or line.kind == CODE:
            continue
        said = read_line(line)
        if any(number.value != number.value for number in said.values(LOSS)):
            return ["Before that, a loss had become nan:", f"    {quote(line)}"]
    return []


def is_known(first: First | None) -> bool:
    """One rank or several failed first, which isn't only a suspicion."""
    return first is not None and first.sure and bool(first.ranks)


def tell_first(first: First | None, found: list[Found]) -> list[str]:
    if first is None and found and found[0].quiet:
        suspect = next((f.suspect for f in found if f.suspect), None)
        return ["No rank reports an error."] + (
            tell_first(suspect, []) if suspect else []
        )
    if first is None:
        return [f"First to fail: the log doesn't say{speaking_gpu(found)}"]
    if not first.ranks:
        reason = f"{first.reason}{speaking_gpu(found)}"
        return [f"First to fail: no single rank ({reason})"]
    head = "First to fail" if first.sure else "Suspect"
    return [f"{head}: {listed(first.ranks)} ({first.reason})"]


def speaking_gpu(found: list[Found]) -> str:
    """Whose GPU it is that NCCL's line tells of, where no rank is said to be first."""
    for line in found[0].lines if found else ():
        told = OF_NCCL.match(line.text)
        if told and not is_consequence(line.text):
            return f"; the error below is of GPU {told[2]} of {told[1]}"
    return ""


def tell(found: Found) -> list[str]:
    cause = found.cause
    lines = [f"Cause: {cause.title}"]
    lines += [f"    {quote(line)}" for line in found.lines[:MOST_LINES]]
    if len(cause.gallery) > 1:
        lines.append(f"Ask: {cause.ask}")
    lines += [f"Cure: {cause.cure}", f"Read: {cause.read}"]
    lines += [f"To be sure: {cause.confirm}"] if cause.confirm else []
    return lines + see(found, "See it fail here")


def see(found: Found, words: str) -> list[str]:
    """The command that runs what the gallery has of a cause."""
    name, *others = found.cause.gallery or ("",)
    rest = f" (or {', '.join(others)})" if others else ""
    return (
        [f"{words}: python src/instruments/19_gallery.py {name}{rest}"] if name else []
    )


def tell_unsure(found: list[Found], log: Log) -> list[str]:
    lines = ["Not sure of the cause. It looks like:"]
    for each in found[:2]:
        shown = each.lines[: 1 if each.cause.messages else 2]
        lines += [f"  - {each.cause.title}", *(f"    {quote(line)}" for line in shown)]
        asked = [each.cause.ask, each.cause.confirm]
        if each.cause.name == "nccl_error" and nccl_words(log, []):
            asked = []  # that warning is quoted below
        lines += [f"    Ask: {text}" for text in asked if text][:1]
        lines.append(f"    Read: {each.cause.read}")
        lines += see(each, "    See it fail")
    return lines


def tell_unknown(error: Line | None, log: Log, first: First | None) -> list[str]:
    """The error itself, and which logs would tell more, unless it says enough."""
    head = "No known cause matches."
    if error is None:
        advice = KEEP if words_of_launcher(log) else SETTLE
        return [head, advice, f"Read on: {WHICH_RANK}"]
    shown = f"    {quote(error)}"
    rank = raised_by(error, log, first)
    if error == lead(look(log)):
        said = "A process whose lines name no rank raised its own exception, and others"
        return [f"{said} waited:", shown, *last_words(error, log)]
    if rank is None:
        said = "The first error in the log:"
        shows = [said, shown, *origin(error, log)]
        return [head, *shows, SETTLE, f"Read on: {WHICH_RANK}"]
    lost = look(log).lost.values()
    place = log.lines.index
    before = lost and place(error) < min(map(place, lost))
    waited = ", and the others waited for it" if before else ""
    return [
        f"Rank {rank} raised its own exception{waited}:",
        shown,
        *origin(error, log),
    ]


def origin(error: Line, log: Log) -> list[str]:
    """The exception that a rank raised before this one, which came of it."""
    until = takewhile(lambda line: line != error, log.lines)
    before = [row for row in until if row.rank == error.rank and is_own_error(row)]
    of_chain = list(
        takewhile(lambda row: error in chain_from(row, log.lines), before[::-1])
    )
    if not of_chain:
        return []
    return ["It came of an earlier one:", f"    {quote(of_chain[-1])}"]


def raised_by(error: Line, log: Log, first: First | None) -> int | None:
    """The rank that failed first, if this is its own exception."""
    if not is_known(first) or error.kind != EXCEPTION:
        return None
    if OF_LAUNCHERS.search(error.text):
        return None
    own = look(log).own
    ranks = first.ranks if first else ()
    return next((rank for rank in ranks if own.get(rank) == error), None)


def first_error(log: Log, first: First | None = None) -> Line | None:
    """The first rank's exception, else the first one, else a line about an error."""
    own = look(log).own
    of_first = [own[rank] for rank in (first.ranks if first else ()) if rank in own]
    if of_first and of_first[0].kind != EXCEPTION:  # a launcher's words
        of_first = [*unmarked_error(log), *of_first]
    if of_first:
        return of_first[0]
    # a bare Traceback says less than what a launcher raised
    bare = words_of_launcher(log) or any(x.kind == SURVIVED for x in log.lines)
    rest: dict[re.Pattern[str], Line] = {}
    for line in log.lines:
        if line.kind in (CODE, NOISE, SURVIVED):
            continue
        if any(each.search(line.text) for each in (OF_LAUNCHERS, PROMPT)):
            continue
        if is_own_error(line):
            return end_of_chain(line, log.lines)
        for pattern in REST[:-1] if bare else REST:
            logged = pattern is ERROR and line.level in ("ERROR", "CRITICAL", "FATAL")
            if pattern.search(line.text) or logged:
                rest.setdefault(pattern, line)
    files = [Line(f.place, f.rank, f.message) for f in log.error_files]
    left = (rest[pattern] for pattern in REST if pattern in rest)
    return next((f for f in files if not is_consequence(f.text)), next(left, None))


def unmarked_error(log: Log) -> list[Line]:
    """The first exception in lines that name no rank; [] if there is none."""
    found = (row for row in log.lines if row.rank is None and is_own_error(row))
    first = next(found, None)
    return [] if first is None else [end_of_chain(first, log.lines)]


def words_of_launcher(log: Log) -> Line | None:
    """What torchrun, mp.spawn or Ray raises because a process has failed."""
    for line in log.lines:
        if line.kind == EXCEPTION and OF_LAUNCHERS.search(line.text):
            return line
    return None


def quote(line: Line) -> str:
    who = "" if line.rank is None else f"rank {line.rank}: "
    text = " ".join(line.text.split())
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return f"{line.place}  {who}{cut}"
