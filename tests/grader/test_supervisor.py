"""What a run leaves behind is seen, also when it changes while one looks."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A process that starts another one and ends at the moment that is asked for.
MEANWHILE = """
import ctypes, json, os, sys, time
from grader import supervisor

ctypes.CDLL(None).prctl(supervisor._PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
moment, end = sys.argv[1:]
module = {"listdir": os, "_command": supervisor}[moment]
asked, ask = os.pipe()
parent = os.fork()
if parent == 0:
    os.read(asked, 1)
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)

def look(what, usual=getattr(module, moment)):
    seen = usual(what) if moment == "listdir" else None
    setattr(module, moment, usual)
    os.write(ask, b"x")
    os.waitid(os.P_PID, parent, os.WEXITED | (os.WNOWAIT if end == "zombie" else 0))
    return usual(what) if seen is None else seen

setattr(module, moment, look)
run = object.__new__(supervisor.Run)
run.ranks, run.left_running = [], []
try:
    run.note_what_still_runs()
    print(json.dumps(len(run.left_running)))
finally:
    run.end_everything()
"""


@pytest.mark.parametrize("end", ["zombie", "reaped"])
@pytest.mark.parametrize("moment", ["listdir", "_command"])
def test_process_started_while_one_looks_is_seen(moment, end):
    """Its parent was there when /proc was listed, and had ended when it was read."""
    done = subprocess.run(
        [sys.executable, "-c", MEANWHILE, moment, end],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
