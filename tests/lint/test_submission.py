"""What the shell that submits a job replaces in its script: DT013."""

from __future__ import annotations

import pytest

from tests.lint.forms import of_code
from workshop.lint.linting import lint

JOB = "#!/bin/bash\n#SBATCH --nodes=2\n"
LIST = 'scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1'
HEAD = f"export MASTER_ADDR=$({LIST})\nsrun -K python train.py\n"
ESCAPED = HEAD.replace("$", r"\$")
CASES: dict[str, tuple[str, list[str]]] = {
    "list of nodes in a here-document": (
        f"sbatch <<EOT\n{JOB}{HEAD}EOT\n",
        ["4 error"],
    ),
    "own name as the address": (
        f"sbatch <<EOT\n{JOB}export MASTER_ADDR=`hostname`\npython train.py\nEOT\n",
        ["4 error"],
    ),
    "here-document in a pipe": (
        f"cat <<EOT | sbatch\n{JOB}{HEAD}EOT\n",
        ["4 error"],
    ),
    "number of the job in a path": (
        f"sbatch <<EOT\n{JOB}python train.py --out runs/$SLURM_JOB_ID\nEOT\n",
        ["4 error"],
    ),
    "file that is written, and submitted": (
        f"cat > job.sbatch <<EOT\n{JOB}{HEAD}EOT\nsbatch job.sbatch\n",
        ["4 error"],
    ),
    "folder of qsub": (
        "qsub -N a <<EOT\n#PBS -l select=1\ncd $PBS_O_WORKDIR\npython a.py\nEOT\n",
        ["3 error"],
    ),
    "own name in --wrap": (
        'sbatch -N 2 --wrap="srun torchrun --rdzv-endpoint=$(hostname):1 a.py"\n',
        ["1 error"],
    ),
    "list of nodes after --wrap": (
        f'sbatch -N 2 --wrap "MASTER_ADDR=$({LIST}) srun a.sh"\n',
        ["1 error"],
    ),
    "end in quotes": (f"sbatch <<'EOT'\n{JOB}{HEAD}EOT\n", []),
    "backslashes": (f"sbatch <<EOT\n{JOB}{ESCAPED}EOT\n", []),
    "--wrap in single quotes": (f"sbatch -N 2 --wrap='{HEAD}'\n", []),
    "text that nothing submits": (f"cat > job.sbatch <<EOT\n{JOB}{HEAD}EOT\n", []),
    "job that submits another": (
        f"{JOB}sbatch <<EOT\n{JOB}python b.py --after $SLURM_JOB_ID\nEOT\n",
        [],
    ),
    "note about the login node": (
        f'sbatch <<EOT\n{JOB}# by $(hostname)\necho "from $(hostname)"\n'
        "python train.py --submitted-on $(hostname)\nEOT\n",
        [],
    ),
    "variables of the submitting script": (
        'N=2\nsbatch <<EOT\n#!/bin/bash\n#SBATCH -N $N\ncd "$HOME/x"\na.py $1\nEOT\n',
        [],
    ),
    "list that the submitting script knows": (
        f"L=node[1-2]\nsbatch -w $L <<EOT\n{JOB}H=$(scontrol show hostnames $L | head "
        "-n 1)\npython train.py\nEOT\n",
        [],
    ),
}


@pytest.mark.parametrize(("text", "told"), CASES.values(), ids=CASES.keys())
def test_what_the_login_node_replaces_is_told(text, told):
    assert of_code(text, "DT013") == told


def cure_of(text: str, code: str) -> str:
    (cure,) = (each.cure for each in lint(text) if each.rule.code == code)
    return cure


def test_cure_is_quotes_if_the_job_needs_nothing_of_the_submitting_shell():
    assert cure_of(f"sbatch <<EOT\n{JOB}{HEAD}EOT\n", "DT013").startswith("<<'EOT'")


def test_cure_is_a_backslash_if_the_submitting_shell_fills_in_something():
    text = f"sbatch <<EOT\n{JOB}{HEAD}echo $1\nEOT\n"
    assert cure_of(text, "DT013") == "\\$(" + LIST.replace("$", r"\$") + ")"


def test_cure_in_double_quotes_of_wrap_is_escaped():
    text = 'sbatch -N 2 -c 8 --wrap="srun -K python train.py $1"\n'
    assert cure_of(text, "DT113").startswith(r"export SRUN_CPUS_PER_TASK=\$SLURM")


def test_line_of_an_option_is_that_of_the_file():
    job = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH -c 8\nsrun -K python train.py\n"
    (found,) = lint(f"# submit\n\nsbatch <<'END'\n{job}END\n")
    assert found.rule.code == "DT113"
    assert found.what.endswith("of line 6")
