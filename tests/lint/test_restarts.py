"""Ranks and jobs that start again: DT214 and DT308."""

from __future__ import annotations

import pytest

from tests.lint.forms import ONE_NODE, of_code

RESTARTS = "torchrun --nnodes=2 --nproc-per-node=4 --max-restarts={} "
STATIC = "--node-rank=1 --master-addr=node01 train.py\n"
AGAIN = ONE_NODE + "#SBATCH --requeue\n"
TRAINER = "python train.py --output_dir out {}\n"
LIGHTNING = "srun python train.py --devices 4 --num_nodes 1\n"
CASES: dict[str, tuple[str, str, list[str]]] = {
    "restarts with static ranks": ("DT214", RESTARTS.format(3) + STATIC, ["1 warning"]),
    "no restarts": ("DT214", RESTARTS.format(0) + STATIC, []),
    "restarts of one node": (
        "DT214",
        "torchrun --standalone --nproc-per-node=4 --max-restarts=3 train.py\n",
        [],
    ),
    "restarts with c10d": (
        "DT214",
        RESTARTS.format(3)
        + "--rdzv-backend=c10d --rdzv-endpoint=node01:29512 train.py\n",
        [],
    ),
    "requeue that overwrites": (
        "DT308",
        AGAIN + TRAINER.format("--overwrite_output_dir"),
        ["4 warning"],
    ),
    "requeue that doesn't overwrite": (
        "DT308",
        AGAIN + TRAINER.format("--overwrite_output_dir False"),
        [],
    ),
    "requeue that overwrites, and resumes": (
        "DT308",
        AGAIN + TRAINER.format("--overwrite_output_dir --resume_from_checkpoint last"),
        [],
    ),
    "requeue by Lightning": (
        "DT308",
        AGAIN + "#SBATCH --signal=SIGUSR1@90\n" + LIGHTNING,
        [],
    ),
    "requeue that Lightning isn't told of": ("DT308", AGAIN + LIGHTNING, ["4 warning"]),
}


@pytest.mark.parametrize(("code", "text", "told"), CASES.values(), ids=CASES.keys())
def test_start_from_scratch_is_told(code, text, told):
    assert of_code(text, code) == told
