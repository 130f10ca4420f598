"""Did a rank use more than it may: output, memory, files, time?"""

from __future__ import annotations

from workshop.grader.verdicts.classics.hangs import polls
from workshop.grader.verdicts.evidence import Evidence, Finding, Rank
from workshop.grader.verdicts.verdict import Kind
from workshop.grader.verdicts.wording import ranks_text


def too_much_output(seen: Evidence) -> Finding | None:
    if seen.why != "output":
        return None
    rank = max(seen.ranks, key=lambda rank: rank.printed)
    limit = seen.job.output_bytes // 1_000_000
    head = f"rank {rank.number} printed more than {limit} MB"
    return Finding(Kind.LIMIT, [head, *seen.at(rank.stuck)])


def too_much_memory(seen: Evidence) -> Finding | None:
    if seen.why == "memory":
        rank = max(seen.ranks, key=lambda rank: rank.resident)
        return _memory(seen, rank, rank.stuck)
    for rank in seen.raised:
        text = rank.report["message"]
        if _lacked_memory(rank) or "can't allocate memory" in text:
            return _memory(seen, rank, rank.frame)
    return None


def _lacked_memory(rank: Rank) -> bool:
    """Whether Python did; a file's own ``raise MemoryError`` is no more than that."""
    its_own = rank.frame.get("text", "").startswith("raise ")
    return rank.report["type"] == "MemoryError" and not its_own


def _memory(seen: Evidence, rank: Rank, place: dict) -> Finding:
    limit = f"{seen.job.memory_bytes / 1e9:.0f} GB"
    head = f"rank {rank.number} asked for more memory than the {limit} it may use"
    return Finding(Kind.LIMIT, [head, *seen.at(place)], "memory")


def too_large_a_file(seen: Evidence) -> Finding | None:
    for rank in seen.raised:
        text = rank.report["message"]
        if rank.report["type"] == "OSError" and "File too large" in text:
            limit = seen.job.file_bytes // 1_000_000
            head = f"rank {rank.number} wrote a file of more than {limit} MB"
            return Finding(Kind.LIMIT, [head, *seen.at(rank.frame)])
    return None


def _called_at(seen: Evidence, rank: Rank) -> list[str]:
    """The line that called the function in which it is: the loop may be there."""
    own = [frame["line"] for frame in rank.stuck.get("stack", []) if frame["own"]]
    other = next((line for line in own if line != rank.stuck.get("line")), None)
    return seen.called_at(seen.place(other))


def endless(seen: Evidence) -> Finding | None:
    """After the question for a hang: some rank computes forever."""
    running = [rank for rank in seen.unended if not rank.stuck.get("in_comm")]
    if seen.why != "deadline" or not running:
        return None
    names = ranks_text([rank.number for rank in running])
    lines = [f"{names} had not ended after {seen.limit}"]
    lines += seen.at(running[0].stuck) + _called_at(seen, running[0])
    lines += [seen.state_line(rank) for rank in seen.ranks if rank not in running]
    rows = {rank.number: rank.calls for rank in seen.ranks}
    suspicion = "polled" if polls(seen.job.source, rows) else ""
    return Finding(Kind.LIMIT, lines, suspicion)
