"""Run 23_lost_rank.py with ranks that die, or fall silent, at an exact place.

    python tests/scripts/lost_ranks.py '[[1, 5, "reduce", "SIGKILL"]]' 12 --ranks 3 ...

Each entry: rank, step, place, signal. The rank sends itself the signal there, in its
first life; one that is stopped is continued when others have taken three more steps.
SLEEP is no signal: the rank sleeps there for as long, and its beats go on.
The ranks are forks of this process, so they start at once. Places: ``quorum`` (agreed,
not connected), ``reduce`` (others may be inside), ``vote`` (it has the sum, and has not
said so), ``voted`` (it has said so, and not taken the step), ``state`` (it is to send
its state to another rank), ``after`` (it has taken the step, and has not asked
for the next).
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

program = import_module("23_lost_rank")
quorum = import_module("common.quorum")


class Rank:
    """What subprocess.Popen would be, of a fork."""

    events: ClassVar[list] = []
    first_lives: ClassVar[dict[int, int]] = {}

    def __init__(self, command, env):
        self.rank, self.status = int(env["RANK"]), None
        first = self.rank not in self.first_lives
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.environ.update(env)
            run([event[1:] for event in self.events if first and event[0] == self.rank])
        self.first_lives.setdefault(self.rank, self.pid)

    def poll(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        while self.poll() is None:
            time.sleep(0.01)


def run(events):
    """The program in a fork; ``events``: step, place, signal."""

    class Doomed(program.Manager):
        def at(self, place):
            for step, where, name in events:
                if not self.quorum or self.quorum.step != step or where != place:
                    continue
                if name == "SLEEP":
                    sleep(step)
                else:
                    os.kill(os.getpid(), getattr(signal, name))

        def start_quorum(self, step):
            self.at("after")
            return super().start_quorum(step)

        def _build_group(self, agreed):
            self.quorum = agreed
            self.at("quorum")
            super()._build_group(agreed)

        def all_reduce(self, tensor):
            self.at("reduce")
            super().all_reduce(tensor)

        def should_commit(self):
            self.at("vote")
            return super().should_commit()

        def _vote(self):
            super()._vote()
            self.at("voted")

        def send_state(self, state, rank):
            self.at("state")
            super().send_state(state, rank)

    program.Manager = Doomed
    try:
        program.gpt_training.run_and_exit(program.main)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def sleep(step):
    """Until others have taken three more steps."""
    while last_step(Path("record")) < step + 3:
        time.sleep(0.05)


def last_step(folder):
    """The newest step that any rank has taken."""
    rows = [
        json.loads(line)
        for path in folder.glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    return max((row["step"] for row in rows if row["event"] == "step"), default=-1)


def wake(folder):
    """Continue each stopped rank when the others have taken three more steps."""
    stopped = {rank: step for rank, step, _, name in Rank.events if name == "SIGSTOP"}
    while stopped:
        time.sleep(0.05)
        for rank, step in list(stopped.items()):
            if last_step(folder) >= step + 3:
                os.kill(Rank.first_lives[rank], signal.SIGCONT)
                del stopped[rank]


def main():
    Rank.events = json.loads(sys.argv.pop(1))
    program.subprocess.Popen = Rank
    args = program.parse_arguments()
    threading.Thread(target=wake, args=[args.record], daemon=True).start()
    sys.exit(program.keep(args))


if __name__ == "__main__":
    if "WORKSHOP_STORE" in os.environ:
        sys.exit("lost_ranks.py: start it by hand, without WORKSHOP_STORE")
    main()
