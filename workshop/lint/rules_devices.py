"""Rules about the devices that the ranks of a node find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import pages
from .counts import TORCHRUNS, nnodes_of, ranks_of, times
from .launches import Launch
from .rule import ERROR, WARNING, Problem, Table
from .script import Script
from .shell import DECLARE, Assignment, Command

TABLE = Table()
VISIBLE = r"(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES"
LIST = re.compile(rf"({VISIBLE})=[\"']?(\d+(?:,\d+)*)(?![\w$])")
FORGETS = re.compile(rf"(?:\bunset\s+(?:-v\s+)?|\s-u\s*|--unset[= ]){VISIBLE}")


@dataclass(frozen=True)
class Shown:
    """A list of devices that a launcher and its ranks see."""

    text: str
    line: int
    in_task: bool  # set on the node itself, after srun has started the task

    @property
    def count(self) -> int:
        return self.text.count(",") + 1


@TABLE.add("DT121", ERROR, pages.NUMBER_RANKS)
def too_few_visible(script: Script) -> Iterator[Problem]:
    """More ranks than visible devices

    A rank takes the device with the number of its local rank, among those that
    CUDA_VISIBLE_DEVICES lists. The rank beyond the last one ends with "invalid device
    ordinal".

    Cure:
        Leave CUDA_VISIBLE_DEVICES to the scheduler, or list as many devices as ranks.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        export CUDA_VISIBLE_DEVICES=0
        torchrun --standalone --nproc-per-node=4 train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        export CUDA_VISIBLE_DEVICES=0,1,2,3
        torchrun --standalone --nproc-per-node=4 train.py
    """
    if script.uses("gloo") or FORGETS.search(script.text):
        return
    told: set[int] = set()
    for launch in script.launches:
        ranks, shown = ranks_on_a_node(script, launch), visible_to(script, launch)
        if not ranks or shown is None or ranks <= shown.count or shown.line in told:
            continue
        if any(re.search(r"\bcpu\b", word) for word in launch.program):
            continue
        told.add(shown.line)
        per_rank = launch.kind == "python"
        who = "srun" if per_rank else launch.name
        what = (
            f"`{shown.text}` shows {times(shown.count, 'device')}, and {who} "
            f"starts {times(ranks, 'rank')} on a node"
        )
        cure = f"remove `{shown.text}`, or start {times(shown.count, 'rank')}"
        by_slurm = launch.starter == "srun" and not shown.in_task
        if by_slurm:
            what += ", unless Slurm sets it again for the step"
        severity = WARNING if by_slurm or per_rank else ERROR
        yield Problem(shown.line, what, cure, severity)


def ranks_on_a_node(script: Script, launch: Launch) -> int | None:
    """How many ranks one launcher starts, if they use devices.

    deepspeed isn't asked: with --num_gpus it drops CUDA_VISIBLE_DEVICES.
    """
    if launch.kind in TORCHRUNS:
        return ranks_of(script, launch)
    if launch.kind == "python":
        return tasks_that_choose(script, launch)
    if launch.kind != "accelerate" or launch.option("cpu", "gpu-ids") is not None:
        return None
    total = script.number(launch.option("num-processes"))
    machines = nnodes_of(script, launch)
    if not total or not machines or total % machines:
        return None
    return total // machines


def tasks_that_choose(script: Script, launch: Launch) -> int | None:
    """The tasks of a node, if Slurm gives none of them a device of its own."""
    asked = {*script.asked(launch).options, *launch.starter_options}
    if launch.starter != "srun" or {"gpus-per-task", "gpu-bind", "$"} & asked:
        return None
    return script.step(launch).per_node


def visible_to(script: Script, launch: Launch) -> Shown | None:
    """The list that holds for a launch; None where it isn't sure, or there is none."""
    own = assignments_of(launch.inner)
    if own:
        return shown_by(script, own[-1], in_task=True)
    for word in launch.command.words:
        text = script.variables.fill(word, word.line)
        if launch.shell and re.search(r"\s", text):
            continue  # the text of the shell, which has been asked
        match = LIST.search(text)
        if match:
            by_option = text.startswith("--export")
            return Shown(match[0], word.line, in_task=not by_option)
    before = assignments_of([launch.command])
    if before:
        return shown_by(script, before[-1], in_task=False)
    return set_above(script, launch)


def set_above(script: Script, launch: Launch) -> Shown | None:
    """What the job script has set for all that it starts after that line."""
    found = None
    for command in script.commands:
        if command is launch.command:
            return found
        for_itself = command.words and command.name not in DECLARE
        if for_itself or command.captured or "subshell" in command.blocks:
            continue
        for assignment in assignments_of([command]):
            found = shown_by(script, assignment, in_task=False)
            if not assignment.certain:
                found = None
    return None


def assignments_of(commands: list[Command]) -> list[Assignment]:
    found = [each for command in commands for each in command.assignments]
    return [each for each in found if re.fullmatch(VISIBLE, each.name)]


def shown_by(script: Script, assignment: Assignment, in_task: bool) -> Shown | None:
    text = script.variables.fill(assignment.word, assignment.line - 1)
    match = LIST.fullmatch(text)
    return Shown(text, assignment.line, in_task) if match else None


@TABLE.add("DT124", WARNING, pages.READ_THE_SCRIPT)
def processes_of_one_machine(script: Script) -> Iterator[Problem]:
    r"""accelerate's --num_processes counts the ranks of all machines

    accelerate divides --num_processes among the machines. With the number of one
    machine's GPUs, each machine uses only some of its own.

    Cure:
        --num_processes = machines x GPUs of a machine.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        #SBATCH --gpus-per-node=4
        export head=$(hostname) port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'accelerate launch --num_machines 2 --num_processes 4 \
          --machine_rank $SLURM_NODEID --main_process_ip $head \
          --main_process_port $port train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --ntasks-per-node=1
        #SBATCH --gpus-per-node=4
        export head=$(hostname) port=$((20000 + SLURM_JOB_ID % 9999))
        srun -K bash -c 'accelerate launch --num_machines 2 --num_processes 8 \
          --machine_rank $SLURM_NODEID --main_process_ip $head \
          --main_process_port $port train.py'
    """
    for launch in script.launches:
        gpus, machines = script.asked(launch).gpus_per_node, nnodes_of(script, launch)
        ranks, total = ranks_on_a_node(script, launch), launch.option("num-processes")
        if launch.kind != "accelerate" or not gpus or not ranks or ranks >= gpus:
            continue
        if machines and machines > 1:
            what = (
                f"`--num_processes={total}` is {times(ranks, 'rank')} on each of "
                f"{machines} machines, and each has {times(gpus, 'GPU')}"
            )
            cure = f"--num_processes={machines * gpus}"
            yield Problem(launch.line_of("num-processes"), what, cure)
