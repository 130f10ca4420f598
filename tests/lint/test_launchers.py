"""deepspeed, ssh, salloc, mpirun and other schedulers: what they do with a line."""

from __future__ import annotations

import pytest

from tests.lint.forms import C10D, FOUR_TASKS, of_code

BY_SSH = (
    "for h in {hosts}; do\n  ssh {host} 'torchrun --nnodes=2 --node-rank={rank} "
    "--master-addr=lab01 a.py' &\ndone\nwait\n"
)
HEAD = "ssh lab01 'torchrun --nnodes=2 --node-rank=0 --master-addr=lab01 a.py' &\n"
SALLOC = "salloc -N 2 --gres=gpu:4 {}\n"
ELASTIC = C10D.format(endpoint="$h:29511")
EXPORT = "export MASTER_ADDR=a MASTER_PORT=29512\n"
MPIRUN = EXPORT + "mpirun --hostfile hosts -np 16 {} python a.py\n"
DEVICES = FOUR_TASKS + "export CUDA_VISIBLE_DEVICES={}\nsrun -K {}python a.py\n"
CASES: dict[str, tuple[str, str, list[str]]] = {
    "hosts behind the program": (
        "DT134",
        "deepspeed a.py --hostfile=hosts\n",
        ["1 warning"],
    ),
    "GPUs behind the program": (
        "DT134",
        "deepspeed a.py --lr 1 --num_gpus 8\n",
        ["1 warning"],
    ),
    "chosen hosts behind the program": (
        "DT134",
        "deepspeed a.py --include localhost:0,1\n",
        ["1 warning"],
    ),
    "hosts in front of the program": (
        "DT134",
        "deepspeed --hostfile=hosts a.py --deepspeed_config b.json\n",
        [],
    ),
    "port that both have": (
        "DT134",
        "deepspeed --master_port=1 a.py --master_port=1\n",
        [],
    ),
    "files that the program includes": (
        "DT134",
        "deepspeed a.py --include x.txt\n",
        [],
    ),
    "options of torchrun's program": ("DT134", "torchrun a.py --num_gpus 8\n", []),
    "one rank for all hosts": (
        "DT202",
        BY_SSH.format(hosts="lab01 lab02", host="$h", rank=0),
        ["2 error"],
    ),
    "one rank for all workers": (
        "DT202",
        BY_SSH.format(hosts="$WORKERS", host="$h", rank=1),
        ["2 warning"],
    ),
    "workers, and the first host": (
        "DT202",
        HEAD + BY_SSH.format(hosts="$WORKERS", host="$h", rank=1),
        [],
    ),
    "rank of each host": (
        "DT202",
        BY_SSH.format(hosts="0 1", host="lab$h", rank="$h"),
        [],
    ),
    "rank that the loop counts": (
        "DT202",
        "r=0\n"
        + BY_SSH.format(hosts="a b", host="$h", rank="$r").replace("'", '"')
        + "r=$((r + 1))\n",
        [],
    ),
    "one host": ("DT202", BY_SSH.format(hosts="1 2", host="lab01", rank=0), []),
    "salloc without srun": (
        "DT103",
        SALLOC.format(f"sh -c 'h=a; {ELASTIC}'"),
        ["1 error"],
    ),
    "salloc in front of the launcher": ("DT103", SALLOC.format(ELASTIC), ["1 error"]),
    "salloc with srun": ("DT103", SALLOC.format(f"sh -c 'h=a; srun {ELASTIC}'"), []),
    "salloc in front of srun": ("DT103", SALLOC.format(f"srun {ELASTIC}"), []),
    "salloc for one node": (
        "DT103",
        "salloc -N 1 torchrun --standalone --nproc-per-node=4 a.py\n",
        [],
    ),
    "salloc for a shell": ("DT103", SALLOC.format("bash"), []),
    "variables that mpirun doesn't pass on": (
        "DT135",
        MPIRUN.format("--map-by slot"),
        ["2 warning"],
    ),
    "one of them": ("DT135", MPIRUN.format("-x MASTER_ADDR"), ["2 warning"]),
    "both of them": ("DT135", MPIRUN.format("-x MASTER_ADDR -x MASTER_PORT=1"), []),
    "MPI that passes on everything": ("DT135", MPIRUN.format("-ppn 8"), []),
    "options in a variable": ("DT135", MPIRUN.format("--map-by slot $MPI_ARGS"), []),
    "mpirun on this machine": (
        "DT135",
        EXPORT + "mpirun --map-by slot -np 4 python a.py\n",
        [],
    ),
    "mpirun in a job": (
        "DT135",
        FOUR_TASKS + MPIRUN.format("--map-by slot"),
        [],
    ),
    "fewer devices than tasks": (
        "DT121",
        DEVICES.format("0,1", ""),
        ["4 warning"],
    ),
    "as many devices as tasks": ("DT121", DEVICES.format("0,1,2,3", ""), []),
    "device of each task": ("DT121", DEVICES.format("0", "--gpus-per-task=1 "), []),
    "one task": ("DT121", DEVICES.format("0", "-n 1 "), []),
    "job of Grid Engine": (
        "DT011",
        "#!/bin/bash\n#$ -cwd\npython a.py\n",
        ["2 note"],
    ),
    "job of Flux": (
        "DT011",
        "#!/bin/bash\n\n# flux: -N 2\nflux run -n 2 python a.py\n",
        ["3 note"],
    ),
    "job of Flux in a text": (
        "DT011",
        "#!/bin/bash\nflux batch <<END\n#flux: -N 2\nEND\n",
        [],
    ),
    "comment of a shell": ("DT011", "#!/bin/bash\n#$x is empty\npython a.py\n", []),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_launch_line_is_told(code, text, told):
    assert of_code(text, code) == told
