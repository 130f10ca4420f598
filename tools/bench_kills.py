"""What the checkpoint scripts promise, tried often: kills, and the end of a run.

    python tools/bench_kills.py             100 kills of ranks, 200 of saving, 200 ends
    python tools/bench_kills.py --kills 10 --saves 20 --ends 20

The functions are what the tests call with smaller numbers. Exit status 1: a promise
was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from common import snapshot  # noqa: E402

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
LAUNCHED = re.compile(r"^(RANK|LOCAL_|WORLD_SIZE|GROUP_|MASTER_|TORCHELASTIC)")
LIMIT = 300  # seconds for one training, which takes 10 on an idle machine


def environment() -> dict[str, str]:
    """No GPU, one thread for each rank, no variables of a launcher around us."""
    kept = {k: v for k, v in os.environ.items() if not LAUNCHED.match(k)}
    return kept | {
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }


def same_bits(left: object, right: object) -> bool:
    """Compare nested dicts and lists of tensors without any tolerance."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same_bits(left[key], right[key]) for key in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_bits, left, right))
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    return type(left) is type(right) and left == right


# Kills of ranks under torchrun


def start_training(folder: Path, restarts: int, ranks: int = 2) -> subprocess.Popen:
    """Start 07_torchrun.py on a small training that saves often."""
    options = ["--width", "16", "--snapshot", str(folder / "snapshot.pt")]
    return subprocess.Popen(
        [
            *TORCHRUN,
            f"--nproc-per-node={ranks}",
            f"--max-restarts={restarts}",
            str(ROOT / "src" / "07_torchrun.py"),
            *("8", "1"),
            *options,
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen) -> str:
    """Wait for the end; returns the output. Nothing that it started is left behind."""
    try:
        return process.communicate(timeout=LIMIT)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The processes that ``pid`` has started and that are still there."""
    try:
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        return sorted(int(child) for t in tasks for child in t.read_text().split())
    except OSError:
        return []


def kill_ranks(kills: int, seed: int = 0) -> tuple[int, list[str]]:
    """SIGKILL random ranks at random times, ``kills`` times, over as many trainings.

    Returns how many times a rank was killed, and one line for each broken promise:
    every training has to end well, with the bits of one that was left alone.
    """
    draw = random.Random(seed)
    broken = []
    with tempfile.TemporaryDirectory() as name:
        undisturbed = Path(name)
        output = finish(start_training(undisturbed, 0))
        if not (undisturbed / "snapshot.pt").exists():
            return 0, [f"the undisturbed training failed: {output[-2000:]}"]
        expected = snapshot.read_snapshot(undisturbed / "snapshot.pt")
    killed = 0
    while killed < kills and not broken:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            process = start_training(folder, restarts=kills)
            killed += _disturb(process, kills - killed, draw)
            output = finish(process)
            if process.returncode != 0:
                said = "\n".join(re.findall(r".*error: .*", output))
                broken.append(f"exit status {process.returncode}: {said or output}")
            elif not same_bits(
                snapshot.read_snapshot(folder / "snapshot.pt"), expected
            ):
                broken.append(f"other weights after {killed} kills: {output[-2000:]}")
    return killed, broken


def _disturb(process: subprocess.Popen, kills: int, draw: random.Random) -> int:
    """Kill ranks until the training ends or ``kills`` are done; how many were."""
    killed: set[int] = set()
    end = time.monotonic() + LIMIT
    while process.poll() is None and len(killed) < kills and time.monotonic() < end:
        # anywhere: while they import, meet, train, save, or end
        time.sleep(draw.uniform(0, 6))
        ranks = [pid for pid in children(process.pid) if pid not in killed]
        if ranks and process.poll() is None:
            victim = draw.choice(ranks)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
    return len(killed)


# Kills of a process that saves


def kill_saving(times: int, seed: int = 0) -> tuple[int, list[str]]:
    """SIGKILL a process at a random moment of saving, ``times`` times.

    Returns how often, and one line for each broken promise: the snapshot loads, is
    not older than the last one that was reported as saved, and at most the two
    known temporary files are beside it.
    """
    draw = random.Random(seed)
    broken = []
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "snapshot.pt"
        snapshot.write_snapshot(content(0), path)
        number = 0
        for _ in range(times):
            reported = _save_until_killed(path, number + 1, draw.uniform(0, 0.03))
            found = snapshot.read_snapshot(path)
            number = int(found["number"])
            if number < reported:
                broken.append(f"number {reported} was saved, {number} is there")
            if not torch.equal(found["weights"], content(number)["weights"]):
                broken.append(f"number {number} holds other weights")
            known = {"", ".tmp", ".previous"}
            names = {file.name for file in path.parent.iterdir()}
            if strays := names - {path.name + suffix for suffix in known}:
                broken.append(f"left behind: {sorted(strays)}")
        snapshot.write_snapshot(content(number + 1), path)
        names = sorted(file.name for file in path.parent.iterdir())
        if names != ["snapshot.pt", "snapshot.pt.previous"]:
            broken.append(f"after a save that was not disturbed: {names}")
    return times, broken


def content(number: int) -> dict:
    """A snapshot of 100 kB that is known by its number."""
    return {"number": number, "weights": torch.full((25_000,), float(number))}


def _save_until_killed(path: Path, number: int, seconds: float) -> int:
    """Fork a process that saves on and on; kill it; the last number it reported."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            while True:
                snapshot.write_snapshot(content(number), path)
                os.write(writer, f"{number}\n".encode())
                number += 1
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader) as reports:
        # the last line may be cut off
        numbers = [line for line in reports.read().split("\n")[:-1] if line]
    return int(numbers[-1]) if numbers else number - 1


# The end of a run, with DDP released before the process group and not


def count_bad_ends(shape: str, runs: int) -> int:
    """How many of ``runs`` runs of four ranks hang or abort at their end.

    ``shape`` is one that ``src/instruments/07_teardown.py`` knows.
    """
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "src/instruments/07_teardown.py"),
            shape,
            f"--runs={runs}",
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return runs - int(re.findall(r"(\d+) end well", done.stdout)[0])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of ranks")
    parser.add_argument("--saves", type=int, default=200, help="kills while saving")
    parser.add_argument("--ends", type=int, default=200, help="ends of a run")
    args = parser.parse_args(argv)
    saves, broken = kill_saving(args.saves)
    print(f"killed while saving: {saves} times, broken promises: {len(broken)}")
    bad = {}
    for shape in ("released_first", "usual"):
        bad[shape] = count_bad_ends(shape, args.ends)
        print(f"ends, {shape}: {bad[shape]} of {args.ends} hang or abort")
    killed, more = kill_ranks(args.kills)
    print(f"ranks killed: {killed}, broken promises: {len(more)}")
    for line in broken + more:
        print(line)
    return int(bool(broken or more or bad["released_first"]))


if __name__ == "__main__":
    sys.exit(main())
