"""Checks of exercises/23_quorum.py: the dead are gone after some looks, not seconds."""

import contextlib
import time

import pytest
import torch.distributed as dist

from workshop.grader import expect

SEEN = 6  # looks after which a dead rank is no longer in the list
MOST = (
    300  # looks with nothing left to wait for, before a rank counts as waiting forever
)
PATIENCE = 50  # looks in which a contest of two decisions must be over
MOMENT = 0.002
AS_A_LOOK = 40  # questions to the store without a look that count as one
ASKED = 3000  # questions to the store without a look, with nothing left to wait for
LATE = 0.2  # seconds until what a rank writes is in the store


class Store(dist.FileStore):
    """A store that sees who asks it without end, and that may be slow in writing.

    Attributes:
        beats: those of this rank, once it has some.
        lag: seconds that ``set`` takes; ``compare_set`` takes none.
        contest: what a rank's decisions wait for, in a check of two decisions.
        written: the keys that the learner's code has written in this call.
        read: the keys that it has asked for in this call.
        earlier: the keys of the calls before.
        overwritten: a key that it has ``set`` in this call although it was there.
    """

    beats = contest = None
    lag = 0.0

    def __init__(self, *args):
        super().__init__(*args)
        self.earlier = []
        self.forget()

    def forget(self):
        """The next call begins."""
        self.written, self.read, self.overwritten = [], [], ""

    def begins(self, beats):
        self.beats = beats
        self.earlier += self.written + self.read
        self.forget()

    def serve_the_check(self):
        """From here on, the check asks and writes, and not the learner's code."""
        self.beats, self.contest, self.lag = None, None, 0.0

    def set(self, key, value):
        if self.beats is not None:
            self._writes(key, "set")
            if dist.FileStore.check(self, [key]):
                self.overwritten = key
        time.sleep(self.lag)
        super().set(key, value)

    def compare_set(self, key, expected, desired):
        if self.beats is not None:
            self._writes(key, "compare_set")
        return super().compare_set(key, expected, desired)

    def add(self, key, amount):
        if self.beats is not None and amount:
            self.written.append(key)
        return super().add(key, amount)

    def get(self, key):
        if self.beats is not None:
            self.read.append(key)
            self._wait_for(key)
        return super().get(key)

    def check(self, keys):
        if self.beats is not None:
            self.read += keys
            self.beats.count_question()
        return super().check(keys)

    def _writes(self, key, how):
        """What a rank writes first is its own word; what it writes then, a decision."""
        is_word = not self.written
        self.written.append(key)
        if self.contest is not None and not is_word:
            self.contest.hold(how)

    def _wait_for(self, key):
        """Wait for a key, unless the ranks that still live have long had their time."""
        waited = 0
        while not dist.FileStore.check(self, [key]):
            if self.contest is not None:
                self.contest.looked()
            elif not self.beats.dead:
                return
            time.sleep(MOMENT)
            waited += bool(self.beats.dead) and self.beats.all_have_begun()
            dead = ", ".join(map(str, sorted(self.beats.dead)))
            expect.that(
                waited <= MOST,
                f"store.get({key!r}) waits for a key that no living rank writes (dead: "
                f"{dead}): ask store.check whether it's there, and alive() whether "
                "the rank that should write it still lives",
            )


class Contest:
    """One rank is about to decide, and is slow: another one decides meanwhile.

    The slow rank's decision is held until each other rank has returned, is itself held,
    or has looked often and found no decision. A decision that another rank makes with
    ``set`` is held until the slow one has returned, or has looked often. So each order
    in which two decisions can be written is tried, on any machine.
    """

    def __init__(self, store, beats, slow, until_then):
        """Make the next call of this rank part of it.

        Args:
            until_then: the ranks that don't call before the slow one is about to
                decide, or has looked often.
        """
        self.store, self.beats, self.slow = store, beats, slow
        self.in_time = [one for one in range(beats.ranks) if one not in until_then]
        self.everyone = list(range(beats.ranks))
        self.others = [one for one in self.everyone if one != slow]
        self.looks = 0
        if beats.rank in until_then:
            self.wait_for(slow, "decides", "undecided", "returned")
        beats.begins()
        store.contest = beats.contest = self

    def _key(self, what, rank):
        return f"contest/{what}/{rank}"

    def tell(self, what):
        dist.FileStore.set(self.store, self._key(what, self.beats.rank), "1")

    def has_told(self, rank, *told):
        keys = [self._key(what, rank) for what in told]
        return any(dist.FileStore.check(self.store, [key]) for key in keys)

    def wait_for(self, rank, *told):
        while not self.has_told(rank, *told):
            time.sleep(MOMENT)

    def hold(self, how):
        """This rank is about to decide, with ``set`` or ``compare_set``."""
        if self.beats.rank == self.slow:
            self.tell("decides")
            for other in self.others:
                self.wait_for(other, "returned", "held", "undecided")
        elif how == "set" and self.has_told(self.slow, "decides"):
            self.tell("held")
            self.wait_for(self.slow, "returned", "undecided")
        else:
            return
        self.store.contest = None  # its next decision isn't held

    def looked(self):
        """This rank has taken another look, or has waited as long."""
        is_slow = self.beats.rank == self.slow
        self.looks += self.beats.have_begun(self.in_time if is_slow else self.everyone)
        if self.looks == PATIENCE:
            self.tell("undecided")

    def returned(self):
        """The learner's code has returned; from here on, the check writes."""
        self.store.serve_the_check()
        self.beats.contest = None
        self.tell("returned")


class Dies(BaseException):
    """Raised in a look of a rank that dies."""


class Beats:
    """``alive()`` of one rank; ``dead``: rank -> looks in which it seems alive.

    Looks count as too many only after all living ranks have made their call: how long
    that takes depends on the machine.
    """

    contest = None

    def __init__(self, store, rank, ranks, dead=None, late=()):
        self.store, self.rank, self.ranks = store, rank, ranks
        self.dead, self.late = dead or {}, set(late)
        self.looks = self.idle = self.calls = self.asked = 0

    def begins(self):
        """This rank makes its next call."""
        self.calls += 1
        self.looks = self.idle = self.asked = 0
        self.store.begins(self)
        dist.FileStore.set(self.store, f"begins/{self.calls}/{self.rank}", "1")

    def all_have_begun(self):
        return self.have_begun(set(range(self.ranks)) - set(self.dead))

    def have_begun(self, ranks):
        begun = [f"begins/{self.calls}/{one}" for one in ranks]
        return dist.FileStore.check(self.store, begun)

    def count_question(self):
        """The learner's code has asked the store once more."""
        self.asked += 1
        if self.contest is not None and self.asked % AS_A_LOOK == 0:
            self.contest.looked()
        if self.asked <= ASKED:
            return
        self.asked = 0
        expect.that(
            not self.all_have_begun(),
            f"your loop has asked the store {ASKED:,} times without a look at alive(): "
            "a rank that has died meanwhile never writes anything",
        )

    def alive(self):
        self.looks += 1
        self.asked = 0
        time.sleep(MOMENT)
        if self.contest is not None:
            self.contest.looked()
        if self.looks > 2 * max(self.dead.values(), default=0):
            self.idle += self.all_have_begun()
        if self.idle > MOST:
            names = ", ".join(map(str, sorted(self.dead))) or "none"
            expect.that(
                False,
                f"after {MOST} looks at alive() there's still no decision; dead ranks, "
                f"which it has long stopped showing: {names}",
            )
        return [
            rank
            for rank in range(self.ranks)
            if rank not in self.late and self.looks <= self.dead.get(rank, self.looks)
        ]


def open_store(shared_dir, name, ranks):
    return Store(str(shared_dir / name), ranks)


def finished(store, rank, living):
    """Wait until each living rank is here: then all files may go."""
    store.serve_the_check()
    store.set(f"checked/{rank}", "1")
    store.wait([f"checked/{other}" for other in living])


def exchange(store, what, rank, living, value):
    """What each living rank has got."""
    store.serve_the_check()
    store.set(f"found/{what}/{rank}", repr(value))
    return {
        other: store.get(f"found/{what}/{other}").decode() for other in sorted(living)
    }


def same_on_all(found, name, overwritten=None):
    """Expect one value; ``overwritten``: for each rank the repr of such a key."""
    first = min(found)
    why = "they don't all return what one of them has decided"
    for rank, key in (overwritten or {}).items():
        if key != repr(""):
            why = f"rank {rank} wrote {key} with store.set after another had decided"
    for rank, value in found.items():
        expect.that(
            value == found[first],
            f"{name} is {found[first]} on rank {first} and {value} on rank {rank}: "
            f"{why}",
        )


def agreed(exercise, store, step, rank, beats, contest=False):
    if not contest:  # a contest has begun the call
        beats.begins()
    found = exercise.agree(store, step, rank, beats.alive)
    expect.that(
        isinstance(found, list) and all(isinstance(one, int) for one in found),
        f"agree returned {found!r}, expected a list of ints",
    )
    return found


@pytest.mark.ranks(3, 4, init=False)
def test_all_alive(exercise, shared_dir, rank, world_size):
    """All ranks are alive, and one of them is slow: all are in the quorum."""
    store = open_store(shared_dir, "store", world_size)
    everyone = list(range(world_size))
    beats = Beats(store, rank, world_size)
    for step in (4, 5):
        if rank == (step % world_size):
            time.sleep(0.3)
        found = agreed(exercise, store, step, rank, beats)
        expect.equal(found, everyone, f"the quorum of step {step}, all being alive")
        beats.begins()
        done = exercise.commit(store, step, rank, found, True, beats.alive)
        clash = [key for key in store.read if key in store.earlier]
        why = "".join(
            f": it finds {key!r}, which agree or an earlier step has written. Its "
            "decision needs a key of its own"
            for key in clash[:1]
        )
        told = f"commit is {done!r} when all members have the sum{why}"
        expect.that(done is True, told)
    finished(store, rank, everyone)


@pytest.mark.ranks(3, 4, init=False)
def test_dead_rank_is_left_out(exercise, shared_dir, rank, world_size):
    """Rank 0 dies after a step; each rank sees it for another number of looks."""
    store = open_store(shared_dir, "store", world_size)
    everyone, living = list(range(world_size)), list(range(1, world_size))
    beats = Beats(store, rank, world_size)
    found = agreed(exercise, store, 0, rank, beats)
    expect.equal(found, everyone, "the quorum of step 0, all being alive")
    if rank == 0:
        return
    beats.dead = {0: SEEN * rank}
    found = agreed(exercise, store, 1, rank, beats)
    looks = exchange(store, "looks", rank, living, beats.looks)
    same_on_all(exchange(store, "quorum", rank, living, found), "the quorum")
    at_once = set(looks.values()) == {"0"}
    expect.that(
        found != everyone or not at_once,
        f"the quorum of step 1 is {found}, that of step 0, and no rank has looked who "
        'is alive: keys that begin with f"{step}/" aren\'t those of another step',
    )
    of_step = all(key.startswith("1/") for key in store.written)
    why = "propose the living only once each of them has arrived"
    if not of_step:
        why = "keys that don't begin with '1/' keep what was written at step 0"
    expect.that(
        0 not in found,
        f"the quorum of step 1 is {found}, but rank 0 died after step 0, and never "
        f"arrived at step 1: {why}",
    )
    expect.equal(found, living, "the quorum, rank 0 being dead")
    finished(store, rank, living)


@pytest.mark.ranks(3, 4, init=False)
def test_dead_rank_that_had_arrived(exercise, shared_dir, rank, world_size):
    """The last rank arrives, and dies while it waits for the others."""
    store = open_store(shared_dir, "store", world_size)
    everyone, last = list(range(world_size)), world_size - 1
    if rank == last:
        dies_in(exercise.agree, store, 2, rank, world_size)
        return
    store.wait(["died"])
    beats = Beats(store, rank, world_size, dead={last: 0})
    found = agreed(exercise, store, 2, rank, beats)
    same_on_all(exchange(store, "quorum", rank, everyone[:last], found), "the quorum")
    expect.that(
        last not in found,
        f"the quorum is {found}, but rank {last} has arrived and then died, before the "
        "others arrived: no alive() of theirs has shown it",
    )
    expect.equal(found, everyone[:last], f"the quorum, rank {last} being dead")
    finished(store, rank, everyone[:last])


def dies_in(function, store, step, rank, ranks, *args, number=""):
    """Call agree or commit in a rank that dies when it looks who is alive."""
    beats = Beats(store, rank, ranks)

    def alive():
        raise Dies

    beats.begins()
    with contextlib.suppress(Dies):
        function(store, step, rank, *args, alive)
    store.serve_the_check()
    store.set(f"died{number}", "1")


@pytest.mark.ranks(3, 4, init=False)
def test_different_views(exercise, shared_dir, rank, world_size):
    """Rank 1 doesn't see that the last rank is alive: still, there's one decision.

    It writes slowly: what it finds out may come after another's decision.
    """
    store = open_store(shared_dir, "store", world_size)
    everyone, last = list(range(world_size)), world_size - 1
    unseen = [last] if rank == 1 else []
    beats = Beats(store, rank, world_size, late=unseen)
    contest = Contest(store, beats, slow=1, until_then=[last])
    found = agreed(exercise, store, 0, rank, beats, contest=True)
    overwritten = store.overwritten
    contest.returned()
    twice = exchange(store, "overwritten", rank, everyone, overwritten)
    found_by = exchange(store, "quorum", rank, everyone, found)
    same_on_all(found_by, "the quorum", twice)
    expect.that(
        found in (everyone, everyone[:last]),
        f"the quorum is {found}: rank 1 sees {everyone[:last]}, the others {everyone}",
    )
    finished(store, rank, everyone)


@pytest.mark.ranks(3, 4, init=False)
def test_late_rank(exercise, shared_dir, rank, world_size):
    """The last rank seems dead, and calls agree after the others have decided."""
    store = open_store(shared_dir, "store", world_size)
    everyone, last = list(range(world_size)), world_size - 1
    if rank == last:
        store.wait([f"decided/{other}" for other in everyone[:last]])
    beats = Beats(store, rank, world_size, dead={} if rank == last else {last: 0})
    found = agreed(exercise, store, 6, rank, beats)
    store.serve_the_check()
    store.set(f"decided/{rank}", "1")
    quorums = exchange(store, "quorum", rank, everyone, found)
    same_on_all({other: quorums[other] for other in everyone[:last]}, "the quorum")
    expect.that(
        quorums[last] == quorums[0],
        f"rank {last} called agree after the others had decided {quorums[0]}, and got "
        f"{quorums[last]}: it must get the same list, even if it isn't in there",
    )
    expect.equal(found, everyone[:last], f"the quorum, rank {last} being late")
    finished(store, rank, everyone)


@pytest.mark.ranks(3, 4, init=False)
def test_member_without_the_sum(exercise, shared_dir, rank, world_size):
    """The last rank has no sum, and is late: the step has happened on none."""
    store = open_store(shared_dir, "store", world_size)
    everyone, last = list(range(world_size)), world_size - 1
    if rank == last:
        time.sleep(0.2)
    beats = Beats(store, rank, world_size)
    beats.begins()
    done = exercise.commit(store, 7, rank, everyone, rank != last, beats.alive)
    same_on_all(exchange(store, "commit", rank, everyone, done), "commit")
    expect.that(done is False, "commit is True, but the last rank hasn't got the sum")
    finished(store, rank, everyone)


@pytest.mark.ranks(3, 4, init=False)
def test_two_decisions(exercise, shared_dir, rank, world_size):
    """Rank 1 misses the last rank and is about to say so; the others have all sums."""
    store = open_store(shared_dir, "store", world_size)
    everyone, last = list(range(world_size)), world_size - 1
    others = [other for other in everyone if other != 1]
    beats = Beats(store, rank, world_size, late=[last] if rank == 1 else [])
    contest = Contest(store, beats, slow=1, until_then=others)
    done = exercise.commit(store, 3, rank, everyone, True, beats.alive)
    overwritten = store.overwritten
    contest.returned()
    twice = exchange(store, "overwritten", rank, everyone, overwritten)
    same_on_all(exchange(store, "commit", rank, everyone, done), "commit", twice)
    finished(store, rank, everyone)


@pytest.mark.ranks(3, 4, init=False)
def test_member_that_dies_before_it_says_so(exercise, shared_dir, rank, world_size):
    """Rank 1 dies in the all-reduce; the others have the sum, and repeat the step."""
    if rank == 1:
        return
    store = open_store(shared_dir, "store", world_size)
    everyone = list(range(world_size))
    living = [other for other in everyone if other != 1]
    beats = Beats(store, rank, world_size, dead={1: SEEN * (rank + 1)})
    beats.begins()
    done = exercise.commit(store, 7, rank, everyone, True, beats.alive)
    same_on_all(exchange(store, "commit", rank, living, done), "commit")
    expect.that(
        done is False,
        "commit is True, but rank 1 has died and never said it has the sum",
    )
    finished(store, rank, living)


@pytest.mark.ranks(3, 4, init=False)
def test_death_after_the_sum(exercise, shared_dir, rank, world_size):
    """The last rank dies after it has said so: what one rank has seen, all believe."""
    store = open_store(shared_dir, "store", world_size)
    store.lag = LATE if rank == 1 else 0.0
    everyone, last = list(range(world_size)), world_size - 1
    if rank == 0:  # all others have called commit
        store.wait([f"inside/{other}" for other in range(1, world_size)])
        time.sleep(0.1)
    beats = Beats(store, rank, world_size)

    def alive():
        store.set(f"inside/{rank}", "1")
        living = beats.alive()
        # rank 1 alone finds the last rank dead, at about the time of the last sum
        gone = rank == 1 and store.check(["inside/0"])
        return [one for one in living if not (gone and one == last)]

    store.set(f"inside/{rank}", "1")
    beats.begins()
    done = exercise.commit(store, 3, rank, everyone, True, alive)
    same_on_all(exchange(store, "commit", rank, everyone, done), "commit")
    finished(store, rank, everyone)


@pytest.mark.ranks(3, 4, init=False)
def test_only_one_rank_misses_a_member(exercise, shared_dir, rank, world_size):
    """Rank 1 doesn't see the last rank, which has the sum: there's one decision."""
    store = open_store(shared_dir, "store", world_size)
    everyone, last = list(range(world_size)), world_size - 1
    if rank in (0, last):  # rank 1 is the first to look
        store.wait(["looked/1"])
    beats = Beats(store, rank, world_size)

    def alive():
        living = beats.alive()
        if rank != 1:
            return living
        dist.FileStore.set(store, "looked/1", "1")
        return [one for one in living if one != last]

    beats.begins()
    done = exercise.commit(store, 3, rank, everyone, True, alive)
    same_on_all(exchange(store, "commit", rank, everyone, done), "commit")
    finished(store, rank, everyone)


@pytest.mark.ranks(3, 4, init=False)
def test_member_that_dies_after_it_said_so(exercise, shared_dir, rank, world_size):
    """The first member says that it has the sum and dies; then the last one."""
    store = open_store(shared_dir, "store", world_size)
    members = list(range(world_size))
    beats = Beats(store, rank, world_size)
    for step, dying in ((3, 0), (4, world_size - 1)):
        if rank == dying:
            commit = exercise.commit
            dies_in(commit, store, step, rank, world_size, members, True, number=step)
            return
        store.wait([f"died{step}"])
        living = [one for one in members if one != dying]
        beats.dead[dying] = SEEN * (rank + 1)
        beats.begins()
        done = exercise.commit(store, step, rank, members, True, beats.alive)
        same_on_all(exchange(store, f"{step}", rank, living, done), "commit")
        members = living
    finished(store, rank, members)
