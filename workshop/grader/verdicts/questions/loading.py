"""Did the grader work, and did the learner's file load?"""

from __future__ import annotations

import re

from workshop.grader.verdicts.evidence import Evidence, Finding, Rank
from workshop.grader.verdicts.verdict import Kind

LOADING = 1.0  # phase of a rank, see workshop.grader.engine.channel


def grader_failed(seen: Evidence) -> Finding | None:
    for rank in seen.ranks:
        if rank.status == "broken":
            last = rank.report["message"].strip().splitlines()[-1]
            return Finding(Kind.ENVIRONMENT, [f"the grader itself failed: {last}"])
    return None


def check_failed(seen: Evidence) -> Finding | None:
    """The check's own code raised, and no wrong value explains it."""
    rank = next((rank for rank in seen.ranks if rank.fault), None)
    if rank is None:
        return None
    report = rank.report
    error = (report["message"].strip().splitlines() or ["(without a message)"])[0]
    inner = (report["frames"] or [{"file": "the grader", "line": 0, "text": ""}])[-1]
    lines = [
        f"the check itself failed, with {report['type']}: {error}",
        f"    {inner['file']}, line {inner['line']}: {inner['text']}",
        "this says nothing about your answer, which may be right: please report these "
        "lines, with your file",
    ]
    return Finding(Kind.ENVIRONMENT, lines)


def default_dtype_was_changed(seen: Evidence) -> Finding | None:
    found = {rank.report.get("default_dtype", "float32") for rank in seen.ranks}
    if found == {"float32"}:
        return None
    lines = [
        "your file changed the default dtype, which all other code uses, too",
        "give `dtype=` to the calls that create your tensors instead",
    ]
    return Finding(Kind.NOT_A_SOLUTION, lines)


def folder_is_gone(seen: Evidence) -> Finding | None:
    if not any(rank.report.get("folder_gone") for rank in seen.ranks):
        return None
    lines = [
        "your code removed the folder that all ranks work in",
        "remove only files that you made",
    ]
    return Finding(Kind.NOT_A_SOLUTION, lines)


def does_not_load(seen: Evidence) -> Finding | None:
    for rank in seen.ranks:
        if rank.report.get("phase") == LOADING:
            if rank.status == "raised":
                head = f"{rank.report['type']}: {rank.report['message']}"
                place = rank.frame if rank.frame else _place_of_syntax(rank)
                lines = [head, *seen.at(place)]
                return _open_todo(rank) or Finding(Kind.NOT_LOADED, lines)
            if rank.status == "exit":
                head = f"your file calls sys.exit({rank.report['code']}) on import"
                return Finding(Kind.NOT_LOADED, [head, *seen.at(rank.frame)])
    return None


def _place_of_syntax(rank: Rank) -> dict:
    """What Python finds when it compiles a file, as a `return` outside a function."""
    named = re.search(r"line (\d+)\)$", rank.report["message"])
    is_syntax = rank.report["type"] in ("SyntaxError", "IndentationError", "TabError")
    return {"line": int(named[1])} if named and is_syntax else {}


def import_does_not_end(seen: Evidence) -> Finding | None:
    late = [rank for rank in seen.unended if rank.phase == LOADING]
    if not late or seen.why not in ("deadline", "deadlock"):
        return None
    lines = [f"importing your file had not ended after {seen.limit}"]
    lines += seen.at(late[0].stuck)
    lines.append("on import a file should define functions, not run for long")
    return Finding(Kind.NOT_LOADED, lines)


def todo_is_open(seen: Evidence) -> Finding | None:
    found = (_open_todo(rank) for rank in seen.raised)
    return next(filter(None, found), None)


def _open_todo(rank: Rank) -> Finding | None:
    report, frame = rank.report, rank.frame
    if report["type"] not in ("NotImplementedError", "OpenTodo") or not frame:
        return None
    if report["type"] == "NotImplementedError" and not frame["text"].startswith(
        "raise"
    ):
        return None  # torch raises it, too
    todo = report["message"] or "a TODO"
    lines = [
        f"{todo} is still open, at line {frame['line']}",
        f"    {frame['text']}",
        "replace the line with your code",
    ]
    return Finding(Kind.UNFINISHED, lines)
