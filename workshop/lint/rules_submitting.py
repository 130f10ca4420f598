"""Rules about the command lines of sbatch: their options, and what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from . import pages
from .directives import slurm_options
from .launches import PYTHON, SCRIPT, base, pairs
from .rule import ERROR, WARNING, Problem, Table
from .script import Script
from .shell import Assignment, Command, parse

TABLE = Table()
# Options that hardly any program has.
OF_SBATCH = {
    *("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "gres", "gpus-per-node"),
    *("gpus-per-task", "partition", "qos", "time", "dependency", "array", "mem"),
    *("mem-per-cpu", "mem-per-gpu", "constraint", "exclusive", "nodelist", "account"),
}
SHORT = re.compile(r"(-N \d+|-t (\d+-)?\d+:\d+(:\d+)?)$")
PRINTED = re.compile(r"\"?(?:\$\((.*)\)|`(.*)`)\"?", re.S)
REFERENCE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


@TABLE.add("DT022", WARNING, pages.READ_THE_SCRIPT)
def options_behind_the_script(script: Script) -> Iterator[Problem]:
    """An option of sbatch behind the script

    sbatch reads its options up to the name of the script. What follows goes to the
    script, as $1 and so on, and the job gets what its directives ask for.

    Cure:
        sbatch OPTIONS SCRIPT ARGUMENTS

    Bad:
        sbatch train.sbatch configs/base.yaml --nodes=4 --time=24:00:00

    Good:
        sbatch --nodes=4 --time=24:00:00 train.sbatch configs/base.yaml
    """
    for command in script.commands:
        if base(command.name) != "sbatch":
            continue
        words = [word.value for word in command.words[1:]]
        options, at = slurm_options(words)
        rest = list(takewhile(is_no_program, words[at + 1 :]))
        found = [word for word in rest if option_of_sbatch(word)]
        found += [
            f"{one} {two}" for one, two in pairs(rest) if SHORT.match(f"{one} {two}")
        ]
        if found and "wrap" not in options:
            shown = " ".join(f"`{word}`" for word in found)
            file = words[at]
            what = f"{shown} behind `{file}` goes to the script, not to sbatch"
            yield Problem(command.line, what, f"sbatch {' '.join(found)} {file} ...")


def is_no_program(word: str) -> bool:
    """What follows a program on the line is the program's."""
    return not (PYTHON.fullmatch(word) or SCRIPT.fullmatch(word))


def option_of_sbatch(word: str) -> bool:
    return word.startswith("--") and word[2:].partition("=")[0] in OF_SBATCH


@TABLE.add("DT023", ERROR, pages.LONGER)
def words_for_a_number(script: Script) -> Iterator[Problem]:
    """What sbatch prints, in place of the job's number

    sbatch prints "Submitted batch job 123". --dependency takes the number alone, and
    refuses the words. With --parsable sbatch prints nothing else.

    Cure:
        JID=$(sbatch --parsable SCRIPT)

    Bad:
        JID=$(sbatch first.sbatch)
        sbatch --dependency=afterok:$JID second.sbatch

    Good:
        JID=$(sbatch --parsable first.sbatch)
        sbatch --dependency=afterok:$JID second.sbatch
    """
    for name, option in numbers_in_dependencies(script).items():
        assignments = script.variables.found.get(name, [])
        calls = [sbatch_of(each) for each in assignments]
        if None in calls:
            continue  # the script takes the number out of the words
        for assignment, call in zip(assignments, calls, strict=True):
            options = call or {}
            if not {"parsable", "$"} & set(options):
                what = f"`{name}` is `Submitted batch job 123`, not the number for "
                what += f"`--dependency={option}`"
                yield Problem(assignment.line, what, f"{name}=$(sbatch --parsable ...)")
                break


def numbers_in_dependencies(script: Script) -> dict[str, str]:
    """The variables in ``--dependency=afterok:$JID``, with the option's value."""
    found: dict[str, str] = {}
    for command in script.commands:
        if base(command.name) != "sbatch":
            continue
        options, _ = slurm_options([word.value for word in command.words[1:]])
        value = options.get("dependency", "")
        for match in REFERENCE.finditer(value):
            found.setdefault(match[1] or match[2], value)
    return found


def sbatch_of(assignment: Assignment) -> dict[str, str] | None:
    """The options of ``$(sbatch ...)``; None if a value isn't just what it prints."""
    value = assignment.word.value.partition("=")[2]
    match = PRINTED.fullmatch(value)
    if match is None or assignment.word.array is not None:
        return None
    commands = [each for each in parse(match[1] or match[2]) if not each.captured]
    if len(commands) != 1 or base(commands[0].name) != "sbatch":
        return None
    return options_of(commands[0])


def options_of(command: Command) -> dict[str, str]:
    """With ``$`` where a variable may hold some."""
    words = [word.value for word in command.words[1:]]
    options, at = slurm_options(words)
    may_be_options = words[at : at + 1] and re.match(r"\"?\$\{?\w*(OPT|ARG)", words[at])
    return {**options, "$": ""} if may_be_options else options
