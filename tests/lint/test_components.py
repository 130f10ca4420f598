"""Components of a heterogeneous job, each with its own numbers."""

from __future__ import annotations

import pytest

from workshop.lint.linting import lint

PARTS = (
    "#!/bin/bash\n#SBATCH -N 1 -n 1 -c 64\n#SBATCH {mark}\n"
    "#SBATCH -N 2 --ntasks-per-node=1 -c 32 --gres=gpu:4\n"
)


def found(text: str, code: str) -> list[tuple[int, str]]:
    return [(each.line, each.cure) for each in lint(text) if each.rule.code == code]


@pytest.mark.parametrize("mark", ["hetjob", "packjob"])
def test_cores_are_those_of_the_step_s_component(mark):
    option = {"hetjob": "het-group", "packjob": "pack-group"}[mark]
    text = PARTS.format(mark=mark)
    text += f"srun --{option}=0 python a.py &\nsrun --{option}=1 -K python b.py\n"
    assert found(text, "DT113") == [
        (5, "srun --het-group=0 --cpus-per-task=64 ..."),
        (6, "srun --het-group=1 --cpus-per-task=32 ..."),
    ]


def test_launcher_without_a_group_is_sent_to_the_one_that_fits():
    text = PARTS.format(mark="hetjob") + (
        "srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
        "--rdzv-endpoint=a:29400 a.py\n"
    )
    assert found(text, "DT106") == [(5, "srun --het-group=1 ...")]
    right = text.replace("srun", "srun --het-group=1")
    assert found(right, "DT106") == []
    several = text.replace("a.py", "a.py : --het-group=1 torchrun --nnodes=2 b.py")
    assert found(several, "DT106") == []


def test_gpus_are_those_of_the_component():
    text = PARTS.format(mark="hetjob").replace("-c 64", "-c 64 --gres=gpu:8")
    text += "srun --het-group={} torchrun --standalone --nproc-per-node=8 a.py\n"
    assert found(text.format(0), "DT110") == []
    assert [line for line, _ in found(text.format(1), "DT110")] == [5]
