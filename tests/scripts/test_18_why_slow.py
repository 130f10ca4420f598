"""src/18_why_slow.py: ten runs that are slow for known reasons, and a healthy one."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from tests import launched

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "src" / "18_why_slow.py"
SLOW = Path(__file__).with_name("slow_run.py")
# Other programs on the machine are a reason of their own: these go first if they may.
FIRST = ["nice", "--adjustment=-20"]
TWO_RANKS = [*launched.STANDALONE, "--nproc-per-node=2"]

# reason of slow_run.py -> what the program must name, and words of its sentence
REASONS = {
    "data": ("data", "waits for the next batch"),
    "loop": ("loop", "between two steps"),
    "saving": ("saving", "snapshots"),
    "late_rank": ("imbalance", "rank 1, in its loop"),
    "slow_disk": ("imbalance", "rank 0, in its data"),
    "long_texts": ("imbalance", "rank 1, in its compute"),
    "late_in_turn": ("imbalance", "another rank in each step"),
    "cores": ("cores", "2 ranks share 1 core"),
    "threads": ("threads", "OMP_NUM_THREADS"),
    "short_step": ("short step", "Larger batches"),
    "small_messages": ("small messages", "Send them as one"),
    "every_micro_batch": ("every micro-batch", "4 reductions in a step"),
    "bandwidth": ("bandwidth", "4.0 MB in a step"),
    "by_hand": ("bandwidth", "72.0 MB in a step"),
}


def why(folder, *command, steps=8, before=(), **variables):
    program = [*before, sys.executable, PROGRAM, "--steps", steps, "--", *command]
    return launched.run(folder, program, **variables)


def shares(printed):
    """Percent of a step by part, as printed."""
    found = re.findall(r"^  (\S.*?) +([\d.]+) ms +(\d+)%$", printed, re.M)
    return {part: int(percent) for part, _, percent in found}


@pytest.mark.full
def test_names_nine_of_ten_reasons(tmp_path):
    """Not each of them: other programs on the machine are a reason of their own."""
    missed = {}
    for reason, (name, words) in REASONS.items():
        done = why(tmp_path, *TWO_RANKS, SLOW, reason, before=FIRST)
        assert done.returncode == 0, done.stderr
        last = done.stdout.splitlines()[-1]
        if not last.startswith(f"Largest loss: {name}, ") or words not in last:
            missed[reason] = done.stdout
    assert list(tmp_path.glob("why_slow_*")) == [], "its folder is left behind"
    assert 10 * len(missed) <= len(REASONS), missed


@pytest.mark.full
def test_healthy_run_is_called_healthy(tmp_path):
    done = why(tmp_path, *TWO_RANKS, SLOW, "healthy", before=FIRST)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("Healthy"), done.stdout
    found = shares(done.stdout)
    assert max(found, key=found.get) == "compute"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], "no command is given"),
        (["no-such-program"], "cannot start no-such-program"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "ended with status 3"),
        ([sys.executable, "-c", "pass"], "must take 8 steps in a group"),
    ],
)
def test_bad_input_is_one_sentence(command, words, tmp_path):
    done = why(tmp_path, *command)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_cures_name_lessons():
    """Each loss has a cure, and each cure a page."""
    cures = runpy.run_path(str(PROGRAM))["CURES"]
    assert set(cures) == {name for name, _ in REASONS.values()}
    for words in cures.values():
        assert re.search(r"[Ll]esson \d\d", words), words


def test_silent_run_replaces_no_snapshot(tmp_path):
    """Weights that no rank has averaged must not replace what the reader trained."""
    (tmp_path / "snapshot.pt").write_text("mine")
    (tmp_path / "plan.json").write_text('{"steps": 3, "silent": true}')
    watch = PROGRAM.with_name("common") / "step_watch.py"
    (tmp_path / "sitecustomize.py").write_bytes(watch.read_bytes())
    program = (
        "import os, torch\n"
        "torch.save({}, 'unfinished.pt')\n"
        "os.replace('unfinished.pt', 'snapshot.pt')\n"
        "os.replace('plan.json', 'other.json')\n"
    )
    command = [sys.executable, "-c", program]
    done = launched.run(tmp_path, command, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "snapshot.pt").read_text() == "mine"
    assert (tmp_path / "other.json").exists(), "what isn't saved by torch is renamed"
