"""Rules about job scripts inside of a script, which it hands to sbatch or qsub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from . import pages
from .directives import slurm_options
from .launches import base
from .rule import ERROR, Problem, Table
from .script import Script
from .shell import Command, Heredoc
from .submitted import SUBMITS, heredocs_of, wrap_word
from .variables import REFERENCE
from .words import word_of_heredoc

TABLE = Table()
# What exists only once the job has started.
OF_THE_JOB = re.compile(
    r"SLURM_(JOB_?ID|JOB_(NODELIST|NUM_NODES|GPUS|CPUS_PER_NODE)|NODELIST|NNODES|"
    r"NTASKS\w*|NPROCS|NODEID|PROCID|LOCALID|ARRAY_\w+|CPUS_\w+|GPUS\w*|TMPDIR)|"
    r"PBS_(NODEFILE|JOBID|O_WORKDIR|JOBDIR|NODENUM|ARRAY_INDEX)"
)
PRINTED = r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`"  # by a command
NO_LIST = re.compile(r"scontrol\s+show\s+hostnames?\s*[|)`]")
OWN_NAME = re.compile(r"\$\(\s*hostname\b[^)]*\)|`\s*hostname\b[^`]*`|\$\{?HOSTNAME\}?")
ADDRESS = re.compile(r"endpoint|master|addr|head|main_process_ip", re.I)
HARMLESS = re.compile(r"\s*(#|echo\b|printf\b|:\s|$)")


@dataclass(frozen=True)
class Early:
    """What the submitting shell replaces, and shouldn't."""

    line: int
    shown: str
    why: str


@TABLE.add("DT013", ERROR, pages.WHAT_STARTS_WHAT)
def replaced_at_submission(script: Script) -> Iterator[Problem]:
    r"""Replaced on the login node, when the job is submitted

    In a here-document without quotes, and in --wrap="...", the shell that submits
    replaces variables and $(...). There's no job yet, so its variables are empty, and
    the only host is the login node.

    Cure:
        sbatch <<'EOT' with the quotes, --wrap='...', or a backslash: \$(hostname).

    Bad:
        sbatch <<EOT
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export MASTER_ADDR=$(hostname)
        srun -K python train.py
        EOT

    Good:
        sbatch <<'EOT'
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        export MASTER_ADDR=$(hostname)
        srun -K python train.py
        EOT
    """
    if script.dialect in ("slurm", "pbs"):
        return  # a job that submits another one: it has such variables itself
    yield from replaced_by_envsubst(script)
    for command in script.commands:
        if base(command.name) not in SUBMITS:
            continue
        for heredoc in heredocs_for(script, command):
            yield from early_in_heredoc(script, command, heredoc)
        yield from early_in_wrap(script, command)


def replaced_by_envsubst(script: Script) -> Iterator[Problem]:
    """Without a list of names, envsubst replaces every variable of a template."""
    for command in script.commands:
        if base(command.name) != "envsubst" or len(command.words) > 1:
            continue
        text = template_of(script, command)
        names = [match[1] or match[2] for match in REFERENCE.finditer(text)]
        inside = set(re.findall(r"(?m)^\s*(?:export\s+)?(\w+)=", text))
        lost = [n for n in names if OF_THE_JOB.fullmatch(n) or n in inside]
        lost = [n for n in lost if not script.variables.sets(n)]
        if lost:
            given = dict.fromkeys(n for n in names if script.variables.sets(n))
            listed = " ".join(f"${name}" for name in given)
            what = (
                f"envsubst replaces `${lost[0]}` of the template, too, and it's empty "
                "at submission"
            )
            yield Problem(command.line, what, f"envsubst '{listed}' < ...")


def template_of(script: Script, command: Command) -> str:
    """What envsubst reads, if the script has written it."""
    if command.heredocs:
        return command.heredocs[0].text if command.heredocs[0].quoted else ""
    names = [word.value for sign, word in command.redirects if sign == "<"]
    own = [each for each in script.commands if not each.captured]
    before = next((a for a, b in pairwise(own) if b is command), command)
    if command.follows == "|" and before.name == "cat":
        names += [word.value for word in before.words[1:]]
    word = script.variables.files.get(names[0].removeprefix("./")) if names else None
    return word.raw if word else ""


def heredocs_for(script: Script, command: Command) -> list[Heredoc]:
    """What sbatch gets as its input, or in a file that the script has written."""
    own = heredocs_of(script, command)
    if own:
        return own
    words = [script.variables.fill(word, word.line) for word in command.words[1:]]
    _, at = slurm_options(words)
    file = words[at].removeprefix("./") if at < len(words) else ""
    written = script.variables.files.get(file)
    if written is None:
        return []
    known = [heredoc for each in script.commands for heredoc in each.heredocs]
    return [heredoc for heredoc in known if heredoc.text == written.raw]


def early_in_heredoc(
    script: Script, command: Command, heredoc: Heredoc
) -> Iterator[Problem]:
    if heredoc.quoted:
        return
    needed = names_of_the_submitter(heredoc.word.live)
    for number, line in enumerate(heredoc.text.split("\n"), heredoc.line):
        live = word_of_heredoc(line, number, quoted=False).live
        early = None if HARMLESS.match(line) else find_early(script, live, number)
        if early is not None:
            cure = with_backslashes(early.shown)
            if not needed:
                cure = f"<<'{heredoc.end}', with the quotes"
            yield Problem(number, early.why, cure)


def early_in_wrap(script: Script, command: Command) -> Iterator[Problem]:
    word = wrap_word(command)
    options, _ = slurm_options([each.value for each in command.words[1:]])
    early = find_early(script, word.live, word.line)
    if "wrap" not in options or early is None:
        return
    cure = with_backslashes(early.shown)
    if not names_of_the_submitter(word.live):
        cure = "--wrap='...', in single quotes"
    yield Problem(command.line, early.why, cure)


def find_early(script: Script, live: str, line: int) -> Early | None:
    """The first thing in this text that only the job can fill in."""
    printed = [match[0] for match in re.finditer(PRINTED, live)]
    for match in REFERENCE.finditer(live):
        name = match[1] or match[2]
        if OF_THE_JOB.fullmatch(name) and not known_outside(script, name):
            shown = next((text for text in printed if match[0] in text), match[0])
            why = f"`{shown}` is replaced at submission, where `{match[0]}` is empty"
            return Early(line, shown, why)
    for shown in printed:
        if NO_LIST.search(shown):
            why = f"`{shown}` is replaced at submission, before the job has nodes"
            return Early(line, shown, why)
    own = OWN_NAME.search(live)
    if own and ADDRESS.search(live[: own.start()]):
        why = f"`{own[0]}` is replaced at submission: it's the login node"
        return Early(line, own[0], why)
    return None


def known_outside(script: Script, name: str) -> bool:
    """The script sets the variable itself, or looks whether it's set."""
    guard = rf"-[nzv]\s+\"?\$?\{{?{name}\b"
    return script.variables.sets(name) or bool(re.search(guard, script.text))


def names_of_the_submitter(live: str) -> list[str]:
    """Variables and numbered arguments that the submitting shell has to fill in."""
    names = [match[1] or match[2] for match in REFERENCE.finditer(live)]
    found = [name for name in names if not OF_THE_JOB.fullmatch(name)]
    arguments = re.findall(r"\$\{?[0-9@*]|\$\{\w+[^\w}]", live)
    return [name for name in found if name != "HOSTNAME"] + arguments


def with_backslashes(shown: str) -> str:
    return re.sub(r"(?<!\\)([$`])", r"\\\1", shown)
