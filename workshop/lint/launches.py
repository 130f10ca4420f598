"""The launch lines of a script: what starts them, how often, and with what options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .directives import slurm_options
from .shell import Command, parse
from .variables import Token, Variables
from .words import Word

# Commands that run another command as it is.
WRAPPERS = {"env", "nohup", "time", "exec", "nice", "stdbuf", "sudo"}
# Commands that may start a launcher which is one of their arguments.
PREFIXES = {
    "numactl",
    "taskset",
    "setpriv",
    "unbuffer",
    "singularity",
    "apptainer",
    "docker",
    "podman",
    "podman-hpc",
    "shifter",
    "enroot",
    "conda",
    "mamba",
    "micromamba",
    "uv",
    "poetry",
    "pixi",
    "pipenv",
    "nsys",
    "ncu",
    "rocprof",
    "catchsegv",
    "strace",
    "perf",
    "accelerate",
    "deepspeed",
    "torchrun",
    "setarch",
    "cgexec",
}
STARTERS = {
    "srun": "srun",
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "mpiexec.hydra": "mpirun",
    "orterun": "mpirun",
    "prun": "mpirun",
    "pbsdsh": "pbsdsh",
    "pbs_tmrsh": "remote",
    "ssh": "remote",
    "pdsh": "remote",
    "clush": "remote",
    "parallel": "remote",
    "jsrun": "remote",
    "ibrun": "remote",
    "blaunch": "remote",
}
# Starters that hand their last word to a shell of the other node.
REMOTE_SHELLS = {"ssh", "pdsh", "clush", "pbs_tmrsh"}
SHELLS = {"bash", "sh", "zsh", "ksh"}
SHELL_OPTION = re.compile(r"-[a-z]*c[a-z]*")
PYTHON = re.compile(r"(?:.*/)?(python[\d.]*|\$\{?PYTHON\w*\}?)")
SCRIPT = re.compile(r".*\.py\b")
TORCH_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "launch",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
TASK_NUMBER = re.compile(
    r"SLURM_(?:PROCID|NODEID|LOCALID)|PBS_NODENUM|OMPI_COMM_WORLD_\w*RANK|P?MI_\w*RANK"
)
LAUNCHERS = ("torchrun", "launch", "accelerate", "deepspeed")
# Options of the launchers that take no value.
FLAGS = {
    "standalone",
    "no-python",
    "module",
    "m",
    "run-path",
    "use-env",
    "multi-gpu",
    "cpu",
    "tpu",
    "mps",
    "quiet",
    "debug",
    "use-deepspeed",
    "use-fsdp",
    "use-megatron-lm",
    "same-network",
    "force-multi",
    "no-ssh",
    "no-local-rank",
    "enable-each-rank-log",
    "autotuning",
    "ipex",
    "multi-cpu",
    "dynamo-use-dynamic",
}
NOT_TRAINING = {"setup.py", "manage.py"}
TOOLS = {"pip", "venv", "json.tool", "torch.utils.collect_env", "this", "site"}
# Names of variables that hold options of the launcher, not the program.
OPTIONS_NAME = re.compile(r"ARG|OPT|FLAG|RDZV|DIST|@|\*", re.I)
DEEPEST = 4  # shells that run each other; a text may run itself
MPI_NUMBER = {"-n", "-np", "--np", "--n", "-c"}
MPI_HOSTS = {"--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f"}
MPI_PER_NODE = {"-ppn", "--ppn", "-npernode", "--npernode", "-N", "-perhost"}


@dataclass
class Launch:
    """One program that is launched, or one launcher with the program it starts."""

    command: Command  # of the job script
    kind: str  # of LAUNCHERS, or "python", or "other"
    line: int
    starter: str = ""  # srun, mpirun, pbsdsh or remote; "" for the job script itself
    started_with: str = ""  # the starter as the line has it: mpiexec
    starter_options: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)  # of the launcher
    program: list[str] = field(default_factory=list)  # with its arguments
    tokens: list[Token] = field(default_factory=list)  # of the innermost command
    option_lines: dict[str, int] = field(default_factory=dict)
    as_written: dict[str, str] = field(default_factory=dict)  # options, not filled in
    shell: str = ""  # the words of the shell in between: bash -lc
    file: Word | None = None  # the text of the file that this shell runs
    inner: list[Command] = field(default_factory=list)  # what that shell runs
    in_loop: bool = False

    @property
    def name(self) -> str:
        names = {
            "launch": "torch.distributed.launch",
            "accelerate": "accelerate launch",
        }
        return names.get(self.kind, self.kind)

    def option(self, *names: str) -> str | None:
        """The value of the first of these options that is given."""
        return next((self.options[n] for n in names if n in self.options), None)

    def line_of(self, *names: str) -> int:
        lines = (self.option_lines[n] for n in names if n in self.option_lines)
        return next(lines, self.line)


def pairs(words: list[str]) -> list[tuple[str, str]]:
    """Each word with the one after it, which may be its value."""
    return list(zip(words, [*words[1:], ""], strict=False))


def find_launches(commands: list[Command], variables: Variables) -> list[Launch]:
    found: list[Launch] = []
    for command in commands:
        if command.words:
            tokens = [t for word in command.words for t in variables.tokens(word)]
            found += launches_of(command, tokens, variables)
    return found


def launches_of(
    command: Command, tokens: list[Token], variables: Variables, depth: int = 0
) -> Iterator[Launch]:
    """What a command launches: itself, or what a starter or a shell runs for it."""
    tokens = without_wrappers(tokens)
    if not tokens or depth > DEEPEST:
        return
    name = base(tokens[0].text)
    starter = STARTERS.get(name, "")
    options: dict[str, str] = {}
    if starter:
        options, rest = read_starter(starter, tokens)
    else:
        rest = tokens
    file = find_file(rest, variables) if starter else None
    if file is not None:
        text = text_of_file(rest[file], variables)
        words = " ".join(token.text for token in rest[: file + 1])
        inner = parse(text.text, text.line)
        given = rest[file + 1 + shifted(inner) :]
        found = list(launches_inside(inner, text, given, variables, depth))
        for launch in found:
            launch.file = text.word
            yield adopted(launch, command, name, options, words, inner)
        if found:
            return
    shell = find_shell(rest)
    if shell is None and base(tokens[0].text) in REMOTE_SHELLS:
        shell = find_remote_text(rest, variables, depth)
    if shell is not None and shell < len(rest):
        words = " ".join(token.text for token in rest[:shell])
        text = rest[shell]
        inner = parse(text.text, text.line)
        given = rest[shell + 2 + shifted(inner) :]  # the first word is $0
        for launch in launches_inside(inner, text, given, variables, depth):
            yield adopted(launch, command, name, options, words, inner)
        return
    if shell is not None:
        return
    launch = read_program(command, rest) if starter or may_launch(rest[0]) else None
    if launch is None and not starter:
        return
    launch = launch or Launch(command, "other", tokens[0].word.line, tokens=rest)
    if starter:
        note_starter(launch, name, options)
    launch.line = tokens[0].word.line
    launch.in_loop = command.in_loop
    yield launch


def launches_inside(
    inner: list[Command],
    text: Token,
    given: list[Token],
    variables: Variables,
    depth: int,
) -> Iterator[Launch]:
    """What the text of a shell launches in every task that runs it."""
    own = [each for each in inner if each.words]
    by_number = any(asks_for_number(each) for each in inner)
    for each in own:
        if by_number and each.in_branch:
            continue  # in some of the tasks
        more = [t for word in each.words for t in variables.tokens(word)]
        more = [where_written(token, text.word, variables) for token in more]
        more = with_arguments(more, given)
        for launch in launches_of(each, more, variables, depth + 1):
            if launch.kind != "other" or len(own) == 1:
                yield launch


def asks_for_number(command: Command) -> bool:
    """A test or a case that the tasks of a step pass in different ways."""
    tests = command.tested or base(command.name) in ("[", "[[", "test", "case")
    tests = tests or command.name.startswith(("[[", "(("))
    return tests and any(TASK_NUMBER.search(word.value) for word in command.words)


def find_file(tokens: list[Token], variables: Variables) -> int | None:
    """The index of a script that the job script writes: ``bash run.sh``."""
    for at, token in enumerate(tokens):
        if PYTHON.fullmatch(token.text) or base(token.text) in LAUNCHERS:
            return None
        runs = at == 0 or "/" in token.text or base(tokens[at - 1].text) in SHELLS
        if runs and variables.written(token.text) is not None:
            return at
    return None


def text_of_file(token: Token, variables: Variables) -> Token:
    word = variables.written(token.text)
    assert word is not None
    return Token(variables.fill(word, word.line), word.line, word)


def where_written(token: Token, text: Word, variables: Variables) -> Token:
    """A word of a shell's text, which may be the value of a variable."""
    line = variables.line_of(token.text, text)
    return token if line is None else Token(token.text, line, token.word)


def shifted(commands: list[Command]) -> int:
    """How many of its arguments a shell's text takes away before it uses "$@"."""
    away = 0
    for each in commands:
        if each.name == "shift":
            count = each.words[1].value if len(each.words) > 1 else ""
            away += int(count) if count.isdigit() else 1
    return away


def with_arguments(tokens: list[Token], given: list[Token]) -> list[Token]:
    """The words of a shell's text, with its arguments in place of ``"$@"``."""
    found = []
    for token in tokens:
        found += given if token.text in ("$@", "$*") else [token]
    return found


def adopted(
    launch: Launch,
    command: Command,
    name: str,
    options: dict[str, str],
    shell: str,
    inner: list[Command],
) -> Launch:
    """A launch inside ``bash -c '...'``, as one of the job script's command."""
    launch.in_loop = command.in_loop or launch.command.in_loop
    launch.command = command
    launch.shell, launch.inner = shell, inner
    if name in STARTERS:
        note_starter(launch, name, options)
    return launch


def note_starter(launch: Launch, name: str, options: dict[str, str]) -> None:
    """What starts it, by its kind and as the line has it: mpiexec is an mpirun."""
    launch.starter = STARTERS[name]
    launch.started_with = name
    launch.starter_options = options


def base(text: str) -> str:
    return PurePosixPath(text).name


def texts_without_srun(command: Command) -> list[str]:
    """The words of what runs, also of what srun starts; none, if timeout ends it."""
    tokens = [Token(word.value, word.line, word) for word in command.words]
    if any(base(token.text) == "timeout" for token in tokens):
        return []
    tokens = without_wrappers(tokens)
    if tokens and base(tokens[0].text) == "srun":
        tokens = read_starter("srun", tokens)[1]
    return [token.text for token in tokens]


def without_wrappers(tokens: list[Token]) -> list[Token]:
    """Without ``time``, ``nohup``, ``env A=B``, ``timeout 60`` and their like."""
    at = 0
    while at < len(tokens):
        text = tokens[at].text
        if base(text) in WRAPPERS:
            at += 1
            while at < len(tokens) and re.match(r"-|[A-Za-z_]\w*=", tokens[at].text):
                at += 1
        elif base(text) == "timeout":
            at += 1
            while at < len(tokens) and tokens[at].text.startswith("-"):
                at += 1
            at += 1
        else:
            break
    return tokens[at:]


def may_launch(first: Token) -> bool:
    """Not ``echo torchrun``: a launcher, Python, a script, or what wraps them."""
    text = first.text
    known = base(text) in PREFIXES or PYTHON.fullmatch(text)
    return bool(known) or "/" in text or text.startswith("$") or text.endswith(".sh")


def find_shell(tokens: list[Token]) -> int | None:
    """The index of the text after ``bash -c``, wherever a wrapper has put it."""
    for at, token in enumerate(tokens[:-1]):
        if SCRIPT.fullmatch(token.text) or base(token.text) in (
            "torchrun",
            "deepspeed",
        ):
            return None
        if base(token.text) in SHELLS:
            after = at + 1
            while after < len(tokens) and tokens[after].text.startswith("-"):
                if SHELL_OPTION.fullmatch(tokens[after].text):
                    return after + 1
                after += 1
            return None
    return None


def find_remote_text(
    tokens: list[Token], variables: Variables, depth: int
) -> int | None:
    """The index of the text after ``ssh HOST``, if that text launches something."""
    at = len(tokens) - 1
    if at < 1 or not re.search(r"\s", tokens[at].text):
        return None
    for command in parse(tokens[at].text, tokens[at].line):
        words = [token for word in command.words for token in variables.tokens(word)]
        found = launches_of(command, words, variables, depth + 1)
        if any(each.kind != "other" for each in found):
            return at
    return None


def read_starter(
    starter: str, tokens: list[Token]
) -> tuple[dict[str, str], list[Token]]:
    """The options of srun or mpirun, and the words after them."""
    texts = [token.text for token in tokens[1:]]
    if starter == "srun":
        options, at = slurm_options(texts, "srun")
        if ":" not in texts[at:]:
            return options, tokens[1 + at :]
        options[":"] = ""  # and another program, in another component
        return options, tokens[1 + at : 1 + texts.index(":", at)]
    if starter == "mpirun":
        return mpi_options(texts), tokens[1:]
    if starter == "pbsdsh":
        at = 0
        options = {}
        while at < len(texts) and texts[at].startswith("-") and texts[at] != "--":
            options[texts[at]] = ""
            at += 2 if texts[at] in ("-n", "-c", "-h") else 1
        if at < len(texts) and texts[at] == "--":
            options["--"] = ""
            at += 1
        return options, tokens[1 + at :]
    return {}, tokens[1:]


def mpi_options(texts: list[str]) -> dict[str, str]:
    """How many processes mpirun starts, and how many of them on each host."""
    options: dict[str, str] = {}
    for text, after in pairs(texts):
        mapping = re.search(r"ppr:([^:]+):node", after)
        if text in MPI_NUMBER:
            options.setdefault("np", after)
        elif text in MPI_HOSTS:
            options["hosts"] = after
        elif text in MPI_PER_NODE:
            options.setdefault("per-node", after)
        elif text in ("--map-by", "-map-by") and mapping:
            options["per-node"] = mapping[1]
        elif text in ("--map-by", "-map-by") and after in ("node", "ppr:1:node"):
            options.setdefault("by-node", "")
        elif text in ("-pernode", "--pernode"):
            options["per-node"] = "1"
        elif PYTHON.fullmatch(text) or SCRIPT.fullmatch(text) or base(text) in SHELLS:
            break
    return options


def read_program(command: Command, tokens: list[Token]) -> Launch | None:
    """The first launcher or Python program among these words."""
    for at, token in enumerate(tokens):
        text = token.text
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        name = base(text)
        if name in ("torchrun", "deepspeed"):
            return with_options(command, name, tokens, at + 1)
        if name == "accelerate" and after == "launch":
            return with_options(command, "accelerate", tokens, at + 2)
        if PYTHON.fullmatch(text):
            return read_python(command, tokens, at)
        if SCRIPT.fullmatch(text) and at == 0:
            return python_launch(command, tokens, at)
    return None


def read_python(command: Command, tokens: list[Token], at: int) -> Launch | None:
    """What ``python ...`` at this index runs: a launcher's module, or a program."""
    texts = [token.text for token in tokens]
    after = at + 1
    while after < len(texts) and texts[after].startswith("-"):
        if texts[after] == "-c":
            return None
        if texts[after] == "-m":
            module = texts[after + 1] if after + 1 < len(texts) else ""
            if module in TORCH_MODULES:
                return with_options(command, TORCH_MODULES[module], tokens, after + 2)
            return python_launch(command, tokens, after + 1)
        after += 2 if texts[after] in ("-X", "-W") else 1
    return python_launch(command, tokens, after)


def python_launch(command: Command, tokens: list[Token], at: int) -> Launch | None:
    program = [token.text for token in tokens[at:]]
    if not program or base(program[0]) in NOT_TRAINING or program[0] in TOOLS:
        return None
    line = tokens[0].word.line
    return Launch(command, "python", line, program=program, tokens=tokens)


def may_hold_options(tokens: list[Token]) -> bool:
    """A variable in front of the program, or one whose name says so."""
    later = [token.text for token in tokens[1:]]
    program = any(
        text in ("-m", "--module") or SCRIPT.fullmatch(text) for text in later
    )
    return program or bool(OPTIONS_NAME.search(tokens[0].text))


def with_options(command: Command, kind: str, tokens: list[Token], at: int) -> Launch:
    """A launcher with its options: ``--nproc_per_node`` is ``nproc-per-node``."""
    launch = Launch(command, kind, tokens[0].word.line, tokens=tokens)
    while at < len(tokens):
        text = tokens[at].text
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if text.startswith("$") and may_hold_options(tokens[at:]):
            launch.options["$"] = text  # may hold options, unknown here
            at += 1
            continue
        if not text.startswith("-"):
            break
        name, equals, value = text.lstrip("-").partition("=")
        name = name.replace("_", "-")
        launch.option_lines[name] = tokens[at].line
        written = tokens[at].word.value.partition("=")[2]
        takes_value = name not in FLAGS and not equals
        if takes_value and after and not after.startswith("-"):
            value = after
            at += 1
            written = tokens[at].word.value
        launch.options[name] = value
        launch.as_written[name] = written
        at += 1
    launch.program = [token.text for token in tokens[at:]]
    return launch
