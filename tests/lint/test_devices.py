"""Ranks and the devices that they see: DT121."""

from __future__ import annotations

import pytest

from tests.lint.forms import FOUR_TASKS, ONE_NODE, TORCHRUN, of_code

CASES: dict[str, tuple[str, list[str]]] = {
    "one device for four ranks": (
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0\n" + TORCHRUN,
        ["4 error"],
    ),
    "two devices for four ranks": (
        ONE_NODE + 'D=0,1\nexport CUDA_VISIBLE_DEVICES="$D"\n' + TORCHRUN,
        ["5 error"],
    ),
    "one device in front of the command": (
        ONE_NODE + "CUDA_VISIBLE_DEVICES=0 " + TORCHRUN,
        ["4 error"],
    ),
    "one device by env": (
        ONE_NODE + "env HIP_VISIBLE_DEVICES=0 " + TORCHRUN,
        ["4 error"],
    ),
    "one device in the shell of the task": (
        ONE_NODE + "srun bash -c 'CUDA_VISIBLE_DEVICES=0 " + TORCHRUN + "'\n",
        ["4 error"],
    ),
    "one device that srun exports, where Slurm may set another": (
        ONE_NODE + "srun --export=ALL,CUDA_VISIBLE_DEVICES=0 " + TORCHRUN,
        ["4 warning"],
    ),
    "one device for the processes of accelerate": (
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0\n"
        "accelerate launch --num_machines 1 --num_processes 4 train.py\n",
        ["4 error"],
    ),
    "as many devices as ranks": (
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0,1,2,3\n" + TORCHRUN,
        [],
    ),
    "one device for another command": (
        ONE_NODE + "CUDA_VISIBLE_DEVICES=0 python prepare.py\n" + TORCHRUN,
        [],
    ),
    "one device in a subshell": (
        ONE_NODE + "(export CUDA_VISIBLE_DEVICES=0; python prepare.py)\n" + TORCHRUN,
        [],
    ),
    "one device that only a branch leaves": (
        ONE_NODE + "if [ $1 ]; then\n  export CUDA_VISIBLE_DEVICES=0\nfi\n" + TORCHRUN,
        [],
    ),
    "a device for each rank": (
        FOUR_TASKS + "export CUDA_VISIBLE_DEVICES=0\nsrun -K bash -c "
        "'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python train.py'\n",
        [],
    ),
    "list that is forgotten again": (
        ONE_NODE
        + "export CUDA_VISIBLE_DEVICES=0\npython a.py\nunset CUDA_VISIBLE_DEVICES\n"
        + TORCHRUN,
        [],
    ),
    "ranks on the CPU": (
        ONE_NODE
        + "export CUDA_VISIBLE_DEVICES=0\n"
        + TORCHRUN.replace("train.py", "train.py --device cpu"),
        [],
    ),
    "ranks that use no device": (
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=-1\n" + TORCHRUN,
        [],
    ),
    "deepspeed, which drops the list": (
        ONE_NODE + "export CUDA_VISIBLE_DEVICES=0\ndeepspeed --num_gpus 4 train.py\n",
        [],
    ),
}


@pytest.mark.parametrize(("text", "told"), CASES.values(), ids=CASES.keys())
def test_fewer_visible_devices_than_ranks_are_told(text, told):
    assert of_code(text, "DT121") == told
