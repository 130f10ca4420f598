"""Rules about what a step takes of its job: cores and hosts."""

from __future__ import annotations

from collections.abc import Iterator

from . import pages
from .counts import times
from .launches import Launch
from .rule import WARNING, Problem, Table
from .rules_ends import known
from .script import Script, quotient

TABLE = Table()
UNKNOWN = {"$", ":", "O", "overcommit", "cpus-per-gpu"}


@TABLE.add("DT132", WARNING, pages.READ_THE_SCRIPT)
def more_cores_than_the_job(script: Script) -> Iterator[Problem]:
    """A step that wants more cores than the job has

    srun refuses it: "More processors requested than permitted". It works only where
    the job got whole nodes.

    Cure:
        Ask for the cores in the directives, and let srun repeat the same numbers.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=8
        #SBATCH --cpus-per-task=7
        srun -K --cpus-per-task=14 python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=8
        #SBATCH --cpus-per-task=7
        srun -K --cpus-per-task=7 python train.py
    """
    for launch in script.launches:
        options, asked = launch.starter_options, script.asked(launch)
        own = script.number(options.get("cpus-per-task"))
        unknown = UNKNOWN & {*options, *asked.options}
        if launch.starter != "srun" or not own or unknown or asked.exclusive:
            continue
        cores, here = asked.cpus_per_task, script.step(launch).per_node
        there = tasks_on_a_node(script, launch)
        if not cores or not here or not there or here * own <= there * cores:
            continue
        what = (
            f"the step wants {here} x {own} = {here * own} cores of a node, and the "
            f"job has {there} x {cores} = {there * cores} there"
        )
        fitting = there * cores // here
        cure = f"#SBATCH --cpus-per-task={-(-here * own // there)}"
        if fitting:
            cure = f"srun --cpus-per-task={fitting} ..., or {cure}"
        yield Problem(launch.command.line, what, cure)


def tasks_on_a_node(script: Script, launch: Launch) -> int | None:
    """By the directives: one, if they say nothing of tasks."""
    asked = script.asked(launch)
    if asked.tasks is None:
        return asked.tasks_per_node or 1
    return quotient(asked.tasks, asked.all_nodes or 1)


@TABLE.add("DT133", WARNING, pages.PBS_EVERY_HOST)
def hosts_left_out(script: Script) -> Iterator[Problem]:
    """Ranks on fewer hosts than the job has

    With a number for each host, mpiexec fills one host after the other. If the total
    is reached early, the last hosts stay idle, and the first have more ranks than you
    planned.

    Cure:
        mpiexec -n N --ppn P, with N = hosts x P.

    Bad:
        #!/bin/bash
        #PBS -l select=2:ncpus=64:ngpus=4
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        mpiexec -n 8 --ppn 8 python train.py

    Good:
        #!/bin/bash
        #PBS -l select=2:ncpus=64:ngpus=4
        #PBS -l place=scatter
        cd $PBS_O_WORKDIR
        mpiexec -n 8 --ppn 4 python train.py
    """
    hosts = script.nodes
    if script.dialect != "pbs" or not hosts or hosts < 2:
        return
    launches = [each for each in script.launches if each.starter == "mpirun"]
    used = [hosts_of(script, launch) for launch in launches]
    if hosts in used or len(launches) > 1 or None in used:
        return  # one of them uses all, or they may share the hosts
    for launch, count in zip(launches, used, strict=True):
        apart = launch.in_loop or launch.command.background or not known(launch)
        ranks = script.number(launch.starter_options["np"])
        if count is None or apart or not ranks or ranks == 1:
            continue
        each = launch.starter_options["per-node"]
        what = (
            f"{times(ranks, 'rank')}, up to {script.number(each)} on a host, need "
            f"{times(count, 'host')}, and the job has {hosts}"
        )
        per_host = script.number(each) or 1
        gpus = script.resources.gpus_per_node
        if count < hosts and gpus and per_host > gpus:
            what += f"; the first has {times(gpus, 'GPU')}"
        cure = f"-n {hosts * per_host} with {per_host} on each host"
        if ranks % hosts == 0:
            cure = f"{ranks // hosts} on each host, or {cure}"
        yield Problem(launch.line, what, cure)


def hosts_of(script: Script, launch: Launch) -> int | None:
    """How many hosts ``mpiexec -n N --ppn P`` fills; None where it isn't sure."""
    options = launch.starter_options
    ranks = script.number(options.get("np"))
    per_host = script.number(options.get("per-node"))
    own_list = "hosts" in options and "PBS_NODEFILE" not in options["hosts"]
    words = [word.value for word in launch.command.words]
    named = {"--host", "-host", "--hosts", "-hosts", "-H"} & set(words)
    if not ranks or not per_host or own_list or named:
        return None
    return -(-ranks // per_host)
