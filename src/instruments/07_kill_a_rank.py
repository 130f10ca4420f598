"""Start a command, and kill one of its ranks with SIGKILL when it prints a line.

    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1    # restarts need it
    python src/instruments/07_kill_a_rank.py --rank 1 --after "Step 40" --delay 0.5 \\
        torchrun --standalone --nproc-per-node=2 --max-restarts=3 src/07_elastic.py
The rank is found by RANK in its environment, in Linux's /proc. The exit status is that
of the command, or 3 if the line was never printed. --json records it for a figure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # common is there

from common.distributed import BadInput, Parser, log, one_line_errors, output_file

LOOK = 0.02  # seconds between two looks at the processes
PROC = Path("/proc")


@dataclass
class Life:
    """A process that is a rank: times in seconds after the start of the command."""

    rank: int
    pid: int
    restart: int  # how often the ranks had been started again before
    begins: float
    ends: float | None = None


def below(pid: int) -> list[int]:
    """All descendants of process ``pid``."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *below(int(child))]
    return found


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty if it has ended."""
    try:
        text = (PROC / str(pid) / "environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)


class Run:
    """A running command: what it prints, and when each of its ranks was alive."""

    def __init__(self, command: list[str]):
        self.lives: dict[int, Life] = {}
        self.lines: list[tuple[float, str]] = []
        self.start = time.monotonic()
        try:
            # stderr is not read here: `2> errors.txt` keeps it
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise BadInput(f"cannot start {command[0]}: {error.strerror}") from error
        threading.Thread(target=self.watch, daemon=True).start()

    def now(self) -> float:
        return round(time.monotonic() - self.start, 3)

    def watch(self) -> None:
        """Look for ranks until the command ends."""
        while self.process.poll() is None:
            self.look()
            time.sleep(LOOK)

    def look(self) -> None:
        there = below(self.process.pid)
        for pid in set(there) - set(self.lives):
            found = environment_of(pid)
            # a rank may start processes, which inherit its RANK
            parents = {life.pid for life in self.lives.values() if life.ends is None}
            if "RANK" in found and not any(pid in below(p) for p in parents):
                restart = int(found.get("TORCHELASTIC_RESTART_COUNT", "0"))
                life = Life(int(found["RANK"]), pid, restart, self.now())
                self.lives[pid] = life
        for life in self.lives.values():
            if life.ends is None and life.pid not in there:
                life.ends = self.now()

    def kill(self, rank: int) -> Life:
        """Send SIGKILL to the newest process of this rank."""
        lives = [life for life in list(self.lives.values()) if life.rank == rank]
        if not lives or lives[-1].ends is not None:
            raise BadInput(f"there is no rank {rank} to kill: choose another --rank")
        os.kill(lives[-1].pid, signal.SIGKILL)
        return lives[-1]


def follow(run: Run, after: str, delay: float, rank: int) -> tuple[float, Life] | None:
    """Print what the command prints, and kill once; return (when, which), or None."""
    outcome: list = []  # (when, which), or why no rank was killed

    def kill() -> None:
        try:
            life = run.kill(rank)
            outcome.append((run.now(), life))
            log(f"[kill_a_rank] SIGKILL to rank {rank}, process {life.pid}")
        except BadInput as error:
            outcome.append(error)

    timer = None
    for line in map(str.rstrip, run.process.stdout or ()):
        run.lines.append((run.now(), line))
        log(line)
        if after in line and timer is None:
            timer = threading.Timer(delay, kill)
            timer.start()
    run.process.wait()
    if timer is not None:
        timer.join()
    if outcome and isinstance(outcome[0], BadInput):
        raise outcome[0]
    return outcome[0] if outcome else None


def parse_arguments() -> argparse.Namespace:
    parser = Parser(__doc__)
    add = parser.add_argument
    add("--rank", type=int, default=1, help="whom to kill (default: %(default)s)")
    add("--after", metavar="TEXT", required=True, help="kill when this is printed")
    seconds = {"metavar": "SECONDS", "type": float, "default": 0.0}
    add("--delay", **seconds, help="and that much later")
    add("--json", type=output_file, metavar="FILE", help="write what happened when")
    add("command", nargs=argparse.REMAINDER, help="the command, with its arguments")
    args = parser.parse_args()
    if not args.command:
        parser.error("name the command to start: torchrun ...")
    if not PROC.is_dir():
        raise BadInput(f"there is no {PROC}: this needs Linux")
    return args


@one_line_errors
def main() -> None:
    args = parse_arguments()
    run = Run(args.command)
    try:
        killed = follow(run, args.after, args.delay, args.rank)
    finally:
        if run.process.poll() is None:
            run.process.terminate()
            run.process.wait()
    run.look()
    if killed is None:
        log(f"[kill_a_rank] no line with {args.after!r} was printed: no rank killed")
        sys.exit(3)
    if args.json:
        lives = sorted(run.lives.values(), key=lambda life: (life.restart, life.rank))
        record = {
            "command": args.command,
            "ends": run.now(),
            "killed": {"at": killed[0], "rank": args.rank, "pid": killed[1].pid},
            "lives": [asdict(life) for life in lives],
            "lines": run.lines,
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.exit(run.process.returncode)


if __name__ == "__main__":
    main()
