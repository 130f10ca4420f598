"""A dry run of a job script: bash runs it here, with stand-ins for the scheduler.

``srun``, ``pbsdsh``, ``pbs_tmrsh`` and ``ssh`` are shell scripts that run the command
once for each task the real one would start, one after the other, each under the name
of its node; ``torchrun``, ``python`` and ``mpirun`` only write down how they were
called. It finds what a script says, not what several machines would make of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from workshop.cluster.jobs.clone import RECORDED, write_program
from workshop.cluster.jobs.job import OF_THE_CHECK, STILL_RUNNING, Asked, End
from workshop.lint.script import Script
from workshop.system.stopwatch import TreeStopwatch

STOP_SECONDS = 20.0
LOOK_SECONDS = 0.1
ON_PAPER = "dry"  # the id of such a job
HOSTNAME = '#!/bin/bash\necho "${PAPER_HOST:-n1}"\n'
# one task: the variables that differ, then the command
SRUN = r"""#!/bin/bash
nodes=$SLURM_JOB_NUM_NODES tasks="" per_node=${SLURM_NTASKS_PER_NODE:-}
while [[ "$1" == -* ]]; do
  case "$1" in
    --ntasks-per-node=*) per_node=${1#*=} ;;
    --ntasks=*) tasks=${1#*=} ;;
    --nodes=*) nodes=${1#*=} ;;
    -N|-n|--nodes|--ntasks|--ntasks-per-node|-w|--nodelist|-c|--cpus-per-task)
      case "$1" in -N|--nodes) nodes=$2 ;; -n|--ntasks) tasks=$2 ;;
        --ntasks-per-node) per_node=$2 ;; -w|--nodelist) only=$2; nodes=1 ;; esac
      shift ;;
    --nodelist=*) only=${1#*=}; nodes=1 ;;
  esac
  shift
done
[[ -n "$per_node" ]] || per_node=$(( ${tasks:-$nodes} / nodes ))
(( per_node > 0 )) || per_node=1
status=0 rank=0
for (( node = 0; node < nodes; node++ )); do
  for (( local = 0; local < per_node; local++ )); do
    host=${only:-n$((node + 1))}
    PAPER_HOST=$host SLURM_NODEID=$node SLURM_PROCID=$rank SLURM_LOCALID=$local \
      SLURM_NTASKS=$(( nodes * per_node )) SLURMD_NODENAME=$host "$@" || status=$?
    rank=$(( rank + 1 ))
  done
done
exit $status
"""
SCONTROL = r"""#!/bin/bash
[[ "$1 $2" == "show hostnames" || "$1 $2" == "show hostname" ]] || exit 0
for (( node = 1; node <= SLURM_JOB_NUM_NODES; node++ )); do echo "n$node"; done
"""
PBSDSH = r"""#!/bin/bash
while [[ "$1" == -* && "$1" != "--" ]]; do
  case "$1" in -n) line=$(( $2 + 1 )); shift ;; -h) only=$2; shift ;; esac
  shift
done
[[ "$1" == "--" ]] && shift
number=0
while read -r host; do
  number=$(( number + 1 ))
  [[ -z "$line" || "$line" == "$number" ]] || continue
  [[ -z "$only" || "$only" == "$host" ]] || continue
  node=$(awk '!seen[$0]++' "$PBS_NODEFILE" | grep -nx "$host" | cut -d: -f1)
  export PBS_NODENUM=$(( node - 1 ))
  KEEP='^(PBS_|NCPUS$|OMP_NUM_THREADS$|TMPDIR$)'BARE ||
    printf 'pbsdsh: task 0x%08x exit status %d\n' "$((number - 1))" "$?"
done < "$PBS_NODEFILE"
exit 0
"""
REMOTE = r"""#!/bin/bash
while [[ "$1" == -* ]]; do [[ "$1" == -o ]] && shift; shift; done
host=$1; shift
KEEP='^PAPER_NONE$'BARE
"""
# a task of PBS or ssh: in the home, with nothing that the job script exported
BARE = r"""
  ( kept=()
    for name in $(compgen -e | grep -E "$KEEP"); do kept+=("$name=${!name}"); done
    cd "$HOME" && exec env -i HOME="$HOME" PAPER_HOST="$host" \
      PATH="${0%/*}:/bin:/usr/bin" "${kept[@]}" RUN "$@" < /dev/null )"""


def submit(asked: Asked) -> End:
    """Run the script with stand-ins."""
    folder, script = asked.folder, asked.script
    programs = folder / "paper"
    _write_stand_ins(programs)
    for name in RECORDED:
        _only_record(folder / ".venv" / "bin" / name)
    hosts = [f"n{number + 1}" for number in range(asked.nodes)]
    own = {k: v for k, v in os.environ.items() if not OF_THE_CHECK.match(k)}
    variables = _job_variables(folder, script, hosts, asked.gpus)
    path = f"{programs}:{folder / '.venv' / 'bin'}:{os.environ['PATH']}"
    environment = {**own, **variables, **asked.env, "PATH": path}
    limit = min(asked.limit, STOP_SECONDS)
    status, output = _run(["bash", str(script)], folder, environment, limit)
    if status is None:
        return End(ON_PAPER, STILL_RUNNING, None, output, hosts)
    state = "COMPLETED" if status == 0 else "FAILED"
    output = output.replace(str(script), script.name)
    return End(ON_PAPER, state, status, output, hosts)


def _run(
    command: list[str], folder: Path, environment: dict[str, str], limit: float
) -> tuple[int | None, str]:
    """Its exit status and what it printed, once all that it started has ended.

    After ``limit`` seconds it's killed, and its status is None. Seconds for which its
    processes wait for a core don't count: a busy machine makes no script wrong.
    """
    job = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    watch = TreeStopwatch(job.pid)
    while True:
        try:
            output, _ = job.communicate(timeout=LOOK_SECONDS)
            return job.returncode, output
        except subprocess.TimeoutExpired as so_far:
            if watch.passed(limit):
                with suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)
                job.wait()
                said = so_far.output or b""  # bytes, also of a text stream
                return None, said.decode(errors="replace")


def _write_stand_ins(programs: Path) -> None:
    programs.mkdir(exist_ok=True)
    pbsdsh, pbs_tmrsh, ssh = (
        text.replace("BARE", BARE).replace("RUN", how)
        for text, how in ((PBSDSH, ""), (REMOTE, ""), (REMOTE, "bash -c"))
    )
    stand_ins = {
        "hostname": HOSTNAME,
        "srun": SRUN,
        "scontrol": SCONTROL,
        "pbsdsh": pbsdsh,
        "pbs_tmrsh": pbs_tmrsh,
        "ssh": ssh,
    }
    for name, text in stand_ins.items():
        write_program(programs / name, text)


def _only_record(program: Path) -> None:
    """Have a program write down its call, but do nothing."""
    kept = [
        line
        for line in program.read_text().splitlines()
        if not line.startswith(("exec ", "PATH="))
    ]
    program.write_text("\n".join(kept) + "\n")


def _job_variables(
    folder: Path, script: Path, hosts: list[str], gpus: int
) -> dict[str, str]:
    """What the script's scheduler sets for a job."""
    if script.suffix == ".pbs":
        return _variables_of_pbs(folder, script, hosts)
    return _variables_of_slurm(folder, script, hosts, gpus)


def _variables_of_pbs(folder: Path, script: Path, hosts: list[str]) -> dict[str, str]:
    node_file = folder / "record" / "node_file"
    node_file.write_text("\n".join(hosts) + "\n")
    return {
        "PBS_JOBID": "4711.head",
        "PBS_JOBNAME": script.stem,
        "PBS_O_WORKDIR": str(folder),
        "PBS_NODEFILE": str(node_file),
        "PBS_NODENUM": "0",
        "NCPUS": "2",
        "OMP_NUM_THREADS": "2",
        "TMPDIR": str(folder),
    }


def _variables_of_slurm(
    folder: Path, script: Path, hosts: list[str], gpus: int
) -> dict[str, str]:
    node_list = f"n[1-{len(hosts)}]" if len(hosts) > 1 else "n1"
    asked = Script(script.name, script.read_text(errors="replace")).resources
    per_node, cpus = asked.tasks_per_node, asked.cpus_per_task
    variables = {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOBID": "4711",
        "SLURM_JOB_NAME": script.stem,
        "SLURM_CLUSTER_NAME": "paper",
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_USER": "learner",
        "SLURM_JOB_START_TIME": "1790000000",
        "SLURM_SUBMIT_DIR": str(folder),
        "SLURM_JOB_NUM_NODES": str(len(hosts)),
        "SLURM_NNODES": str(len(hosts)),
        "SLURM_JOB_NODELIST": node_list,
        "SLURM_NODELIST": node_list,
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NTASKS": str(len(hosts) * (per_node or 1)),
        "SLURMD_NODENAME": hosts[0],
    }
    if per_node:
        variables["SLURM_NTASKS_PER_NODE"] = str(per_node)
    if cpus:
        variables["SLURM_CPUS_PER_TASK"] = str(cpus)
    if gpus:
        variables["SLURM_GPUS_ON_NODE"] = str(gpus)
    return variables
