"""Rules about how a job ends: statuses, signals and the time limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from . import pages
from .launches import (
    LAUNCHERS,
    Launch,
    base,
    pairs,
    texts_without_srun,
)
from .rule import ERROR, WARNING, Problem, Table
from .script import Script
from .shell import Command
from .variables import REFERENCE

TABLE = Table()
SCHEDULED = ("slurm", "pbs")
# Commands that succeed, or whose failure nobody would report.
CLOSING = {
    "echo",
    "printf",
    "date",
    "true",
    ":",
    "deactivate",
    "module",
    "conda",
    "sleep",
    "ls",
    "exit",
    "set",
    "rm",
    "mkdir",
    "touch",
    "seff",
    "nvidia-smi",
    "hostname",
    "unset",
    "cat",
    "done",
    "times",
    "pwd",
    "squeue",
    "sacct",
    "df",
}
OVERWRITES = re.compile(r"--overwrite[-_]output[-_]dir(=true)?", re.I)
LONG = 12 * 3600  # seconds
WIDEST = 60  # letters of a command line that is shown, in whole words
SAVES = re.compile(
    r"resum|restart|ckpt|checkpoint|snapshot|reload|load|continu|sav(e|ing)|output|"
    r"out[-_]?dir|log[-_]?dir|run[-_]?dir|lightning|recover|epoch_?start",
    re.I,
)
AGAIN = re.compile(r"\bscontrol\s+requeue\b|\bsbatch\b.*(?:\$0|\$\{0\}|BASH_SOURCE)")
WAIT_FOR_EACH = (
    'pids+=($!) after each &, and at the end: for pid in "${pids[@]}"; do '
    'wait "$pid" || exit $?; done'
)
# What runs until somebody ends it.
MONITORS = {
    "nvidia-smi": re.compile(r" (dmon|pmon|-l\d*|-lms|--loop(-ms)?(=\S+)?) "),
    "dcgmi": re.compile(r" dmon "),
    "tail": re.compile(r" (-\w*[fF]|--follow\S*) (?!.*--pid)"),
    "watch": re.compile(r"^(?!.* (-\w*[gqe]|--chgexit|--errexit)\b)"),
}
COUNT = re.compile(r"-c\d*$|--count\b")
KILLS = ("kill", "pkill", "killall", "scancel", "disown")
ENDS = ("kill", "pkill", "killall")
KEEPS_RUNNING = re.compile(r"(^|\s)-(s\s*)?(SIG)?(USR|CONT|STOP|0\b|1[028]\b)")
WAIT_TWICE = "wait $step || wait $step"  # a trap ends the first one
ELSEWHERE = re.compile(
    r"\.(ya?ml|json|toml|cfg|ini|sh|py)\b|config|conf|^\w[\w.]*=|^@", re.I
)


def known(launch: Launch) -> bool:
    return launch.kind in (*LAUNCHERS, "python")


def started_by(launch: Launch) -> str:
    """The command as the script has it: ``blaunch``, where the starter is remote."""
    return launch.started_with or launch.name


def stops_at_errors(script: Script) -> bool:
    """``set -e`` in one of its forms."""
    first = script.lines[0]
    if first.startswith("#!") and re.search(r"\s-\w*e", first):
        return True
    return bool(
        re.search(r"(?m)^\s*set\s+(-\w+\s+)*(-\w*e\w*\b|-o errexit)", script.text)
        or re.search(r"(?m)^\s*trap\s.*\bERR\b", script.text)
    )


def after(script: Script, command: Command) -> list[Command]:
    """The commands behind one, without those inside of $(...) and of functions."""
    at = next(n for n, each in enumerate(script.commands) if each is command)
    rest = script.commands[at + 1 :]
    return [
        each for each in rest if not each.captured and "function" not in each.blocks
    ]


def looks_afterwards(script: Script, command: Command) -> bool:
    """The script finds out in another way how the tasks have ended."""
    behind = after(script, command)
    looks = any(each.name in ("[", "[[", "test", "grep", "return") for each in behind)
    decides = any(
        each.name == "exit" and "$((" in "".join(word.value for word in each.words)
        for each in behind
    )
    return looks or decides or any(each.tested for each in behind)


@TABLE.add("DT301", WARNING, pages.END_THE_JOB)
def no_kill_on_bad_exit(script: Script) -> Iterator[Problem]:
    """srun waits for the other ranks when one has failed

    By default srun lets the other tasks run. If one of them hangs, it keeps all nodes
    of the job busy until the time limit.

    Cure:
        srun --kill-on-bad-exit=1

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun --kill-on-bad-exit=1 python train.py
    """
    if script.uses("SLURM_KILL_BAD_EXIT", "SLURM_WAIT"):
        return
    for launch in script.launches:
        options = launch.starter_options
        told = {"kill-on-bad-exit", "$"} & set(options)
        limited = options.get("wait", "0") != "0"  # seconds after the first has ended
        tasks = script.step(launch).tasks or 1
        if (
            launch.starter == "srun"
            and known(launch)
            and tasks > 1
            and not told
            and not limited
        ):
            what = f"when one of the {tasks} tasks fails, srun lets the others run on"
            yield Problem(launch.command.line, what, "srun --kill-on-bad-exit=1 ...")
            return


@TABLE.add("DT302", WARNING, pages.END_THE_JOB)
def status_lost_in_a_pipe(script: Script) -> Iterator[Problem]:
    """The status is lost in a pipe

    The status of a pipe is that of its last command, and tee always succeeds. The job
    is reported as COMPLETED when the training has failed.

    Cure:
        set -o pipefail

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        srun python train.py | tee log.txt

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        set -o pipefail
        srun python train.py | tee log.txt
    """
    if script.dialect not in SCHEDULED or script.uses("pipefail", "PIPESTATUS"):
        return
    for launch in script.launches:
        piped = launch.command.ends in ("|", "|&") and not launch.command.captured
        if piped and known(launch) and launch.starter != "pbsdsh":
            behind = [each.name for each in after(script, launch.command) if each.name]
            reader = behind[0] if behind else "the reader"
            what = f"the status of this pipe is that of `{reader}`"
            yield Problem(launch.line, what, "set -o pipefail   (above this line)")
            return


@TABLE.add("DT303", ERROR, pages.END_THE_JOB)
def not_waited_for(script: Script) -> Iterator[Problem]:
    """A launch in the background that nothing waits for

    A job ends with its script. What the script has left in the background is killed
    then.

    Cure:
        wait $!, or leave the & out.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        srun python train.py &
        echo started

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        srun python train.py &
        wait $!
    """
    if script.dialect not in SCHEDULED:
        return
    waits = {"wait", "fg", "tail", "while"}
    if any(each.name in waits or each.tested for each in script.commands):
        return
    for launch in script.launches:
        command = launch.command
        here = "function" not in command.blocks and not command.captured
        if not command.background or not here:
            continue
        behind = [each for each in after(script, command) if each.name]
        if all(each.name in CLOSING for each in behind):
            name = started_by(launch)
            what = f"the script ends while `{name}` runs in the background"
            cure = "wait $!   (as the last line)"
            if leaves_several(script):
                cure = WAIT_FOR_EACH
            yield Problem(launch.line, what, cure)
            return


@TABLE.add("DT304", WARNING, pages.END_THE_JOB)
def status_not_passed_on(script: Script) -> Iterator[Problem]:
    """The status of the launch isn't the job's

    A job's status is that of the last command of its script. After a failed training,
    an echo turns it into COMPLETED, and jobs that depend on it start.

    Cure:
        set -euo pipefail at the top, or exit with the launcher's status.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        srun python train.py
        echo "done"

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        set -e
        srun python train.py
        echo "done"
    """
    if script.dialect not in SCHEDULED or stops_at_errors(script):
        return
    launches = [each for each in script.launches if known(each)]
    launches = [each for each in launches if not each.command.captured]
    if not launches or launches[-1].starter == "pbsdsh":
        return
    last = launches[-1]
    command = last.command
    if command.ends not in ("\n", ";") or command.tested or command.blocks:
        return
    behind = after(script, command)
    if not behind or not all(map(closes, behind)):
        return
    closing = behind[-1]
    if exits_with_a_variable(closing) or ends_by_a_trap(script):
        return
    words = closing.words or [each.word for each in closing.assignments]
    shown = " ".join(word.raw for word in words)
    launched = started_by(last)
    what = f"the job ends with the status of `{shown[:50]}`, not of `{launched}`"
    yield Problem(closing.line, what, "set -euo pipefail   (above the launch)")


def closes(command: Command) -> bool:
    """It succeeds, or ends what ran beside the launch."""
    bare_wait = command.name == "wait" and len(command.words) == 1
    return not command.words or command.name in CLOSING | {"kill"} or bare_wait


def exits_with_a_variable(command: Command) -> bool:
    status = "".join(word.value for word in command.words[1:])
    return command.name == "exit" and "$" in status


def ends_by_a_trap(script: Script) -> bool:
    """A trap may end the job with the status that it has kept."""
    trapped = any(
        each.name == "trap" and each.words[-1].value in ("EXIT", "0")
        for each in script.commands
    )
    return trapped and any(map(exits_with_a_variable, script.commands))


@TABLE.add("DT305", WARNING, pages.PBS_EVERY_HOST)
def wait_returns_zero(script: Script) -> Iterator[Problem]:
    """wait without a number

    wait alone returns 0, whatever became of the processes it waited for.

    Cure:
        wait $!, or wait -n in a loop with || exit.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        srun python train.py &
        wait

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        srun python train.py &
        wait $!
    """
    wait = last_bare_wait(script)
    if wait is None or looks_afterwards(script, wait):
        return
    if monitor_of(script, wait) is not None:
        return  # DT315 speaks of it
    for launch in script.launches:
        behind = after(script, launch.command)
        left = launch.command.background and known(launch)
        if left and wait in behind and not is_killed(script, launch):
            what = "`wait` returns 0 even if the launch in the background has failed"
            yield Problem(wait.line, what, cure_of_wait(script, launch))
            return


def last_bare_wait(script: Script) -> Command | None:
    """The last ``wait`` of a job that waits for everything, and for nothing by name."""
    waits = [each for each in script.commands if each.name == "wait"]
    with_number = any(len(each.words) > 1 for each in waits)
    if script.dialect not in SCHEDULED or with_number or not waits:
        return None
    return waits[-1]


def monitor_of(script: Script, wait: Command) -> Command | None:
    """A command in the background that never ends, and that ``wait`` waits for."""
    trains = any(known(launch) for launch in script.launches)
    if not trains or any(each.name in KILLS for each in script.commands):
        return None
    for command, following in pairwise([*script.commands, Command(0)]):
        if command is wait:
            return None
        here = not command.captured and "function" not in command.blocks
        elsewhere = "subshell" in command.blocks and command.ends == "&"  # (... &)
        stays = command.background and not elsewhere and following.name != "head"
        if here and stays and never_ends(command):
            return command
        endless = command.tested and command.name in ("true", ":")
        loops = following.in_loop and following.background
        if here and endless and loops and not leaves_a_loop(script):
            return following
    return None


def leaves_a_loop(script: Script) -> bool:
    names = {each.name for each in script.commands}
    return bool(names & {"break", "exit", "return"})


def never_ends(command: Command) -> bool:
    """nvidia-smi dmon, dcgmi dmon, tail -f, watch: unless told how often."""
    texts = texts_without_srun(command)
    looks = MONITORS.get(base(texts[0])) if texts else None
    if looks is None or any(COUNT.match(each) for each in texts):
        return False
    return bool(looks.search(" ".join(["", *texts[1:], ""])))


def cure_of_wait(script: Script, launch: Launch) -> str:
    """The line that waits for the launch, and for nothing else."""
    if leaves_several(script):
        return WAIT_FOR_EACH
    if leaves_another(script, launch):
        line = launch.command.last_line
        return f'pid=$! after line {line}, and here: wait "$pid"'
    return "wait $!"


def leaves_another(script: Script, launch: Launch) -> bool:
    """A later command in the background, whose number $! is then."""
    return any(each.background for each in after(script, launch.command))


def is_killed(script: Script, launch: Launch) -> bool:
    """The job script itself ends a launch that it has left in the background."""
    number = number_of(script, launch.command)
    for each in after(script, launch.command):
        words = " ".join(word.value for word in each.words[1:])
        if each.name not in ENDS or KEEPS_RUNNING.search(words):
            continue
        own = number and re.search(rf"\$\{{?{number}\b", words)
        if own or each.name != "kill" or not REFERENCE.search(words):
            return True  # by its number, or by a name or a list that may hold it
    return False


def number_of(script: Script, command: Command) -> str | None:
    """The variable that keeps the ``$!`` of a command."""
    for each in after(script, command):
        for assignment in each.assignments:
            words = assignment.word.array or [assignment.word]
            if any(word.value.endswith("$!") for word in words):
                return assignment.name
        if each.background:
            return None
    return None


def leaves_several(script: Script) -> bool:
    """More than one launch runs in the background, so $! is the last of them."""
    left = [each for each in script.launches if each.command.background]
    left = [each for each in left if not is_killed(script, each)]
    return len(left) > 1 or any(each.in_loop for each in left)


def signal_of(script: Script) -> tuple[str, str, int]:
    """Flags and name of ``--signal=B:USR1@60``, and its line."""
    text = script.resources.value("signal")
    flags, colon, rest = text.rpartition(":")
    name = rest.split("@")[0].removeprefix("SIG")
    names = {"10": "USR1", "12": "USR2", "15": "TERM", "2": "INT"}
    return (
        flags if colon else "",
        names.get(name, name),
        script.resources.line("signal"),
    )


def may_be_in_background(script: Script, launch: Launch) -> bool:
    """It's there, or in a function that the script may call there."""
    if "function" in launch.command.blocks:
        return any(each.background for each in script.commands)
    return launch.command.background


def replaces_the_shell(command: Command) -> bool:
    return command.name == "exec"


@TABLE.add("DT306", ERROR, pages.LONGER)
def signal_never_arrives(script: Script) -> Iterator[Problem]:
    """The signal before the time limit never reaches Python

    With B: Slurm signals only the job script's shell, which passes nothing on and
    runs no trap while a command runs in the foreground. Without B: it signals only
    what srun has started.

    Cure:
        srun ... & step=$!; trap 'kill -USR1 $step' USR1; wait $step || wait $step (the
        signal ends the first wait, so there are two); or no B:, and srun python.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --signal=B:USR1@120
        trap 'echo time is up' USR1
        srun python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --signal=B:USR1@120
        srun python train.py &
        step=$!
        trap 'kill -USR1 $step' USR1
        wait $step || wait $step
    """
    if script.dialect != "slurm" or "signal" not in script.resources.options:
        return
    flags, name, line = signal_of(script)
    launches = [each for each in script.launches if known(each)]
    if not launches or name in ("CONT", "0", "KILL"):
        return
    if any(replaces_the_shell(each.command) for each in launches):
        return
    foreground = [each for each in launches if not may_be_in_background(script, each)]
    trapped = any(each.name == "trap" for each in script.commands)
    if "B" in flags and not trapped:
        what = f"SIG{name} ends the job script's shell: it has no trap"
        yield Problem(line, what, cure_with_a_trap(script, launches[0], name))
    elif "B" in flags and len(foreground) == len(launches):
        first = foreground[0]
        name = started_by(first)
        what = f"the trap runs only after `{name}` of line {first.line} has ended"
        yield Problem(line, what, f"{name} ... & step=$!; {WAIT_TWICE}")
    elif "B" not in flags and not any(each.starter for each in script.launches):
        what = (
            f"`--signal={script.resources.value('signal')}` reaches only steps of srun"
        )
        yield Problem(line, what, f"srun {launches[0].tokens[0].text} ...")


def cure_with_a_trap(script: Script, launch: Launch, name: str) -> str:
    """Hand the signal on; torchrun would die of some that its ranks may know."""
    passed = name
    if launch.kind == "torchrun" and name in ("USR1", "USR2"):
        passed = "TERM"
    trap = f"trap 'kill -{passed} $step' {name}"
    cure = f"{started_by(launch)} ... & step=$!; {trap}; {WAIT_TWICE}"
    if launch.starter == "srun" and launch.kind == "python":
        value = script.resources.value("signal").rpartition(":")[2]
        cure = f"#SBATCH --signal={value}, without B:; or {cure}"
    return cure


@TABLE.add("DT307", ERROR, pages.LONGER)
def torchrun_dies_of_it(script: Script) -> Iterator[Problem]:
    """SIGUSR1 ends torchrun

    torchrun passes on TERM, INT, HUP and QUIT. It has no handler for USR1 and USR2,
    so either of them ends it, and no rank saves anything.

    Cure:
        --signal=TERM@120; or torchrun --signals-to-handle=SIGTERM,SIGUSR1 (torch 2.9
        or newer).

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --signal=USR1@120
        srun torchrun --standalone --nproc-per-node=4 train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --signal=TERM@120
        srun torchrun --standalone --nproc-per-node=4 train.py
    """
    if script.dialect != "slurm" or "signal" not in script.resources.options:
        return
    flags, name, line = signal_of(script)
    for launch in script.launches:
        told = "signals-to-handle" in launch.options or "$" in launch.options
        signaled = "B" not in flags and name in ("USR1", "USR2")
        by_srun = launch.kind == "torchrun" and launch.starter == "srun"
        if signaled and by_srun and not told:
            what = f"SIG{name} ends torchrun itself (line {launch.line})"
            yield Problem(line, what, "#SBATCH --signal=TERM@120")
            return


def arguments_are_visible(launch: Launch) -> bool:
    """All arguments of the program are in the script: no file, and no variable."""
    arguments = launch.program[1:]
    hidden = any("$" in text or ELSEWHERE.search(text) for text in arguments)
    return known(launch) and bool(arguments) and not hidden


def saves_nothing(script: Script) -> Launch | None:
    """A launch whose words, like all of the script's, say nothing of saving."""
    body = "\n".join(x for x in script.lines if not x.lstrip().startswith("#"))
    launches = [each for each in script.launches if known(each)]
    if SAVES.search(body) or not launches:
        return None
    return launches[-1] if all(map(arguments_are_visible, launches)) else None


def line_that_starts_again(script: Script) -> int | None:
    """The directive or the command by which the same job starts once more."""
    asked = script.resources
    if script.dialect == "pbs" and asked.value("r") == "y":
        return asked.line("r")
    if script.dialect != "slurm":
        return None
    if "requeue" in asked.options:
        return asked.line("requeue")
    for number, line in enumerate(script.lines, 1):
        comment = line.lstrip().startswith("#") or number in script.embedded
        if AGAIN.search(line) and not comment:
            return number
    return None


def requeued_by_lightning(script: Script) -> bool:
    """Lightning saves, requeues the job and resumes at the signal from Slurm."""
    flags, name, _ = signal_of(script)
    words = " ".join(word for launch in script.launches for word in launch.program)
    trainer = re.search(r"--?(trainer\.)?(devices|num_nodes)\b", words)
    return name == "USR1" and "B" not in flags and bool(trainer)


def option_that_overwrites(script: Script) -> str | None:
    """transformers looks for no checkpoint then, unless it's told which one."""
    for launch in script.launches:
        resumes = any("resume" in word for word in launch.program)
        for word, following in pairs(launch.program):
            off = following.lower() == "false"
            if OVERWRITES.fullmatch(word) and not off and not resumes:
                return word
    return None


@TABLE.add("DT308", WARNING, pages.LONGER)
def requeue_without_resume(script: Script) -> Iterator[Problem]:
    """A job that may start again, and a program without a word of resuming

    A requeued job runs its script from the first line. Unless the program loads what
    it saved, it starts training from scratch.

    Cure:
        Save to a file that is named after the job, and load it if it's there.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --requeue
        srun python train.py --epochs 90

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --requeue
        srun python train.py --epochs 90 --resume snapshots/job$SLURM_JOB_ID.pt
    """
    line = line_that_starts_again(script)
    if line is None or requeued_by_lightning(script):
        return
    option = option_that_overwrites(script)
    if option:
        what = f"when the job starts again, `{option}` makes it train from scratch"
        yield Problem(line, what, f"remove `{option}`, and resume from a checkpoint")
        return
    launch = saves_nothing(script)
    if launch is not None:
        what = (
            f"nothing tells `{launch.program[0]}` to resume when the job starts again"
        )
        yield Problem(line, what)


@TABLE.add("DT309", WARNING, pages.CHECKPOINTS)
def long_without_saving(script: Script) -> Iterator[Problem]:
    """A long job without a word of saving

    At the time limit, or when a node fails, all that isn't on disk is lost.

    Cure:
        Save a snapshot every hour or so, and resume from it.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --time=2-00:00:00
        srun python train.py --epochs 90

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --time=2-00:00:00
        srun python train.py --epochs 90 --checkpoint-every 1
    """
    seconds = script.resources.seconds
    name = "time" if script.dialect == "slurm" else "l walltime"
    if seconds is None or seconds < LONG or "requeue" in script.resources.options:
        return
    launch = saves_nothing(script)
    if launch is not None:
        hours = seconds // 3600
        shown = whole_words(launch.program, WIDEST)
        what = f"{hours} hours, and no word of saving: `{shown}`"
        yield Problem(script.resources.line(name), what)


def whole_words(words: list[str], widest: int) -> str:
    """As many words of a command line as fit, at least one."""
    shown = words[0]
    for word in words[1:]:
        if len(shown) + len(word) + 1 > widest:
            return f"{shown} ..."
        shown = f"{shown} {word}"
    return shown


@TABLE.add("DT310", WARNING, pages.PBS_COPIED)
def pbsdsh_succeeds(script: Script) -> Iterator[Problem]:
    """pbsdsh always ends with status 0

    pbsdsh prints `exit status 1` of a task that has failed, and its own status is 0.
    The job counts as a success.

    Cure:
        Keep its output and look for "exit status" in it, or use pbs_tmrsh (with Torque:
        ssh).

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        #PBS -l place=scatter
        pbsdsh -- bash -lc 'cd $PBS_O_WORKDIR && python train.py'

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=8:mpiprocs=1
        #PBS -l place=scatter
        said=$(pbsdsh -- bash -lc 'cd $PBS_O_WORKDIR && python train.py')
        echo "$said"
        [[ $said != *"exit status"* ]]
    """
    if script.dialect != "pbs" or "exit status" in script.text:
        return
    for launch in script.launches:
        command = launch.command
        if looks_afterwards(script, command):
            continue
        if launch.starter == "pbsdsh" and not command.captured and command.ends != "|":
            what = "pbsdsh ends with status 0 even if every task has failed"
            cure = (
                "pbs_tmrsh HOST COMMAND ... &, once for each host, and wait $! for each"
            )
            if script.is_torque:
                cure = (
                    "ssh HOST COMMAND ... &, once for each host, and wait $! for each; "
                    "or let each task write its status to a file"
                )
            yield Problem(command.line, what, cure)
            return


@TABLE.add("DT311", WARNING, pages.END_THE_JOB)
def status_is_turned_over(script: Script) -> Iterator[Problem]:
    """$? after ! is always 0

    `!` inverts a status, so a failure becomes 0. After `if ! COMMAND; then`, $? is
    therefore 0, and `exit $?` ends the job as a success.

    Cure:
        COMMAND || status=$?, and then look at $status.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        if ! srun --kill-on-bad-exit python train.py; then
          exit $?
        fi

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        status=0
        srun --kill-on-bad-exit python train.py || status=$?
        if ((status)); then
          exit $status
        fi
    """
    for command, following in pairwise(script.commands):
        opened = following.blocks[len(command.blocks) :] == ("if",)
        continues = command.ends == "&&" or opened
        if command.negated and continues and asks_for_status(following):
            shown = " ".join(word.raw for word in command.words)[:40]
            what = f"$? is 0 here: `!` has turned the status of `{shown}` over"
            yield Problem(following.line, what, f"{shown} || status=$?")


def asks_for_status(command: Command) -> bool:
    """Whether it reads ``$?``."""
    words = [*command.words, *(each.word for each in command.assignments)]
    return any("$?" in word.value for word in words)
