"""The ``#SBATCH`` and ``#PBS`` lines of a script, and what the job gets by them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from .options import full_name

MARKS = {"slurm": "#SBATCH", "pbs": "#PBS", "lsf": "#BSUB"}
# Other schedulers, whose options aren't known here.
OTHERS = {
    "sge": re.compile(r"#\$\s+-[A-Za-z]"),
    "flux": re.compile(r"#\s?flux:\s*-"),
}
# The short options of sbatch and srun by their long names.
SHORT = {
    "A": "account",
    "C": "constraint",
    "D": "chdir",
    "G": "gpus",
    "J": "job-name",
    "K": "kill-on-bad-exit",
    "L": "licenses",
    "N": "nodes",
    "W": "wait",
    "a": "array",
    "c": "cpus-per-task",
    "d": "dependency",
    "e": "error",
    "i": "input",
    "m": "distribution",
    "n": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "r": "relative",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
}
ALIASES = {"tasks-per-node": "ntasks-per-node", "workdir": "chdir"}
# Options that take no value, or only one after "=".
FLAGS = {
    "bcast",
    "container-mount-home",
    "container-remap-root",
    "container-writable",
    "contiguous",
    "disable-status",
    "exact",
    "exclusive",
    "export-all",
    "hold",
    "ignore-pbs",
    "immediate",
    "interactive",
    "kill-on-bad-exit",
    "label",
    "multi-prog",
    "no-allocate",
    "no-container-entrypoint",
    "no-container-mount-home",
    "no-container-remap-root",
    "no-kill",
    "no-requeue",
    "overcommit",
    "overlap",
    "oversubscribe",
    "parsable",
    "preserve-env",
    "pty",
    "quiet",
    "reboot",
    "requeue",
    "send-libs",
    "share",
    "spread-job",
    "test-only",
    "unbuffered",
    "use-min-nodes",
    "verbose",
    "whole",
}
SHORT_FLAGS = set("EHIKOQXZbhklsuv")
PBS_FLAGS = "hIVXzf"
NOT_COUNTED = ("hetjob", "packjob")


@dataclass(frozen=True)
class Directive:
    """One line, with its options by their long names."""

    line: int
    text: str  # after the mark
    options: dict[str, str]
    late: bool  # below the first command, so the scheduler ignores it


@dataclass
class Resources:
    """What the directives ask for; None where they don't say."""

    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    seconds: int | None = None
    exclusive: bool = False
    # Several kinds of nodes, or tasks in a variable: no number is sure.
    mixed: bool = False
    options: dict[str, Directive] = field(default_factory=dict)

    @property
    def all_nodes(self) -> int | None:
        return None if self.mixed else self.nodes

    @property
    def all_tasks(self) -> int | None:
        """What ``SLURM_NTASKS`` is in the job script."""
        if self.tasks is not None:
            return self.tasks
        if self.tasks_per_node is not None and self.all_nodes is not None:
            return self.all_nodes * self.tasks_per_node
        return None

    def value(self, name: str) -> str:
        directive = self.options.get(name)
        return directive.options[name] if directive else ""

    def line(self, name: str) -> int:
        directive = self.options.get(name)
        return directive.line if directive else 1


def find_dialect(lines: list[str]) -> str:
    """Whose directives there are; "shell" if there are none."""
    if is_manifest(lines):
        return "kubernetes"
    for dialect, mark in MARKS.items():
        live = re.compile(rf"{mark}\b")
        if any(live.match(line) for line in lines):
            return dialect
    almost = {"slurm": r"#\s*sbatch\s+-", "pbs": r"#\s*pbs\s+-"}
    for dialect, pattern in almost.items():
        if any(re.match(pattern, line, re.I) for line in lines):
            return dialect
    for dialect, pattern in OTHERS.items():
        if any(pattern.match(line) for line in lines):
            return dialect
    return "shell"


def is_manifest(lines: list[str]) -> bool:
    """YAML that begins with what every object of Kubernetes has."""
    written = [x for x in lines if x.strip() and not x.startswith(("#", "---"))]
    first = "".join(written[:1])
    kinds = any(re.match(r"kind:\s*[A-Z]\w+\s*$", line) for line in written)
    return first.startswith(("apiVersion:", "kind:")) and kinds


def read_directives(lines: list[str], dialect: str, first_command: int):
    mark = MARKS.get(dialect)
    if mark is None:
        return []
    found = []
    for number, line in enumerate(lines, 1):
        if line.startswith(mark):
            text = line[len(mark) :].strip()
            options = read_options(split_words(text), dialect)
            found.append(Directive(number, text, options, number > first_command))
    return found


def split_words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def read_options(words: list[str], dialect: str) -> dict[str, str]:
    if dialect == "slurm":
        return slurm_options(words)[0]
    return pbs_options(words)


def slurm_options(words: list[str], tool: str = "sbatch") -> tuple[dict[str, str], int]:
    """The options of one of the tools, and the index of the first word after them.

    A word that starts with a variable may hold options, so it doesn't end them.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            name = full_name(name, tool)
            takes_value = not equals and name not in FLAGS and at + 1 < len(words)
            if takes_value and not words[at + 1].startswith("--"):
                at += 1
                value = words[at]
            found[ALIASES.get(name, name)] = value
        elif re.match(r"-[A-Za-z]", word):
            letter, value = word[1], word[2:].removeprefix("=")
            if not value and letter not in SHORT_FLAGS and at + 1 < len(words):
                at += 1
                value = words[at]
            found[SHORT.get(letter, letter)] = value
            for more in value if letter in SHORT_FLAGS else "":
                found.setdefault(SHORT.get(more, more), "")  # -lK
        elif word.startswith(("$", '"$')) and any(
            later.startswith("-") for later in words[at + 1 : at + 2]
        ):
            found["$"] = word
        else:
            break
        at += 1
    return found, at


def pbs_options(words: list[str]) -> dict[str, str]:
    """``-l select=2,walltime=1`` as ``l select`` and ``l walltime``."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if not re.match(r"-[A-Za-z]", word):
            at += 1
            continue
        letter, value = word[1], word[2:]
        if not value and letter not in PBS_FLAGS and at + 1 < len(words):
            at += 1
            value = words[at]
        if letter == "l":
            for item in value.split(","):
                name, _, amount = item.partition("=")
                found[f"l {name.strip()}"] = amount.strip()
        else:
            found[letter] = value
        at += 1
    return found


def resources_of(directives: list[Directive], dialect: str) -> Resources:
    live = [directive for directive in directives if not directive.late]
    resources = Resources()
    for directive in live:
        for name in directive.options:
            first_wins = dialect == "pbs" and name in resources.options
            if not first_wins:
                resources.options[name] = directive
    if dialect == "slurm":
        _read_slurm(resources, live)
    elif dialect == "pbs":
        _read_pbs(resources)
    return resources


def with_command_line(
    directives: list[Directive], given: Directive | None, dialect: str
) -> list[Directive]:
    """What the job is submitted with: an option on the command line wins."""
    if given is None:
        return directives
    return [given, *directives] if dialect == "pbs" else [*directives, given]


def parts_of(directives: list[Directive], dialect: str) -> list[Resources]:
    """What each component of a heterogeneous job asks for; none in another job."""
    groups: list[list[Directive]] = [[]]
    for directive in directives:
        if directive.late:
            continue
        if begins_component(directive):
            groups.append([])
        else:
            groups[-1].append(directive)
    if len(groups) == 1 or dialect != "slurm":
        return []
    return [resources_of(group, dialect) for group in groups]


def begins_component(directive: Directive) -> bool:
    return directive.text.split()[:1] in ([word] for word in NOT_COUNTED)


def _forget_numbers(resources: Resources) -> None:
    """Each component has its own: those of the last one aren't the job's."""
    resources.nodes = resources.tasks = resources.tasks_per_node = None
    resources.cpus_per_task = None
    resources.gpus_per_node = resources.gpus_per_task = None


def _read_slurm(resources: Resources, live: list[Directive]) -> None:
    value = resources.value
    resources.nodes = first_number(value("nodes"))
    resources.tasks = first_number(value("ntasks"))
    resources.tasks_per_node = first_number(value("ntasks-per-node"))
    resources.cpus_per_task = first_number(value("cpus-per-task"))
    resources.gpus_per_task = gpu_number(value("gpus-per-task"))
    resources.gpus_per_node = gpu_number(value("gpus-per-node"))
    gres = [part for part in value("gres").split(",") if part.startswith("gpu")]
    if resources.gpus_per_node is None and gres:
        resources.gpus_per_node = sum_of_types(gres)
    total = gpu_number(value("gpus"))
    if resources.gpus_per_node is None and total and resources.nodes == 1:
        resources.gpus_per_node = total
    resources.exclusive = "exclusive" in resources.options
    resources.seconds = slurm_seconds(value("time"))
    several = any(map(begins_component, live))
    hidden = any("$" in value(name) for name in ("ntasks", "ntasks-per-node"))
    resources.mixed = several or hidden or ":" in value("nodes")
    if re.search(r"\d-\d|,", value("nodes")):
        resources.nodes = None  # from .. to: not known before it starts
    if several:
        _forget_numbers(resources)


def _read_pbs(resources: Resources) -> None:
    value = resources.value
    select, nodes = value("l select"), value("l nodes")
    chunks = (select or nodes).split("+")
    resources.mixed = len(chunks) > 1
    resources.nodes = first_number(chunks[0]) if chunks[0] else None
    pairs = [part.partition("=") for part in chunks[0].split(":") if "=" in part]
    parts = {name: amount for name, _, amount in pairs}
    per_host = parts.get("mpiprocs") if select else parts.get("ppn")
    resources.tasks_per_node = first_number(per_host or "")
    resources.gpus_per_node = first_number(parts.get("ngpus") or parts.get("gpus", ""))
    resources.seconds = clock_seconds(value("l walltime"))
    resources.exclusive = "excl" in value("l place")


def first_number(text: str) -> int | None:
    match = re.match(r"\d+", text)
    return int(match[0]) if match else None


def gpu_number(text: str) -> int | None:
    """``4``, ``a100:4`` and ``volta:2(S:0)``; a type alone is one GPU."""
    match = re.match(r"(?:[A-Za-z][\w.-]*:)?(\d+)(?:\(.*)?$", text)
    return int(match[1]) if match else None


def sum_of_types(gres: list[str]) -> int | None:
    """``gpu:a100:2`` and ``gpu:v100:2`` are four GPUs; None if one isn't known."""
    total = 0
    for part in gres:
        number = gpu_number(part.removeprefix("gpu").lstrip(":"))
        if number is None:
            return None
        total += number
    return total


def clock_seconds(text: str) -> int | None:
    if not re.fullmatch(r"\d+(:\d+){0,2}", text):
        return None
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def slurm_seconds(text: str) -> int | None:
    """``minutes``, ``minutes:seconds``, ``h:m:s`` and ``days-hours[:m[:s]]``."""
    days, dash, rest = text.rpartition("-")
    if dash:
        if not days.isdigit() or not re.fullmatch(r"\d+(:\d+){0,2}", rest):
            return None
        parts = [int(part) for part in rest.split(":")] + [0, 0]
        hours = int(days) * 24 + parts[0]
        return hours * 3600 + parts[1] * 60 + parts[2]
    if text.isdigit():
        return int(text) * 60
    return clock_seconds(text)
