"""Checks of exercises/23_quorum.py: the dead are gone after some looks, not seconds."""

import time

import pytest
import torch.distributed as dist

from workshop.grader import expect

SEEN = 6  # looks after which a dead rank is no longer in the list
MOST = (
    300  # looks with nothing left to wait for, before a rank counts as waiting forever
)
MOMENT = 0.002
ASKED = 3000  # questions to the store without a look, with nothing left to wait for
LATE = 0.2  # seconds until what a rank writes is in the store


class Store(dist.FileStore):
    """A store that sees who asks it without end, and that may be slow in writing.

    Attributes:
        beats: those of this rank, once it has some.
        lag: seconds that ``set`` takes; ``compare_set`` takes none.
    """

    beats = None
    lag = 0.0

    def set(self, key, value):
        time.sleep(self.lag)
        super().set(key, value)

    def serve_the_check(self):
        """From here on, the check asks and writes, and not the learner's code."""
        self.beats, self.lag = None, 0.0

    def check(self, keys):
        if self.beats is not None:
            self.beats.count_question()
        return super().check(keys)


class Beats:
    """``alive()`` of one rank; ``dead``: rank -> looks in which it seems alive.

    Looks count as too many only after all living ranks have made their call: how long
    that takes depends on the machine.
    """

    def __init__(self, store, rank, ranks, dead=None, late=()):
        self.store, self.rank, self.ranks = store, rank, ranks
        self.dead, self.late = dead or {}, set(late)
        self.looks = self.idle = self.calls = self.asked = 0

    def begins(self):
        """This rank makes its next call."""
        self.calls += 1
        self.looks = self.idle = self.asked = 0
        self.store.beats = self
        dist.FileStore.set(self.store, f"begins/{self.calls}/{self.rank}", "1")

    def all_have_begun(self):
        living = set(range(self.ranks)) - set(self.dead)
        begun = [f"begins/{self.calls}/{one}" for one in living]
        return dist.FileStore.check(self.store, begun)

    def count_question(self):
        """The learner's code has asked the store once more."""
        self.asked += 1
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


def same_on_all(found, name):
    first = min(found)
    for rank, value in found.items():
        expect.that(
            value == found[first],
            f"{name} is {found[first]} on rank {first} and {value} on rank {rank}: "
            "they don't all return what one of them has decided",
        )


def agreed(exercise, store, step, rank, beats):
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
        expect.that(done is True, f"commit is {done!r} when all members have the sum")
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
    expect.equal(found, living, "the quorum, rank 0 being dead")
    finished(store, rank, living)


@pytest.mark.ranks(3, 4, init=False)
def test_different_views(exercise, shared_dir, rank, world_size):
    """Rank 1 doesn't see that the last rank is alive: still, there's one decision.

    It writes slowly: what it finds out and sets may come after another's decision.
    """
    store = open_store(shared_dir, "store", world_size)
    store.lag = LATE if rank == 1 else 0.0
    everyone, last = list(range(world_size)), world_size - 1
    if rank == last:  # it arrives when the others may have decided
        time.sleep(0.2)
    unseen = [last] if rank == 1 else []
    beats = Beats(store, rank, world_size, late=unseen)
    found = agreed(exercise, store, 0, rank, beats)
    same_on_all(exchange(store, "quorum", rank, everyone, found), "the quorum")
    expect.that(
        found in (everyone, everyone[:last]),
        f"the quorum is {found}: rank 1 sees {everyone[:last]}, the others {everyone}",
    )
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
