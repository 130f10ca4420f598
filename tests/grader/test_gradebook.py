"""``workshop grade``: many learners, each graded whatever the others handed in."""

from __future__ import annotations

import json
import os
import signal
from xml.etree import ElementTree

import pytest

from tests.grader.small_house import (
    NAMES,
    PATIENCE,
    grade,
    graded,
    read_results,
    start,
    statuses,
    workshop,
)
from tests.launched import wait_until
from workshop.learner.progress import write_atomically


@pytest.fixture
def begin(house):
    """``begin("grade", ...)`` in the background; ended whatever the test does."""
    running = []

    def begin(*words):
        running.append(start(house, *words))
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def hand_in(tmp_path):
    """``hand_in("alice", "right", None, "wrong")`` -> alice's folder."""

    def hand_in(learner, *orders, inside=""):
        folder = tmp_path / "class" / learner
        (folder / inside).mkdir(parents=True, exist_ok=True)
        for name, order in zip(NAMES, orders, strict=False):
            if order:
                path = folder / inside / f"{name}.py"
                path.write_text(f"# play: {order}\n")
        return str(folder)

    return hand_in


def refused(result):
    """The sentence; and nothing was graded."""
    assert result.returncode == 2, result
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


def test_what_could_not_be_tried_is_counted_apart_and_gives_no_points(house, hand_in):
    alice = hand_in("alice", "right", "partly", "wrong sum")
    result, told, rows = grade(house, alice)
    assert statuses(told["alice"]) == ["right", "not fully checked", "wrong"]
    assert told["alice"]["points"] == 1
    assert rows["alice"]["right"] == rows["alice"]["not fully checked"] == "1"
    assert "02_two: not fully checked" in result.stdout
    assert "this machine has no Slurm" in result.stdout
    (suite,) = ElementTree.parse(house / "out.xml").getroot().findall("testsuite")
    assert suite.get("skipped") == "1" and suite.get("errors") == "0"
    skipped = suite.findall("testcase")[1].find("skipped")
    assert skipped is not None and "the real nodes" in skipped.get("message", "")


def test_points_totals_and_three_formats(house, hand_in):
    alice = hand_in("alice", "right", "right", "wrong sum")
    bob = hand_in("bob", "wrong", None, "right", inside="exercises")
    result, told, rows = grade(house, alice, bob)
    assert result.returncode == 0
    assert statuses(told["alice"]) == ["right", "right", "wrong"]
    assert statuses(told["bob"]) == ["wrong", "not started", "right"]
    assert (told["alice"]["points"], told["alice"]["possible"]) == (3, 6)
    assert told["alice"]["exercises"][2]["verdict"] == "wrong value"
    assert "you ordered wrong sum" in told["alice"]["exercises"][2]["message"]
    assert rows["bob"]["points"] == "3" and rows["bob"]["not started"] == "1"
    assert rows["bob"]["03_three"] == "3"
    assert rows["bob"]["01_one verdict"] == "wrong value"
    suites = ElementTree.parse(house / "out.xml").getroot().findall("testsuite")
    assert [s.get("name") for s in suites] == ["alice", "bob"]
    assert [s.get("failures") for s in suites] == ["1", "1"]
    assert [s.get("skipped") for s in suites] == ["0", "1"]
    assert "alice" in result.stdout and "3 / 6" in result.stdout
    assert not (house / ".workshop").exists()


def test_each_takes_the_folders_inside_as_learners(house, hand_in, tmp_path):
    hand_in("carol", "right")
    hand_in("dave", "wrong")
    (tmp_path / "class" / "README").write_text("no learner")
    (tmp_path / "class" / ".git").mkdir()
    _, told, _ = grade(house, str(tmp_path / "class"), "--each")
    assert sorted(told) == ["carol", "dave"]
    sentence = refused(workshop(house, "grade", str(tmp_path / "class")))
    assert "--each" in sentence


def test_one_exercise_only(house, hand_in):
    _, told, _ = grade(house, hand_in("alice", "right", "right"), "-e", "two")
    assert [one["name"] for one in told["alice"]["exercises"]] == ["02_two"]
    assert told["alice"]["points"] == told["alice"]["possible"] == 2


def test_what_cannot_be_read_gets_a_sentence_and_the_rest_is_graded(
    house, hand_in, tmp_path
):
    alice = hand_in("alice", "right", "right", "right")
    mallory = tmp_path / "class" / "mallory"
    mallory.mkdir()
    (mallory / "01_one.py").symlink_to(tmp_path / "class" / "alice" / "01_one.py")
    os.mkfifo(mallory / "02_two.py")
    (mallory / "03_three.py").write_bytes(b"#" * 2_000_000)
    trent = tmp_path / "class" / "trent"
    (trent / "01_one.py").mkdir(parents=True)
    (trent / "02_two.py").symlink_to("nowhere.py")
    (trent / "inside.py").write_text("# play: right\n")
    (trent / "03_three.py").symlink_to("inside.py")  # within the folder: allowed
    result, told, _ = grade(house, str(mallory), str(trent), alice)
    assert result.returncode == 0
    assert told["alice"]["points"] == 6
    messages = [one["message"] for one in told["mallory"]["exercises"]]
    assert "link out of the folder" in messages[0]
    assert "not a plain file" in messages[1]
    assert "2,000,000 bytes" in messages[2]
    assert statuses(told["mallory"]) == ["unreadable"] * 3
    assert statuses(told["trent"]) == ["unreadable", "unreadable", "right"]
    assert "mallory: 01_one: 01_one.py is a link out of the folder" in result.stdout


def test_a_linked_exercises_folder_does_not_lead_out(house, tmp_path):
    mallory = tmp_path / "class" / "mallory"
    mallory.mkdir(parents=True)
    (mallory / "exercises").symlink_to(house / "solutions")
    _, told, _ = grade(house, str(mallory))
    assert statuses(told["mallory"]) == ["unreadable"] * 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_folder_is_a_row(house, hand_in):
    alice, bob = hand_in("alice", "right"), hand_in("bob", "right")
    os.chmod(bob, 0)
    try:
        _, told, _ = grade(house, alice, bob)
    finally:
        os.chmod(bob, 0o755)
    assert statuses(told["bob"]) == ["unreadable"] * 3
    assert told["alice"]["points"] == 1


def test_an_empty_folder_is_not_started_and_remarked(house, hand_in):
    result, told, _ = grade(house, hand_in("alice", "right"), hand_in("bob"))
    assert statuses(told["bob"]) == ["not started"] * 3
    assert "bob: no exercise file in this folder" in result.stdout


def test_two_copies_are_remarked(house, hand_in):
    alice = hand_in("alice", "wrong")
    hand_in("alice", "right", inside="exercises")
    result, told, _ = grade(house, alice)
    assert told["alice"]["points"] == 1
    assert "graded exercises/01_one.py, not the other copy 01_one.py" in result.stdout


def test_a_failure_of_the_grader_is_told_in_its_row(house, hand_in):
    alice = hand_in("alice", "fail", "right", "break")
    result, told, _ = grade(house, alice, hand_in("bob", "right"))
    assert result.returncode == 3
    assert statuses(told["alice"]) == ["environment", "right", "environment"]
    assert "a bug in the grader" in told["alice"]["exercises"][0]["message"]
    assert "torch cannot be imported" in result.stdout
    assert told["bob"]["points"] == 1


def test_odd_names_of_learners_survive_every_format(house, tmp_path):
    names = ["=1+2", "a b,c;d", "Zo\u00eb", "x\x07y", os.fsdecode(b"Ren\xe9")]
    for name in names:
        folder = tmp_path / "class" / name
        folder.mkdir(parents=True)
        (folder / "01_one.py").write_text("# play: right\n")
    _, told, rows = grade(house, str(tmp_path / "class"), "--each")
    assert len(told) == len(rows) == 5
    assert {"=1+2", "a b,c;d", "Zo\u00eb", "x?y", "Ren?"} == set(told)
    assert "'=1+2" in rows  # a spreadsheet must not compute it
    assert all(one["points"] == 1 for one in told.values())
    suites = ElementTree.parse(house / "out.xml").getroot().findall("testsuite")
    assert len(suites) == 5


def test_jobs_give_the_same_results(house, hand_in):
    folders = [hand_in(f"learner{i}", "right", "wrong", "sleep 0.1") for i in range(6)]
    _, one, _ = grade(house, *folders)
    _, four, _ = grade(house, *folders, "--jobs", "4")
    for name in one:
        assert statuses(one[name]) == statuses(four[name])
        assert one[name]["points"] == four[name]["points"] == 4
    assert list(one) == list(four)


# -- what is refused before anything is graded -----------------------------------------
def test_folders_that_are_refused(house, hand_in, tmp_path):
    alice = hand_in("alice", "right")
    other = tmp_path / "evening" / "alice"
    other.mkdir(parents=True)
    file = tmp_path / "file"
    file.write_text("")
    for words, told in [
        (["nowhere"], "there is no folder nowhere"),
        ([str(file)], "is not a folder"),
        ([alice, alice + "/"], "given twice"),
        ([alice, alice + "/../alice"], "given twice"),
        ([alice, str(other)], "both the learner 'alice'"),
        ([str(other), "--each"], "no folder in"),
        ([alice, "--jobs", "0"], "0"),
    ]:
        assert told in refused(workshop(house, "grade", *words))
    assert graded(house) == []


def test_outputs_that_are_refused(house, hand_in, tmp_path):
    alice = hand_in("alice", "right")
    pipe = tmp_path / "pipe"  # never a real device here: a bug would replace it
    os.mkfifo(pipe)
    for words, told in [
        (["--csv", str(tmp_path)], "is a folder"),
        (["--json", "no/such/out.json"], "there is no folder no/such"),
        (["--junit", str(pipe)], "is not a plain file"),
        (["--csv", "a", "--json", "./a"], "both name"),
        (["--csv", "/proc/out.csv"], "cannot be written"),
    ]:
        assert told in refused(workshop(house, "grade", alice, *words))
    assert graded(house) == []
    assert not list(house.glob(".workshop-*"))
    assert pipe.is_fifo()


def test_a_pipe_or_a_device_is_never_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a plain file"):
        write_atomically(pipe, "text")
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


# -- interruption ----------------------------------------------------------------------
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_keeps_what_was_graded(house, hand_in, begin, number):
    alice = hand_in("alice", "right", "wrong")
    bob = hand_in("bob", "right", "sleep 1000", "right")
    files = ["--json", "out.json", "--csv", "out.csv", "--junit", "out.xml"]
    process = begin("grade", alice, bob, *files)
    wait_until(lambda: "begin sleep 1000" in graded(house))
    process.send_signal(number)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "stopped: 4 of 6 were graded" in errors and "out.json" in errors
    assert "Traceback" not in errors
    told, rows = read_results(house)
    assert statuses(told["alice"]) == ["right", "wrong", "not started"]
    assert statuses(told["bob"]) == ["right", "not graded", "not graded"]
    assert json.loads((house / "out.json").read_text())["complete"] is False
    assert rows["bob"]["points"] == "1"
    assert "1 / 6" in output


def test_results_are_written_while_grading_goes_on(house, hand_in, begin):
    """Even a grader that is killed outright leaves what it had."""
    alice = hand_in("alice", "right", "sleep 1", "sleep 1000")
    begin("grade", alice, "--json", "out.json")
    wait_until(lambda: "begin sleep 1000" in graded(house))
    wait_until((house / "out.json").exists)

    def written():
        told = json.loads((house / "out.json").read_text())["learners"][0]
        return statuses(told) == ["right", "right", "not graded"]

    wait_until(written)


def test_an_output_that_fails_later_is_said_and_the_table_shown(house, hand_in, begin):
    out = house / "results"
    out.mkdir()
    alice = hand_in("alice", "sleep 1")
    process = begin("grade", alice, "--json", "results/out.json")
    wait_until(lambda: "begin sleep 1" in graded(house))
    out.rmdir()
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "was not written" in errors and "Traceback" not in errors
    assert "1 / 6" in output
