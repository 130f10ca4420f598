"""src/23_lost_rank.py, common/quorum.py: no step is lost, whoever dies, and where."""

import json
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from common import quorum
from tests.launched import run
from tests.scripts import trainings

HARNESS = Path(__file__).with_name("lost_ranks.py")
STEPS = 14
SIZES = ["--width", 12, "--heads", 2, "--blocks", 1, "--context", 12]
SMALL = [STEPS, *SIZES, "--batch-size", 7, "--float64", "--record", "record"]


def rows_of(folder):
    """Rank -> what it has written."""
    return {
        int(path.stem[4:]): [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted((folder / "record").glob("rank*.jsonl"))
    }


def steps_of(rows):
    return [row for row in rows if row["event"] == "step"]


def test_a_rank_that_has_arrived_is_alive_before_its_first_beat_was_seen():
    store = quorum.open_store(2)
    pulse = quorum.Pulse(store, 0, 2)
    for _ in range(quorum.SILENT_LOOKS + 5):  # it waits for a rank that starts late
        pulse.look()
    assert pulse.living() == [0]
    store.add("beat/1", 1)
    pulse.hear([0, 1])
    assert pulse.living() == [0, 1]
    for _ in range(quorum.SILENT_LOOKS):
        pulse.look()
    assert pulse.living() == [0, 1], "its beat was seen in the first of these looks"
    pulse.look()
    assert pulse.living() == [0]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses of one rank that nothing happens to."""
    folder = tmp_path_factory.mktemp("alone")
    done = trainings.script(folder, "23_lost_rank.py", *SMALL, "--ranks", 1)
    assert done.returncode == 0, done.stderr
    return [row["loss"] for row in steps_of(rows_of(folder)[0])]


@pytest.mark.quick
def test_three_ranks_take_the_steps_of_one(tmp_path, alone):
    done = trainings.script(tmp_path, "23_lost_rank.py", *SMALL, "--ranks", 3)
    assert done.returncode == 0, done.stderr
    check(tmp_path, alone, ended=[0, 1, 2])
    assert len(alone) == STEPS
    assert alone[-1] < alone[0]


def check(folder, alone, ended):
    """Every step was taken, once, with the loss of one rank; the ends are equal."""
    found = rows_of(folder)
    losses, members = {}, {}
    for rank, rows in found.items():
        for row in steps_of(rows):
            losses.setdefault(row["step"], set()).add(row["loss"])
            assert members.setdefault(row["step"], row["members"]) == row["members"]
            assert rank in row["members"]
    assert sorted(losses) == list(range(STEPS))
    for step, of_ranks in losses.items():
        assert len(of_ranks) == 1, f"step {step}: ranks have different sums"
        assert of_ranks.pop() == pytest.approx(alone[step], abs=1e-10)
    ends = {
        r: row for r, rows in found.items() for row in rows if row["event"] == "end"
    }
    assert set(ended) <= ends.keys()
    assert {end["steps"] for end in ends.values()} == {STEPS}
    assert len({end["digest"] for end in ends.values()}) == 1
    return members


def lose(folder, events, ranks, *options):
    """Run with ranks that die where ``events`` say."""
    command = [sys.executable, HARNESS, json.dumps(events), *SMALL, *options]
    done = run(folder, [*command, "--ranks", ranks])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["quorum", "reduce", "vote", "voted"])
@pytest.mark.parametrize(("rank", "ranks"), [(1, 3), (0, 4)])
def test_killed_rank_costs_no_step(tmp_path, alone, place, rank, ranks):
    events = [[rank, 5, place, "SIGKILL"]]
    if place == "quorum":  # where a group is built
        events[0][1] = 0
    lose(tmp_path, events, ranks, "--no-revive")
    left = [other for other in range(ranks) if other != rank]
    members = check(tmp_path, alone, ended=left)
    assert members[STEPS - 1] == left


@pytest.mark.nightly
def test_two_killed_at_once_cost_no_step(tmp_path, alone):
    events = [[0, 5, "reduce", "SIGKILL"], [2, 5, "vote", "SIGKILL"]]
    lose(tmp_path, events, 4, "--no-revive")
    assert check(tmp_path, alone, ended=[1, 3])[STEPS - 1] == [1, 3]


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["reduce", "vote", "voted"])
def test_silent_rank_is_left_out_and_comes_back(tmp_path, alone, place):
    out = lose(tmp_path, [[1, 5, place, "SIGSTOP"]], 3, "--pause", 0.3)
    members = check(tmp_path, alone, ended=[0, 2])
    assert [0, 2] in members.values()
    assert "takes the state of rank" in out or "the others have finished" in out


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["reduce", "vote", "after"])
@pytest.mark.parametrize(("rank", "ranks"), [(1, 3), (0, 4)])
def test_rank_that_hangs_in_its_step_is_left_out_and_comes_back(
    tmp_path, alone, place, rank, ranks
):
    """It beats all the while, so without a limit the others would wait for it."""
    options = ["--pause", 0.3, "--step-limit", 2]
    out = lose(tmp_path, [[rank, 5, place, "SLEEP"]], ranks, *options)
    others = [other for other in range(ranks) if other != rank]
    members = check(tmp_path, alone, ended=others)
    assert others in members.values()
    assert f"not waiting for {rank}\n" in out
    said = [line for line in out.splitlines() if f"[rank {rank}]" in line]
    told = [line for line in said if "quorums were decided without this rank" in line]
    assert len(told) == 1 or f"Rank {rank}: the others have finished" in out
    if told:
        assert members[STEPS - 1] == list(range(ranks))


@pytest.mark.nightly
@pytest.mark.parametrize("rank", [0, 2])
def test_killed_rank_comes_back_with_the_state_of_a_peer(tmp_path, alone, rank):
    out = lose(tmp_path, [[rank, 3, "reduce", "SIGKILL"]], 3, "--least", 3)
    check(tmp_path, alone, ended=[0, 1, 2])
    assert f"rank {rank} takes the state of rank {0 if rank else 1}" in out


@pytest.mark.full
def test_source_that_dies_while_it_sends_is_replaced(tmp_path, alone):
    events = [[2, 3, "reduce", "SIGKILL"], [0, 3, "state", "SIGKILL"]]
    lose(tmp_path, events, 3, "--least", 3)
    check(tmp_path, alone, ended=[0, 1, 2])


@pytest.mark.nightly
@pytest.mark.cold("an instrument kills ranks by the numbers of their processes")
def test_restart_repeats_steps_and_a_smaller_group_repeats_none(tmp_path):
    """Rank 2 lives on: the state is lost where the second kill finds a rank alone."""
    options = ["--ranks", 3, "--batch-size", 12, "--pause", 0.02, "--save-every", 500]
    command = [40, *SIZES, *options, "--kill", "1@12", "0@25"]
    done = trainings.script(tmp_path, "23_kills.py", *command)
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ") for line in done.stdout.splitlines()[-2:]]
    continues, restarts = ([cell for cell in row if cell] for row in rows)
    assert int(continues[1]) == int(restarts[1]) == 2
    assert int(continues[2]) == 0
    # Nothing was saved: twice from step 0. A rank may be one step behind when it ends.
    assert int(restarts[2]) >= 13 + 26 - 1
    assert float(continues[-1]) == pytest.approx(float(restarts[-1]), abs=1e-3)


def test_a_line_that_is_still_being_written_is_read_later(tmp_path):
    kills = import_module("instruments.23_kills")
    run = kills.Run(tmp_path / "run")
    path = run.folder / "rank2.jsonl"
    path.write_text('{"event": "start", "time": 1}\n{"event": "st')
    assert run.rows() == [(2, {"event": "start", "time": 1})]


def test_bad_input_is_one_sentence(tmp_path):
    def refused(*options):
        done = trainings.script(tmp_path, "23_lost_rank.py", 3, *options)
        return trainings.sentence(done).partition("error: ")[2]

    assert refused("--batch-size", 3) == (
        "--batch-size 3 leaves some of 4 ranks without a sample: choose at least 4"
    )
    sentence = "--pause 60 makes each step too long: choose a larger --step-limit"
    assert refused("--pause", 60) == sentence
    sentence = "--hang 4 is no rank: choose one from 0 to 3"
    assert refused("--hang", 4, 1) == sentence
    assert refused("--least", 5) == "--least 5 is more than --ranks: choose at most 4"


@pytest.mark.parametrize(
    ("kill", "why"),
    [
        ("9@1", "--kill names a rank that is not below --ranks 4"),
        ("one@1", "argument --kill: 'one@1' is not RANK@STEP, such as 1@20"),
        ("1@2", "--kill 1@2 leaves no step after it: choose more STEPS than 3"),
        ("1@20", "--kill 1@20 leaves no step after it: choose more STEPS than 3"),
    ],
)
def test_a_kill_that_cannot_be_is_one_sentence(tmp_path, kill, why):
    done = trainings.script(tmp_path, "23_kills.py", 3, "--kill", kill)
    assert why in trainings.sentence(done)


@pytest.mark.nightly
def test_program_lets_a_rank_hang(tmp_path, alone):
    """The command that the page shows, smaller."""
    options = ["--ranks", 3, "--hang", 1, 2, "--step-limit", 1.5, "--pause", 0.5]
    done = trainings.script(tmp_path, "23_lost_rank.py", *SMALL, *options)
    assert done.returncode == 0, done.stderr
    assert [0, 2] in check(tmp_path, alone, ended=[0, 2]).values()
    assert "rank 1 has been in it for more than 1.5 s" in done.stdout


def test_rank_is_late_only_while_it_computes_at_the_same_place():
    store = quorum.open_store(3)
    zero, one, two = (quorum.Pulse(store, rank, 3, 1.0) for rank in range(3))
    looks = round(1.0 / quorum.BEAT_S)
    one.enter("after call 1")
    two.enter(quorum.WAITS)
    for _ in range(looks + 1):
        assert zero.late() == []
        for pulse in (one, two, zero):
            pulse.look()
    zero.look()
    assert zero.late() == [1]
    assert zero.living() == [0, 1, 2]
    one.enter("after call 2")  # zero has not looked since
    assert zero.late() == []
    zero.look()
    assert zero.late() == []
    zero.hear([1])
    for _ in range(looks + 1):
        one.look()
        zero.look()
    assert zero.late() == [1], "counted from the quorum on"


def test_silence_is_counted_in_looks():
    """A rank that was stopped itself has not looked, so it accuses nobody."""
    store = dist.HashStore()
    for rank in range(3):
        store.set(f"beat/{rank}", "0")
    zero, one = (quorum.Pulse(store, rank, 3) for rank in range(2))
    zero.look()
    assert zero.living() == [0]
    one.look()
    zero.look()
    assert zero.living() == [0, 1]  # 2 has never begun
    for _ in range(quorum.SILENT_LOOKS):
        zero.look()
    assert zero.living() == [0]
    one.look()  # after a long time in which it did nothing
    assert one.living() == [0, 1]


@pytest.fixture
def managers(monkeypatch):
    """Makes managers in threads of this process."""
    monkeypatch.setattr(quorum, "BEAT_S", 0.05)
    monkeypatch.setattr(quorum, "SILENT_LOOKS", 40)
    made, stores = [], []

    def make(ranks):
        stores.append(quorum.open_store(ranks))
        address = quorum.Address("127.0.0.1", stores[0].port)
        made.extend(quorum.Manager(address, rank, ranks) for rank in range(ranks))
        return made

    yield make
    for manager in made:
        manager.pulse.stop.set()


def in_threads(managers, function):
    """What function(manager) returns on each of them, at the same time."""
    results = {}

    def call(manager):
        results[manager.rank] = function(manager)

    threads = [threading.Thread(target=call, args=[each]) for each in managers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def sum_of_ranks(manager):
    agreed = manager.start_quorum(0)
    tensor = torch.tensor([float(manager.rank + 1)])
    manager.all_reduce(tensor)
    return agreed, tensor.item(), manager.should_commit()


def test_sum_is_over_the_living_and_their_group_is_kept(managers):
    three = managers(3)
    first = in_threads(three, sum_of_ranks)
    assert {(total, done) for _, total, done in first.values()} == {(6.0, True)}
    again = in_threads(three, sum_of_ranks)
    assert {agreed.group for agreed, _, _ in again.values()} == {first[0][0].group}
    three[1].pulse.stop.set()  # as if it were dead
    left = in_threads([three[0], three[2]], sum_of_ranks)
    assert {(total, done) for _, total, done in left.values()} == {(4.0, True)}
    assert left[0][0].members == [0, 2]
    assert left[0][0].group != first[0][0].group


def test_step_of_a_rank_that_fails_has_happened_on_none(managers):
    three = managers(3)

    def one_fails(manager):
        manager.start_quorum(0)
        tensor = torch.ones(1)
        manager.all_reduce(tensor)
        if manager.rank == 1:
            manager._fail("a test")
        return manager.should_commit()

    assert set(in_threads(three, one_fails).values()) == {False}
    assert {done for _, _, done in in_threads(three, sum_of_ranks).values()} == {True}


def test_new_process_is_no_member_of_the_round_in_which_the_old_one_died(managers):
    """Its beats look like those of the dead one, so it says that they aren't."""
    zero, one = managers(2)
    in_threads([zero, one], lambda manager: manager.start_quorum(0))
    one.pulse.stop.set()  # it dies with the sum, before it says so
    successor = quorum.Manager(one.address, 1, 2)
    found = {}

    def old(manager):
        found["commit"] = manager.should_commit()
        found["quorum"] = manager.start_quorum(1)

    def new(manager):
        found["new"] = manager.start_quorum(0)

    threads = [
        threading.Thread(target=old, args=[zero]),
        threading.Thread(target=new, args=[successor]),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    successor.pulse.stop.set()
    assert found["commit"] is False
    assert found["new"] == found["quorum"]
    assert found["new"].members == [0, 1]
    assert found["new"].behind == [1]


def test_equal_steps_of_two_histories_are_not_the_same_state(managers):
    """Two groups went on without each other: one of them takes the other's state."""
    three = managers(3)
    for manager, history in zip(three, (4, 6, 6), strict=True):
        manager.history = history
    found = in_threads(three, lambda manager: manager.start_quorum(5))
    agreed = found[0]
    assert found == dict.fromkeys(range(3), agreed)
    assert (agreed.step, agreed.source, agreed.behind) == (5, 1, [0])


def test_late_rank_is_told_what_was_decided_without_it(managers):
    three = managers(3)
    for manager in three:
        manager.pulse.step_looks = 20
    in_threads(three, sum_of_ranks)
    left = in_threads([three[0], three[2]], sum_of_ranks)
    assert [agreed.late for agreed, _, _ in left.values()] == [[1], [1]]
    assert {(total, done) for _, total, done in left.values()} == {(4.0, True)}
    back = in_threads(three, lambda manager: manager.start_quorum(0))
    assert [each.members for each in three[1].missed] == [[0, 2]]
    assert three[0].missed == three[2].missed == []
    assert back[1].members == [0, 1, 2]
    assert back[1].behind == [1], "its step is the same, its history isn't"
