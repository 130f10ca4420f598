"""Job scripts inside of a script, which it hands to sbatch or qsub."""

from __future__ import annotations

import pytest

from workshop.lint.linting import lint

# Four launchers on each of two nodes, and a fixed port.
LAUNCH = (
    "srun -K torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
    "--rdzv-id={own}SLURM_JOB_ID --rdzv-endpoint=node01:29512 train.py"
)
JOB = (
    "#!/bin/bash\n#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node=4\n"
    f"#SBATCH --gres=gpu:4\n{LAUNCH}\n"
)


def found(text: str) -> list[tuple[int, str]]:
    return [(each.line, each.rule.code) for each in lint(text)]


BOTH = {
    "here-document for sbatch": (
        "#!/bin/bash\nfor lr in 1 2; do\nsbatch <<END\n"
        + JOB.format(nodes=2, own=r"\$")
        + "END\ndone\n",
        8,
    ),
    "here-document in quotes": (
        "sbatch --parsable << 'END'\n" + JOB.format(nodes=2, own="$") + "END\n",
        6,
    ),
    "number of nodes in a variable": (
        "N=2\nsbatch -p gpu <<END\n" + JOB.format(nodes="$N", own=r"\$") + "END\n",
        7,
    ),
    "file that is submitted": (
        "cat > job.sbatch <<'END'\n"
        + JOB.format(nodes=2, own="$")
        + "END\nid=$(sbatch --parsable job.sbatch)\n",
        6,
    ),
    "--wrap": (
        "#!/bin/bash\nsbatch -N 2 --ntasks-per-node=4 --gres gpu:4 \\\n"
        f'  --wrap "{LAUNCH.format(own=chr(92) + "$")}"\n',
        2,
    ),
    "--wrap=": (
        "sbatch -N2 --ntasks-per-node=4 --gres=gpu:4 "
        f"--wrap='{LAUNCH.format(own='$')}'\n",
        1,
    ),
}
NEITHER = {
    "options of sbatch that count": (
        "sbatch --ntasks-per-node=1 <<'END'\n" + JOB.format(nodes=2, own="$") + "END\n"
    ),
    "options of sbatch in a variable": (
        "sbatch $MORE <<'END'\n" + JOB.format(nodes=2, own="$") + "END\n"
    ),
    "number of tasks that the script doesn't know": (
        "sbatch <<END\n"
        + JOB.format(nodes=2, own=r"\$").replace("node=4", "node=$N", 1)
        + "END\n"
    ),
    "file that nothing submits": (
        "cat > job.sbatch <<'END'\n" + JOB.format(nodes=2, own="$") + "END\n"
    ),
    "file that is submitted with options": (
        "cat > job.sbatch <<'END'\n"
        + JOB.format(nodes=2, own="$")
        + "END\nsbatch --ntasks-per-node=1 job.sbatch\n"
    ),
    "text that another command reads": (
        "cat <<'END'\n" + JOB.format(nodes=2, own="$") + "END\n"
    ),
    "--wrap with options in a variable": (
        f"sbatch $MORE -N2 -n8 --wrap='{LAUNCH.format(own='$')}'\n"
    ),
}


@pytest.mark.parametrize(("text", "line"), BOTH.values(), ids=BOTH.keys())
def test_job_script_inside_of_a_script_is_read(text, line):
    assert found(text) == [(line, "DT101"), (line, "DT207")]


@pytest.mark.parametrize("text", NEITHER.values(), ids=NEITHER.keys())
def test_what_the_script_leaves_open_is_no_error(text):
    assert [each for each in lint(text) if each.is_error] == []


def test_cure_is_written_as_the_here_document_needs_it():
    text = BOTH["here-document for sbatch"][0].replace("-per-node=4\n", "=8\n", 1)
    (cure,) = (each.cure for each in lint(text) if each.rule.code == "DT101")
    assert '"\\$SLURM_NNODES"' in cure


def test_comment_in_the_job_script_silences_a_rule_there():
    text, _ = BOTH["here-document in quotes"]
    silenced = text.replace("srun -K", "# workshop: ignore DT101\nsrun -K")
    assert found(silenced) == [(7, "DT207")]


def test_comment_at_the_top_silences_a_rule_everywhere():
    text, _ = BOTH["here-document in quotes"]
    assert found("# workshop: ignore-file DT101\n" + text) == [(7, "DT207")]


def test_line_that_the_submitting_shell_fills_in_is_left_alone():
    text = (
        "sbatch <<END\n#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --output=$HOME/%j\n"
        "#SBATCH --ntasks-per-node=4\nsrun -K python train.py $SLURM_PROCID\nEND\n"
    )
    assert found(text) == [(6, "DT013")]


def test_option_that_the_submitting_shell_fills_in_is_left_alone():
    text = 'for node in a b; do\n  sbatch -w "${node}" --wrap "sleep 10" -N 1\ndone\n'
    assert found(text) == []


def test_line_that_is_filled_in_may_be_a_directive():
    text = (
        "sbatch <<END\n#!/bin/bash\n#SBATCH --nodes=1\n$MORE\n#SBATCH --time=9\n"
        "python train.py\nEND\n"
    )
    assert found(text) == []


def test_job_script_for_qsub_is_read():
    text = (
        "qsub <<'END'\n#!/bin/bash\n#PBS -l select=2:ncpus=8\n#PBS -l place=scatter\n"
        "cd $PBS_O_WORKDIR\nmpirun -np 2 ./run.sh $PBS_NODEID\nEND\n"
    )
    assert found(text) == [(6, "DT108")]
