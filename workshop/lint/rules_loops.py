"""Rules about loops over hosts, and about commands that don't return."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .launches import base, texts_without_srun
from .rule import ERROR, Problem, Table
from .rules_ends import known, never_ends, whole_words
from .script import Script
from .shell import Command

TABLE = Table()
SHOWN = 40  # letters of a command
READS_NOTHING = re.compile(r"-[A-Za-z]{0,3}[nf][A-Za-z]{0,3}")
TAKES_ALL = ("ssh", "srun")


@TABLE.add("DT138", ERROR, pages.PBS_EVERY_HOST)
def list_swallowed(script: Script) -> Iterator[Problem]:
    """A command in a loop reads the list of the loop

    ssh and srun read standard input and pass it on. In a `while read` loop that's the
    list of hosts. The first command reads all of it, and the loop ends after one host.

    Cure:
        ssh -n HOST ..., or srun ... < /dev/null.

    Bad:
        while read -r host; do
          ssh "$host" "mkdir -p /tmp/data"
        done < hosts.txt

    Good:
        while read -r host; do
          ssh -n "$host" "mkdir -p /tmp/data"
        done < hosts.txt
    """
    for head in script.commands:
        words = [word.value for word in head.words]
        elsewhere = any(re.match(r"-\w*u", word) for word in words[1:])
        if head.name != "read" or not head.tested or elsewhere or head.redirects:
            continue
        for command in body_of(script, head):
            if swallows(command):
                name = base(command.name)
                what = f"`{name}` reads the rest of the list, and the loop ends"
                cure = "ssh -n ..." if name == "ssh" else "srun ... < /dev/null"
                yield Problem(command.line, what, cure)
                return


def body_of(script: Script, head: Command) -> Iterator[Command]:
    """The commands of a loop below its condition."""
    at = next(n for n, each in enumerate(script.commands) if each is head)
    inside = (*head.blocks, "loop")
    for command in script.commands[at + 1 :]:
        if command.blocks[: len(inside)] == inside:
            yield command
        elif not command.tested and not command.captured:
            return


def swallows(command: Command) -> bool:
    words = [word.value for word in command.words[1:]]
    own_input = any(sign.startswith("<") for sign, _ in command.redirects)
    piped = command.follows in ("|", "|&") or command.heredocs or own_input
    if base(command.name) not in TAKES_ALL or piped or command.background:
        return False
    if base(command.name) == "srun":
        return not any(word.startswith(("--input", "-i")) for word in words)
    return not any(READS_NOTHING.fullmatch(word) for word in words)


@TABLE.add("DT316", ERROR, pages.END_THE_JOB)
def never_gets_further(script: Script) -> Iterator[Problem]:
    """A command that never returns, in front of the training

    ray start --block and monitors run until somebody ends them. Without & the job
    script waits there, and nothing below it starts.

    Cure:
        End the command with &.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        srun --overlap ray start --head --port=6379 --block
        python tune.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        srun --overlap ray start --head --port=6379 --block &
        python tune.py
    """
    for command in script.commands:
        around = {"function", "if", "case", "subshell"} & set(command.blocks)
        waits = not command.background and not command.captured and not around
        joined = command.follows or command.ends in ("&&", "||", "|", "|&")
        if not waits or joined or not (blocks_in_ray(command) or never_ends(command)):
            continue
        below = [e for e in script.launches if e.command.line > command.last_line]
        below = [e for e in below if known(e) and "function" not in e.command.blocks]
        if below:
            shown = whole_words([word.raw for word in command.words], SHOWN)
            line = below[0].line
            what = f"`{shown}` never returns, so line {line} never runs"
            yield Problem(command.line, what, "end the command with &")
            return


def blocks_in_ray(command: Command) -> bool:
    """``ray start --block``, maybe by srun."""
    texts = texts_without_srun(command)
    starts = [base(text) for text in texts[:1]] + texts[1:2] == ["ray", "start"]
    return starts and "--block" in texts
