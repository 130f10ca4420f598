"""Rules about statuses that end a job too early, or are lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .launches import LAUNCHERS, Launch
from .rule import ERROR, WARNING, Problem, Table
from .rules_ends import SCHEDULED, known, looks_afterwards, started_by
from .script import Script
from .shell import Command
from .variables import reads_it_all

TABLE = Table()
# What turns every status into 0.
SUCCEEDS = {"true", ":", "echo", "printf", "date", "sleep"}


@TABLE.add("DT312", ERROR, pages.END_THE_JOB)
def read_ends_the_job(script: Script) -> Iterator[Problem]:
    """read -d '' under set -e

    read looks for the delimiter, here a zero byte, finds the end of the text instead,
    and returns 1. Under set -e the job ends there, without a message.

    Cure:
        read ... || true, or VARIABLE=$(cat <<'EOF' ... EOF).

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        set -euo pipefail
        read -r -d '' COMMAND <<'EOF'
        python train.py
        EOF
        srun bash -c "$COMMAND"

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        set -euo pipefail
        read -r -d '' COMMAND <<'EOF' || true
        python train.py
        EOF
        srun bash -c "$COMMAND"
    """
    for command in script.commands:
        strings = [sign for sign, _ in command.redirects if sign == "<<<"]
        text_without_zero = command.heredocs or strings
        looked_at = command.tested or command.ends in ("&&", "||", "|", "|&")
        if looked_at or command.captured or command.background:
            continue
        reads = reads_it_all(command) and text_without_zero
        if reads and stops_here(script, command):
            shown = " ".join(word.raw for word in command.words)
            what = (
                f"`{shown}` returns 1 at the end of the text, and set -e ends the job"
            )
            yield Problem(command.line, what, f"{shown} <<... || true")


def stops_here(script: Script, command: Command) -> bool:
    """``set -e`` holds where the command is run."""
    first = script.lines[0]
    stops = first.startswith("#!") and bool(re.search(r"\s-\w*e", first))
    for each in script.commands:
        if each is command:
            return stops
        elsewhere = {"function", "subshell"} & set(each.blocks)
        if each.name != "set" or each.in_branch or elsewhere:
            continue
        options = " ".join(word.value for word in each.words[1:])
        if re.search(r"(^|\s)(-[a-z]*e[a-z]*\b|-[a-z]*o errexit)", options):
            stops = True
        if re.search(r"(^|\s)(\+[a-z]*e[a-z]*\b|\+o errexit)", options):
            stops = False
    return stops


@TABLE.add("DT313", WARNING, pages.END_THE_JOB)
def failure_turned_into_success(script: Script) -> Iterator[Problem]:
    """A failure of the launch is turned into a success

    true and echo succeed, so after `|| true` the script continues as if the training
    had worked, and the job is reported as COMPLETED.

    Cure:
        COMMAND || status=$?, and at the end: exit $status.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        srun python train.py || true

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        status=0
        srun python train.py || status=$?
        exit $status
    """
    if script.dialect not in SCHEDULED:
        return
    launches = [each for each in script.launches if known(each)]
    for launch in launches:
        trains = launch.kind in LAUNCHERS or len(launches) == 1
        last = end_of_alternatives(script, launch)
        if not trains or launch.in_loop or last is None:
            continue
        if last.name in SUCCEEDS and not looks_afterwards(script, last):
            shown = " ".join(word.raw for word in last.words)[:40]
            name = started_by(launch)
            what = f"after a failure of `{name}`, `|| {shown}` makes the status 0"
            yield Problem(launch.line, what, f"{name} ... || status=$?")
            return


def end_of_alternatives(script: Script, launch: Launch) -> Command | None:
    """The last command of ``LAUNCH && ... || LAST``; None without a ``||``."""
    own = [each for each in script.commands if not each.captured]
    at = next((n for n, each in enumerate(own) if each is launch.command), len(own))
    last, alternative = None, False
    for number in range(at, len(own) - 1):
        command, following = own[number], own[number + 1]
        if command.ends not in ("&&", "||") or following.blocks != command.blocks:
            break
        alternative = alternative or command.ends == "||"
        last = following
    return last if alternative else None
