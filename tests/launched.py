"""Commands that tests start, with no launcher around them, and end for good."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
STANDALONE = [*TORCHRUN, "--standalone"]
FOREIGN = re.compile(
    r"^(RANK|LOCAL_|WORLD_SIZE|GROUP_|MASTER_|SLURM_|OMPI_|PMI|MPI_|PET_|TORCH)"
    "|NCCL_|GLOO_"
)
LIMIT = 600  # seconds; each takes about 10 on an idle machine, 300 on a busy one


def environment(**variables):
    """No GPU, one thread for each rank, no variables of a launcher around us."""
    kept = {k: v for k, v in os.environ.items() if not FOREIGN.search(k)}
    return kept | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"} | variables


def start(folder, command, **variables):
    """Start a command in a session of its own."""
    return subprocess.Popen(
        list(map(str, command)),
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process, limit=LIMIT):
    """Wait for it; nothing that it started is left behind, even if it hangs."""
    try:
        out, err = process.communicate(timeout=limit)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run(folder, command, limit=LIMIT, **variables):
    """Run a command to its end."""
    return finish(start(folder, command, **variables), limit)


def wait_until(happened, seconds=LIMIT, what="what a test waits for"):
    """Wait for what another process does; returns what ``happened()`` did."""
    end = time.monotonic() + seconds
    while not (value := happened()):
        assert time.monotonic() < end, f"after {seconds} s still not: {what}"
        time.sleep(0.05)
    return value


def left_over(printed, lines):
    """What is left of a text when each of these lines was taken out of it once.

    torchrun starts Python with ``-u``, whose print() writes a line and its end one
    after the other: another rank's line may stand between them.
    """
    for line in sorted(lines, key=len, reverse=True):
        printed = printed.replace(line, "", 1)
    return printed


reserved = []  # sockets, until the tests end


def free_port():
    """A port of this machine on which nobody listens, and that no one else is given.

    The socket stays bound: on Linux, a server of PyTorch may listen there all the same.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    if sys.platform == "linux":
        reserved.append(holder)
    return holder.getsockname()[1]
