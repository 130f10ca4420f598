"""From what the ranks did to one verdict that a learner can act on."""

from __future__ import annotations

from workshop.grader.verdicts.classics.table import CLASSICS
from workshop.grader.verdicts.evidence import Evidence, Finding, Rank
from workshop.grader.verdicts.outcome import Job, Outcome
from workshop.grader.verdicts.questions import ending, limits, loading, values
from workshop.grader.verdicts.verdict import MAX_LINES, Kind, Verdict, not_fully_checked
from workshop.grader.verdicts.wording import call_text, cut

# The order of the questions is the order of the verdicts: does it load, did a rank
# crash, raise, hang, leave early; do the ledgers agree; are the values right; did the
# check itself fail; was the way right. The first that finds something is the verdict.
QUESTIONS = (
    loading.grader_failed,
    loading.default_dtype_was_changed,
    loading.folder_is_gone,
    loading.does_not_load,
    loading.import_does_not_end,
    loading.todo_is_open,
    limits.too_much_output,
    limits.too_much_memory,
    limits.too_large_a_file,
    ending.crash,
    ending.exception,
    ending.hang,
    limits.endless,
    ending.left_early,
    values.ledgers_disagree,
    values.wrong_value,
    loading.check_failed,
    ending.process_still_runs,
    ending.thread_still_runs,
    values.never_waited_for,
    values.wrong_way,
)


def diagnose(job: Job, outcome: Outcome) -> Verdict:
    """The verdict on one outcome of :mod:`workshop.grader.engine.supervisor`."""
    seen = Evidence(job, outcome)
    answers = (question(seen) for question in QUESTIONS)
    found = next(filter(None, answers), None)
    if found is None:
        return _nothing_wrong(seen)
    classic = CLASSICS.get(found.suspicion)
    page = (classic and classic.page) or job.page
    lines = _message(seen, found, page)
    return _verdict(seen, found.kind, lines, found.suspicion, page)


def _verdict(
    seen: Evidence, kind: Kind, lines: list[str], suspicion: str = "", page: str = ""
) -> Verdict:
    return Verdict(
        kind=kind,
        lines=lines,
        details=_details(seen),
        suspicion=suspicion,
        page=page,
        check=seen.job.function,
        world_size=seen.job.world_size,
        seed=seen.job.seed,
        seconds=seen.outcome.seconds,
    )


def _message(seen: Evidence, found: Finding, page: str) -> list[str]:
    """At most MAX_LINES: what was found, the check, the classic mistake, the page."""
    job = seen.job
    tail = [f"check, {_run(seen)}with seed {job.seed}: {job.sentence}"]
    if classic := CLASSICS.get(found.suspicion):
        tail.append(f"looks like: {classic.text}")
        if classic.gallery:
            tail.append(
                f"see it fail: python src/instruments/19_gallery.py {classic.gallery}"
            )
    if page:
        tail.append(f"read: {page}")
    told = [f"{found.kind.value}: {found.lines[0]}", *found.lines[1:]]
    room = MAX_LINES - len(tail)
    if len(told) > room:
        more = len(told) - room + 1
        told = [*told[: room - 1], f"... ({more} lines more: -v)"]
    return [cut(line) for line in told] + tail


def _run(seen: Evidence) -> str:
    """What ran: so many jobs or ranks; nothing for a function in one process."""
    jobs = sum(rank.report.get("jobs", 0) for rank in seen.ranks)
    ranks = seen.job.world_size
    count, what = (jobs, "in {} job") if jobs else (ranks, "on {} rank")
    plain = ranks == 1 and not (jobs or seen.job.init)
    return "" if plain else f"{what.format(count)}{'s' * (count > 1)} "


def _nothing_wrong(seen: Evidence) -> Verdict:
    """Right, unless the check could not try here what decides."""
    page = seen.job.page
    untried = [one for rank in seen.ranks for one in rank.report.get("untried", [])]
    if not untried:
        return _verdict(seen, Kind.RIGHT, [])
    partial = _verdict(seen, Kind.NOT_FULLY, [], page=page)
    partial.untried = list(dict.fromkeys(untried))
    missing = [one for rank in seen.ranks for one in rank.report.get("missing", [])]
    partial.missing = list(dict.fromkeys(missing))
    return not_fully_checked([partial])


def _details(seen: Evidence) -> list[str]:
    """Everything that was seen, rank by rank, for ``-v``."""
    lines = [f"{seen.job.function}: the run ended because: {seen.why}"]
    for rank in seen.ranks:
        lines += _details_of(rank)
    return lines


def _details_of(rank: Rank) -> list[str]:
    lines = [f"rank {rank.number}: {rank.status or 'no report'}"]
    if rank.ended is not None:
        lines.append(f"  ended with {rank.ended}")
    lines += [f"  {call_text(row)}" for row in rank.calls[:50]]
    for frame in rank.report.get("frames", []):
        lines.append(f"  {frame['file']}:{frame['line']} {frame['text']}")
    for frame in rank.stuck.get("stack", []):
        lines.append(f"  {frame['file']}:{frame['line']} {frame['function']}")
    message = rank.report.get("message") or ""
    lines += [f"  {text}" for text in message.splitlines()[:20]]
    printed = rank.output.strip().splitlines()
    return lines + [f"  printed: {text[:200]}" for text in printed[:40]]
