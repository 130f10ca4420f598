"""From what the ranks did to one verdict that a learner can act on.

The order of the questions is the order of the verdicts: does it load, did a rank
crash, raise, hang, leave early; do the ledgers agree; are the values right; was
the way right. The first that is answered badly is the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.verdicts import hangs
from grader.verdicts.suspicion import CLASSICS
from grader.verdicts.verdict import MAX_LINES, Kind, Verdict

LOADING, CHECKING = 1.0, 2.0
CONSEQUENCES = (
    "Connection closed by peer",
    "Connection reset",
    "Broken pipe",
    "Application timeout caused pair closure",
    "Timed out waiting",
    "Socket closed",
)
WIDTH = 100
SIGNALS = {
    -4: "SIGILL",
    -6: "SIGABRT",
    -7: "SIGBUS",
    -8: "SIGFPE",
    -9: "SIGKILL",
    -11: "SIGSEGV",
    -13: "SIGPIPE",
    -14: "SIGALRM",
    -15: "SIGTERM",
    -24: "SIGXCPU",
    -25: "SIGXFSZ",
}


class Diagnosis:
    """Turns one outcome of :mod:`grader.engine.supervisor` into a :class:`Verdict`."""

    def __init__(self, job: dict, outcome: dict):
        self.job, self.outcome = job, outcome
        self.ranks: list[dict] = outcome["ranks"]
        self.lines_of_file = job["source"].splitlines()
        self.suspicion = ""

    def verdict(self) -> Verdict:
        """The first question that is answered badly, as a message."""
        questions = (
            self._broken_grader,
            self._tampered,
            self._not_loaded,
            self._unfinished,
            self._over_a_limit,
            self._crash,
            self._exception,
            self._hang,
            self._endless,
            self._left_early,
            self._ledgers_disagree,
            self._wrong_value,
            self._left_running,
            self._wrong_way,
        )
        for question in questions:
            found = question()
            if found is not None:
                kind, lines = found
                return self._finish(kind, lines)
        return self._finish(Kind.RIGHT, self._notes())

    def _finish(self, kind: Kind, body: list[str]) -> Verdict:
        job = self.job
        lines: list[str] = list(body)
        page = ""
        if kind is not Kind.RIGHT:
            ranks = f"{job['world_size']} rank{'s' * (job['world_size'] > 1)}"
            told = [f"{kind.value}: {body[0]}", *body[1:]]
            tail = [f"check: {job['sentence']} [{ranks}, seed {job['seed']}]"]
            page = job["page"]
            classic = CLASSICS.get(self.suspicion)
            if classic:
                tail.append(f"looks like: {classic.text}")
                page = classic.page or page
            if page:
                tail.append(f"read: {page}")
            room = MAX_LINES - len(tail)
            if len(told) > room:
                told = [
                    *told[: room - 1],
                    f"... ({len(told) - room + 1} lines more: -v)",
                ]
            lines = [_cut(line) for line in told] + tail
        return Verdict(
            kind=kind,
            lines=lines,
            details=self._details(),
            suspicion=self.suspicion,
            page=page,
            check=job["function"],
            world_size=job["world_size"],
            seed=job["seed"],
            seconds=self.outcome["seconds"],
        )

    # -- the questions, in order -------------------------------------------------
    def _broken_grader(self):
        for rank in self.ranks:
            if self._status(rank) == "broken":
                last = rank["report"]["message"].strip().splitlines()[-1]
                return Kind.ENVIRONMENT, [f"the grader itself failed: {last}"]
        return None

    def _tampered(self):
        for rank in self.ranks:
            report = rank["report"] or {}
            if report.get("tampered"):
                names = ", ".join(report["tampered"])
                return Kind.TAMPERED, [
                    f"your file replaced {names}",
                    "nothing it computes can be trusted then: use these functions, "
                    "do not overwrite them",
                ]
            if report.get("folder_gone"):
                return Kind.TAMPERED, [
                    "your code removed the folder that all ranks work in",
                    "remove only files that you made",
                ]
        return None

    def _not_loaded(self):
        for rank in self.ranks:
            report = rank["report"]
            if report and report.get("phase") == LOADING:
                if self._status(rank) == "raised":
                    frame = self._my_frame(report)
                    lines = [f"{report['type']}: {report['message']}"]
                    lines += self._at(frame)
                    return self._not_implemented(report) or (Kind.NOT_LOADED, lines)
                if self._status(rank) == "exit":
                    lines = [f"your file calls sys.exit({report['code']}) on import"]
                    return Kind.NOT_LOADED, lines + self._at(self._my_frame(report))
        late = [r for r in self._stuck() if r.get("phase") == LOADING]
        if late and self.outcome["why"] in ("deadline", "deadlock"):
            where = late[0]["stuck"] or {}
            lines = [f"importing your file had not ended after {self._limit()}"]
            lines += self._at(where)
            lines.append("on import a file should define functions, not run for long")
            return Kind.NOT_LOADED, lines
        return None

    def _unfinished(self):
        for rank in self.ranks:
            report = rank["report"]
            if report and self._status(rank) == "raised":
                found = self._not_implemented(report)
                if found:
                    return found
        return None

    def _not_implemented(self, report: dict):
        frame = self._my_frame(report)
        if report["type"] not in ("NotImplementedError", "OpenTodo") or not frame:
            return None
        todo = report["message"] or "a TODO"
        return Kind.UNFINISHED, [
            f"{todo} is still open, at line {frame['line']}",
            f"    {frame['text']}",
            "replace the line with your code",
        ]

    def _over_a_limit(self):
        why = self.outcome["why"]
        if why == "output":
            rank = max(self.ranks, key=lambda r: r["printed"])
            limit = self.job["output_bytes"] // 1_000_000
            head = f"rank {rank['rank']} printed more than {limit} MB"
            return Kind.LIMIT, [head, *self._at(rank["stuck"] or {})]
        if why == "memory":
            rank = max(self.ranks, key=lambda r: r["resident"])
            return self._memory(rank["rank"], self._at(rank["stuck"] or {}))
        for rank in self.ranks:
            report = rank["report"]
            if report and self._status(rank) == "raised":
                text = report["message"]
                if report["type"] == "MemoryError" or "can't allocate memory" in text:
                    return self._memory(rank["rank"], self._at(self._my_frame(report)))
                if report["type"] == "OSError" and "File too large" in text:
                    limit = self.job["file_bytes"] // 1_000_000
                    head = f"rank {rank['rank']} wrote a file of more than {limit} MB"
                    return Kind.LIMIT, [head, *self._at(self._my_frame(report))]
        return None

    def _memory(self, rank: int, place: list[str]):
        self.suspicion = "memory"
        limit = self.job["memory_bytes"] / 1e9
        head = f"rank {rank} asked for more memory than the {limit:.0f} GB it may use"
        return Kind.LIMIT, [head, *place]

    def _crash(self):
        for rank in self.ranks:
            code = rank["ended"]
            if code is None or code >= 0:
                continue
            name = SIGNALS.get(code, f"signal {-code}")
            same = [r["rank"] for r in self.ranks if r["ended"] == code]
            were = "was" if len(same) == 1 else "were"
            lines = [f"{_ranks(same)} {were} killed by {name}{_meaning(code)}"]
            leaving = rank["leaving"] or {}
            if leaving.get("line"):
                lines += self._at(leaving)
            elif rank["crash_line"]:
                lines += self._at(self._place(rank["crash_line"]))
            lines += self._last_output(rank)
            lines += self._first_difference()
            return Kind.CRASH, lines + self._others(rank, same)
        return None

    def _exception(self):
        raised = [r for r in self.ranks if self._status(r) == "raised"]
        own = [r for r in raised if not self._is_consequence(r["report"])]
        if not own:
            return None
        first, report = own[0], own[0]["report"]
        same = [r["rank"] for r in own if _same_error(r["report"], report)]
        frame = self._my_frame(report)
        text: str = report["message"].strip() or "(without a message)"
        told = list(map(str, text.splitlines()))
        if len(told[0]) > 2 * WIDTH:
            told[0] = f"{told[0][:WIDTH]}... ({report['length']:,} characters)"
        lines = [f"{_ranks(same)} raised {report['type']}: {told[0]}"]
        lines += [f"    {line}" for line in told[1:4]]
        if frame:
            lines += self._at(frame)
        elif report["type"] == "AssertionError":
            return None  # a plain assert of the check: a wrong value
        else:
            inner = (report.get("frames") or [{}])[-1]
            lines.append("not in your code, but while the check used what it returned:")
            lines.append(f"    {inner.get('text', '')}")
        self.suspicion = report.get("suspicion") or ""
        lines += self._first_difference()
        return Kind.EXCEPTION, lines + self._others(first, same)

    def _hang(self):
        if self.outcome["why"] not in ("deadlock", "failed", "deadline"):
            return None
        blocked = [r for r in self._stuck() if (r["stuck"] or {}).get("in_comm")]
        if self.outcome["why"] == "deadline" and len(blocked) < len(self._stuck()):
            return None  # some rank computes: an endless loop, see below
        if not blocked or self._only_waits_for_a_wrong_rank(blocked):
            return None
        if self._left_ranks():
            return None  # the others wait for a rank that left: told there
        lines = ["deadlock, no rank can go on"]
        lines += [self._state_line(rank) for rank in self.ranks]
        difference = self._first_difference()
        self.suspicion = self._why_it_hangs(blocked)
        return Kind.HANG, lines + difference

    def _endless(self):
        if self.outcome["why"] != "deadline":
            return None
        running = [r for r in self._stuck() if not (r["stuck"] or {}).get("in_comm")]
        if not running:
            return None
        names = _ranks([r["rank"] for r in running])
        lines = [f"{names} had not ended after {self._limit()}"]
        lines += self._at(running[0]["stuck"] or {})
        return Kind.LIMIT, lines + [
            self._state_line(r) for r in self.ranks if r not in running
        ]

    def _left_early(self):
        left = self._left_ranks()
        if not left:
            return None
        rank = left[0]
        report = rank["report"] or {}
        if report.get("status") == "exit":
            how, place = f"sys.exit({report['code']})", self._my_frame(report)
        elif rank["leaving"]:
            how, place = rank["leaving"]["how"], rank["leaving"]
        else:
            how, place = f"exit status {rank['ended']}", {}
        names = _ranks([r["rank"] for r in left])
        lines = [f"{names} left before the check was done, by {how}"]
        lines += self._at(place)
        lines.append("a rank that says nothing has never passed")
        return Kind.LEFT_EARLY, lines + self._others(rank, [r["rank"] for r in left])

    def _ledgers_disagree(self):
        difference = self._first_difference()
        if not difference:
            return None
        lines = ["the ranks' collectives do not match, and gloo lets it through"]
        return Kind.LEDGER, lines + difference

    def _wrong_value(self):
        return self._mismatch(Kind.WRONG_VALUE, way=False)

    def _left_running(self):
        if self.outcome["left_running"]:
            command = self.outcome["left_running"][0]
            return Kind.LEFT_RUNNING, [
                f"a process started by your code was still running: {command}",
                "wait for every process you start, or your job never ends",
            ]
        for rank in self.ranks:
            threads = (rank["report"] or {}).get("threads")
            if threads:
                return Kind.LEFT_RUNNING, [
                    f"thread {threads[0]!r} of rank {rank['rank']} was still running",
                    "a program ends only when its threads have: join() them",
                ]
        return None

    def _wrong_way(self):
        return self._mismatch(Kind.WRONG_WAY, way=True)

    def _only_waits_for_a_wrong_rank(self, blocked: list[dict]) -> bool:
        """Whether the blocked ranks wait for one that failed a comparison earlier.

        A rank that is blocked in the learner's own line, and has not reached the
        comparison at which others failed, is the cause; one that got further is a
        consequence.
        """
        failed = [r["report"] for r in self.ranks if self._as_mismatch(r["report"])]
        if not failed:
            return False
        earliest = min(_progress(report, report["frames"]) for report in failed)
        return not any(
            rank["stuck"].get("line")
            and _progress(rank["stuck"], rank["stuck"]["stack"][::-1]) <= earliest
            for rank in blocked
        )

    # -- wrong values ------------------------------------------------------------
    def _mismatch(self, kind: Kind, way: bool):
        failed = {
            rank["rank"]: mismatch
            for rank in self.ranks
            if (mismatch := self._as_mismatch(rank["report"]))
            and bool(mismatch.get("way")) is way
        }
        if not failed:
            return None
        first = next(iter(failed.values()))
        self.suspicion = next((m["suspicion"] for m in failed.values()), "")
        for mismatch in failed.values():
            self.suspicion = self.suspicion or mismatch["suspicion"]
        lines = [first["what"] or first["problem"]]
        if first["what"]:
            groups: dict[str, list[int]] = {}
            for rank, mismatch in failed.items():
                what = "" if mismatch["what"] == first["what"] else mismatch["what"]
                text = f"{what}: {mismatch['problem']}" if what else mismatch["problem"]
                groups.setdefault(text, []).append(rank)
            lines += [f"  {self._who(who)}{text}" for text, who in groups.items()]
        else:
            lines[0] = f"{self._who(list(failed))}{lines[0]}"
        right = [r["rank"] for r in self.ranks if self._status(r) == "ok"]
        if right and len(self.ranks) > 1 and not way:
            lines.append(f"  {_ranks(right)}: right")
        if kind is Kind.WRONG_VALUE and not self.suspicion:
            ops = {row["op"] for row in self._all_rows() if row["line"]}
            if len(right) == 1 and ops & {"reduce", "gather"}:
                self.suspicion = "only_the_root"
            else:
                self.suspicion = self._not_contiguous()
        return kind, lines

    def _who(self, ranks: list[int]) -> str:
        """``rank 2: ``; nothing for a job script, whose ranks are not the check's."""
        return "" if self.job.get("scheduler") else f"{_ranks(ranks)}: "

    def _as_mismatch(self, report: dict | None) -> dict | None:
        """A report as a mismatch; a plain failed assert of the check is one, too."""
        if not report:
            return None
        if report["status"] == "mismatch":
            return report
        plain = report["status"] == "raised" and report["type"] == "AssertionError"
        if plain and not self._my_frame(report):
            return {"what": "", "problem": report["message"], "suspicion": ""}
        return None

    def _not_contiguous(self) -> str:
        for rank in self.ranks:
            for row in self._ledger(rank):
                if row["line"] and not row["contiguous"]:
                    return "not_contiguous"
        return ""

    # -- ledgers -----------------------------------------------------------------
    def _first_difference(self) -> list[str]:
        """Where the collectives of a group first differ; [] if they never do.

        Ranks that still wait, or ended early, have called less, which is told by
        their own lines: then only calls that all of them made are compared,
        unless nothing hangs.
        """
        whole = self.outcome["why"] == "done"
        for group, columns in self._columns().items():
            longest = max(len(rows) for rows in columns.values())
            for index in range(longest):
                here = {
                    rank: rows[index] if index < len(rows) else None
                    for rank, rows in columns.items()
                }
                present = [row for row in here.values() if row]
                if len(present) < len(here) and whole and not self._all_ended_well():
                    break
                if hangs.agree(present) and (len(present) == len(here) or not whole):
                    if len(present) < len(here):
                        break
                    continue
                self.suspicion = self.suspicion or hangs.kind_of_difference(present)
                return self._tell_difference(group, index, here)
        return []

    def _columns(self) -> dict[tuple, dict[int, list[dict]]]:
        """group -> rank -> the rank's collectives in that group."""
        groups: dict[tuple, dict[int, list[dict]]] = {}
        for rank in self.ranks:
            for row in self._ledger(rank):
                if row["op"] not in ("send", "recv") and row["group"]:
                    group = tuple(row["group"])
                    columns = groups.setdefault(group, {r: [] for r in group})
                    columns.setdefault(rank["rank"], []).append(row)
        return groups

    def _tell_difference(self, group: tuple, index: int, here: dict) -> list[str]:
        everybody = len(group) == self.job["world_size"]
        among = "" if everybody else f" of the group {list(group)}"
        number = 1 + self._calls_before(here, group, index)
        lines = [f"first difference: collective no. {number}{among}"]
        told: dict[str, list[int]] = {}
        for rank, row in here.items():
            text = _call(row) if row else "no such call"
            told.setdefault(text, []).append(rank)
        return lines + [f"  {_ranks(who)}: {text}" for text, who in told.items()]

    def _calls_before(self, here: dict, group: tuple, index: int) -> int:
        """How many collectives the learner's own lines made before this one."""
        columns = self._columns()[group]
        before = [row for rows in columns.values() for row in rows[:index]]
        mine = any(row and row["line"] for row in here.values())
        if not mine or not before:
            return index
        rank = next(rank for rank, row in here.items() if row)
        return sum(row["line"] is not None for row in columns[rank][:index])

    def _all_ended_well(self) -> bool:
        return all(self._status(rank) == "ok" for rank in self.ranks)

    # -- hangs -------------------------------------------------------------------
    def _why_it_hangs(self, blocked: list[dict]) -> str:
        where = {rank["rank"]: rank["stuck"] for rank in blocked}
        rows = {rank["rank"]: self._ledger(rank) for rank in self.ranks}
        return hangs.why(where, rows, self._columns()) or self.suspicion

    def _state_line(self, rank: dict) -> str:
        """Where one rank is: a line of the hang verdict."""
        name = f"rank {rank['rank']}"
        report, stuck = rank["report"], rank["stuck"]
        if report:
            count = sum(row["line"] is not None for row in self._ledger(rank))
            calls = f"{count} call{'s' * (count != 1)} of torch.distributed"
            if report["status"] == "ok":
                return f"  {name}: done after {calls} in your code"
            if report["status"] == "raised" and self._is_consequence(report):
                place = self._inline(self._my_frame(report))
                return f"  {name}: then lost the connection to it{place}"
            if report["status"] == "raised":
                return f"  {name}: raised {report['type']}: {report['message'][:60]}"
            return f"  {name}: went past it with a wrong value, after {calls}"
        if rank["ended"] is not None:
            return f"  {name}: is gone (status {rank['ended']})"
        if not stuck:
            return f"  {name}: does not answer"
        rows = self._ledger(rank)
        place = self._inline(stuck)
        if stuck["in_comm"] and rows:
            return f"  {name}: waits in {_call(rows[-1], place='')}{place}"
        if stuck["in_comm"]:
            inner = next(
                (f["function"] for f in stuck["stack"] if "c10d" in f["file"]), ""
            )
            return f"  {name}: waits{f' in {inner}' if inner else ''}{place}"
        return f"  {name}: runs{place}"

    def _notes(self) -> list[str]:
        """What the check could not look at on this machine."""
        reports = [rank["report"] or {} for rank in self.ranks]
        notes = [note for report in reports for note in report.get("notes", [])]
        return list(dict.fromkeys(notes))

    # -- small things ------------------------------------------------------------
    def _status(self, rank: dict) -> str:
        return rank["report"]["status"] if rank["report"] else ""

    def _stuck(self) -> list[dict]:
        return [r for r in self.ranks if not r["report"] and r["ended"] is None]

    def _left_ranks(self) -> list[dict]:
        return [
            r
            for r in self.ranks
            if self._status(r) == "exit"
            or (r["ended"] is not None and r["ended"] >= 0 and not r["report"])
        ]

    def _is_consequence(self, report: dict) -> bool:
        someone_gone = any(r["ended"] is not None for r in self.ranks)
        text = report.get("message", "")
        return someone_gone and any(words in text for words in CONSEQUENCES)

    def _ledger(self, rank: dict) -> list[dict]:
        return ((rank["report"] or rank["stuck"] or {}).get("ledger")) or []

    def _all_rows(self) -> list[dict]:
        return [row for rank in self.ranks for row in self._ledger(rank)]

    def _limit(self) -> str:
        return f"{self.job['limit']:g} s"

    def _my_frame(self, report: dict) -> dict:
        """The innermost frame in the learner's file, or {}."""
        mine = [f for f in report.get("frames", []) if f["mine"]]
        return mine[-1] if mine else {}

    def _place(self, line: int | None) -> dict:
        if not line or line > len(self.lines_of_file):
            return {}
        return {"line": line, "text": self.lines_of_file[line - 1].strip()}

    def _at(self, place: dict) -> list[str]:
        """`    line 41: dist.send(...)`, or nothing if the line is not known."""
        if not place.get("line"):
            return []
        text = place.get("text") or self._place(place["line"]).get("text", "")
        return [f"    line {place['line']}: {text}"]

    def _inline(self, place: dict) -> str:
        if not place.get("line"):
            return " (not in your file)"
        text = place.get("text") or self._place(place["line"]).get("text", "")
        return f" at line {place['line']}: {text}"

    def _others(self, first: dict, same: Iterable[int] = ()) -> list[str]:
        """One line for each rank that the message has not named yet."""
        named = {first["rank"], *same}
        lines = []
        for rank in self.ranks:
            if rank["rank"] in named or self._status(rank) == "ok":
                continue
            lines.append(self._state_line(rank))
        return lines

    def _last_output(self, rank: dict) -> list[str]:
        lines = [line for line in rank["output"].strip().splitlines() if line.strip()]
        return [f"    it last printed: {lines[-1][:120]}"] if lines else []

    def _details(self) -> list[str]:
        """Everything that was seen, rank by rank, for ``-v``."""
        lines = [
            f"{self.job['function']}: the run ended because: {self.outcome['why']}"
        ]
        for rank in self.ranks:
            report, stuck = rank["report"], rank["stuck"]
            lines.append(f"rank {rank['rank']}: {self._status(rank) or 'no report'}")
            if rank["ended"] is not None:
                lines.append(f"  ended with {rank['ended']}")
            for row in self._ledger(rank)[:50]:
                lines.append(f"  {_call(row)}")
            for frame in (report or {}).get("frames", []):
                lines.append(f"  {frame['file']}:{frame['line']} {frame['text']}")
            for frame in (stuck or {}).get("stack", []):
                lines.append(f"  {frame['file']}:{frame['line']} {frame['function']}")
            if report and report.get("message"):
                lines += [f"  {text}" for text in report["message"].splitlines()[:20]]
            printed = rank["output"].strip().splitlines()
            lines += [f"  printed: {text[:200]}" for text in printed[:40]]
        return lines


# -- wording -----------------------------------------------------------------------
def _ranks(numbers: list[int]) -> str:
    """``rank 2``, ``ranks 0 and 1``, ``ranks 0, 1 and 3``."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    head = ", ".join(map(str, numbers[:-1]))
    return f"ranks {head} and {numbers[-1]}"


def _call(row: dict, place: str | None = None) -> str:
    """``all_reduce(float32[4], SUM) at line 41``."""
    inside = [f"{d}{s}" for d, s in zip(row["dtypes"], row["shapes"], strict=False)]
    inside = inside[:3] + (["..."] if len(inside) > 3 else [])
    if row["reduce_op"]:
        inside.append(row["reduce_op"])
    if row["root"] is not None:
        inside.append(f"root {row['root']}")
    if row["peer"] is not None:
        inside.append(f"{'to' if row['op'] == 'send' else 'from'} rank {row['peer']}")
    if row["tag"]:
        inside.append(f"tag {row['tag']}")
    where = f" at {row['where']}" if place is None and row["where"] else place or ""
    return f"{row['op']}({', '.join(inside)}){where}"


def _progress(report: dict, frames: list[dict]) -> tuple[int, int]:
    """How far a rank got in the check: (comparisons passed, line of the check)."""
    lines = [frame["line"] for frame in frames if frame.get("check")]
    return report.get("passed", 0), lines[0] if lines else 0


def _same_error(left: dict, right: dict) -> bool:
    return (left["type"], left["message"]) == (right["type"], right["message"])


def _meaning(code: int) -> str:
    return {
        -9: " (it killed itself, or the system ran out of memory)",
        -11: " (memory that is not its own was touched)",
        -14: " (the alarm it had set)",
        -6: " (abort, often after C++ said why)",
    }.get(code, "")


def _cut(line: str) -> str:
    return line if len(line) <= 2 * WIDTH else line[: 2 * WIDTH - 3] + "..."
