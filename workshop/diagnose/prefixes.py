"""Takes off what launchers and loggers write before a line, and keeps what it says.

Ranks are marked by torch (``[rank3]:``), by programs (``[rank 3] ``), by torchrun's
``--tee`` (``[default0]:``), by ``srun --label`` (``3: ``), by ``mpirun --tag-output``
(``[1,3]<stderr>:``) and by Intel MPI's ``mpirun -l`` (``[3] ``).
Others only name a host, a process or a time: pdsh, Ray, Kubernetes, logging.
With any of them a log must be read as it is without.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

PASSES = 6  # marks that one line may have, one after the other
MOST_OF = 0.8  # the share of a file's lines that a label of the whole file has
MOST_RANKS = 4096  # a larger number is a process
SIZE_OF_JUDGED = 5  # lines from which a word without a digit may be a host

COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
TIME = (
    r"(?:\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d/\d{4})[T _]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?"
    r"(?:Z|[+-]\d\d:?\d\d)?"
)
LEVEL = r"(?P<level>DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)"
OF_ROLE = re.compile(r"^\[(?:default|trainer|worker|role)(?P<rank>\d+)(?:\|\d+)?\]: ?")
RANKS = (
    re.compile(r"^(?:\[\d+\]\s+)?\[rank ?(?P<rank>\d+)\]: ?", re.IGNORECASE),
    re.compile(r"^\[rank[ =]?(?P<rank>\d+)\] "),  # [Rank 3] is a word of torch
    OF_ROLE,
    re.compile(  # of Open MPI, and of SageMaker, which names the host, too
        r"^\[\d+,(?:mpirank:)?(?P<rank>\d+)(?:,[\w.-]+)?\]<std(?:out|err)>: ?"
    ),
    re.compile(r"^\(\w+ rank=(?P<rank>\d+) pid=\d+(?:, ip=[\w.:]+)?\) ?"),
)
OTHERS = (
    re.compile(  # Ray, vLLM
        r"^\((?:\w+ )?pid=(?P<process>\d+)(?:, ip=(?P<address>[\w.:]+))?\) ?"
    ),
    re.compile(rf"^{TIME} std(?:out|err) [FP] ?"),  # a container runtime
    re.compile(r"^\[pod/[\w./-]+\] ?"),  # kubectl logs --prefix
    re.compile(r"^[\w.-]+ +\| (?=\S)|^[\w.-]+-\d+ +\| ?"),  # docker compose
    re.compile(r"^[\w.-]+ \|\| ?|^\| [\w.-]+ \| ?"),  # Determined, SageMaker
    re.compile(r"^[A-Z][a-z]{2} [ \d]\d [\d:]{8} [\w.-]+ [\w./-]+\[\d+\]: ?"),  # syslog
    re.compile(rf"^\[{LEVEL}\|\S+\] {TIME} >> ?"),  # Transformers
    re.compile(rf"^\[{TIME}\] \[{LEVEL}\] \[\S+\] ?"),  # DeepSpeed
    re.compile(rf"^\[{TIME}\] [\w.]+: \[{LEVEL}\] ?"),  # torchrun before 2.4
    re.compile(rf"^\[{TIME}\]\[[^\]]*\]\[{LEVEL}\](?: -)? ?"),  # Hydra
    re.compile(rf"^{TIME} \| {LEVEL} +\| [^|]* - "),  # loguru
    re.compile(rf"^\[?{TIME}\]? ?- [\w.]+ - {LEVEL} - ?"),  # logging, as people set it
    re.compile(rf"^{TIME} - {LEVEL} - (?:[\w.]+ - +)?"),
    re.compile(rf"^\[?{TIME}\]? ?[-|:]? ?\[?{LEVEL}\]?(?: ?[:|-](?= |$))? ?"),
    re.compile(rf"^\[{TIME}(?: [A-Z]{{2}}\d+)+\] ?"),  # SGLang
    re.compile(rf"^{LEVEL} \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+:\d+\]{{1,2}} ?"),  # vLLM
    re.compile(rf"^{LEVEL}:[\w.]+:"),  # logging.basicConfig
    re.compile(rf"^ ?\[?{TIME}\]?[:,]? ?"),
    re.compile(r"^\d\d:\d\d:\d\d[.,]\d+ "),
)
TASK = re.compile(r"^ *(\d+): ?")
OF_SLURM = re.compile(r"^(?:srun|slurmstepd): ")  # which labels no line of its own
OF_HYDRA = re.compile(  # its frame of a rank that ended, and the line of PALS
    r"^=(?:=+$|   )|"
    r"^\S+: rank \d+ (?:died from|exited with) "
)
ENDED_BY_HYDRA = re.compile(r"^=\s+RANK [1-9]\d* PID \d+ RUNNING AT ")
BRACKETS = re.compile(r"^\[(\d+)\](?: |$)")
PLACE = re.compile(r"^\[([A-Za-z][\w.-]*):(\d+)\] ?")
POD = re.compile(r"^\[([A-Za-z0-9]\w*(?:[.-]\w+)+)\] ")
HOST = re.compile(r"^([A-Za-z0-9][\w.-]*):(?: |$)")
# words before a colon that are no hosts
SPEAKERS = re.compile(
    r"^(?:srun|sbatch|salloc|slurmstepd|scancel|qsub|mpirun|mpiexec|prterun|torchrun|"
    r"python[\d.]*|bash|sh|env|wandb|pdsh\S*|ssh|step|epoch|iter\w*|rank|error|warning|"
    r"info|frame|note|hint|[\w.]*(?:Error|Exception|Warning|Interrupt))$",
    re.IGNORECASE,
)
# lines that tell that a label is that of a node, on which several ranks run
OF_SEVERAL = re.compile(
    r"\(local_rank: \d+\)|local_rank: \d+ \(pid|Root Cause|^srun: |"
    r"\[Rank \d+\]|ncclUniqueId from \[\d+\]|^-- Process \d+|^Process \d+ term"
)


OF_NCCL = re.compile(r"^(?P<process>[\w.-]+:\d+):\d+ \[\d+\] ")
IN_A_GROUP = re.compile(r"\brank (\d+) n[Rr]anks (\d+)\b")
BOTH_RANKS = re.compile(r"^\s+rank\s*: (\d+) \(local_rank: (\d+)\)")
LATER_NODE = re.compile(r"\b(?:node|group)[-_]rank[=: ]+[1-9]", re.IGNORECASE)
SPEAKER = re.compile(r"\[(?:PG (?:ID )?0 [^\]]*)?Rank (\d+)\]")


@dataclass
class Row:
    """A line without its marks."""

    text: str
    rank: int | None = None  # from a mark that is the rank's own
    outer: int | None = None  # the first of several such marks
    marks: int = 0
    label: int | None = None  # from a label of the whole file
    local: int | None = None  # the rank on its node, from a mark of torchrun --tee
    level: str = ""  # of the logger
    process: int | None = None
    address: str = ""


def clean(text: str) -> list[Row]:
    """The lines of a file, and what their marks said."""
    rows = [Row(line) for line in COLORS.sub("", text).replace("\r", "\n").splitlines()]
    take_brackets(rows)  # before [rank3], which takes a number in front of it along
    for _ in range(PASSES):
        before = [row.text for row in rows]
        for row in rows:
            take_marks(row)
        for labels in (take_tasks, take_brackets, take_places, take_pods, take_hosts):
            labels(rows)
        if before == [row.text for row in rows]:
            break
    settle(rows)
    settle_local(rows)
    settle_processes(rows)
    settle_nccl(rows)
    return rows


def take_marks(row: Row) -> None:
    """Marks that say by their form what they are."""
    for mark in RANKS:
        if match := mark.match(row.text):
            row.rank = int(match["rank"])
            row.outer = row.rank if row.outer is None else row.outer
            row.marks += 1
            row.local = row.rank if mark is OF_ROLE else row.local
            row.text = row.text[match.end() :]
    for mark in OTHERS:
        if match := mark.match(row.text):
            said = match.groupdict()
            row.level = said.get("level") or row.level
            row.process = int(said["process"]) if "process" in said else row.process
            row.address = said.get("address") or row.address
            row.text = row.text[match.end() :]


def labeled(rows: list[Row], matches: Callable[[str], object]) -> bool:
    """Whether (nearly) all lines begin so."""
    full = [row for row in rows if row.text.strip()]
    having = [row for row in full if matches(row.text)]
    return bool(full) and len(having) >= MOST_OF * len(full)


def take_tasks(rows: list[Row]) -> None:
    """``3: `` of ``srun --label``."""
    of_tasks = [row for row in rows if not OF_SLURM.match(row.text)]
    full = [row for row in of_tasks if row.text.strip()]
    if len(full) < 2:
        return
    if not labeled(of_tasks, TASK.match) and not labeled_below(full):
        return
    for row in rows:
        if match := TASK.match(row.text):
            row.label = int(match[1])
            row.text = row.text[match.end() :]


def labeled_below(rows: list[Row]) -> bool:
    """Whether labels begin after what the job's script printed before srun.

    Numbers that only grow may count something.
    """
    having = [place for place, row in enumerate(rows) if TASK.match(row.text)]
    below = rows[having[0] :] if having else []
    if len(having) < 2 or not labeled(below, TASK.match):
        return False
    labels = [int(TASK.findall(rows[place].text)[0]) for place in having]
    raised = any("Traceback (most" in rows[place].text for place in having)
    return raised or labels != sorted(labels)


def take_brackets(rows: list[Row]) -> None:
    """``[3] `` of Intel MPI; numbers that only grow may be steps, and are no ranks."""
    having = [row for row in rows if BRACKETS.match(row.text)]
    of_ranks = [row for row in rows if not OF_HYDRA.match(row.text)]
    if len(having) < 2 or not labeled(of_ranks, BRACKETS.match):
        return
    numbered = [int(BRACKETS.findall(row.text)[0]) for row in having]
    mixed = numbered != sorted(numbered)
    are_ranks = mixed or any("Traceback (most" in row.text for row in having)
    for row, number in zip(having, numbered, strict=True):
        row.text = BRACKETS.sub("", row.text)
        if are_ranks:
            row.label = number


def take_places(rows: list[Row]) -> None:
    """``[gpu12:5] ``: a host, and a rank or a process on it."""
    if not labeled(rows, PLACE.match):
        return
    for row in rows:
        if match := PLACE.match(row.text):
            number = int(match[2])
            if number < MOST_RANKS and match[2] == str(number):
                row.label = number  # Open MPI writes processes with zeros: 07356
            row.text = row.text[match.end() :]


def take_pods(rows: list[Row]) -> None:
    """``[trainer-node-0-1] ``: a pod or a node, which writes many lines."""
    found = [POD.match(row.text) for row in rows]
    names = {match[1] for match in found if match}
    full = [row for row in rows if row.text.strip()]
    if len(names) > len(full) // 2 or not labeled(rows, POD.match):
        return
    for row in rows:
        row.text = POD.sub("", row.text)


def take_hosts(rows: list[Row]) -> None:
    """``node1: `` of pdsh: which rank it was, it doesn't tell."""
    if not labeled(rows, host_of):
        return
    names = {host_of(row.text) for row in rows} - {""}
    full = [row for row in rows if row.text.strip()]
    digits = all(re.search(r"\d", name) for name in names)
    same = len(names) == 1 and len(full) > 1 and not all(map(is_value, full))
    few = len(full) >= SIZE_OF_JUDGED and len(names) <= len(full) // 2
    if not digits and not same and not few:
        return
    for row in rows:
        if host_of(row.text):
            row.text = row.text[HOST.match(row.text).end() :]  # pyright: ignore


def host_of(text: str) -> str:
    match = HOST.match(text)
    if not match or SPEAKERS.match(match[1]) or TASK.match(text):
        return ""
    return match[1]


def is_value(row: Row) -> bool:
    """Whether a number follows the word, as in ``loss: 0.3``."""
    return bool(re.match(r"\S+ +[-+.\d]|\S+ +nan", row.text))


def settle(rows: list[Row]) -> None:
    """Labels become ranks where each rank has its own, and not where nodes do."""
    labels = {row.label for row in rows if row.label is not None}
    others = any(ENDED_BY_HYDRA.match(row.text) for row in rows)  # that wrote nothing
    if (len(labels) > 1 or (labels and others)) and not of_nodes(rows):
        for row in rows:
            row.rank = row.label
        return
    if all_of_one(rows):
        for row in rows:
            row.rank = row.rank if row.marks > 1 else None


def settle_local(rows: list[Row]) -> None:
    """``[default1]:`` is a rank of one node: which rank of all, other lines tell."""
    known: dict[int, set[int]] = {}
    for row in rows:
        if row.local is not None and row.rank is not None and row.marks > 1:
            known.setdefault(row.local, set()).add(row.rank)
        if told := BOTH_RANKS.search(row.text):
            known.setdefault(int(told[2]), set()).add(int(told[1]))
    same = all(ranks == {local} for local, ranks in known.items())
    if same and not any(LATER_NODE.search(row.text) for row in rows):
        return
    for row in rows:
        if row.local is not None and row.rank is not None and row.marks == 1:
            ranks = known.get(row.local, set())
            row.rank = next(iter(ranks)) if len(ranks) == 1 else None


def settle_processes(rows: list[Row]) -> None:
    """``(WorkerDict pid=1412)``: a process, whose rank some of its lines tell."""
    known: dict[int, set[int]] = {}
    for row in rows:
        if row.process is not None and row.rank is not None:
            known.setdefault(row.process, set()).add(row.rank)
    for row in rows:
        ranks = known.get(row.process, set()) if row.process is not None else set()
        if row.rank is None and len(ranks) == 1:
            row.rank = next(iter(ranks))


def settle_nccl(rows: list[Row]) -> None:
    """``n1:4016:4653 [7] ``: a process, whose rank NCCL told when it joined a group."""
    told: dict[str, dict[int, set[int]]] = {}  # process -> size of a group -> its ranks
    for row in rows:
        process, joins = OF_NCCL.match(row.text), IN_A_GROUP.search(row.text)
        if process and joins:
            sizes = told.setdefault(process["process"], {})
            sizes.setdefault(int(joins[2]), set()).add(int(joins[1]))
    if not told:
        return
    largest = max(size for sizes in told.values() for size in sizes)
    of_all = {process: sizes.get(largest, set()) for process, sizes in told.items()}
    known = {process: min(own) for process, own in of_all.items() if len(own) == 1}
    if len(set(known.values())) < len(known) or speaks_beyond(rows, largest):
        return  # ranks of smaller groups, each counted from 0
    for row in rows:
        process = OF_NCCL.match(row.text)
        if process and row.rank is None:
            row.rank = known.get(process["process"])


def speaks_beyond(rows: list[Row], size: int) -> bool:
    """Whether a rank speaks that a group of this size doesn't have."""
    return any(rank >= size for row in rows for rank in ranks_named(row))


def of_nodes(rows: list[Row]) -> bool:
    """Whether several ranks wrote under one label, as those of a node do."""
    labeled_rows = [row for row in rows if row.label is not None]
    named = {(row.label, rank) for row in labeled_rows for rank in ranks_named(row)}
    if any(label != rank for label, rank in named):
        return True
    if len(named) > 1:  # the ranks say the same as their labels
        return False
    return any(is_of_several(row) for row in labeled_rows)


def ranks_named(row: Row) -> list[int]:
    """As whom the writer of the line names itself."""
    said = SPEAKER.search(row.text)
    found = [] if row.rank is None else [row.rank]
    return [*found, int(said[1])] if said else found


def is_of_several(row: Row) -> bool:
    return bool(OF_SEVERAL.search(row.text))


def all_of_one(rows: list[Row]) -> bool:
    """Whether one mark is before all lines, though several ranks wrote them."""
    full = [row for row in rows if row.text.strip()]
    if len(full) < 2 or len({row.outer for row in full}) > 1:
        return False
    return any(row.marks > 1 or OF_SEVERAL.search(row.text) for row in full)
