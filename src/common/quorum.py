"""Ranks that may die: who takes the next step, and whether that step has happened.

    store = quorum.open_store(4)                  # in a process that trains nothing
    manager = quorum.Manager(address, rank, 4)    # in each rank; address: of the store
    who = manager.start_quorum(step)              # the living, within a deadline
    manager.all_reduce(gradient)                  # over the living
    if manager.should_commit():                   # the same answer on each of them
        optimizer.step()

Everything is agreed on in a store that no rank serves, so it outlives them all. The
rank that writes a decision first (``compare_set``) has decided for all. torchft's
Manager has methods of the same names. Keys are kept: some 400 bytes for each step.

No rank waits for one that is silent, nor for one that beats, but doesn't get any
further in its own code for ``step_limit`` seconds. When it comes back, it reads in
``manager.missed`` what was decided without it, and takes the state of a peer.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

BEAT_S = 0.2  # seconds between two beats, and between two looks at the others' beats
SILENT_LOOKS = 10  # looks without a new beat after which a rank counts as dead
PATIENT_LOOKS = 300  # before the first step, for ranks that have not started yet
STEP_LIMIT_S = 60.0  # longer than a healthy rank computes between two calls
WAITS = "waits"  # where a rank is that does not compute
POLL_S = 0.001  # between two questions to the store
COLLECTIVE = timedelta(minutes=30)  # beats, not this, find out who is dead


@dataclass(frozen=True)
class Address:
    """Where the store is."""

    host: str
    port: int

    def connect(self) -> dist.TCPStore:
        """A connection of its own; raises DistNetworkError without an answer."""
        limit = timedelta(seconds=60)
        return dist.TCPStore(self.host, self.port, is_master=False, timeout=limit)


@dataclass(frozen=True)
class Quorum:
    """What the ranks have agreed on before a step."""

    round: int  # every attempt at a step has a number of its own
    step: int  # the newest that a member has reached: they take it now
    members: list[int]  # ranks, in ascending order
    ids: list[str]  # of their processes: a rank that was started again has a new one
    source: int  # the lowest member that has reached ``step``
    behind: list[int]  # members that need the state of ``source``
    history: int  # the round in which ``source`` took its last step; -1 for none
    group: int  # the round in which their process group was made
    late: list[int]  # ranks that beat, and were left out: too long in their own code


class RunIsOver(Exception):
    """The other ranks have finished; there is nothing to join."""


def open_store(ranks: int, host: str = "127.0.0.1") -> dist.TCPStore:
    """The store of a run, served by the process that calls this."""
    store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False)
    for rank in range(ranks):
        store.set(_beat(rank), "0")
    store.set("latest", "0")
    return store


def _beat(rank: int) -> str:
    return f"beat/{rank}"


def _place(beat: str) -> str:
    """Where the rank was that has sent this beat; empty if it hasn't said."""
    return beat.partition(" ")[2]


def _arrival(number: int, rank: int) -> str:
    return f"{number}/here/{rank}"


# [start pulse]
class Pulse:
    """This rank's beats, and what those of the others say: counted in looks.

    A beat is a number that grows, and where the rank is: it waits for others, or
    computes after a call of the manager. A look reads the last beat of each rank.
    Seconds would accuse the others if this process had been stopped for a while; looks
    are not taken meanwhile.
    """

    def __init__(
        self, store: dist.Store, rank: int, ranks: int, step_limit: float = STEP_LIMIT_S
    ):
        self.store, self.rank = store, rank
        self.keys = [_beat(other) for other in range(ranks)]
        self.own_beats, self.own_place = 0, "start"
        self.beats = ["0"] * ranks  # at the last look; "0" has never begun
        self.unchanged = [0] * ranks  # looks since the last new beat
        self.where = [""] * ranks  # at the last look
        self.looks_there = [0] * ranks  # looks at which the place was the same
        self.step_looks = math.ceil(step_limit / BEAT_S)
        self.looks = 0
        self.lock = threading.Lock()
        self.stop = threading.Event()

    def enter(self, place: str) -> None:
        """This rank is somewhere else now: the others can read it at once."""
        with self.lock:
            self.own_place = place
            self._beat()

    def _beat(self) -> None:
        self.own_beats += 1
        self.store.set(self.keys[self.rank], f"{self.own_beats} {self.own_place}")

    def look(self) -> None:
        """Beat once, and look once at the beats of all ranks."""
        with self.lock:
            self._beat()
            beats = [value.decode() for value in self.store.multi_get(self.keys)]
            for rank, (old, new) in enumerate(zip(self.beats, beats, strict=True)):
                self.unchanged[rank] += 1
                if new != old:
                    self.unchanged[rank] = 0
                self.looks_there[rank] += 1
                if _place(new) != self.where[rank]:
                    self.where[rank], self.looks_there[rank] = _place(new), 0
            self.beats = beats
            self.looks += 1

    def hear(self, ranks: list[int]) -> None:
        """They have arrived at a quorum, which is as good as a beat.

        This rank's own last look may be older than the first beat of one that has just
        started, or started again.
        """
        with self.lock:
            for rank in ranks:
                self.beats[rank] = "heard"
                self.unchanged[rank] = self.looks_there[rank] = 0

    def living(self) -> list[int]:
        """Ranks that have begun, and were not silent for too many looks."""
        return [
            rank
            for rank, beat in enumerate(self.beats)
            if beat != "0" and self.unchanged[rank] < SILENT_LOOKS
        ]

    def run(self) -> None:
        """Beat and look until stopped, or until the store is gone."""
        with contextlib.suppress(RuntimeError):
            while not self.stop.wait(BEAT_S):
                self.look()

    # [end pulse]
    # [start late]
    def late(self) -> list[int]:
        """Others that compute at the same place for longer than a step may take."""
        with self.lock:
            suspects = [
                rank
                for rank, looks in enumerate(self.looks_there)
                if looks > self.step_looks and self.where[rank] not in ("", WAITS)
            ]
            # it may have got further since the last look: ask again
            now = {rank: self.store.get(self.keys[rank]).decode() for rank in suspects}
            same = [rank for rank in suspects if _place(now[rank]) == self.where[rank]]
            return [rank for rank in same if rank != self.rank]

    # [end late]


# [start waits]
def waits(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the Manager in which a rank waits for others, and after it computes.

    The time in the method isn't this rank's fault. From its end to the next of these
    calls it is, and each of these times has a number of its own.
    """

    @functools.wraps(method)
    def call(self: Manager, *arguments: Any) -> Any:
        self.pulse.enter(WAITS)
        result = method(self, *arguments)
        self.calls += 1
        self.pulse.enter(f"after call {self.calls}")
        return result

    return call


# [end waits]
class Manager:
    """One rank's part in quorums, collectives and commits.

    Args:
        address: of the store.
        rank: the number of this rank, which it keeps if it is started again.
        ranks: how many there are when all are alive.
        least: the number of ranks without which no step is taken.
        step_limit: seconds that a rank may compute between two calls of its manager.
    """

    def __init__(
        self,
        address: Address,
        rank: int,
        ranks: int,
        least: int = 1,
        step_limit: float = STEP_LIMIT_S,
    ):
        self.address, self.store = address, address.connect()
        self.rank, self.ranks, self.least = rank, ranks, least
        self.step_limit, self.calls = step_limit, 0
        # its own connection: a thread that waits for an answer keeps the other one
        self.pulse = Pulse(address.connect(), rank, ranks, step_limit)
        self.pulse.look()
        threading.Thread(target=self.pulse.run, daemon=True).start()
        self.id = uuid.uuid4().hex
        self.round = int(self.store.get("latest"))
        self.quorum: Quorum | None = None
        self.missed: list[Quorum] = []  # decided without this rank, since the last one
        self.history = -1  # the round in which this rank took its last step
        self.group: dist.ProcessGroup | None = None
        self.failed = ""  # why this attempt at a step has failed on this rank
        self.abandoned: list[Any] = []  # whose end would wait for what never comes

    # -- who takes the next step --------------------------------------------------
    # [start quorum]
    @waits
    def start_quorum(self, step: int) -> Quorum:
        """Agree on who takes the next step; each living rank calls this.

        Args:
            step: how many steps this rank has taken, 0 for one that has just started.

        Raises:
            RunIsOver: the others have finished.
        """
        self.missed = []
        while True:
            quorum = self._decided(self.round, step)
            if self.id in quorum.ids:
                break
            self.missed.append(quorum)
            if self.rank in quorum.members:
                # a process of this number has died in there: it needs no waiting for
                self.store.compare_set(f"{self.round}/outcome", "", "failed")
            # decided without this process, which was late or is new: ask for the next
            self.round += 1
        self.round += 1
        self.failed = ""
        self.pulse.hear(quorum.members)
        if self.quorum is None or self.group is None or quorum.group != self._group_id:
            self._build_group(quorum)
        self.quorum = quorum
        return quorum

    def _decided(self, number: int, step: int) -> Quorum:
        """Arrive at a round; wait until one of the ranks decides it."""
        key = f"{number}/quorum"
        arrival = {"step": step, "group": self._group_id, "id": self.id}
        arrival["history"] = self.history
        self.store.set(_arrival(number, self.rank), json.dumps(arrival))
        first_look = self.pulse.looks
        while not self.store.check([key]):
            if self.store.check(["over"]):
                raise RunIsOver
            waits = number == 0 and self.pulse.looks - first_look < PATIENT_LOOKS
            proposal = self._proposal(number, waits)
            if proposal is not None:
                # the first proposal is the decision; every rank reads the same one
                self.store.compare_set(key, "", json.dumps(asdict(proposal)))
                self.store.set("latest", str(number))
            time.sleep(POLL_S)
        return Quorum(**json.loads(self.store.get(key)))

    def _proposal(self, number: int, for_all: bool) -> Quorum | None:
        """The living ranks that have arrived, or None while one is still expected.

        ``for_all``: ranks that have not begun to beat are expected, too.
        """
        everyone = list(range(self.ranks))
        arrived = [r for r in everyone if self.store.check([_arrival(number, r)])]
        self.pulse.hear([rank for rank in arrived if self.pulse.beats[rank] == "0"])
        living = self.pulse.living()
        late = [rank for rank in self.pulse.late() if rank not in arrived]
        expected = [rank for rank in living if rank not in late]
        if for_all:
            expected = everyone
        here = [rank for rank in expected if rank in arrived]
        members = [rank for rank in here if rank in living]
        if len(members) < self.least or here != expected:
            return None
        arrivals = {
            rank: json.loads(self.store.get(_arrival(number, rank))) for rank in members
        }
        # Equal steps of two histories are two states: one of them is taken from a peer.
        states = {r: (each["step"], each["history"]) for r, each in arrivals.items()}
        newest = max(states.values())
        behind = [rank for rank in members if states[rank] != newest]
        source = min(set(members) - set(behind))
        group = number
        groups = {arrival["group"] for arrival in arrivals.values()}
        same = self.quorum is not None and self.quorum.members == members
        if same and self.group is not None and groups == {self._group_id}:
            group = self._group_id  # nothing has changed: keep the connections
        ids = [arrivals[rank]["id"] for rank in members]
        step, history = newest
        return Quorum(number, step, members, ids, source, behind, history, group, late)

    # [end quorum]
    @property
    def _group_id(self) -> int:
        """The round in which this rank's group was made; -1 if it has none."""
        if self.group is None or self.quorum is None:
            return -1
        return self.quorum.group

    # [start group]
    def _build_group(self, quorum: Quorum) -> None:
        """Connect the members, under keys of the store that no other group uses."""
        self._abandon()
        self.quorum = quorum
        store = dist.PrefixStore(f"group/{quorum.group}", self.address.connect())
        rank, size = quorum.members.index(self.rank), len(quorum.members)
        # it waits for each member, and one of them may die just now
        self.group = self._attempt(
            lambda: dist.ProcessGroupGloo(store, rank, size, COLLECTIVE)
        )

    def _abandon(self) -> None:
        """Leave the group; one with a call under way is kept: its end would wait."""
        if self.group is not None and self.failed:
            self.abandoned.append(self.group)
        self.group = None

    # [end group]
    # -- what they do together ----------------------------------------------------
    # [start reduce]
    @waits
    def all_reduce(self, tensor: Tensor) -> None:
        """Add up over the living, in place; [n] -> [n], 2(N-1)/N x n numbers sent.

        If it fails, the numbers are of no use, and :meth:`should_commit` is False.
        """
        group = self.group
        if group is not None and not self.failed:
            self._attempt(lambda: group.allreduce([tensor]).wait())

    def _attempt(self, call: Callable[[], Any]) -> Any:
        """What ``call()`` returns; None, and the step fails, if a rank of it has died.

        It runs in another thread, which waits as long as it likes. Meanwhile this one
        looks at the beats, and at what other ranks have decided.
        """
        results = []

        def run() -> None:
            with contextlib.suppress(RuntimeError):  # a connection was closed
                results.append(call())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        while thread.is_alive():
            missing = self._missing()
            if self._outcome() == "failed":
                self._fail("another rank has given up")
            elif missing:
                self._fail(missing)
            if self.failed:
                return None
            thread.join(POLL_S)
        if not results:
            self._fail("a connection was closed")
            return None
        return results[0]

    def _missing(self) -> str:
        """Why this step can't be waited for, if a member is silent or late."""
        members = set(self._members())
        if not members <= set(self.pulse.living()):
            return "a rank is silent"
        late = members & set(self.pulse.late())
        if late:
            limit = f"{self.step_limit:g} s"
            return f"rank {min(late)} has been in it for more than {limit}"
        return ""

    def _fail(self, why: str) -> None:
        """This attempt can't succeed: the others need not wait any longer."""
        self.failed = why
        self._decide("failed")

    # [end reduce]
    # [start commit]
    @waits
    def should_commit(self) -> bool:
        """Whether this step has happened: the same answer on all who took part in it.

        It has if every member has the sum. A member that dies before it says so has
        none, for all that the others know, and then the step has not happened.
        """
        if not self.failed:
            self._vote()
        missing = ""
        while not self._outcome():
            missing = self._missing()
            if missing:
                self._decide("failed")
            time.sleep(POLL_S)
        done = self._outcome() == "done"
        if done:
            self.history = self._round()
        else:
            self.failed = self.failed or missing or "another rank has given up"
            self._abandon()  # half a collective may be under way in it
        return done

    def _vote(self) -> None:
        """This rank has the sum; if it's the last to say so, the step has happened."""
        if self.store.add(f"{self._round()}/votes", 1) == len(self._members()):
            self._decide("done")

    def _decide(self, outcome: str) -> None:
        """The first outcome that a rank writes counts."""
        self.store.compare_set(f"{self._round()}/outcome", "", outcome)

    def _outcome(self) -> str:
        key = f"{self._round()}/outcome"
        if not self.store.check([key]):
            return ""
        return self.store.get(key).decode()

    # [end commit]
    def _round(self) -> int:
        assert self.quorum is not None, "call start_quorum first"
        return self.quorum.round

    def _members(self) -> list[int]:
        assert self.quorum is not None, "call start_quorum first"
        return self.quorum.members

    # [start heal]
    @waits
    def send_state(self, state: dict[str, Any], rank: int) -> None:
        """Send this rank's state to a rank that has none, or an old one."""
        group = self.group
        if group is None or self.failed:
            return
        file = io.BytesIO()
        torch.save(state, file)
        packed = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
        size = torch.tensor([packed.numel()])
        to = self._members().index(rank)
        self._attempt(lambda: group.send([size], to, 0).wait())
        if not self.failed:
            self._attempt(lambda: group.send([packed], to, 1).wait())

    @waits
    def receive_state(self) -> dict[str, Any] | None:
        """The state of the quorum's source, all of it; None if it did not arrive."""
        group = self.group
        if group is None or self.quorum is None or self.failed:
            return None
        source = self._members().index(self.quorum.source)
        size = torch.zeros(1, dtype=torch.int64)
        self._attempt(lambda: group.recv([size], source, 0).wait())
        packed = torch.empty(int(size), dtype=torch.uint8)
        if not self.failed:
            self._attempt(lambda: group.recv([packed], source, 1).wait())
        if self.failed:
            return None
        self.history = self.quorum.history
        file = io.BytesIO(packed.numpy().tobytes())
        return dict(torch.load(file, map_location="cpu", weights_only=True))

    # [end heal]
    def leave(self) -> None:
        """The run is over: tell a rank that is still on its way, and stop beating."""
        self.store.set("over", "1")
        self.pulse.stop.set()
