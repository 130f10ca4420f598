"""The gallery's messages find the failure that a line of somebody's log belongs to."""

import re
from pathlib import Path

import pytest

from common.gallery import load_gallery
from tests import launched
from tools import transcripts
from tools.transcript_catalog import load_catalog

ROOT = Path(__file__).resolve().parents[2]
GALLERY = load_gallery()
# Hangs of many kinds end with the same time-out; a crash has words of its own.
CRASHES = [name for name, failure in GALLERY.items() if failure.symptom == "crashes"]

# Lines that no machine without a GPU prints, or an earlier PyTorch did. Where they were
# seen: github.com/NVIDIA/nccl/issues/525, NVIDIA/nccl-tests/issues/166,
# pytorch/pytorch/issues/102438, slurm.schedmd.com/faq.html
OTHERS = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 MiB": (
        "out_of_memory"
    ),
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0": "killed_rank",
    "exitcode  : -9 (pid: 4711)": "killed_rank",
    "NCCL WARN Call to posix_fallocate failed : No space left on device": (
        "full_dev_shm"
    ),
    "NCCL WARN Error: failed to extend /dev/shm/nccl-ab to 99 bytes": "full_dev_shm",
    "traceback : Signal 7 (SIGBUS) received by PID 4711": "cut_mapped_file",
    "RuntimeError: received 0 items of ancdata": "too_many_files",
    "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 2 params": (
        "unequal_parameters"
    ),
    "AttributeError: Can't pickle local object 'main.<locals>.run'": (
        "unpicklable_argument"
    ),
    'Missing key(s) in state_dict: "module.fc.weight", "module.fc.bias".': (
        "module_prefix"
    ),
}


def recognized(text: str) -> list[str]:
    """The failures one of whose messages is in the text."""
    return [
        name
        for name, failure in GALLERY.items()
        if any(re.search(message, text) for message in failure.messages)
    ]


@pytest.mark.parametrize("name", CRASHES)
def test_messages_recognize_a_crash_in_its_recording(name):
    recording = transcripts.body(load_catalog()[f"19_{name}"])
    assert name in recognized(recording), f"no message of {name} is in its recording"


@pytest.mark.parametrize(("line", "name"), OTHERS.items())
def test_messages_recognize_what_other_machines_print(line, name):
    assert recognized(line) == [name]


def test_runs_that_end_well_have_no_message_of_a_failure():
    for name, failure in GALLERY.items():
        if failure.status == 0:
            recording = transcripts.body(load_catalog()[f"19_{name}"])
            assert recognized(recording) == [], name


@pytest.mark.full
@pytest.mark.parametrize("name", ["mixed_dtypes", "unequal_shapes"])
def test_detail_names_the_mismatch_before_the_collective_runs(name):
    command = [*launched.STANDALONE, "--nproc-per-node=2", f"gallery/{name}.py"]
    done = launched.run(ROOT, command, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.returncode == 1
    assert "Detected mismatch between collectives on ranks" in done.stderr
    assert name in recognized(done.stderr)
