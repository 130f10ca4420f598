"""Train a byte GPT that loses ranks and takes them back, and never starts again.

    python src/23_lost_rank.py 300 --ranks 4
    python src/instruments/07_kill_a_rank.py --rank 1 --after "Step 20" \\
        python src/23_lost_rank.py 60 --ranks 4 --pause 0.1
    python src/23_lost_rank.py 300 --ranks 4 --no-revive
    python src/23_lost_rank.py 31 --hang 1 10 --step-limit 2 --pause 0.3

The process that you start trains nothing: it serves the store in which the ranks agree,
starts them, and starts one again that was killed. torchrun would end all of them
because one has failed. Before each step the living agree on who takes it. The global
batch of a step is always the same, and is divided among them, so losing a rank makes
steps slower and changes no loss, up to rounding. A rank that hangs in a step for more
than --step-limit seconds is left out, too, until it comes back.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from common import gpt_training
from common.byte_gpt import next_byte_loss
from common.distributed import (
    REFUSED,
    BadInput,
    choose_device,
    log,
    one_line_errors,
    positive_float,
    positive_int,
)
from common.quorum import (
    STEP_LIMIT_S,
    Address,
    Manager,
    Quorum,
    RunIsOver,
    open_store,
)

LEAVE_S = 30  # for ranks that are still on their way when others have finished


@dataclass(frozen=True)
class Config(gpt_training.TextConfig):
    """The command line; the same on all ranks."""

    ranks: int  # when all are alive
    least: int  # no step is taken with fewer ranks
    revive: bool  # start ranks again that were killed
    pause: float  # seconds in each step, to kill a rank by hand
    say_every: int  # steps
    float64: bool  # to compare runs
    step_limit: float  # seconds until a rank that hangs is left out
    hang: list[int] | None  # [rank, round] in which it gets no further, for tests
    record: Path | None  # folder for what each rank has seen


# [start gradients]
def my_part(batch: Tensor, quorum: Quorum, rank: int) -> Tensor:
    """[B, T] of the global batch -> [about B / N, T], the part of this member."""
    return batch.tensor_split(len(quorum.members))[quorum.members.index(rank)]


def gradients(model: nn.Module, inputs: Tensor, targets: Tensor, batch: int) -> Tensor:
    """This rank's part of the mean over all B samples: [P + 1], the last is the loss.

    Not of the mean over ranks: with 3 ranks, 16 samples are 6, 5 and 5.
    """
    model.zero_grad()
    loss = next_byte_loss(model(inputs), targets) * (len(inputs) / batch)
    loss.backward()
    flat = [parameter.grad.flatten() for parameter in model.parameters()]
    return torch.cat([*flat, loss.detach().reshape(1)])


def apply(replica: Replica, summed: Tensor) -> None:
    """Take the step, with the sums [P + 1] over all members."""
    start = 0
    for parameter in replica.model.parameters():
        part = summed[start : start + parameter.numel()]
        parameter.grad = part.view_as(parameter)
        start += parameter.numel()
    replica.optimizer.step()
    replica.step += 1


# [end gradients]
# [start train]
def train(config: Config, manager: Manager, replica: Replica) -> None:
    """Take the steps that are left, with all ranks that are alive."""
    batches = gpt_training.Batches(config, next(replica.model.parameters()).device)
    events = Events(config, manager.rank)
    while replica.step < config.steps:
        quorum = manager.start_quorum(replica.step)
        events.changed(quorum, manager)
        catch_up(manager, quorum, replica)
        inputs, targets = batches.of_step(quorum.step)
        parts = [my_part(whole, quorum, manager.rank) for whole in (inputs, targets)]
        summed = gradients(replica.model, *parts, config.batch_size)
        hang(config, quorum, manager.rank)
        manager.all_reduce(summed)  # every member; [P + 1] -> [P + 1]
        if manager.should_commit():
            apply(replica, summed)
            events.stepped(quorum, summed[-1])
        else:
            events.failed(quorum, manager.failed)
        time.sleep(config.pause)
    manager.leave()
    events.ended(replica)


# [end train]
def hang(config: Config, quorum: Quorum, rank: int) -> None:
    """Get no further for a while, but beat, as with a disk that doesn't answer."""
    if config.hang == [rank, quorum.round]:
        time.sleep(3 * config.step_limit)


class Replica:
    """All of what a rank holds: the model, its optimizer, and the steps they took."""

    def __init__(self, config: Config, device: torch.device):
        self.model = gpt_training.make_gpt(config, device)
        if config.float64:
            self.model.double()
        parameters = self.model.parameters()
        self.optimizer = gpt_training.make_optimizer(parameters, config.learning_rate)
        self.step = 0  # also the position in the data: a step has its own batch

    # [start state]
    def state(self) -> dict:
        """All that another rank needs to take this one's place."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }

    def load(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]

    # [end state]
    def digest(self) -> str:
        """Equal on two ranks whose parameters are equal in each bit."""
        found = hashlib.sha256()
        for parameter in self.model.parameters():
            found.update(parameter.detach().cpu().numpy().tobytes())
        return found.hexdigest()[:12]


# [start catch_up]
def catch_up(manager: Manager, quorum: Quorum, replica: Replica) -> None:
    """Those who are behind take the state of the source; others have nothing to do."""
    if manager.rank == quorum.source:
        for rank in quorum.behind:
            manager.send_state(replica.state(), rank)
    if manager.rank in quorum.behind:
        state = manager.receive_state()
        if state is not None:
            replica.load(state)


# [end catch_up]
class Events:
    """What a rank prints, and writes to its file for those who compare runs."""

    def __init__(self, config: Config, rank: int):
        self.rank, self.last_step = rank, config.steps - 1
        self.say_every = config.say_every
        self.members: list[int] = []
        self.since = time.time()
        self.file = None
        if config.record:
            path = config.record / f"rank{rank}.jsonl"
            self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self._write("start", None, pid=os.getpid())

    def changed(self, quorum: Quorum, manager: Manager) -> None:
        """Say who takes the step, if that has changed."""
        if manager.missed and self.members:
            without = f"{len(manager.missed)} quorums were decided without this rank"
            limit = f"silent, or in a step for more than {manager.step_limit:g} s"
            line = f"Step {quorum.step}: {without}, as it was {limit}"
            self._say(quorum, line, always=True)
        if quorum.members != self.members:
            line = f"Step {quorum.step}: {self._words(quorum)} take it"
            if quorum.late:
                line += f", not waiting for {' '.join(map(str, quorum.late))}"
            self._say(quorum, line)
        self.members = quorum.members
        for rank in quorum.behind:
            words = f"rank {rank} takes the state of rank {quorum.source}"
            self._say(quorum, f"Step {quorum.step}: {words}")

    def stepped(self, quorum: Quorum, loss: Tensor) -> None:
        self._write("step", quorum, loss=loss.item())
        if quorum.step % self.say_every == 0 or quorum.step == self.last_step:
            words = f"{self._words(quorum)} | {time.time() - self.since:.2f} s"
            self._say(quorum, f"Step {quorum.step} | loss {loss.item():.4f} | {words}")
        self.since = time.time()

    def failed(self, quorum: Quorum, why: str) -> None:
        self._write("failed", quorum, why=why)
        self._say(quorum, f"Step {quorum.step} has not happened: {why}", always=True)

    def ended(self, replica: Replica) -> None:
        digest = replica.digest()
        log(f"Rank {self.rank}: {replica.step} steps, weights {digest}", True)
        self._write("end", None, steps=replica.step, digest=digest)

    def _words(self, quorum: Quorum) -> str:
        return "ranks " + " ".join(map(str, quorum.members))

    def _say(self, quorum: Quorum, line: str, always: bool = False) -> None:
        if always:
            line = f"[rank {self.rank}] {line}"
        if always or self.rank == quorum.source:
            log(line, every_rank=True)

    def _write(self, event: str, quorum: Quorum | None, **more: object) -> None:
        if self.file is None:
            return
        row: dict[str, object] = {"event": event, "time": time.time()}
        if quorum is not None:
            row["step"] = quorum.step
            row["members"] = quorum.members
        print(json.dumps(row | more), file=self.file, flush=True)


def run_rank(config: Config, place: str) -> None:
    """What each rank does; ``place`` is where the store is: host:port."""
    host, _, port = place.rpartition(":")
    rank = int(os.environ["RANK"])
    replica = Replica(config, choose_device(rank))
    store = Address(host, int(port))
    manager = Manager(store, rank, config.ranks, config.least, config.step_limit)
    try:
        train(config, manager, replica)
    except RunIsOver:
        log(f"Rank {rank}: the others have finished", every_rank=True)
    except torch.distributed.DistError as error:
        cure = "is the process that has started the ranks still there?"
        raise BadInput(f"no answer from the store at {place}: {cure}") from error


# [start keep]
def keep(config: Config) -> int:
    """Serve the store, start the ranks, and start again each that is killed."""
    store = open_store(config.ranks)  # alive as long as this function runs
    environment = os.environ | {"WORKSHOP_STORE": f"127.0.0.1:{store.port}"}
    command = [sys.executable, *sys.argv]

    def start(rank: int) -> subprocess.Popen:
        return subprocess.Popen(command, env=environment | {"RANK": str(rank)})

    ranks = {rank: start(rank) for rank in range(config.ranks)}
    try:
        while ranks:
            time.sleep(0.1)
            for rank, process in list(ranks.items()):
                status = process.poll()
                if status is None:
                    continue
                del ranks[rank]
                if status == REFUSED:
                    return REFUSED
                if status == 0:
                    wait_for_the_rest(ranks)
                    return 0
                log(f"Rank {rank} has ended: {how_it_ended(status)}")
                if config.revive:
                    ranks[rank] = start(rank)
    finally:
        for process in ranks.values():
            process.kill()
            process.wait()
    return 1


# [end keep]
def how_it_ended(status: int) -> str:
    if status < 0:
        return signal.Signals(-status).name
    return f"status {status}"


def wait_for_the_rest(ranks: dict[int, subprocess.Popen]) -> None:
    """The run is over: ranks that don't end may be stopped, or still starting."""
    end = time.monotonic() + LEAVE_S
    while time.monotonic() < end:
        if all(process.poll() is not None for process in ranks.values()):
            return
        time.sleep(0.05)


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ranks", type=positive_int, default=4, help="when all are alive")
    words = "take no step with fewer ranks"
    add("--least", metavar="RANKS", type=positive_int, default=1, help=words)
    no = argparse.BooleanOptionalAction
    words = "start ranks again that were killed"
    add("--revive", action=no, default=True, help=words)
    words = "wait in each step: time to kill a rank by hand"
    add("--pause", metavar="SECONDS", type=float, default=0.0, help=words)
    words = "seconds that a rank may stay in a step without being left out"
    limit = {"type": positive_float, "default": STEP_LIMIT_S, "help": words}
    add("--step-limit", metavar="SECONDS", **limit)
    words = "let a rank stay in this attempt at a step for three times as long"
    add("--hang", metavar=("RANK", "ROUND"), type=int, nargs=2, help=words)
    add("--say-every", metavar="STEPS", type=positive_int, default=20)
    add("--float64", action="store_true", help="compute with 64 bits, to compare runs")
    words = "write what happens to rank0.jsonl and so on"
    add("--record", metavar="FOLDER", type=Path, help=words)


def parse_arguments() -> Config:
    config = gpt_training.parse_text_training(__doc__, Config, add_options)
    if config.batch_size < config.ranks:
        few = f"--batch-size {config.batch_size} leaves some of {config.ranks} ranks"
        raise BadInput(f"{few} without a sample: choose at least {config.ranks}")
    if config.least > config.ranks:
        cure = f"choose at most {config.ranks}"
        raise BadInput(f"--least {config.least} is more than --ranks: {cure}")
    if config.pause >= config.step_limit:
        cure = "choose a larger --step-limit"
        raise BadInput(f"--pause {config.pause:g} makes each step too long: {cure}")
    if config.hang and config.hang[0] >= config.ranks:
        most = config.ranks - 1
        raise BadInput(
            f"--hang {config.hang[0]} is no rank: choose one from 0 to {most}"
        )
    if config.record:
        config.record.mkdir(parents=True, exist_ok=True)
    return config


@one_line_errors
def main() -> None:
    config = parse_arguments()
    place = os.environ.get("WORKSHOP_STORE")
    if place is None:
        sys.exit(keep(config))
    run_rank(config, place)


if __name__ == "__main__":
    gpt_training.run_and_exit(main)
