"""Programs where PyTorch's own choices are others than on a Linux machine's CPU.

The first GPU that we had showed AdamW's choice, which refused the parameters of
14_tensor_parallel.py. That `fully_shard` takes a Mac's GPU where it is given no mesh is
from reading PyTorch: we have no Mac.
"""

import re
import sys
from pathlib import Path

import pytest

from tests.launched import run
from tests.scripts import trainings

MACHINES = Path(__file__).parent / "other_machines"
SMALL = ["--width=16", "--heads=4", "--blocks=2", "--context=8", "--batch-size=4"]
# Two steps of each, with the options that it needs
TRAIN_A_GPT = {
    "13_pipeline.py": ["--micro-batches=2"],
    "14_tensor_parallel.py": [],
    "15_fsdp.py": [],
    "15_zero_by_hand.py": [],
    "16_fsdp_tensor_parallel.py": ["--checkpoints=saved", "--save-every=1"],
    "16_pipeline_data.py": ["--micro-batches=2"],
    "20_capstone.py": ["--checkpoints=saved", "--save-every=1", "--async-save"],
    "21_context_fsdp.py": [],
    "22_expert_parallel.py": [],
}
FAILED_ONCE = "14_tensor_parallel.py"
FULL = pytest.mark.full


def steps_of_two_ranks(folder, machine, name, *options):
    """The losses of a run of two ranks on such a machine."""
    command = [trainings.program(name), 2, *SMALL, *options]
    path = str(MACHINES / machine)
    done = trainings.torchrun(folder, 2, *command, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    return re.findall(r"^Step \d \| loss ([\d.]+)$", done.stdout, re.M)


@pytest.mark.cold("sitecustomize.py must be read before anything else")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=FULL if name == FAILED_ONCE else pytest.mark.nightly)
        for name in TRAIN_A_GPT
    ],
)
def test_gpt_is_trained(name, tmp_path):
    """On a machine that is both of them: a program is to run on each."""
    found = steps_of_two_ranks(tmp_path, "both", name, *TRAIN_A_GPT[name])
    assert len(found) == 2, found


@pytest.mark.nightly
@pytest.mark.cold("sitecustomize.py must be read before anything else")
def test_each_method_that_18_cost_measures_takes_a_step(tmp_path):
    program = trainings.program("18_cost.py")
    path = str(MACHINES / "many_at_once")
    done = trainings.torchrun(tmp_path, 2, program, "--rounds", 1, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^TP\b", done.stdout, re.M), done.stdout


@pytest.mark.nightly
@pytest.mark.cold("sitecustomize.py must be read before anything else")
@pytest.mark.parametrize(
    "command",
    [
        "src/instruments/15_timeline.py",
        "src/instruments/17_fsdp_accumulation.py 1",
        "src/starter/train_ddp.py 1",
        "src/starter/train_fsdp.py 1",
        "docs/examples/15_four_layers.py",
    ],
)
def test_shards_lie_on_the_cpu_of_a_mac(command, tmp_path):
    program, *rest = command.split()
    path = trainings.ROOT / program
    mac = str(MACHINES / "mac")
    done = trainings.torchrun(tmp_path, 2, path, *rest, PYTHONPATH=mac)
    assert done.returncode == 0, done.stderr
    assert done.stdout


# Where fully_shard goes without a mesh, and how an optimizer updates on a CPU
CHOICES = """
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.optim import adamw, optimizer

parameters = [torch.nn.Parameter(torch.ones(2))]
print(optimizer._default_to_fused_or_foreach(parameters, False, False))
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
fully_shard(torch.nn.Linear(2, 2))
print("on the CPU")
"""
ONE_BY_ONE, MANY_AT_ONCE = "(False, False)", "(False, True)"


@pytest.mark.full
@pytest.mark.cold("sitecustomize.py must be read before anything else")
@pytest.mark.parametrize(
    ("machine", "update", "on_mps"),
    [
        ("both", MANY_AT_ONCE, True),
        pytest.param("mac", ONE_BY_ONE, True, marks=pytest.mark.nightly),
        pytest.param("many_at_once", MANY_AT_ONCE, False, marks=pytest.mark.nightly),
        pytest.param("none", ONE_BY_ONE, False, marks=pytest.mark.nightly),
    ],
)
def test_the_machines_are_what_they_are_called(machine, update, on_mps, tmp_path):
    """PyTorch looks where these replace something: else they'd show nothing."""
    code = tmp_path / "code.py"
    code.write_text(CHOICES)
    done = run(tmp_path, [sys.executable, code], PYTHONPATH=str(MACHINES / machine))
    first, *rest = done.stdout.splitlines()
    assert first == update, done.stderr
    assert rest == ([] if on_mps else ["on the CPU"]), done.stderr
    assert ("mps" in done.stderr) == on_mps, done.stderr
