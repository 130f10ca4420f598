"""06_token_stream.py on two nodes of the practice cluster: each window is read once."""

import itertools
import json

import pytest

pytestmark = pytest.mark.full

PROGRAM = ["./job_scripts/interactive.sh", "src/06_token_stream.py", "tokens"]
OPTIONS = ["--context", "4096", "--workers", "2", "--batch-size", "5"]
WHERE = ["--position", "stream.json", "--record", "stream"]


@pytest.fixture(scope="module")
def tokens(submit, checkout):
    command = [".venv/bin/python", "src/06_write_tokens.py", "tokens"]
    done = submit.run(command, node="n1")
    assert done.returncode == 0, done.stderr
    return json.loads((checkout / "tokens" / "index.json").read_text())


def test_two_nodes_read_each_window_once_stopped_and_resumed(submit, checkout, tokens):
    """2 nodes x 2 ranks x 2 workers; the second job continues where the first was."""
    step = ["srun", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=2"]
    for steps in (["--steps", "17"], []):
        command = [*step, *PROGRAM, *OPTIONS, *WHERE, *steps]
        done = submit.run(command, env={"RANKS_PER_NODE": "2"}, timeout=240)
        assert done.returncode == 0, done.stderr
    assert "Epoch 0 continues after 340 windows" in done.stdout
    found, readers = [], set()
    for rank in range(4):
        lines = (checkout / "stream" / f"rank{rank}.txt").read_text().splitlines()
        for line in lines:
            _, _, worker, *windows = map(int, line.split())
            readers.add((rank, worker))
            found += windows
    count = sum(-(-shard["tokens"] // 4096) for shard in tokens)
    assert sorted(found) == list(range(count))
    assert readers == set(itertools.product(range(4), range(2)))
