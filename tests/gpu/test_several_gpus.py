"""NCCL between the GPUs of one machine. Never run by us: we have had none of them."""

import pytest
import torch

from tests.gpu.programs import GPT
from tests.gpu.results import write_transcript
from tests.gpu.running import run, shown
from tests.gpu.test_programs import for_a_cpu

# {ranks}: two of them, so that it divides heads, blocks and batches
BY_TWO = "torchrun --standalone --nproc-per-node=2"
COMMANDS = {
    "03_collectives": "src/03_collectives.py",
    "03_ring_all_reduce": "src/03_ring_all_reduce.py",
    "07_torchrun": "src/07_torchrun.py 2 1",
    "08_link_speed": "src/instruments/08_link_speed.py",
    "13_pipeline": f"src/13_pipeline.py {GPT}",
    "13_pipeline_by_hand": f"src/13_pipeline_by_hand.py {GPT}",
    "14_tensor_by_hand": f"src/14_tensor_by_hand.py {GPT}",
    "14_tensor_parallel": f"src/14_tensor_parallel.py {GPT}",
    "14_sequence_parallel": f"src/14_tensor_parallel.py {GPT} --sequence-parallel",
    "15_fsdp": f"src/15_fsdp.py {GPT} --save-every 1",
    "15_zero_by_hand": f"src/15_zero_by_hand.py {GPT}",
    "16_fsdp_tensor_parallel": f"src/16_fsdp_tensor_parallel.py {GPT}",
    "16_pipeline_data": f"src/16_pipeline_data.py {GPT}",
    "17_speed": "src/instruments/17_speed.py 3 --with no-sync one-bucket",
    "17_straggler": "src/instruments/17_straggler.py",
    "18_cost": "src/instruments/18_cost.py --rounds 1",
    "20_capstone": f"src/20_capstone.py {GPT} --checkpoints run --save-every 1",
    "21_context_fsdp": f"src/21_context_fsdp.py {GPT}",
    "21_context_parallel": f"src/21_context_parallel.py {GPT} --context=128",
    "21_packed_documents": f"src/21_packed_documents.py {GPT}",
    "21_ring_attention": f"src/21_ring_attention.py {GPT}",
    "21_ulysses": f"src/21_ulysses.py {GPT}",
    "22_expert_parallel": f"src/22_expert_parallel.py {GPT}",
    "23_diloco": f"src/23_diloco.py {GPT} --local-steps 2",
    "23_slow_link": f"src/instruments/23_slow_link.py {GPT} --test-every 1",
    "train_ddp": "src/starter/train_ddp.py 1",
    "train_fsdp": "src/starter/train_fsdp.py 1",
}
ONLY_GPUS = ("21_context_parallel",)  # which gloo's ranks on a CPU refuse


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


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ONLY_GPUS])
def test_command_of_two_ranks_runs_without_a_gpu(name, tmp_path):
    done = run(tmp_path, for_a_cpu(f"{BY_TWO} {COMMANDS[name]}"), "cpu")
    assert done.returncode == 0, done.stderr


def test_several_gpus_dry(tmp_path):
    """The same command on the CPU, through gloo."""
    text, done = run_by_two(tmp_path, "08_link_speed", "cpu")
    assert done.returncode == 0, done.stderr
    command = "$ torchrun --standalone --nproc-per-node=2 src/instruments/08_link"
    assert text.startswith(command)
