"""src/07_elastic.py: one screen that learns, and resumes after a kill."""

import os
import signal
import subprocess
import sys

import pytest

from tests.launched import environment
from tests.scripts.trainings import SRC
from tools.bench_kills import children, finish

SCRIPT = SRC / "07_elastic.py"


def test_fits_on_a_screen_or_two():
    assert len(SCRIPT.read_text().splitlines()) <= 90


@pytest.mark.nightly
@pytest.mark.cold("a rank among the processes below its launcher is killed")
def test_killed_rank_costs_only_the_steps_since_the_snapshot(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    process = subprocess.Popen(
        [*command, "--nproc-per-node=2", "--max-restarts=2", str(SCRIPT)],
        cwd=tmp_path,
        env=environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    for line in process.stdout:
        if line.startswith("Step 40 "):
            os.kill(children(process.pid)[-1], signal.SIGKILL)
            break
    output = finish(process)
    assert process.returncode == 0, output
    assert "Starting from step 40" in output
    assert "Weights 1.000" in output, output[-500:]
    assert output.count("Step 100 | Loss 0.0000") == 1
