"""Rules about the cores and GPUs that each rank finds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import pages
from .counts import TORCHRUNS, ranks_of, times
from .launches import Launch, pairs
from .rule import ERROR, WARNING, Problem, Table
from .script import Script

TABLE = Table()
DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):-(\d{1,4})\}")
DEVICE_OF_TASK = re.compile(r"\b(?:cuda|gpu):\\?\$\{?SLURM_LOCALID\b")
ONE_EACH = ("single:1", "per_task:1", "map_gpu:")
WORKERS = re.compile(r"--?(?:[\w.]*[._-])?(?:num[-_]?)?workers(?:=(\d+))?$")


def ranks_by_default(script: Script, launch: Launch) -> int | None:
    """The default of ``${NAME:-8}``, where nothing in the script sets the variable."""
    match = DEFAULT.fullmatch(launch.option("nproc-per-node") or "")
    if match is None or match[1].startswith(("SLURM_", "PBS_")):
        return None
    name = match[1]
    own = [each.word.value for each in script.variables.found.get(name, [])]
    by_default = all(value == f"{name}={match[0]}" for value in own)
    elsewhere = script.reads_other_files or name in script.variables.set_otherwise
    return int(match[2]) if by_default and not elsewhere else None


@TABLE.add("DT110", ERROR, pages.NUMBER_RANKS)
def too_many_ranks(script: Script) -> Iterator[Problem]:
    """More ranks than GPUs on a node

    A rank takes the GPU with the number of its local rank. The rank beyond the last
    GPU ends with "invalid device ordinal".

    Cure:
        As many ranks as the node has GPUs.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:2
        torchrun --standalone --nproc-per-node=4 train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        torchrun --standalone --nproc-per-node=4 train.py
    """
    for launch in script.launches:
        asked = script.asked(launch)
        if launch.kind not in TORCHRUNS or script.dialect not in ("slurm", "pbs"):
            continue
        step = script.step(launch)
        shared = (step.per_node or 1) > 1 and asked.gpus_per_task is None
        if shared or launch.in_loop:
            continue
        ranks = ranks_of(script, launch) or ranks_by_default(script, launch)
        gpus, where = asked.gpus_per_node, "each node"
        options = launch.starter_options
        if {"gres", "gpus-per-node", "gpus", "gpus-per-task"} & set(options):
            continue
        if (
            asked.gpus_per_task is not None
            and gpus is None
            and launch.starter == "srun"
        ):
            gpus, where = asked.gpus_per_task, "each task"
        if script.dialect == "slurm" and asked.value("gpus") and gpus is None:
            continue
        if ranks and gpus and ranks > gpus and not script.uses("gloo"):
            what = (
                f"torchrun starts {ranks} ranks, and {where} has {times(gpus, 'GPU')}"
            )
            cure = f"--nproc-per-node={gpus}, or ask for {ranks} GPUs"
            yield Problem(launch.line_of("nproc-per-node"), what, cure)


@TABLE.add("DT111", WARNING, pages.NUMBER_RANKS)
def one_gpu_per_task(script: Script) -> Iterator[Problem]:
    r"""One GPU per task, and a device number per task

    With --gpus-per-task=1 or --gpu-bind=single:1 a task sees one GPU, and its number
    is 0. cuda:$SLURM_LOCALID is an "invalid device ordinal" in all other tasks.

    Cure:
        --gres=gpu:N for the node; or use cuda:0 in every task.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks-per-node=4
        #SBATCH --gpus-per-task=1
        srun -K bash -c 'LOCAL_RANK=$SLURM_LOCALID RANK=$SLURM_PROCID python \
          train.py'

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --ntasks-per-node=4
        #SBATCH --gres=gpu:4
        srun -K bash -c 'LOCAL_RANK=$SLURM_LOCALID RANK=$SLURM_PROCID python \
          train.py'
    """
    asked = script.resources
    bound = asked.options.get("gpus-per-task") or asked.options.get("gpu-bind")
    given = [each.starter_options for each in script.launches]
    text = asked.value("gpus-per-task") or next(
        (o["gpus-per-task"] for o in given if "gpus-per-task" in o), ""
    )
    binds = [asked.value("gpu-bind"), *(o.get("gpu-bind", "") for o in given)]
    single = bool(re.fullmatch(r"(\w+:)*1", text))
    single = single or any(bind.startswith(ONE_EACH) for bind in binds)
    unbound = any(bind in ("none", "closest") for bind in binds)
    match = DEVICE_OF_TASK.search(script.text)
    match = match or re.search(r"LOCAL_?RANK\w*[= ]\\?\$\{?SLURM_LOCALID", script.text)
    several = any((script.step(each).per_node or 1) > 1 for each in script.launches)
    if not single or unbound or match is None or not several or script.parts:
        return
    line = script.text[: match.start()].count("\n") + 1
    bind = next((each for each in binds if each.startswith(ONE_EACH)), "")
    asked_by = f"--gpus-per-task={text}" if text else f"--gpu-bind={bind}"
    where = f" (line {bound.line})" if bound else ""
    what = (
        f"with `{asked_by}`{where} each task sees one GPU, number 0; its LOCAL_RANK "
        "is SLURM_LOCALID"
    )
    if not DEVICE_OF_TASK.search(match[0]):
        yield Problem(line, what)
        return
    what = f"with `{asked_by}`{where} each task sees one GPU, and it's cuda:0"
    yield Problem(line, what, "cuda:0, or srun --gpu-bind=none ...", ERROR)


@TABLE.add("DT112", WARNING, pages.FEED_THE_DEVICE)
def too_few_cores(script: Script) -> Iterator[Problem]:
    """Fewer cores than ranks, or than data workers

    Ranks and the workers of their data loaders share the cores of their task. With
    too few, the GPUs wait for data.

    Cure:
        #SBATCH --cpus-per-task: ranks of the task x (1 + data workers); or fewer
        workers.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        #SBATCH --cpus-per-task=4
        srun -c 4 torchrun --standalone --nproc-per-node=4 train.py --num-workers=8

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        #SBATCH --gres=gpu:4
        #SBATCH --cpus-per-task=36
        export OMP_NUM_THREADS=1
        srun -c 36 torchrun --standalone --nproc-per-node=4 train.py --num-workers=8
    """
    if script.dialect != "slurm" or script.resources.exclusive:
        return
    for launch in script.launches:
        cores = script.asked(launch).cpus_per_task
        if cores is None:
            continue
        own = script.number(launch.starter_options.get("cpus-per-task"))
        if own:
            cores = own
        step = script.step(launch)
        ranks = ranks_of(script, launch) if launch.kind in TORCHRUNS else 1
        if not ranks or launch.kind == "other" or (step.per_node or 1) > 1 < ranks:
            continue
        if "ntasks" in launch.starter_options and not own:
            continue  # fewer tasks than the job's have the cores of all
        workers = workers_of(launch)
        if workers and workers * ranks > cores:
            what = (
                f"{times(ranks, 'rank')} with {workers} data workers each share "
                f"{times(cores, 'core')} (--cpus-per-task={cores})"
            )
            cure = f"#SBATCH --cpus-per-task={ranks * (workers + 1)}"
            fewer = cores // ranks - 1
            if fewer > 0:
                cure += f", or {times(fewer, 'data worker')} for each rank"
            elif fewer == 0:
                cure += ", or no data workers"
            yield Problem(launch.line, what, cure)
        elif ranks > cores:
            what = (
                f"{ranks} ranks share {times(cores, 'core')} (--cpus-per-task={cores})"
            )
            yield Problem(launch.line, what, f"#SBATCH --cpus-per-task={ranks}")


def workers_of(launch: Launch) -> int | None:
    for text, after in pairs(launch.program):
        match = WORKERS.fullmatch(text)
        if match:
            number = match[1] or after
            return int(number) if number.isdigit() else None
    return None


@TABLE.add("DT113", WARNING, pages.READ_THE_SCRIPT)
def cores_not_taken_over(script: Script) -> Iterator[Problem]:
    """srun ignores the job's --cpus-per-task

    Since Slurm 22.05, srun no longer reads the --cpus-per-task of sbatch, so a step
    gets one core for each task unless you say it again. A site may bind each task to
    that core.

    Cure:
        export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK, or srun
        --cpus-per-task=$SLURM_CPUS_PER_TASK.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --cpus-per-task=8
        srun -K python train.py

    Good:
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --cpus-per-task=8
        export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
        srun -K python train.py
    """
    if script.dialect != "slurm" or script.resources.exclusive:
        return
    if script.uses("SRUN_CPUS_PER_TASK", "SLURM_CPU_BIND"):
        return
    for launch in script.launches:
        options, asked = launch.starter_options, script.asked(launch)
        cores = asked.cpus_per_task
        if not cores or cores < 2 or hides_its_component(script, launch):
            continue
        said = {
            "cpus-per-task",
            "cpu-bind",
            "$",
            "exclusive",
            "cpu_bind",
            "cpus-per-gpu",
        }
        if launch.starter != "srun" or said & set(options) or launch.kind == "other":
            continue
        what = (
            f"srun ignores the `--cpus-per-task={cores}` of line "
            f"{asked.line('cpus-per-task')}"
        )
        component = script.component(launch)
        if component is not None:
            cure = f"srun --het-group={component} --cpus-per-task={cores} ..."
            yield Problem(launch.command.line, what, cure)
            continue
        cure = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK   (above the srun)"
        yield Problem(launch.command.line, what, cure)
        return


def hides_its_component(script: Script, launch: Launch) -> bool:
    """A step that should maybe run in another component than the first."""
    told = {"het-group", "pack-group"} & set(launch.starter_options)
    return bool(script.parts) and not told
