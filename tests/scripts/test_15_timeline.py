"""15_timeline.py: what it prints of one step of FSDP, and what it writes."""

import json

import pytest

from tests.launched import STANDALONE, run
from tests.scripts.trainings import SRC

pytestmark = pytest.mark.full

SCRIPT = SRC / "instruments/15_timeline.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(the lines that are printed, what is written) of one run with two ranks."""
    folder = tmp_path_factory.mktemp("timeline")
    command = [*STANDALONE, "--nproc-per-node=2", SCRIPT, "--json", "events.json"]
    done = run(folder, command)
    assert done.returncode == 0, done.stderr
    written = json.loads((folder / "events.json").read_text())
    return done.stdout.splitlines(), written


def test_rank_0_prints_what_it_writes(recorded):
    (first, *lines), written = recorded
    assert first == "2 ranks on cpu through gloo"
    assert lines == [f"  {event}" for event in written["events"]]


def test_a_block_is_gathered_computed_and_freed_in_forward_and_again_in_backward(
    recorded,
):
    events = recorded[1]["events"]
    for block in range(recorded[1]["blocks"]):
        own = [event for event in events if event.endswith(f" blocks.{block}")]
        what = [event.split()[0] for event in own]
        forward, backward = what[:3], what[3:]
        assert forward == ["gather", "forward", "free"]
        assert backward == ["gather", "backward", "free", "reduce-scatter"]


def test_the_root_is_gathered_once_and_freed_at_the_end(recorded):
    events = [e for e in recorded[1]["events"] if e.endswith(" the root")]
    what = [event.removesuffix(" the root") for event in events]
    assert what == ["gather", "forward", "backward", "free", "reduce-scatter"]
