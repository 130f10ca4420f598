"""Checks of exercises/07_survive_a_kill.py.

The rank of the grader plays the agent of torchrun: it forks the ranks, and when one
of them is gone, it kills the others and starts all of them again.
"""

import json
import operator
import os
import signal
import time
import traceback
from itertools import groupby

import pytest
import torch
import torch.distributed as dist
from torch import nn

from workshop.grader import expect
from workshop.system.stopwatch import Stopwatch

WRAPPERS_KEYS = (
    'the snapshot has the weights under the keys of the DDP wrapper, "module...", '
    "which the model doesn't have: save `model.state_dict()`"
)
FORGOTTEN = (
    "that of an optimizer that lost its momentum at each start: save its state_dict in "
    "the snapshot, and load it"
)
WITHOUT_THE_LAST = (
    "that of snapshots that lack their last step: save after optimizer.step()"
)
RANKS, PATIENCE = 3, 8.0  # seconds of running for one start of the ranks


def new_training(seed):
    """A model and an optimizer with memory, as a new process makes them."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def batch(seed, step, rank):
    """x [6, 5] and y [6, 2], different on every rank and in every step."""
    generator = torch.Generator().manual_seed(seed * 10_000 + step * 10 + rank)
    x = torch.randn(6, 5, dtype=torch.float64, generator=generator)
    return x, torch.stack([x.sum(1), x.prod(1)], dim=1)


def one_process(seed, steps, forgets_at=(), lost=()):
    """The weights after that many steps, computed without any other rank.

    At the steps in ``forgets_at`` the optimizer loses its state; the steps in ``lost``
    are not taken.
    """
    model, optimizer = new_training(seed)
    for step in range(steps):
        if step in lost:
            continue
        if step in forgets_at:
            optimizer.state.clear()
        parts = [batch(seed, step, rank) for rank in range(RANKS)]
        x, y = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model.state_dict()


def differs(one, other):
    """Whether two tensors differ by more than rounding."""
    return one.shape != other.shape or not torch.allclose(one, other)


def modes_of(model):
    """Whether the model is in training mode, of each time that it computes."""
    modes = set()
    model.register_forward_pre_hook(lambda module, _: modes.add(module.training))
    return modes


def what_failed(error):
    """The error, and the learner's line, in ranks that the grader doesn't see."""
    frames = traceback.extract_tb(error.__traceback__)
    files = [frame.filename for frame in frames if frame.name == "train"]
    own = [frame for frame in frames if frame.filename in files[:1]]
    called = f", called at line {own[-2].lineno}" if own[1:] else ""
    place = f"line {own[-1].lineno}{called}: " if own else ""
    if "Unexpected key(s)" in str(error) and '"module.' in str(error):
        return f"{place}{WRAPPERS_KEYS}"
    if isinstance(error, expect.Mismatch):  # of the check, about a wrong value
        return str(error)
    return f"{place}{type(error).__name__}: {error}"


def not_none(load):
    """``load``, whose result train counts from."""

    def told(*args, **kwargs):
        steps = load(*args, **kwargs)
        expect.that(
            steps is not None,
            "load returned None: is a `return` missing? It is 0 if nothing was saved",
        )
        return steps

    return told


class Agent:
    """Starts the ranks in a folder and, like torchrun, starts them again."""

    def __init__(self, exercise, folder, seed):
        self.exercise, self.folder, self.seed = exercise, folder, seed
        self.starts = 0
        folder.mkdir()

    def run(self, total_steps, save_every, kills=()):
        """Start until all ranks end well; ``kills``: (rank, step) of each start.

        Returns what each start trained: a list of steps for each rank.
        """
        trained = []
        for restart in range(len(kills) + 1):
            kill = kills[restart] if restart < len(kills) else None
            steps, statuses = self.start(total_steps, save_every, restart, kill)
            trained.append(steps)
            self.judge(statuses, restart, kill, steps)
        return trained

    def judge(self, statuses, restart, kill, steps):
        """The rank to kill was killed, and none failed on its own."""
        first = "at the first start" if self.starts == 1 else "started again later"
        when = "after a kill" if restart else first
        for rank, status in enumerate(statuses):
            problem = self.folder / f"problem_{self.starts}_{rank}"
            own = problem.read_text() if problem.exists() else ""
            lost = any(words in own for words in ("onnection", "Broken pipe"))
            expect.that(
                status == 0 or (kill is not None and (lost or not own)),
                f"{when}, rank {rank} failed: {own}",
            )
        if kill is not None:
            asked = ", ".join(map(str, steps[kill[0]])) or "no step"
            expect.that(
                statuses[kill[0]] == signal.SIGKILL,
                f"{when}, rank {kill[0]} never asked for data({kill[1]}): it trained "
                f"on {asked}",
            )

    def start(self, total_steps, save_every, restart, kill):
        """One start of all ranks; (steps that each has trained, exit statuses)."""
        self.starts += 1
        pids = [
            self.fork(rank, total_steps, save_every, restart, kill)
            for rank in range(RANKS)
        ]
        statuses: dict[int, int] = {}
        watch, hangs = Stopwatch(), False
        while len(statuses) < RANKS:
            for pid in set(pids) - set(statuses):
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    statuses[pid] = status
            hangs = hangs or watch.passed(PATIENCE, set(pids) - set(statuses))
            if any(statuses.values()) or hangs:  # as torchrun does
                time.sleep(0.05)  # whoever has a word to say says it
                for pid in set(pids) - set(statuses):
                    statuses[pid] = self.end(pid)
            time.sleep(0.002)
        when, why = "at the first start", "is there a call that only some ranks reach?"
        if restart:
            when, why = "after a kill", "do all of them start at the same step?"
        told = f"{when}, the ranks waited for each other forever: {why}"
        expect.that(not hangs, told)
        steps = []
        for rank in range(RANKS):
            log = self.folder / f"steps_{self.starts}_{rank}"
            text = log.read_text() if log.exists() else ""
            # who asks for x and for y of a step has asked twice, and trained once
            steps.append([int(step) for step, _ in groupby(text.split())])
        return steps, [statuses[pid] for pid in pids]

    @staticmethod
    def end(pid):
        """Kill a rank; its status counts only if it was killed before this."""
        done, status = os.waitpid(pid, os.WNOHANG)
        if not done:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return status if status == signal.SIGKILL else 0

    def fork(self, rank, total_steps, save_every, restart, kill):
        pid = os.fork()
        if pid:
            return pid
        try:
            # two nodes: of two ranks, and of one
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank % 2))
            os.environ.update(GROUP_RANK=str(rank // 2), WORLD_SIZE=str(RANKS))
            os.environ["TORCHELASTIC_RESTART_COUNT"] = str(restart)
            self.rank_main(rank, total_steps, save_every, kill)
            os._exit(0)
        except BaseException as error:
            problem = self.folder / f"problem_{self.starts}_{rank}"
            problem.write_text(what_failed(error)[:300])
            signal.raise_signal(signal.SIGTERM)  # the grader has os._exit watched

    def rank_main(self, rank, total_steps, save_every, kill):
        store = dist.FileStore(str(self.folder / f"store_{self.starts}"), RANKS)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
        model, optimizer = new_training(self.seed)
        if self.starts > 1:  # a new process knows nothing, and may begin elsewhere
            for parameter in model.parameters():
                nn.init.uniform_(parameter)
        log = open(self.folder / f"steps_{self.starts}_{rank}", "a")  # noqa: SIM115
        write = self.exercise.write_snapshot
        done = [0]  # steps, as far as data was asked for them

        def counted(snapshot, path):
            with open(self.folder / "writes.txt", "a") as file:
                file.write(json.dumps([self.starts, rank, done[-1]]) + "\n")
            if self.is_the_writer(rank):  # another that writes, too, is told so below
                write(snapshot, path)

        self.exercise.write_snapshot = counted
        self.exercise.load = not_none(self.exercise.load)

        def data(step):
            if kill == (rank, step):
                signal.raise_signal(signal.SIGKILL)
            print(operator.index(step), file=log, flush=True)
            done.append(step + 1)
            return batch(self.seed, step, rank)

        path = self.folder / "snapshot.pt"
        modes = modes_of(model)
        self.exercise.train(model, optimizer, data, path, total_steps, save_every)
        expect.that(
            False not in modes,
            "the model was in evaluation mode while it was trained: dropout would be "
            "off",
        )
        torch.save(model.state_dict(), self.folder / f"weights_{rank}.pt")
        dist.barrier()

    def is_the_writer(self, rank):
        """Whether this rank is the first that writes in this start."""
        claim = self.folder / f"writer_{self.starts}"
        try:
            claim.mkdir()
            (claim / str(rank)).touch()
        except FileExistsError:
            return (claim / str(rank)).exists()
        return True

    def writes(self):
        """(start, rank, steps done) of each call of write_snapshot."""
        path = self.folder / "writes.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    def same_weights(self, steps, what, resumed_at=()):
        expected = one_process(self.seed, steps)
        forgotten = one_process(self.seed, steps, resumed_at)
        last_of_each = [step - 1 for step in resumed_at]
        shorter = one_process(self.seed, steps, lost=last_of_each)
        files = [self.folder / f"weights_{rank}.pt" for rank in range(RANKS)]
        weights = [torch.load(file, weights_only=True) for file in files]
        if resumed_at:
            for rank, found in enumerate(weights):
                self.equal_to_rank_0(found, weights[0], rank, what)
        for rank, found in enumerate(weights):
            for key, value in expected.items():
                mistaken = {}
                if resumed_at:
                    mistaken[FORGOTTEN] = forgotten[key]
                    mistaken[WITHOUT_THE_LAST] = shorter[key]
                name = f"{key} on rank {rank}, {what}"
                expect.close(found[key], value, name, mistaken=mistaken)

    @staticmethod
    def equal_to_rank_0(found, of_rank_0, rank, what):
        """DDP keeps the weights equal, if all ranks begin with the same optimizer."""
        differ = [key for key, value in of_rank_0.items() if differs(found[key], value)]
        expect.that(
            not differ,
            f"rank {rank} has other weights than rank 0 {what}, {differ[:1]} for one: "
            "every rank must load the model and the optimizer",
        )


@pytest.mark.ranks(1, init=False, limit=20)
def test_undisturbed(exercise, shared_dir, seed):
    """An undisturbed run takes every step once, and only one rank saves."""
    agent = Agent(exercise, shared_dir / "a", seed)
    (steps,) = agent.run(7, 3)
    for rank in range(RANKS):
        expect.equal(steps[rank], list(range(7)), f"the steps of rank {rank}")
    agent.same_weights(7, "after 7 steps")
    ranks = sorted({rank for _, rank, _ in agent.writes()})
    expect.that(
        bool(ranks),
        "write_snapshot was called on no rank in 7 steps, with save_every=3",
    )
    expect.that(
        len(ranks) == 1,
        f"ranks {ranks} wrote the snapshot, which all nodes share: only one rank of "
        "all nodes may",
    )
    what = "the number of snapshots in 7 steps with save_every=3"
    cause = wrong_times([done for _, _, done in agent.writes()], 7, 3)
    expect.equal(len(agent.writes()), 2, what, cause=cause)


def wrong_times(saved_after, steps, save_every):
    """The clause of a mistake that saves after these numbers of steps, or ""."""
    due = list(range(save_every, steps + 1, save_every))
    from_zero = list(range(1, steps + 1, save_every))
    causes = {
        f"a snapshot were due after {from_zero} steps: step counts from 0, so step + 1 "
        "steps are done": from_zero,
        "a snapshot were due after the last step, too": [*due, steps],
        "a snapshot were due only after the last step": [steps],
        "a snapshot were due at the beginning, too": [0, *due],
        "a snapshot were due after every step": list(range(1, steps + 1)),
        "only the first snapshot were due": due[:1],
    }
    return next((words for words, at in causes.items() if at == saved_after), "")


@pytest.mark.ranks(1, init=False, limit=30)
def test_killed_before_anything_was_saved(exercise, shared_dir, seed):
    """A rank is killed before the first snapshot: all ranks start from scratch."""
    agent = Agent(exercise, shared_dir / "a", seed)
    agent.run(4, 3, kills=[(1, 2)])
    # the new processes began with other weights, as nothing had been saved
    weights = [
        torch.load(agent.folder / f"weights_{rank}.pt", weights_only=True)
        for rank in range(RANKS)
    ]
    for rank in (1, 2):
        for key, value in weights[0].items():
            expect.close(weights[rank][key], value, f"{key} on rank {rank} as on 0")


@pytest.mark.ranks(1, init=False, limit=40)
def test_killed_twice(exercise, shared_dir, seed):
    """A run killed at step 5 and again at step 8 ends like an undisturbed one."""
    agent = Agent(exercise, shared_dir / "a", seed)
    _, second, third = agent.run(10, 3, kills=[(2, 5), (0, 8)])
    for name, steps, begin in (("first", second, 3), ("second", third, 6)):
        for rank in range(RANKS):
            expected = f"the step at which rank {rank} resumes after the {name} kill"
            begins = steps[rank][0] if steps[rank] else "none"
            expect.equal(begins, begin, expected)
    for rank in range(RANKS):
        expect.equal(third[rank], [6, 7, 8, 9], f"the last steps of rank {rank}")
    agent.same_weights(10, "after 10 steps and two kills", resumed_at=(3, 6))


@pytest.mark.ranks(1, init=False, limit=30)
def test_started_again_a_day_later(exercise, shared_dir, seed):
    """The same command a day later resumes, although torchrun counts no restart."""
    agent = Agent(exercise, shared_dir / "a", seed)
    agent.run(12, 3)
    # as after a kill in the middle of write_snapshot
    half = agent.folder / "snapshot.pt.tmp"
    torch.save(new_training(seed)[0].state_dict(), half)
    os.truncate(half, half.stat().st_size // 2)
    (steps,) = agent.run(14, 3)
    expect.equal(steps[1], [12, 13], "the steps of rank 1, 12 of 14 being saved")
    agent.same_weights(14, "after 12 steps, and 2 of another start", resumed_at=(12,))
    (steps,) = agent.run(12, 3)
    expect.equal(steps[1], [], "the steps of rank 1, all being saved")
