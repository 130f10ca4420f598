"""The folder that a job script is submitted from, and the programs that it finds.

It looks like a clone of the workshop: ``job_scripts`` is the real one, ``src`` holds
stand-ins of the training scripts (:mod:`grader.jobs.stand_in`), ``.venv`` holds
programs that write down how they were called and then are what they stand for.
"""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

from grader.jobs.job import Launch, Worker

# torchrun's options that it takes from the environment, as PET_NNODES
TOLD_BY_ENVIRONMENT = """for name in ${!PET_@}; do
  option=${name#PET_}
  told+=("--${option,,}=${!name}")
done
"""
RECORDED = ("torchrun", "python", "python3", "mpirun", "mpiexec")


def make_clone(folder: Path, root: Path, python: str) -> None:
    """What a script finds in the folder it is submitted from."""
    shutil.copytree(root / "job_scripts", folder / "job_scripts", dirs_exist_ok=True)
    (folder / "job_scripts" / "site.sh").unlink(missing_ok=True)  # the learner's own
    (folder / "src").mkdir()
    stand_in = Path(__file__).with_name("stand_in.py")
    for script in (root / "src").glob("*.py"):
        shutil.copy(stand_in, folder / "src" / script.name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in RECORDED:
        write_program(programs / name, _recorder(folder, name, python))
    (programs / "activate").write_text(f'export PATH="{programs}:$PATH"\n')


def _recorder(folder: Path, name: str, python: str) -> str:
    """A shell script that writes down how it was called, then is ``name``."""
    told, then = "told=()\n", ""
    if name == "torchrun":
        told += TOLD_BY_ENVIRONMENT
        real = f'exec "{python}" -m torch.distributed.run "$@"'
    elif name.startswith("python"):
        # what computes a number or a name for the script does so in a dry run, too
        program = '[[ "$*" == *.py* || " $*" == *" -m "* ]]'
        then = f'{program} || {{ "{python}" "$@"; exit; }}\n'
        real = f'exec "{python}" "$@"'
    else:
        real = (
            f'PATH="${{PATH//"{folder}/.venv/bin:"/}}"\n'
            f'exec {name} "$@"'  # the machine's own
        )
    return f"""#!/bin/bash
host=${{PAPER_HOST:-$(hostname)}}
file="{folder}/record/launch.{name}.$host.$$"
{told}printf '%s\\0' "${{SLURM_JOB_ID:-$PBS_JOBID}}" "$host" "$PWD" "$@" \
  "${{told[@]}}" > "$file.new"
mv "$file.new" "$file"
{then}if [[ -e "{folder}/record/only_launch" ]]; then exit 0; fi
{real}
"""


def write_program(path: Path, text: str) -> None:
    """Write a script that everybody may run."""
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def recorded(record: Path) -> tuple[list[Launch], list[Worker]]:
    launches, workers = [], []
    for path in sorted(record.iterdir()):
        if path.suffix in (".new", ".finished"):
            continue
        if path.name.startswith("launch."):
            job, host, cwd, *args = path.read_text(errors="replace").split("\0")[:-1]
            program, host = path.name.split(".")[1], host.split(".")[0]
            launches.append(Launch(program, host, tuple(args), cwd, job))
        elif path.name.startswith("worker."):
            found = json.loads(path.read_text())
            workers.append(
                Worker(
                    found["program"],
                    found["host"],
                    found["rank"],
                    tuple(found["args"]),
                    found["env"],
                    Path(f"{path}.finished").exists(),
                )
            )
    workers.sort(key=lambda worker: worker.rank)
    return launches, workers
