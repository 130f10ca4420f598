"""``workshop capstone``: points for right runs, a sentence for each wrong one."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.scripts.evidence_20_capstone import (
    EVERY,
    LAST,
    LOST,
    NUMEL,
    OF_PBS,
    OF_SACCT,
    OF_TRACEJOB,
    ROOT,
    command,
    gaps,
    start,
    two_runs,
    write,
)
from workshop.capstone.judge import judge
from workshop.capstone.unbroken import hash_of
from workshop.learner import progress
from workshop.learner.house import House
from workshop.learner.second_task import second_task


def test_two_right_runs_have_all_points(tmp_path):
    judgment = judge(write(tmp_path / "capstone", two_runs()), ROOT)
    assert [each.missing for each in judgment.judged if each.missing] == []
    assert (judgment.points, judgment.broken) == (100, "")
    done = command(tmp_path / "capstone")
    assert done.exit_code == 0 and "100 of 100" in done.output
    assert "The disturbed run is b2." in done.output
    assert "The code is solutions/20_capstone.py" in done.output
    assert "the workshop's solution" in " ".join(done.output.split())


def test_the_second_task_is_told_once_it_has_begun(monkeypatch):
    states = {
        "20_context_axis": progress.RIGHT,
        "20_expert_axis": progress.NOT_STARTED,
        "20_lost_rank": progress.CHANGED,
    }
    monkeypatch.setattr(progress.Progress, "states", lambda _self, _every: states)
    assert second_task(House()) == (
        "The second task, optional: 20_context_axis is right, 20_expert_axis is not "
        "started, 20_lost_rank is changed."
    )
    states.update(dict.fromkeys(states, progress.NOT_STARTED))
    assert second_task(House()) == ""


def test_distance_of_the_losses_is_told_before_and_after_the_loss(tmp_path):
    runs = two_runs()
    first = runs["disturbed"].of("start")[-1]["first"]
    runs["disturbed"].of("steps")[-1]["losses"][1] += 0.0021
    judgment = judge(write(tmp_path / "capstone", runs), ROOT)
    before = f"Up to step {first} the losses of the two runs differ by 0 at most"
    assert judgment.distance == f"{before}, from there on by 0.0021."
    del runs["disturbed"]
    assert judge(write(tmp_path / "one", runs), ROOT).distance == ""


@pytest.mark.parametrize("form", [OF_PBS, OF_TRACEJOB], ids=["qstat", "tracejob"])
def test_accounting_of_pbs_is_read_too(form, tmp_path):
    runs = two_runs()
    for run in runs.values():
        run.accounting, run.status = form, "0"
        run.job += ".server"
        for facts in run.of("start"):
            facts["job"] = run.job
    assert gaps(write(tmp_path / "capstone", runs)) == {}


def cells(output):
    """The first column of the table, without its line ends."""
    rows = [line.partition("|")[0] for line in output.splitlines()]
    return re.sub(r"\s+", " ", " ".join(rows))


def by_sacct(runs):
    """What sacct --duplicates tells of both jobs."""
    runs["undisturbed"].accounting = OF_SACCT + LAST
    runs["disturbed"].accounting = OF_SACCT + LOST + LAST


def test_records_of_sacct_are_read_too(tmp_path):
    runs = two_runs()
    by_sacct(runs)
    assert gaps(write(tmp_path / "capstone", runs)) == {}
    runs["disturbed"].accounting += LAST.replace("{job}", "88")  # and of a later job
    assert gaps(write(tmp_path / "two", runs)) == {}


NO_RESTART = "accounting.txt must show its restart"
OF_A_LATER_JOB = OF_SACCT + LAST.replace("{job}", "88")


@pytest.mark.parametrize(
    ("told", "name", "words"),
    [
        (OF_SACCT + LAST, "survived the loss of a node", NO_RESTART),
        (OF_SACCT, "exit status true", "has no record of job 8: sacct found none"),
        (OF_A_LATER_JOB, "exit status true", "accounting.txt is of another job than 8"),
        ("\n", "exit status true", "disturbed/accounting.txt is missing or empty"),
        ("8 capstone COMPLETED", "exit status true", "is not what sacct --parsable2"),
    ],
    ids=["no duplicates", "no record", "another job", "empty", "not parsable"],
)
def test_accounting_that_tells_nothing_gets_its_sentence(told, name, words, tmp_path):
    runs = two_runs()
    runs["disturbed"].accounting = told
    assert words in gaps(write(tmp_path / "capstone", runs))[name]


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("TIMEOUT", "0:0", "ended as TIMEOUT with the exit status 0:0"),
        ("CANCELLED by 1000", "0:15", "ended as CANCELLED with the exit status 0:15"),
        ("NODE_FAIL", "0:0", "ended as NODE_FAIL with"),
        ("FAILED", "1:0", "ended as FAILED with the exit status 1:0"),
        ("RUNNING", "0:0", "says that the job is RUNNING: ask at its end"),
        ("REQUEUED", "0:0", "says that the job is REQUEUED: ask at its end"),
    ],
)
def test_last_record_of_sacct_must_be_a_success(state, status, words, tmp_path):
    runs = two_runs()
    by_sacct(runs)
    runs["disturbed"].state, runs["disturbed"].status = state, status
    found = gaps(write(tmp_path / "capstone", runs))
    assert set(found) == {STATUS} and words in found[STATUS]


def test_accounting_of_fewer_nodes_than_the_manifest_has_is_noticed(tmp_path):
    runs = two_runs()
    by_sacct(runs)
    one = OF_SACCT + LAST.replace("n[1-2,4,6]|4", "n1|1")
    runs["undisturbed"].accounting = one
    found = gaps(write(tmp_path / "capstone", runs))
    assert set(found) == {STATUS}
    assert "accounting.txt counts 1 of the 4 hosts in manifest.jsonl" in found[STATUS]


# Wrong runs: as a wrong program, script or plan would leave them


def on_one_node(runs):
    for facts in runs["undisturbed"].of("start"):
        facts["hosts"] = ["n1"] * 8


def no_checkpoint_before_the_loss(runs):
    run = runs["disturbed"]
    del run.events[3]
    again, later = run.of("start")[1], run.of("steps")[1]
    again["first"] = later["first"] = 0
    early = run.of("steps")[0]
    for name in ("losses", "data"):
        later[name] = early[name][:4] + later[name]


def data_from_the_start_again(runs):
    later = runs["disturbed"].of("steps")[1]
    later["data"] = [1000 + n for n in range(len(later["data"]))]


def every_rank_saves_everything(runs):
    for run in runs.values():
        for facts in run.of("checkpoint"):
            whole = dict.fromkeys(facts["files"], b"w" * 12 * NUMEL)
            facts["files"] = whole | {".metadata": b""}


def no_optimizer_in_the_checkpoint(runs):
    for facts in runs["undisturbed"].of("checkpoint"):
        facts["files"] = {f"__{r}_0.distcp": bytes([r]) * NUMEL for r in range(4)}


def every_save_waits(runs):
    for facts in runs["undisturbed"].of("start"):
        facts["save"]["background"] = False


def saves_less_often_than_planned(runs):
    for run in runs.values():
        for facts in run.of("start"):
            facts["save"]["every"] = 2 * EVERY


def never_saves(runs):
    run = runs["undisturbed"]
    run.events = [event for event in run.events if event[0] != "checkpoint"]


def leaves_one_checkpoint_out(runs):
    del runs["undisturbed"].events[5]


def another_layout_than_planned(runs):
    for facts in runs["disturbed"].of("start")[:1]:
        facts["grid"] = {"data": 2, "tensor": 4}


def one_axis_only(runs):
    for run in runs.values():
        for facts in run.of("start"):
            facts["plan"] |= {"data_ranks": 8, "tensor_ranks": 1}


def no_plan(runs):
    for run in runs.values():
        for facts in run.of("start"):
            facts["plan"] = {}


def predicts_everything_cut(runs):
    for run in runs.values():
        for facts in run.of("start"):
            facts["plan"]["bytes_on_rank_0"] = 4500


def by_the_code_of_the_program(runs):
    for facts in runs["disturbed"].of("start"):
        facts["own"] = {}


def by_code_that_has_changed_since(runs):
    for facts in runs["disturbed"].of("start")[1:]:
        facts["own"] = facts["own"] | {"sha256": "0" * 64}


def by_code_from_elsewhere(runs):
    path = Path(__file__).resolve().parents[3] / "none.py"
    for facts in runs["undisturbed"].of("start"):
        facts["own"] = {"file": str(path), "sha256": "0" * 64}


def by_the_skeleton(runs):
    for run in runs.values():
        for facts in run.of("start"):
            name = "exercises/20_capstone.py"
            facts["own"] = {"file": name, "sha256": hash_of(ROOT / name)}


def in_float32(runs):
    for facts in runs["disturbed"].of("memory"):
        facts["dtypes"] = ["torch.float32"]


def nobody_switched_a_node_off(runs):
    other = two_runs()["undisturbed"].events
    other[0] = start("b2", "8", 4)
    runs["disturbed"].events, runs["disturbed"].restarts = other, 0


def submitted_again_by_hand(runs):
    runs["disturbed"].of("start")[1]["job"] = "9"
    runs["disturbed"].job, runs["disturbed"].restarts = "9", 0


def waits_for_the_lost_node(runs):
    run = runs["disturbed"]
    run.events[4] = start("b2", "8", 4, first=4)


def resumes_without_the_optimizer(runs):
    later = runs["disturbed"].of("steps")[1]
    later["losses"] = [loss + 0.3 for loss in later["losses"]]


def says_nothing_of_the_end(runs):
    runs["undisturbed"].accounting = ""


def success_without_an_end(runs):
    runs["undisturbed"].events.pop()


def fails_at_the_end(runs):
    runs["disturbed"].state, runs["disturbed"].status = "FAILED", "1:0"


def asked_too_early(runs):
    runs["disturbed"].state = "RUNNING"


def accounting_of_another_job(runs):
    runs["disturbed"].job = "5"


def another_program(runs):
    for facts in runs["disturbed"].of("start"):
        facts["code"] = {"20_capstone.py": "0" * 64}


def program_of_another_folder(runs):
    other = sha256((ROOT / "conf.py").read_bytes()).hexdigest()
    for facts in runs["disturbed"].of("start"):
        facts["code"] = {"../conf.py": other}


def program_of_an_absolute_path(runs):
    path = ROOT / "conf.py"
    for facts in runs["disturbed"].of("start"):
        facts["code"] = {str(path): sha256(path.read_bytes()).hexdigest()}


OWN_CODE = "laid out, saved and resumed by your code"
CHECKPOINTS = "checkpoints sharded, in the background"
SURVIVED = "survived the loss of a node"
LAYOUT = "layout as planned, two axes"
STATUS = "exit status true"
WRONG = [
    (on_one_node, "trained on four nodes", "began on one node (n1)"),
    (no_checkpoint_before_the_loss, SURVIVED, "started from scratch"),
    (data_from_the_start_again, "each step's data once", "batch of step 0 again"),
    (every_rank_saves_everything, CHECKPOINTS, "every rank has saved the whole"),
    (no_optimizer_in_the_checkpoint, CHECKPOINTS, "optimizer state of 100 numbers"),
    (every_save_waits, CHECKPOINTS, "waited for each save"),
    (saves_less_often_than_planned, CHECKPOINTS, "saves every 4 steps, and the und"),
    (never_saves, CHECKPOINTS, "has saved no checkpoint"),
    (leaves_one_checkpoint_out, CHECKPOINTS, "has no checkpoint-8"),
    (another_layout_than_planned, LAYOUT, "began with data 2 x tensor 4"),
    (one_axis_only, LAYOUT, "two or more ranks along each axis"),
    (no_plan, LAYOUT, "has no plan"),
    (predicts_everything_cut, "memory as predicted, within 5 %", "predicts 4,500"),
    (by_the_code_of_the_program, OWN_CODE, "give it --code exercises/20_cap"),
    (by_code_that_has_changed_since, OWN_CODE, "another solutions/20_capstone.py"),
    (by_code_from_elsewhere, OWN_CODE, "none.py than the one here"),
    (by_the_skeleton, OWN_CODE, "is unchanged from the skeleton"),
    (in_float32, "computed in bfloat16", "multiplied in torch.float32"),
    (nobody_switched_a_node_off, SURVIVED, "was started once"),
    (submitted_again_by_hand, SURVIVED, "continued by another job"),
    (waits_for_the_lost_node, "resumed on another layout", "data 4 x tensor 2 all"),
    (resumes_without_the_optimizer, "loss of the undisturbed run", "From step 4 on"),
    (says_nothing_of_the_end, STATUS, "accounting.txt is missing"),
    (success_without_an_end, STATUS, "reports success, but training did not end"),
    (fails_at_the_end, STATUS, "ended as FAILED with the exit status 1:0"),
    (asked_too_early, STATUS, "says that the job is RUNNING: ask at its"),
    (accounting_of_another_job, STATUS, "of another job than 8"),
    (another_program, "both runs by the program that is here", "another src/20_cap"),
    (program_of_another_folder, "both runs by the program that is here", "src/../conf"),
    (program_of_an_absolute_path, "both runs by the program that is here", "conf.py"),
]


@pytest.mark.parametrize(
    ("change", "name", "words"), WRONG, ids=lambda x: getattr(x, "__name__", "")
)
def test_wrong_run_gets_its_sentence(change, name, words, tmp_path):
    runs = two_runs()
    change(runs)
    found = gaps(write(tmp_path / "capstone", runs))
    assert words in found.get(name, "nothing"), found
    done = command(tmp_path / "capstone")
    assert done.exit_code == 1 and f"- {found[name]}" in cells(done.output)
    assert "to get" in done.output and not re.search(r"\b0 of", done.output)


def test_a_wrong_run_loses_no_other_points_than_it_must(tmp_path):
    """What goes wrong once is told once; only these wrong runs lack more."""
    several = {
        no_checkpoint_before_the_loss,
        saves_less_often_than_planned,
        never_saves,
        one_axis_only,
        no_plan,
        nobody_switched_a_node_off,
        success_without_an_end,
    }
    for number, (change, name, _) in enumerate(WRONG):
        runs = two_runs()
        change(runs)
        found = gaps(write(tmp_path / str(number), runs))
        assert change in several or set(found) == {name}, (change.__name__, found)
