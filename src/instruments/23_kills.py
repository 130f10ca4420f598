"""Kill ranks of two runs at the same steps: one continues without them, one restarts.

    python src/instruments/23_kills.py 60 --kill 1@20 0@40 --save-every 15

The first is 23_lost_rank.py. The second trains the same model on the same batches with
DDP in ranks of torchrun --max-restarts, which saves a snapshot every so many steps and
resumes from it. For each it prints how many steps were taken twice, the longest time
without a new step after a kill, and the loss of the last step.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common import gpt_training, process_group, snapshot
from common.byte_gpt import next_byte_loss
from common.distributed import BadInput, log, one_line_errors, positive_int

LOOK_S = 0.02  # between two looks at what the ranks have written
LOST_RANK = Path(__file__).resolve().parents[1] / "23_lost_rank.py"


@dataclass(frozen=True)
class Kill:
    """Rank ``rank`` is killed when step ``step`` was taken."""

    rank: int
    step: int


@dataclass(frozen=True)
class Config(gpt_training.TextConfig):
    """The command line."""

    ranks: int
    kill: list[Kill]
    save_every: int  # steps between two snapshots of the run that restarts
    pause: float  # seconds in each step, as if it took longer
    record: Path | None  # folder for what each rank has done; set by this program


def parse_kill(text: str) -> Kill:
    rank, _, step = text.partition("@")
    if not (rank.isdigit() and step.isdigit()):
        raise BadInput(f"{text!r} is not RANK@STEP, such as 1@20")
    return Kill(int(rank), int(step))


# -- the run that restarts: its ranks ---------------------------------------------
def train_with_restarts(config: Config, record: Path) -> None:
    """What each rank of torchrun does: DDP, with a snapshot now and then.

    ``record`` is the folder for what the ranks have done.
    """
    device = process_group.join_partners("instruments/23_kills.py")
    rank = dist.get_rank()
    with open(record / f"rank{rank}.jsonl", "a", encoding="utf-8") as file:

        def write(event: str, **more: object) -> None:
            row = {"event": event, "time": time.time(), **more}
            print(json.dumps(row), file=file, flush=True)

        write("start", pid=os.getpid())
        batches = gpt_training.Batches(config, device)
        model = gpt_training.make_gpt(config, device)
        parameters, rate = model.parameters(), config.learning_rate
        optimizer = gpt_training.make_optimizer(parameters, rate)
        path = record / "snapshot.pt"
        saved = snapshot.read_for_all(path)  # every rank must reach this line
        step = 0
        if saved is not None:
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            step = saved["steps_run"]
        ddp_model = DDP(model)
        while step < config.steps:
            inputs, targets = map(gpt_training.local_batch, batches.of_step(step))
            optimizer.zero_grad()
            loss = next_byte_loss(ddp_model(inputs), targets)
            loss.backward()  # gradients become the mean over the ranks in here
            optimizer.step()
            write("step", step=step, loss=loss.item())
            step += 1
            if step % config.save_every == 0 and rank == 0:
                state = {"model": model.state_dict(), "steps_run": step}
                state["optimizer"] = optimizer.state_dict()
                snapshot.write_snapshot(state, path)
            time.sleep(config.pause)
        del ddp_model
    dist.destroy_process_group()


# -- what kills, and measures -----------------------------------------------------
class Run:
    """One of the two runs: what its ranks have written in their folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir()
        self.kills: list[float] = []  # when

    def rows(self) -> list[tuple[int, dict]]:
        """(rank, row), in the order of time."""
        found = []
        for path in self.folder.glob("rank*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("\n"):  # else the rank is still writing it
                    found.append((int(path.stem[4:]), json.loads(line)))
        return sorted(found, key=lambda pair: pair[1]["time"])

    def kill(self, kills: list[Kill], process: subprocess.Popen) -> None:
        """Kill each rank in its turn, while the run is there."""
        for kill in sorted(kills, key=lambda each: each.step):
            while process.poll() is None:
                rows = self.rows()
                if any(row.get("step", -1) >= kill.step for _, row in rows):
                    starts = [r for n, r in rows if n == kill.rank and "pid" in r]
                    os.kill(starts[-1]["pid"], signal.SIGKILL)
                    self.kills.append(time.time())
                    break
                time.sleep(LOOK_S)

    def new_steps(self) -> list[float]:
        """When each step was taken for the first time."""
        first: dict[int, float] = {}
        for _, row in self.rows():
            if row["event"] == "step":
                first.setdefault(row["step"], row["time"])
        return [first[step] for step in sorted(first)]

    def repeated(self) -> int:
        """Steps that a rank has taken twice: the most that any rank has."""
        taken: dict[int, list[int]] = {}
        for rank, row in self.rows():
            if row["event"] == "step":
                taken.setdefault(rank, []).append(row["step"])
        return max(len(steps) - len(set(steps)) for steps in taken.values())

    def last_loss(self) -> float:
        """The global batch's loss in the last step.

        A rank has written either that, or the loss of its part of the batch. All parts
        are equally large.
        """
        steps = [row for _, row in self.rows() if row["event"] == "step"]
        last = max(row["step"] for row in steps)
        return statistics.mean(row["loss"] for row in steps if row["step"] == last)

    def describe(self, name: str) -> str:
        """A row of the table."""
        times = self.new_steps()
        pairs = list(itertools.pairwise(times))
        usual = statistics.median(after - before for before, after in pairs)
        killed = min(self.kills)
        pause = max(after - before for before, after in pairs if after > killed)
        cells = f"{len(self.kills):>5}  {self.repeated():>14}"
        times = f"{usual:>10.2f} s  {pause:>12.2f} s"
        return f"{name:<18} {cells}  {times}  {self.last_loss():>9.4f}"


def start(run: Run, command: list[str], kills: list[Kill]) -> None:
    """Run a command to its end, and kill its ranks meanwhile."""
    environment = os.environ | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    with open(run.folder / "log.txt", "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        killer = threading.Thread(target=run.kill, args=[kills, process])
        killer.start()
        try:
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            killer.join()
    if process.returncode:
        end = (run.folder / "log.txt").read_text(encoding="utf-8")[-600:]
        raise BadInput(f"{command[-1]} has failed: {end}")
    cure = "give it more STEPS, or a longer --pause"
    killed = len(run.kills)
    if killed < len(kills):
        raise BadInput(f"the run ended after {killed} of {len(kills)} kills: {cure}")
    if max(run.kills) > run.new_steps()[-1]:
        raise BadInput(f"the run took no step after the last kill: {cure}")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ranks", type=positive_int, default=4)
    words = "whom to kill when which step was taken"
    kill = {"type": parse_kill, "nargs": "+", "metavar": "RANK@STEP"}
    add("--kill", **kill, default=[Kill(1, 20)], help=words)
    words = "steps between two snapshots of the run that restarts"
    add("--save-every", metavar="STEPS", type=positive_int, default=15, help=words)
    words = "wait in each step, as if it took longer"
    add("--pause", metavar="SECONDS", type=float, default=0.1, help=words)
    add("--record", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)


def measure(config: Config, options: list[str]) -> None:
    """Both runs, one after the other, and their rows."""
    with tempfile.TemporaryDirectory() as name:
        continues = Run(Path(name) / "continues")
        more = ["--ranks", str(config.ranks), "--record", str(continues.folder)]
        lost = [sys.executable, str(LOST_RANK), *options]
        start(continues, [*lost, *more], config.kill)
        restarts = Run(Path(name) / "restarts")
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        launch.append(f"--nproc-per-node={config.ranks}")
        launch.append(f"--max-restarts={len(config.kill)}")
        more = ["--record", str(restarts.folder)]
        more += ["--save-every", str(config.save_every)]
        start(restarts, [*launch, __file__, *options, *more], config.kill)
        heads = "kills  steps repeated  usual step    longest pause  last loss"
        log(f"{'':<18} {heads}")
        log(continues.describe("a smaller group"))
        log(restarts.describe("all ranks restart"))


@one_line_errors
def main() -> None:
    config = gpt_training.parse_text_training(__doc__, Config, add_options)
    if config.record:  # started by torchrun
        train_with_restarts(config, config.record)
        return
    if any(kill.rank >= config.ranks for kill in config.kill):
        raise BadInput(f"--kill names a rank that is not below --ranks {config.ranks}")
    last = max(config.kill, key=lambda kill: kill.step)
    if last.step >= config.steps - 1:
        why = f"--kill {last.rank}@{last.step} leaves no step after it"
        raise BadInput(f"{why}: choose more STEPS than {config.steps}")
    gpt_training.check_divides(config.batch_size, config.ranks, "--batch-size", "ranks")
    options = [str(config.steps), "--pause", str(config.pause)]
    for name in ("batch_size", "learning_rate", "width", "heads", "blocks", "context"):
        options += ["--" + name.replace("_", "-"), str(getattr(config, name))]
    measure(config, options)


if __name__ == "__main__":
    main()
