"""Rules about statuses that end a job too early, or are lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .launches import LAUNCHERS, Launch, base
from .rule import ERROR, WARNING, Problem, Table
from .rules_ends import (
    CLOSING,
    SCHEDULED,
    cure_of_wait,
    known,
    last_bare_wait,
    looks_afterwards,
    monitor_of,
    started_by,
    whole_words,
)
from .script import Script
from .shell import Command
from .variables import reads_it_all

TABLE = Table()
SHOWN = 40  # letters of a command
LIMITS = re.compile(
    r"\btimeout\b|time|hours|minutes|duration|steps|epochs?\b|iters?\b|wall", re.I
)
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


@TABLE.add("DT314", WARNING, pages.END_THE_JOB)
def status_of_the_last_try(script: Script) -> Iterator[Problem]:
    """A loop of tries that ends like a success

    The status of a loop is that of its last command. After the last failure that is a
    sleep or an echo, so the job is reported as COMPLETED.

    Cure:
        status=1 above the loop, COMMAND && { status=0; break; } in it, and exit $status
        below it.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        for try in 1 2 3; do
          srun python train.py && break
          sleep 60
        done

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        status=1
        for try in 1 2 3; do
          srun python train.py && { status=0; break; }
          sleep 60
        done
        exit $status
    """
    if script.dialect not in SCHEDULED:
        return
    own = [each for each in script.commands if not each.captured]
    for launch in script.launches:
        command = launch.command
        if command.captured or not command.in_loop or not known(launch):
            continue
        if "function" in command.blocks or not is_a_try(own, command):
            continue
        at = next(n for n, each in enumerate(own) if each is command)
        behind = own[at + 2 :]
        if behind and behind[0].in_loop and all(map(looks_at_nothing, behind)):
            name = started_by(launch)
            end = (behind[-1].words or [a.word for a in behind[-1].assignments])[0]
            what = (
                f"after the last failure of `{name}`, the status is that of `{end.raw}`"
            )
            cure = (
                f"status=1 above the loop, `{name} ... && {{ status=0; break; }}` in "
                "it, and exit $status at the end"
            )
            yield Problem(command.line, what, cure)
            return


def is_a_try(own: list[Command], command: Command) -> bool:
    """``COMMAND && break``, or ``if COMMAND; then break``, in a loop that may end."""
    at = next(n for n, each in enumerate(own) if each is command)
    leaves = at + 1 < len(own) and own[at + 1].name == "break"
    opened = leaves and own[at + 1].blocks == (*command.blocks, "if")
    tested = command.tested and not command.negated and opened
    if not leaves or not (command.ends == "&&" or tested):
        return False
    around = command.blocks[: command.blocks.index("loop")]
    heads = [each for each in own[:at] if each.blocks == around]
    head = heads[-1] if heads else command
    counted = head.tested and head.name not in ("true", ":")
    return head.name == "for" or counted


def looks_at_nothing(command: Command) -> bool:
    """It succeeds whatever became of the launch, and passes no status on."""
    return not command.words or command.name in CLOSING - {"exit", "set"}


@TABLE.add("DT315", ERROR, pages.END_THE_JOB)
def wait_for_a_monitor(script: Script) -> Iterator[Problem]:
    """wait for a command that never ends

    wait alone waits for everything in the background. A monitor such as nvidia-smi
    dmon never ends, so the job keeps its nodes until the time limit.

    Cure:
        Wait for the training only: pid=$! below it, and wait "$pid".

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        nvidia-smi dmon -d 30 > gpus.log &
        srun python train.py &
        wait

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        nvidia-smi dmon -d 30 > gpus.log &
        srun python train.py &
        wait $!
    """
    wait = last_bare_wait(script)
    if wait is None:
        return
    monitor = monitor_of(script, wait)
    here = not wait.captured and "function" not in wait.blocks
    if monitor is None or not here or wait.background:
        return
    shown = whole_words([word.raw for word in monitor.words], SHOWN)
    what = f"`wait` waits for `{shown}`, which never ends"
    left = [each for each in script.launches if each.command.background]
    left = [each for each in left if known(each)]
    cure = cure_of_wait(script, left[-1]) if left else "remove `wait`"
    yield Problem(wait.line, what, cure)


@TABLE.add("DT317", WARNING, pages.LONGER)
def next_job_never_submitted(script: Script) -> Iterator[Problem]:
    """The next job of a chain, submitted after the training

    At the time limit Slurm ends the job script as well. If the program is still
    training then, no line below it runs, and the chain ends after its first job.

    Cure:
        sbatch --dependency=afterany:$SLURM_JOB_ID "$0" above the training.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --time=8:00:00
        srun python train.py --resume
        sbatch --dependency=afterok:$SLURM_JOB_ID $0

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --time=8:00:00
        set -e
        sbatch --dependency=afterany:$SLURM_JOB_ID $0
        srun python train.py --resume
    """
    limited = "signal" in script.resources.options or script.resources.seconds is None
    if script.dialect != "slurm" or limited:
        return
    for command in script.commands:
        if (
            not submits_itself(script, command)
            or command.blocks
            or command.in_branch
            or command.captured
        ):
            continue
        before = [e for e in script.launches if e.command.line < command.line]
        before = [e for e in before if known(e) and not ends_in_time(e)]
        if before and not before[-1].command.background:
            name, line = started_by(before[-1]), before[-1].line
            what = f"the script ends with `{name}` of line {line} at the time limit"
            cure = 'sbatch --dependency=afterany:$SLURM_JOB_ID "$0"   (above that line)'
            yield Problem(command.line, what, cure)
            return


def submits_itself(script: Script, command: Command) -> bool:
    """``sbatch $0``, or by the name of the file."""
    words = [word.value for word in command.words[1:]]
    again = re.search(r"\$\{?0\b|BASH_SOURCE", " ".join(words))
    name = base(script.name)
    by_name = "." in name and any(base(word) == name for word in words)
    return command.name == "sbatch" and bool(again or by_name)


def ends_in_time(launch: Launch) -> bool:
    """Something on its line limits how long it trains."""
    words = " ".join(word.value for word in launch.command.words)
    return bool(LIMITS.search(words)) or launch.command.ends in ("&&", "||")


@TABLE.add("DT318", ERROR, pages.END_THE_JOB)
def trap_that_exec_removes(script: Script) -> Iterator[Problem]:
    """exec under a trap

    exec puts the program in the place of the shell. There's no shell left that could
    run the trap at the end, so its clean-up or its copies never happen.

    Cure:
        Leave exec out.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        trap 'cp -r /tmp/out "$HOME"' EXIT
        exec srun python train.py --out /tmp/out

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        trap 'cp -r /tmp/out "$HOME"' EXIT
        srun python train.py --out /tmp/out
    """
    trapped: int | None = None
    for command in script.commands:
        words = [word.value for word in command.words]
        elsewhere = {"function", "subshell"} & set(command.blocks)
        if command.captured or elsewhere:
            continue
        if command.name == "trap" and words[-1] in ("EXIT", "0"):
            trapped = None if words[1:2] in (["-"], [""]) else command.line
        if command.name == "exec" and len(words) > 1 and trapped:
            shown = whole_words(words[1:], SHOWN)
            what = f"`exec` removes the trap of line {trapped}: it never runs"
            yield Problem(command.line, what, f"{shown}, without exec")
            return
