"""The folder that a job script is submitted from, and the programs that it finds.

It looks like a clone of the workshop: ``job_scripts`` is the real one, ``src`` holds
stand-ins of the training scripts (``stand_in.py``), ``.venv`` holds programs that
write down how they were called and then are what they stand for.
"""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

from workshop.cluster.jobs.job import Launch, Record, Worker

# torchrun's options that it takes from the environment, as PET_NNODES
TOLD_BY_ENVIRONMENT = """for name in ${!PET_@}; do
  option=${name#PET_}
  told+=("--${option,,}=${!name}")
done
"""
RECORDED = ("torchrun", "python", "python3", "mpirun", "mpiexec")
TOLD_TO_SRUN = """told=()
[[ -z "${SLURM_WAIT:-}" ]] || told+=("--wait=$SLURM_WAIT")
[[ -z "${SLURM_TIMELIMIT:-}" ]] || told+=("--time=$SLURM_TIMELIMIT")
"""
# what starts tasks, or ends them early, in a script with this suffix
TOOLS = {
    ".sbatch": ("srun", "timeout"),
    ".pbs": ("pbsdsh", "pbs_tmrsh", "ssh", "timeout"),
}


def make_clone(folder: Path, root: Path, python: str) -> None:
    """What a script finds in the folder it is submitted from."""
    shutil.copytree(root / "job_scripts", folder / "job_scripts", dirs_exist_ok=True)
    (folder / "job_scripts" / "site.sh").unlink(missing_ok=True)  # the learner's own
    (folder / "src" / "instruments").mkdir(parents=True)
    stand_in = Path(__file__).with_name("stand_in.py")
    for script in (root / "src").rglob("[0-9]*.py"):
        shutil.copy(stand_in, folder / script.relative_to(root))
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in RECORDED:
        write_program(programs / name, _recorder(folder, name, python))
    (programs / "activate").write_text(f'export PATH="{programs}:$PATH"\n')


def _recorder(folder: Path, name: str, python: str) -> str:
    """A shell script that writes down how it was called, then is ``name``."""
    told, then = "told=()\n", ""
    if name.startswith("python"):  # the long name of torchrun
        torchrun = f'shift 2; exec "{folder}/.venv/bin/torchrun" "$@"'
        told += (
            f'[[ "${{*:1:2}}" != "-m torch.distributed.run" ]] || {{ {torchrun}; }}\n'
        )
    if name == "torchrun":
        told += TOLD_BY_ENVIRONMENT
        real = f'exec "{python}" -m torch.distributed.run "$@"'
    elif name.startswith("python"):
        # what computes a number or a name for the script does so in a dry run, too
        program = '[[ "$1" != -c && ( "$*" == *.py* || " $*" == *" -m "* ) ]]'
        then = f'{program} || {{ "{python}" "$@"; exit; }}\n'
        real = f'exec "{python}" "$@"'
    else:
        real = (
            f'PATH="${{PATH//"{folder}/.venv/bin:"/}}"\n'
            f'exec {name} "$@"'  # the machine's own
        )
    return f"""#!/bin/bash
{told}{_note(folder, name)}{then}if [[ -e "{folder}/record/only_launch" ]]; then
  first="{folder}/record/failing_first"
  if [[ -e "{folder}/record/fails.$host" ]]; then
    [[ -e "$first" ]] || sleep 0.5
    exit 2
  fi
  [[ ! -e "$first" ]] || sleep 1
  exit 0
fi
{real}
"""


def _note(folder: Path, name: str) -> str:
    """The lines that write down a call; $host is where it was made."""
    return f"""host=${{PAPER_HOST:-$(hostname)}}
host=${{host%%.*}}
file="{folder}/record/launch.{name}.$host.$$"
printf '%s\\0' "${{SLURM_JOB_ID:-$PBS_JOBID}}" "$host" "$PWD" "$@" \\
  "${{told[@]}}" > "$file.new"
mv "$file.new" "$file"
"""


def record_tools(folder: Path, suffix: str) -> None:
    """Have the scheduler's own commands write down how they were called, too."""
    programs = folder / ".venv" / "bin"
    for name in TOOLS.get(suffix, ()):
        write_program(programs / name, _recorder_of_tool(folder, name))


def _recorder_of_tool(folder: Path, name: str) -> str:
    by_environment = TOLD_TO_SRUN if name == "srun" else ""
    return f"""#!/bin/bash
{by_environment}{_note(folder, name)}
others="${{PATH//"{folder}/.venv/bin:"/}}"
real=$(PATH="$others" command -v {name}) ||
  {{ echo "{name}: command not found" >&2; exit 127; }}
exec "$real" "$@"
"""


def write_program(path: Path, text: str) -> None:
    """Write a script that everybody may run."""
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def recorded(folder: Path) -> Record:
    """What a job launched, its workers, and the calls of the scheduler's commands."""
    launches, workers, tools = [], [], []
    for path in sorted(folder.iterdir()):
        if path.suffix in (".new", ".finished"):
            continue
        if path.name.startswith("launch."):
            launch = _launch(path)
            kind = launches if launch.program in RECORDED else tools
            kind.append(launch)
        elif path.name.startswith("worker."):
            workers.append(_worker(path))
    workers.sort(key=lambda worker: worker.rank)
    return Record(launches, workers, tools)


def _launch(path: Path) -> Launch:
    """What the lines of ``_note`` wrote."""
    job, host, cwd, *args = path.read_text(errors="replace").split("\0")[:-1]
    program = path.name.split(".")[1]
    return Launch(program, host.split(".")[0], tuple(args), cwd, job)


def _worker(path: Path) -> Worker:
    """What ``stand_in.py`` wrote."""
    found = json.loads(path.read_text())
    return Worker(
        program=found["program"],
        host=found["host"],
        rank=found["rank"],
        args=tuple(found["args"]),
        env=found["env"],
        finished=Path(f"{path}.finished").exists(),
    )
