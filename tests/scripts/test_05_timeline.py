"""src/instruments/05_timeline.py: the order of events in one backward pass of DDP."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launched import environment

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "src/instruments/05_timeline.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(what is printed, what is written) of one run with two ranks."""
    path = tmp_path_factory.mktemp("timeline") / "events.json"
    done = run("--nprocs", 2, "--json", path)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(path.read_text())


def test_every_rank_writes_its_events(recorded):
    _, written = recorded
    assert written["bucket_mb"] == 2
    assert len(written["ranks"]) == 2
    for events in written["ranks"]:
        assert len(events) == 6 + 3 * 2 + 2, "layers, buckets, ends"
        assert [ms for ms, _ in events] == sorted(ms for ms, _ in events)


def test_a_bucket_begins_when_its_layers_are_complete_and_not_later(recorded):
    _, written = recorded
    for events in written["ranks"]:
        ordered = [what for _, what in events if "averaged" not in what]
        layers = [f"gradients of layer {n} complete" for n in (6, 5, 4, 3, 2, 1)]
        begin = [f"bucket {b} begins: all_reduce of 2.10 MB" for b in range(3)]
        expected = []
        for bucket in range(3):
            expected += [*layers[2 * bucket : 2 * bucket + 2], begin[bucket]]
        assert ordered == [*expected, "backward ends", "step ends"]


def test_backward_ends_after_the_last_bucket(recorded):
    _, written = recorded
    for events in written["ranks"]:
        names = [what for _, what in events]
        for bucket in range(3):
            arrived = names.index(f"bucket {bucket} averaged")
            assert arrived < names.index("backward ends")


def test_rank_0_prints_what_it_writes(recorded):
    printed, written = recorded
    lines = printed.splitlines()
    assert lines[0] == "6 layers, buckets of 2 MiB, 2 ranks"
    assert [line[10:] for line in lines[2:]] == [
        what for _, what in written["ranks"][0]
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bucket-mb", "0"], "'0' is not a number above 0"),
        (["--json", "/nowhere/at/all.json"], "cannot write in the folder /nowhere/at"),
        (["--nprocs", "0"], "'0' is not a whole number above 0"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words):
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_drawn_events_come_from_this_script():
    for name, buckets in (("2", 3), ("25", 1)):
        path = ROOT / "docs" / "figures" / f"05_buckets_{name}_mb.json"
        for events in json.loads(path.read_text())["ranks"]:
            found = [what for _, what in events if what.endswith("averaged")]
            assert len(found) == buckets, path.name
