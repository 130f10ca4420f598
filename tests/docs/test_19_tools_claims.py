"""What lesson 19 says about the tools, as far as it can be checked without a GPU."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import lesson_source
from workshop.diagnose.first import first_failed
from workshop.diagnose.logs import read_logs

ROOT = Path(__file__).resolve().parents[2]
PAGE = lesson_source("19_when_it_breaks")
ANALYZER = "torch.distributed.flight_recorder.fr_trace"


def test_predicted_rank_is_the_one_that_diagnose_suspects():
    log = read_logs([str(ROOT / "tests/grader/foreign_logs/gloo_waits.txt")])
    text = PAGE
    assert ":label: The rank to look at\n      :answer: 2\n" in text
    first = first_failed(log)
    assert first.ranks == (2,) and not first.sure


def test_flight_recorders_analyser_takes_the_options_of_the_page():
    command = [sys.executable, "-m", ANALYZER, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for option in ("--prefix", "--allow-incomplete-ranks"):
        assert option in done.stdout


def test_variables_of_the_flight_recorder_are_those_of_this_torch():
    import torch

    library = Path(torch.__file__).parent / "lib/libtorch_cpu.so"
    content = library.read_bytes()
    older = b"TORCH_NCCL_TRACE_BUFFER_SIZE"
    for name in (b"TORCH_FR_BUFFER_SIZE", older, b"TORCH_FR_DUMP_TEMP_FILE"):
        assert name in content
        assert name.decode() in PAGE


def test_flight_recorder_records_and_has_a_folder_by_default():
    import torch

    torch_folder = Path(torch.__file__).parent
    header = "include/torch/csrc/distributed/c10d/FlightRecorder.hpp"
    text = " ".join((torch_folder / header).read_text(encoding="utf-8").split())
    kept = re.search(r'"TORCH_NCCL_TRACE_BUFFER_SIZE"\}, (\d+)\)', text)
    assert f"the last {int(kept[1]):,} collectives" in " ".join(PAGE.split())
    content = (torch_folder / "lib/libtorch_cpu.so").read_bytes()
    assert b"comm_lib_trace_r" in content and b"/.cache\0" in content
    assert "``~/.cache/torch/comm_lib_trace_rank_3``" in PAGE


def test_torchrun_binds_ranks_near_their_gpus():
    """``torchrun --numa-binding=node`` keeps each rank near its GPU."""
    command = [sys.executable, "-m", "torch.distributed.run", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = " ".join(done.stdout.split())
    assert "--numa-binding {node," in said
    assert "Bind worker processes to CPUs near their assigned GPUs" in said
    assert "--numa-binding=node" in PAGE
    assert "it needs the program ``numactl`` on every node" in " ".join(PAGE.split())


def test_py_spy_shows_one_of_two_ranks_in_the_collective():
    shown = (ROOT / "docs/transcripts/19_tool_py_spy.txt").read_text("utf-8")
    stacks = re.findall(r"^    (\S+) \(03_deadlocks\.py", shown, re.M)
    assert stacks[0] == "only_rank_0" and stacks.count("only_rank_0") == 1
    assert stacks.count("<module>") == 2  # the outermost line of each
