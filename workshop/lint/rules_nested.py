"""Rules about steps beside each other, and about launchers inside of launchers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import LOOKS_ONLY, times
from .launches import LAUNCHERS, PYTHON, STARTERS, Launch, base
from .rule import ERROR, WARNING, Problem, Table
from .script import Script, quotient
from .shell import Command

TABLE = Table()
STARTS_MORE = {name for name, kind in STARTERS.items() if kind in ("srun", "mpirun")}
ON_THIS_HOST = re.compile(r"localhost|\$\(hostname|\$HOSTNAME|SLURMD_NODENAME")
ONE_TASK = re.compile(r"\s(-n\s*1|-np\s*1|--ntasks[= ]1)\b")
# A step with one of these takes only what it asks for, or shares.
APART = {"exact", "exclusive", "cpus-per-task", "threads-per-core", "overlap"}
UNKNOWN = {"$", ":", "oversubscribe", "s", "jobid", "nodelist", "relative"}
GPUS = {"gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"}
MEMORY = {"mem", "mem-per-cpu", "mem-per-gpu"}


@TABLE.add("DT136", ERROR, pages.MPIRUN)
def launcher_in_every_task(script: Script) -> Iterator[Problem]:
    """srun and mpirun inside of each other

    Both start the tasks of the whole job. One inside the other starts them once for
    each task of the outer one.

    Cure:
        Keep one of them: srun python train.py, or mpirun -np N python train.py.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K mpirun -np 8 python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=4
        srun -K python train.py
    """
    for launch in script.launches:
        tasks = script.step(launch).tasks
        if launch.starter not in ("srun", "mpirun") or not tasks or tasks < 2:
            continue
        inner = starter_inside(launch)
        if inner is not None:
            outer = launch.started_with
            what = (
                f"{outer} starts {times(tasks, 'task')}, and each of them runs "
                f"`{inner}`, which starts all again"
            )
            cure = f"leave `{inner}` out, or start it without {outer}"
            yield Problem(launch.line, what, cure)


def starter_inside(launch: Launch) -> str | None:
    """``mpirun`` behind the options of srun, or in the shell of each task."""
    texts = [token.text for token in launch.tokens]
    for at, text in enumerate(texts):
        if PYTHON.fullmatch(text) or base(text) in LAUNCHERS:
            break
        is_value = at > 0 and texts[at - 1].startswith("-")
        if base(text) in STARTS_MORE and not is_value:
            rest = " ".join(["", *texts[at + 1 :]])
            return None if stays_here(rest) else base(text)
    for command in launch.inner:
        words = " ".join(["", *(word.value for word in command.words[1:])])
        if base(command.name) in STARTS_MORE and not stays_here(words):
            return None if command.in_branch else base(command.name)
    return None


def stays_here(words: str) -> bool:
    """One process, or those of this host only."""
    return bool(ON_THIS_HOST.search(words) or ONE_TASK.search(words))


@TABLE.add("DT137", WARNING, pages.WHAT_STARTS_WHAT)
def steps_wait_for_each_other(script: Script) -> Iterator[Problem]:
    """Steps in the background that wait for each other

    Without --exact a step takes all cores of its nodes, and without --gres all GPUs of
    the job. The next step then waits: "step creation temporarily disabled". Where Slurm
    counts memory, a step also takes the --mem of the job.

    Cure:
        srun --exact --ntasks=1 --cpus-per-task=C --gres=gpu:1 --mem=M ... &

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks=2
        for seed in 1 2; do
          srun --ntasks=1 python train.py --seed $seed > $seed.log &
          pids+=($!)
        done
        for pid in "${pids[@]}"; do wait "$pid" || exit $?; done

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks=2
        for seed in 1 2; do
          srun --exact --ntasks=1 python train.py --seed $seed > $seed.log &
          pids+=($!)
        done
        for pid in "${pids[@]}"; do wait "$pid" || exit $?; done
    """
    told_otherwise = script.uses("SLURM_EXACT", "SLURM_OVERLAP", "SRUN_CPUS_PER_TASK")
    if script.dialect != "slurm" or script.nodes != 1 or told_otherwise:
        return
    steps = [each for each in script.launches if is_step_beside_others(each)]
    if len(steps) < 2 and not any(each.in_loop for each in steps):
        return
    if any(each.name == "wait" and each.in_loop for each in bare_waits(script)):
        return  # one after the other on purpose
    for step in steps:
        cores, gpus = takes_all_cores(step), takes_all_gpus(script, step)
        if not cores and not gpus:
            continue
        taken = " and ".join(
            name for name, takes in (("cores", cores), ("GPUs", gpus)) if takes
        )
        what = (
            f"each of these steps takes all {taken} of the job, so the next one waits"
        )
        yield Problem(step.command.line, what, cure_of_step(script, step))
        return


def is_step_beside_others(launch: Launch) -> bool:
    options = launch.starter_options.keys()
    program = base(launch.tokens[0].text) if launch.tokens else ""
    shares = "overlap" in options or bool(UNKNOWN & options)
    starts = launch.starter == "srun" and launch.command.background
    here = "function" not in launch.command.blocks
    return starts and here and not shares and program not in LOOKS_ONLY


def bare_waits(script: Script) -> list[Command]:
    waits = [each for each in script.commands if each.name == "wait"]
    return [each for each in waits if len(each.words) == 1 or "$!" in last_word(each)]


def last_word(command: Command) -> str:
    return command.words[-1].value


def takes_all_cores(step: Launch) -> bool:
    return not APART & step.starter_options.keys()


def takes_all_gpus(script: Script, step: Launch) -> bool:
    asked = script.asked(step)
    return bool(asked.gpus_per_node) and not GPUS & step.starter_options.keys()


def cure_of_step(script: Script, step: Launch) -> str:
    """The options that are missing, with a share of what the job has."""
    asked, options = script.asked(step), step.starter_options.keys()
    words = ["srun"]
    if takes_all_cores(step):
        words.append("--exact")
        if asked.cpus_per_task:
            words.append(f"--cpus-per-task={asked.cpus_per_task}")
    tasks = asked.all_tasks
    if takes_all_gpus(script, step):
        each = quotient(asked.gpus_per_node, tasks) or 1
        words.append(f"--gres=gpu:{each}")
    memory = re.fullmatch(r"(\d+)([KMGT]?)", asked.value("mem"))
    if memory and int(memory[1]) and tasks and not MEMORY & options:
        words.append(f"--mem={int(memory[1]) // tasks}{memory[2]}")
    return f"{' '.join(words)} ..."
