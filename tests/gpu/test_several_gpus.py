"""NCCL between the GPUs of one machine. Never run by us: we have had none of them."""

import pytest
import torch

from tests.gpu.programs import GPT
from tests.gpu.results import write_transcript
from tests.gpu.running import run, shown

# {ranks}: two of them, so that it divides heads, blocks and batches
BY_TWO = "torchrun --standalone --nproc-per-node=2"
COMMANDS = {
    "03_collectives": "src/03_collectives.py",
    "03_ring_all_reduce": "src/03_ring_all_reduce.py",
    "08_link_speed": "src/instruments/08_link_speed.py",
    "13_pipeline": f"src/13_pipeline.py {GPT}",
    "13_pipeline_by_hand": f"src/13_pipeline_by_hand.py {GPT}",
    "14_tensor_parallel": f"src/14_tensor_parallel.py {GPT}",
    "15_fsdp": f"src/15_fsdp.py {GPT}",
    "16_pipeline_data": f"src/16_pipeline_data.py {GPT}",
    "17_straggler": "src/instruments/17_straggler.py",
    "18_cost": "src/instruments/18_cost.py --rounds 1",
}


def run_by_two(folder, name, kind):
    command = f"{BY_TWO} {COMMANDS[name]}"
    done = run(folder, command, kind)
    return shown(command, done), done


@pytest.mark.gpu
@pytest.mark.parametrize("name", COMMANDS)
def test_two_ranks_through_nccl(name, gpu, tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU: NCCL between GPUs needs two of them")
    text, done = run_by_two(tmp_path, name, "cuda")
    write_transcript(f"nccl_{name}", text)
    assert done.returncode == 0, done.stderr


def test_several_gpus_dry(tmp_path):
    """The same command on the CPU, through gloo."""
    text, done = run_by_two(tmp_path, "08_link_speed", "cpu")
    assert done.returncode == 0, done.stderr
    command = "$ torchrun --standalone --nproc-per-node=2 src/instruments/08_link"
    assert text.startswith(command)
