"""A job script or a launch line as the rules see it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from .directives import (
    Directive,
    Resources,
    find_dialect,
    is_manifest,
    parts_of,
    read_directives,
    resources_of,
    with_command_line,
)
from .launches import Launch, find_launches
from .shell import Command, parse
from .variables import Variables, is_shell

NODES = ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")
TASKS = ("SLURM_NTASKS", "SLURM_NPROCS")
VARIABLE = re.compile(r"\$\{?(\w+)(?::?-[^}]*)?\}?")
SOURCES = ("source", ".", "module", "ml", "eval")  # may set variables
UNIQUE = re.compile(r"\buniq\b|sort\s+(-\w+\s+)*-\w*u")
COUNTS_HOSTS = re.compile(
    r"\$\((?=.*NODEFILE)(?=.*\bwc\s+-l)(\s|wc|cat|sort|uniq|-[lu]|[<|\"]|"
    r"\$\{?PBS_NODEFILE\}?)+\)"
)
DEEPEST = 8  # variables that refer to each other
DIGITS = 18  # of the longest number that is computed here


@dataclass(frozen=True)
class Step:
    """How many times a starter runs its command; None where the script doesn't say."""

    nodes: int | None
    tasks: int | None
    per_node: int | None


@dataclass
class Script:
    """The text of one file, and everything read from it."""

    name: str
    text: str
    is_line: bool = False  # typed with --line, so no file
    is_part: bool = False  # a text that another script hands to sbatch or qsub
    scheduler: str = ""  # of such a text
    given: Directive | None = None  # the options with which it's submitted
    lines: list[str] = field(init=False)
    dialect: str = field(init=False)
    commands: list[Command] = field(init=False)
    embedded: set[int] = field(init=False)  # lines of texts that it only writes
    directives: list[Directive] = field(init=False)
    resources: Resources = field(init=False)
    parts: list[Resources] = field(init=False)  # of a heterogeneous job
    variables: Variables = field(init=False)
    launches: list[Launch] = field(init=False)

    def __post_init__(self) -> None:
        text = self.text.replace("\r\n", "\n")
        self.lines = text.split("\n")
        reads = is_shell(self.lines[0]) and not is_manifest(self.lines)
        self.commands = parse(text) if reads else body_of(self.lines)
        written = [command for command in self.commands if not command.captured]
        last = len(self.lines) + 1
        first = min((command.line for command in written), default=last)
        self.embedded = heredoc_lines(self.commands) | quoted_lines(self.commands)
        numbered = enumerate(self.lines, 1)
        own_lines = [line for number, line in numbered if number not in self.embedded]
        self.dialect = self.scheduler or find_dialect(own_lines)
        found = read_directives(self.lines, self.dialect, first)
        self.directives = [each for each in found if each.line not in self.embedded]
        asked = with_command_line(self.directives, self.given, self.dialect)
        self.resources = resources_of(asked, self.dialect)
        self.parts = parts_of(self.directives, self.dialect)
        self.variables = Variables(self.commands)
        self.launches = find_launches(self.commands, self.variables)

    @property
    def nodes(self) -> int | None:
        return self.resources.all_nodes

    @property
    def many_nodes(self) -> bool:
        return (self.nodes or 1) > 1

    @property
    def is_torque(self) -> bool:
        """Asks in the form that Torque and OpenPBS both take."""
        return self.dialect == "pbs" and "l nodes" in self.resources.options

    @property
    def tasks(self) -> int | None:
        """What ``SLURM_NTASKS`` is in the job script."""
        return self.resources.all_tasks

    def component(self, launch: Launch) -> int | None:
        """The component of a heterogeneous job that a launch runs in, if it's known."""
        options = launch.starter_options
        if not self.parts or {"$", ":"} & set(options):
            return None
        told = options.get("het-group", options.get("pack-group", "0"))
        if launch.starter not in ("", "srun") or not told.isdigit():
            return None
        return int(told) if int(told) < len(self.parts) else None

    def asked(self, launch: Launch) -> Resources:
        """What the directives ask for where a launch runs."""
        if not self.parts:
            return self.resources
        component = self.component(launch)
        return Resources(mixed=True) if component is None else self.parts[component]

    @property
    def reads_other_files(self) -> bool:
        """Files that may set variables; the environment of Python doesn't."""
        for command in self.commands:
            file = command.words[-1].value if command.words else ""
            if command.name in SOURCES and not file.endswith("activate"):
                return True
        return False

    def uses(self, *names: str) -> bool:
        return any(re.search(rf"\b{name}\b", self.text) for name in names)

    def number(self, text: str | None, depth: int = 0) -> int | None:
        """The number that a word stands for, with what the directives say."""
        if text is None or (self.resources.mixed and not self.parts):
            return None
        if depth > DEEPEST:
            return None  # N=$((N + 1))
        inside = re.fullmatch(r"\$\(\((.*)\)\)", text.strip('"'))
        expression = inside[1] if inside else text

        def replace(match: re.Match) -> str:
            return self._number_of_variable(match, depth + 1)

        filled = VARIABLE.sub(replace, expression)
        if inside:
            filled = re.sub(r"\b[A-Za-z_]\w*\b", replace, filled)
        return compute(filled)

    def _number_of_variable(self, match: re.Match, depth: int) -> str:
        name = match[1] if match.re is VARIABLE else match[0]
        asked = self.resources
        known = {
            **dict.fromkeys(NODES, self.nodes),
            **dict.fromkeys(TASKS, self.tasks),
            "SLURM_NTASKS_PER_NODE": asked.tasks_per_node,
            "SLURM_CPUS_PER_TASK": asked.cpus_per_task,
            "SLURM_GPUS_ON_NODE": asked.gpus_per_node,
            "SLURM_GPUS_PER_NODE": asked.gpus_per_node,
        }
        number = known.get(name)
        if number is None:
            value = self.variables.text(name, len(self.lines))
            if value is None:
                number = self._counted_hosts(name)
            else:
                number = self.number(value, depth)
            if number is None:
                return match[0] if value is None else value
        return str(number)

    def _counted_hosts(self, name: str) -> int | None:
        """``NNODES=$(wc -l < $PBS_NODEFILE)``, which has a line for each rank."""
        assignment = self.variables.last(name, len(self.lines))
        if assignment is None or self.dialect != "pbs" or self.is_torque:
            return None
        text = assignment.word.value.partition("=")[2]
        once = (self.resources.tasks_per_node or 1) == 1 or UNIQUE.search(text)
        return self.nodes if once and COUNTS_HOSTS.fullmatch(text) else None

    def step(self, launch: Launch) -> Step:
        """How many times the starter of a launch runs its command, and where."""
        asked = self.asked(launch)
        if asked.mixed or ":" in launch.starter_options:
            return Step(None, None, None)
        if launch.starter == "srun":
            return self._srun_step(launch.starter_options, asked)
        if launch.starter == "mpirun":
            return self._mpi_step(launch.starter_options)
        if launch.starter == "pbsdsh" and "-n" not in launch.starter_options:
            per_node = self.resources.tasks_per_node or 1
            if "-u" in launch.starter_options:
                per_node = 1  # Torque: once on each host
            nodes = self.nodes
            return Step(nodes, nodes and nodes * per_node, per_node)
        return Step(1, 1, 1)

    def _srun_step(self, options: dict[str, str], asked: Resources) -> Step:
        opaque = "$" in options or "ntasks-per-gpu" in {*options, *asked.options}
        opaque = opaque or "ntasks-per-socket" in {*options, *asked.options}
        given = options.get("ntasks")
        if opaque and given is None:
            return Step(None, None, None)
        nodes = asked.all_nodes
        if "nodes" in options:
            nodes = self.number(options["nodes"])
        one_each = given is not None and is_one_of(given, NODES) and not self.parts
        if one_each and "nodes" not in options:
            return Step(nodes, nodes, 1)
        if given is not None:
            tasks = self.number(given)
        elif asked.tasks is not None or asked.tasks_per_node is not None:
            tasks = asked.all_tasks  # srun takes it from the job, whatever --nodes says
        else:
            per_node = self.number(options.get("ntasks-per-node", "1"))
            return Step(nodes, product(nodes, per_node), per_node)
        per_node = quotient(tasks, nodes)
        if per_node is None and given is None and asked.tasks is None:
            per_node = asked.tasks_per_node
        return Step(nodes, tasks, per_node)

    def _takes_all_lines(self, options: dict[str, str]) -> bool:
        """Without a number, mpirun starts one process for each line of its hosts."""
        told = {"np", "per-node", "by-node"} & set(options)
        file = options.get("hosts", "").strip("\"'")
        lines = is_one_of(file, ("PBS_NODEFILE",))
        return self.dialect == "pbs" and not told and lines

    def _mpi_step(self, options: dict[str, str]) -> Step:
        tasks = self.number(options.get("np"))
        per_node = self.number(options.get("per-node"))
        if "by-node" in options and tasks is not None and tasks == self.nodes:
            per_node = 1
        if tasks is None:
            tasks = product(self.nodes, per_node)
        if tasks is None and self._takes_all_lines(options):
            tasks = product(self.nodes, self.resources.tasks_per_node)
        if per_node is None:
            per_node = quotient(tasks, self.nodes)
        return Step(self.nodes, tasks, per_node)


def body_of(lines: list[str]) -> list[Command]:
    """A program in another language: where it begins is all that's known of it."""
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            return [Command(number)]
    return []


def heredoc_lines(commands: list[Command]) -> set[int]:
    """The lines of all here-documents: maybe a script for another job."""
    found: set[int] = set()
    for heredoc in (each for command in commands for each in command.heredocs):
        found.update(range(heredoc.line, heredoc.line + heredoc.text.count("\n")))
    return found


def quoted_lines(commands: list[Command]) -> set[int]:
    """The lines inside quotes that go over several lines: text, or another script."""
    found: set[int] = set()
    for command in commands:
        words = [*command.words, *(a.word for a in command.assignments)]
        for word in words:
            if any(piece.quoted for piece in word.pieces):
                found.update(range(word.line + 1, word.line + word.raw.count("\n") + 1))
    return found


def product(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one * other


def quotient(one: int | None, other: int | None) -> int | None:
    if one is None or not other or one % other:
        return None
    return one // other


def is_one_of(text: str, names: tuple[str, ...]) -> bool:
    return text.strip('"').strip("${}") in names


def compute(text: str) -> int | None:
    """A number, or the result of + - * / with whole numbers."""
    if not re.fullmatch(r"[\d+*/() -]+", text) or re.search(rf"\d{{{DIGITS}}}", text):
        return None
    try:
        return _value(ast.parse(text.strip().replace("/", "//"), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, ValueError, RecursionError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv):
            return left // right
    raise ValueError("not such an expression")
