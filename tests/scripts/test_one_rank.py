"""Programs of lessons 13 to 23 with one rank, as on a machine with a single GPU."""

import pytest

from tests.launched import STANDALONE, run
from tests.scripts.trainings import SRC, script, sentence

TRAINS = [2, "--width=24", "--heads=4", "--blocks=2", "--context=16", "--batch-size=8"]
SMALL_GRID = [*TRAINS, "--checkpoints=saved", "--save-every=1", "--async-save"]
nightly = pytest.mark.nightly
# What a program says of its method, and its arguments; one of each kind is quick.
PROGRAMS = {
    "13_pipeline.py": ("the pipeline is one stage", TRAINS),
    "13_pipeline_by_hand.py": ("the pipeline is one stage", TRAINS),
    "13_timeline.py": (
        "the pipeline is one stage",
        [SRC / "13_pipeline_by_hand.py", *TRAINS],
    ),
    "14_tensor_by_hand.py": ("it has all columns and rows", TRAINS),
    "14_tensor_parallel.py": ("it has all columns and rows", TRAINS),
    "15_fsdp.py": ("it holds every shard", [*TRAINS, "--save-every=1"]),
    "15_timeline.py": ("it holds every shard", []),
    "15_zero_by_hand.py": ("it holds every shard", TRAINS),
    "16_fsdp_tensor_parallel.py": ("nothing is divided", SMALL_GRID),
    "16_pipeline_data.py": ("nothing is divided", TRAINS),
    "17_fsdp_accumulation.py": ("it holds every shard", [1]),
    "17_profile.py": ("DDP has nothing to send", ["--steps=1"]),
    "17_speed.py": ("DDP has no rank to send to", [1, "--with", "no-sync"]),
    "17_straggler.py": ("no other waits for it", ["--steps=1"]),
    "18_cost.py": ("there is no link to time", ["--rounds=1", "--batch-size=2"]),
    "21_context_parallel.py": ("it has all of every sequence", TRAINS),
    "21_ring_attention.py": ("it has all of every sequence", TRAINS),
    "21_ulysses.py": ("it has all tokens and all heads", TRAINS),
    "22_expert_parallel.py": ("it has all experts", TRAINS),
    "23_diloco.py": ("its outer steps average nothing", TRAINS),
    "23_slow_link.py": ("there is no link to time", TRAINS),
    "20_capstone.py": ("nothing is divided", [*SMALL_GRID, "--mixed-precision"]),
}
QUICK = "14_tensor_by_hand.py", "15_fsdp.py", "18_cost.py"
COSTS = {
    "13_cost.py": ("13_pipeline.py", "13_pipeline_by_hand.py"),
    "14_cost.py": ("14_tensor_by_hand.py", "14_tensor_parallel.py"),
    "15_cost.py": ("15_zero_by_hand.py", "15_fsdp.py"),
    "16_cost.py": ("16_fsdp_tensor_parallel.py",),
    "21_cost.py": ("21_ring_attention.py", "21_ulysses.py"),
    "22_cost.py": ("22_expert_parallel.py",),
}
PAIRS = [(cost, program) for cost, programs in COSTS.items() for program in programs]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else nightly) for name in PROGRAMS],
)
def test_one_rank_says_what_is_trivial_and_runs(name, tmp_path):
    says, arguments = PROGRAMS[name]
    done = script(tmp_path, name, *arguments)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first.startswith(f"One rank on cpu: {says}")
    assert others and "nan" not in done.stdout


@pytest.mark.parametrize(
    ("cost", "program"),
    [pytest.param(*pair, marks=() if pair == PAIRS[-5] else nightly) for pair in PAIRS],
)
def test_formulas_hold_for_one_rank(cost, program, tmp_path):
    done = script(tmp_path, cost, SRC / program, *TRAINS)
    assert done.returncode == 0, done.stderr
    assert "bytes on rank 0" in done.stdout
    assert "they differ" not in done.stdout


@pytest.mark.full
def test_one_rank_of_torchrun_runs_as_well(tmp_path):
    done = run(tmp_path, [*STANDALONE, SRC / "14_tensor_parallel.py", *TRAINS])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("One rank on cpu: it has all columns and rows")


@pytest.mark.full
def test_both_stages_on_one_rank_are_refused(tmp_path):
    """torch's schedule fails in the middle of a step then."""
    done = script(tmp_path, "13_pipeline.py", *TRAINS, "--schedule=interleaved")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "start two ranks or more, or choose 1f1b" in done.stderr


@pytest.mark.full
def test_other_ranks_cannot_be_predicted_from_one(tmp_path):
    said = sentence(script(tmp_path, "18_cost.py", "--predict", 2))
    assert "--predict 2 needs the time of a link" in said


def test_several_ranks_of_another_launcher_are_not_taken_for_one(tmp_path):
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "4"}
    place = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
    given = {**step, **place, "SLURM_NTASKS": "4"}
    said = sentence(script(tmp_path, "17_straggler.py", **given))
    assert "srun has started 4 processes, and each would run alone" in said
