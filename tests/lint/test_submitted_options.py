"""Options of sbatch and qsub beside the directives of the job script they submit."""

from __future__ import annotations

import pytest

from tests.lint.test_submitted import JOB, found
from workshop.lint.linting import lint

FOUR = "#SBATCH --ntasks-per-node=4\n"
QUOTED = JOB.format(nodes=2, own="$")
REPLACED = JOB.format(nodes=2, own=r"\$")
CASES = {
    "--nodes": ("sbatch --nodes=2 <<'END'\n" + QUOTED + "END\n", 6),
    "--nodes, and variables that are replaced": (
        "sbatch --nodes=2 <<END\n" + REPLACED + "END\n",
        6,
    ),
    "time limit and GPUs": (
        "sbatch --time=1:00:00 --gres=gpu:4 <<'END'\n" + QUOTED + "END\n",
        6,
    ),
    "environment": ("sbatch --export=ALL <<'END'\n" + QUOTED + "END\n", 6),
    "standard input by its name": ("sbatch - <<'END'\n" + QUOTED + "END\n", 6),
    "several lines of options": (
        "sbatch --nodes=2 \\\n  --time=1:00:00 <<'END'\n" + QUOTED + "END\n",
        7,
    ),
    "options in a variable that is known": (
        "O=\"--nodes=2 --exclusive=user\"\nsbatch $O <<'END'\n" + QUOTED + "END\n",
        7,
    ),
    "only the command line asks for tasks": (
        "sbatch --ntasks-per-node=4 <<'END'\n" + QUOTED.replace(FOUR, "") + "END\n",
        5,
    ),
    "number of nodes that isn't known": (
        'sbatch --nodes="$1" <<END\n' + REPLACED + "END\n",
        6,
    ),
    "file that is submitted with options": (
        "cat > job.sbatch <<'END'\n" + QUOTED + "END\nsbatch --time=9:00 job.sbatch\n",
        6,
    ),
    "file that sbatch reads": (
        "cat > a.sh <<'END'\n" + QUOTED + "END\nsbatch --time=9:00 < a.sh\n",
        6,
    ),
}
QUIET = {
    "one task, which wins": "sbatch --ntasks-per-node=1 <<'END'\n",
    "number of tasks that isn't known": "sbatch --ntasks-per-node=\"$1\" <<'END'\n",
    "one node and one task": "sbatch -N 1 -n 1 --ntasks-per-node=1 <<'END'\n",
    "options that aren't known": "sbatch \"${O[@]}\" --nodes=2 <<'END'\n",
}


@pytest.mark.parametrize(("text", "line"), CASES.values(), ids=CASES.keys())
def test_options_of_sbatch_count_beside_the_directives(text, line):
    assert (line, "DT101") in found(text)


@pytest.mark.parametrize("first", QUIET.values(), ids=QUIET.keys())
def test_option_on_the_command_line_wins(first):
    text = first + QUOTED + "END\n"
    assert "DT101" not in [code for _, code in found(text)]


def test_cure_changes_the_option_where_it_is_given():
    text = "sbatch --ntasks-per-node=4 <<'END'\n" + QUOTED + "END\n"
    (cure,) = (each.cure for each in lint(text) if each.rule.code == "DT101")
    assert cure == "sbatch --ntasks-per-node=1"
    elsewhere = text.replace("--ntasks-per-node=4 <<", "--nodes=2 <<", 1)
    (cure,) = (each.cure for each in lint(elsewhere) if each.rule.code == "DT101")
    assert cure == "#SBATCH --ntasks-per-node=1"


def test_finding_about_an_option_names_the_line_of_the_command():
    body = "#!/bin/bash\n#SBATCH --nodes=1\npython train.py --save\nEND\n"
    text = "echo go\nsbatch --job-name=a \\\n  --time=24:00 <<'END'\n" + body
    assert found(text) == [(2, "DT018")]
    in_front = "#!/bin/bash\n#SBATCH --cpus-per-task=8\nsrun python train.py\nEND\n"
    text = "sbatch -c 16 \\\n  --nodes=1 \\\n  --hold <<'END'\n" + in_front
    (told,) = (each.what for each in lint(text) if each.rule.code == "DT113")
    assert told == "srun ignores the `--cpus-per-task=16` of line 1"


def test_options_of_qsub_count_beside_the_directives():
    body = (
        "#!/bin/bash\n#PBS -l place=scatter\ncd $PBS_O_WORKDIR\n"
        "head=$(head -n 1 $PBS_NODEFILE)\nmpirun -np 8 torchrun --nnodes=2 "
        "--nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$head:1 a.py\nEND\n"
    )
    text = "qsub -l select=2:ncpus=8:mpiprocs=4 <<'END'\n" + body
    assert (6, "DT101") in found(text)
    assert "DT101" not in [code for _, code in found(text.replace("select=2", "q=2"))]
