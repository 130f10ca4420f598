"""Rules about lists: lines that count from 1, and elements that count from 0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import pages
from .launches import pairs
from .rule import ERROR, Problem, Table
from .rules_address import LIST, list_of
from .script import NODES, Script
from .shell import Command

TABLE = Table()
ARRAYS = {"SLURM_ARRAY_TASK_ID": "array", "PBS_ARRAY_INDEX": "J"}
INDEX = r"\$\{?(SLURM_ARRAY_TASK_ID|PBS_ARRAY_INDEX)\}?"
LINE_OF_SED = re.compile(rf"(?:(0)|{INDEX})p;?")
LINE_OF_AWK = re.compile(rf"\bNR\s*==\s*(?:(0)\b|{INDEX})(?!\s*[+\w])")
FIELD_OF_CUT = re.compile(rf"-f ?(?:(0)|{INDEX})( .*)?")
NUMBER_OF_HEAD = re.compile(rf"(?:-n|-)?(?:(0)|{INDEX})")
UP_TO = re.compile(r"(?:\d+-)?(\d+)(?:%\d+)?")
FOR_WORDS = re.compile(
    r"\bfor\s+(\w+)\s+in\s+(?:\$\(|`)\s*seq\s+([01])\s+([^)`]+?)\s*[)`]\s*(?:;|$)"
)
FOR_BRACES = re.compile(r"\bfor\s+(\w+)\s+in\s+\{([01])\.\.(\d+)\}\s*(?:;|$)")
WHILE_AT_MOST = re.compile(r"\bwhile\s+\[\[?\s+\"?\$\{?(\w+)\}?\"?\s+-le\s+(\S+)\s+\]")
FOR_NUMBERS = re.compile(
    r"\bfor\s*\(\(\s*(\w+)\s*=\s*([01])\s*;\s*\w+\s*<=\s*([^;]+?)\s*;"
)


@TABLE.add("DT218", ERROR, pages.READ_THE_SCRIPT)
def line_zero(script: Script) -> Iterator[Problem]:
    """Line 0 of a list

    sed and awk count lines from 1. sed refuses `0p`, awk finds no such line, and the
    variable stays empty. The first task of --array=0-9 asks for line 0.

    Cure:
        sed -n 1p for the first line; --array=1-N, or $((SLURM_ARRAY_TASK_ID + 1)).

    Bad:
        #!/bin/bash
        #SBATCH --array=0-9
        lr=$(sed -n "${SLURM_ARRAY_TASK_ID}p" rates.txt)
        python train.py --lr "$lr"

    Good:
        #!/bin/bash
        #SBATCH --array=1-10
        lr=$(sed -n "${SLURM_ARRAY_TASK_ID}p" rates.txt)
        python train.py --lr "$lr"
    """
    for command in script.commands:
        match = line_that_is_asked_for(script, command)
        if match is None:
            continue
        if match[1]:
            thing = "field" if command.name == "cut" else "line"
            what = f"`{command.name}` has no {thing} 0: {thing}s count from 1"
            first = {"sed": "sed -n 1p, or head -n 1", "cut": "cut -f1"}
            cure = first.get(command.name, "1 for the first line")
            yield Problem(command.line, what, cure)
        elif begins_at_zero(script, match[2]):
            given = script.resources.value(ARRAYS[match[2]])
            what = f"the first task of `{given}` asks `{command.name}` for line 0"
            yield Problem(command.line, what, f"$(({match[2]} + 1)) for the line")


def line_that_is_asked_for(script: Script, command: Command) -> re.Match | None:
    """``sed -n Np`` or ``awk NR==N``: the number 0, or that of an array's task."""
    texts = [script.variables.fill(word, word.line) for word in command.words[1:]]
    if command.name == "sed" and "-n" in texts:
        found = (LINE_OF_SED.fullmatch(text) for text in texts)
    elif command.name in ("awk", "gawk", "mawk"):
        found = (LINE_OF_AWK.search(text) for text in texts)
    elif command.name == "cut":
        found = (FIELD_OF_CUT.fullmatch(" ".join(both)) for both in pairs(texts))
    elif command.name == "head" and command.ends == "|":  # | tail -n 1
        found = (NUMBER_OF_HEAD.fullmatch(text) for text in texts)
    else:
        return None
    return next((match for match in found if match), None)


def begins_at_zero(script: Script, name: str) -> bool:
    return bool(re.match(r"0(?!\d)", script.resources.value(ARRAYS[name])))


@dataclass(frozen=True)
class Loop:
    """``for NAME in $(seq FIRST LAST)``, by its line and that of its ``done``."""

    name: str
    first: int
    last: str
    line: int
    end: int
    counts_itself: bool = False  # a while


@TABLE.add("DT219", ERROR, pages.WHAT_STARTS_WHAT)
def one_beyond_the_list(script: Script) -> Iterator[Problem]:
    r"""A number beyond the end of a list

    The elements of an array count from 0: with two nodes they are 0 and 1. Element 2 is
    empty, and if the loop begins at 1 it leaves out the first node. The same holds for
    a list and the tasks of a job array.

    Cure:
        for i in $(seq 0 $((SLURM_NNODES - 1)))

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
        for i in $(seq 1 $SLURM_NNODES); do
          srun -N1 -n1 -w ${nodes[$i]} ./worker.sh $i &
        done
        wait

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
        for i in $(seq 0 $((SLURM_NNODES - 1))); do
          srun -N1 -n1 -w ${nodes[$i]} ./worker.sh $i &
        done
        wait
    """
    yield from tasks_beyond_a_list(script)
    for loop in loops_over_numbers(script):
        element = re.compile(rf"\$\{{(\w+)\[\$?\{{?{loop.name}\}}?\]\}}")
        for number in range(loop.line, loop.end):
            match = element.search(script.lines[number - 1])
            if match is None or not is_the_length(script, loop.last, match[1]):
                continue
            if is_list_of_hosts(script, match[1]):
                what = f"`{match[0]}` is empty where `{loop.name}` is {loop.last}"
                if loop.first == 1:
                    what += f", and ${{{match[1]}[0]}} is left out"
                last = loop.last.strip('"')
                count = last.strip("${}") if "#" not in last else last
                cure = f"for {loop.name} in $(seq 0 $(({count} - 1)))"
                if loop.counts_itself:
                    cure = f"{loop.name}=0, and while [ ${loop.name} -lt {loop.last} ]"
                yield Problem(loop.line, what, cure)
                break


def tasks_beyond_a_list(script: Script) -> Iterator[Problem]:
    """``${RATES[$SLURM_ARRAY_TASK_ID]}`` of --array=1-4, in a list of four."""
    for name, assignments in script.variables.found.items():
        words = assignments[0].word.array
        if len(assignments) > 1 or words is None or not assignments[0].certain:
            continue
        if any(word.inside or re.search(r"[$*?{]", word.value) for word in words):
            continue
        for variable, option in ARRAYS.items():
            given = script.resources.value(option)
            match = UP_TO.fullmatch(given)
            used = element_of_task(script, name, variable)
            if match and used and int(match[1]) >= len(words):
                what = (
                    f"`{used}` is empty in task {match[1]} of `{given}`: the "
                    f"{len(words)} elements count from 0"
                )
                cure = f"an array of 0-{len(words) - 1}"
                yield Problem(script.resources.line(option), what, cure)


def element_of_task(script: Script, name: str, variable: str) -> str | None:
    """How the script takes the element of an array's task from a list."""
    known = script.variables.found
    same = [n for n, each in known.items() if is_just(each[-1].word.value, variable)]
    for index in (variable, *same):
        match = re.search(rf"\$\{{{name}\[\$?\{{?{index}\}}?\]\}}", script.text)
        if match:
            return match[0]
    return None


def is_just(assignment: str, variable: str) -> bool:
    value = assignment.partition("=")[2].strip('"')
    return value in (f"${variable}", f"${{{variable}}}")


def loops_over_numbers(script: Script) -> Iterator[Loop]:
    for number, line in enumerate(script.lines, 1):
        if line.lstrip().startswith("#") or number in script.embedded:
            continue
        rest = enumerate(script.lines[number:], number + 1)
        ends = (n for n, text in rest if re.match(r"\s*done\b", text))
        end = next(ends, len(script.lines)) + 1
        patterns = (FOR_WORDS, FOR_NUMBERS, FOR_BRACES)
        found = (pattern.search(line) for pattern in patterns)
        match = next((each for each in found if each), None)
        if match:
            yield Loop(match[1], int(match[2]), match[3], number, end)
        match = WHILE_AT_MOST.search(line)
        assignments = script.variables.found.get(match[1], []) if match else []
        before = [each for each in assignments if each.line <= number]
        first = before[-1].word.value.partition("=")[2] if before else ""
        if match and first in ("0", "1"):
            yield Loop(match[1], int(first), match[2], number, end, True)


def is_the_length(script: Script, text: str, name: str) -> bool:
    """The number of nodes, or of the elements of this list."""
    plain = text.strip("\"'${}() ")
    known = script.variables.text(plain, len(script.lines)) or ""
    length = rf"\$\{{#{name}\[[@*]\]\}}"
    if plain in NODES or re.fullmatch(length, text.strip('"')):
        return True
    if re.fullmatch(length, known) or known.strip('"${}') in NODES:
        return True
    number = script.number(text)
    return number is not None and script.nodes == number


def is_list_of_hosts(script: Script, name: str) -> bool:
    """The nodes of the job, with nothing in front of them."""
    assignments = script.variables.found.get(name, [])
    several = len(assignments) > 1 or any(each.adds for each in assignments)
    made = list_of(script, f"${{{name}[")
    return bool(LIST.search(made)) and not several
