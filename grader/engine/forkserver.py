"""A warm process: imports torch once, never computes, forks a supervisor per run.

``python -c BOOT FD`` runs :func:`serve` in it; :class:`ForkServer` is the other
side. Forking after the import makes four fresh ranks in about 0.1 s where a new
interpreter needs seconds. ``torch._dynamo``, which DDP and torch.optim import on first
use (a second per rank), is imported before the first check that may need it.
"""

from __future__ import annotations

import gc
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from grader.errors import UserError

PRELOAD = (
    "torch",
    "torch.distributed",
    "torch.testing",
    "pytest",
    "_pytest.assertion.rewrite",
    "grader.expect",
    "grader.engine.ledger",
    "grader.engine.rank",
    "grader.engine.supervisor",
)
# Another second, for checks that need it; else when nothing has been asked for a while.
PRELOAD_LATER = (
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.distributed.nn.functional",
    "torch.distributed.tensor",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data",
    "torch.utils.data.distributed",
)
NEEDS_LATER = re.compile(
    r"optim|parallel|DDP|fsdp|fully_shard|DTensor|compile|utils\.data|"
    r"distributed\.(tensor|nn|checkpoint)"
)
IDLE = 2.0  # seconds without a request; a check may take that long
# The current folder is taken off the path: a learner's random.py must not be found.
BOOT = (
    "import sys; sys.path[:] = [p for p in sys.path if p] + [sys.argv[2]]; "
    "from grader.engine.forkserver import serve; serve(int(sys.argv[1]))"
)


# With Python's objects in malloc's memory, and that in pages of 2 MB, a fork of the
# server copies a hundred entries of its page table, not fifty thousand.
QUICK_FORKS = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "PYTHONMALLOC": "malloc",
}


# What the ranks get beside: one thread each, traffic on loopback.
OF_THE_RANKS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCH_CPP_LOG_LEVEL": "FATAL",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}


def serve(descriptor: int) -> None:
    """Import everything, say so, then fork a supervisor per request; never returns."""
    import importlib

    control = socket.socket(fileno=descriptor)
    for name in ("LD_PRELOAD", "PYTHONSTARTUP", *QUICK_FORKS):
        os.environ.pop(name, None)
    for name in PRELOAD:
        importlib.import_module(name)
    import torch

    from grader.engine import supervisor

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors
    gc.collect()
    gc.freeze()
    later = list(PRELOAD_LATER)
    threads = len(os.listdir("/proc/self/task"))
    ready = {"ready": True, "torch": torch.__version__, "threads": threads}
    control.send(json.dumps(ready).encode())
    while True:
        ready, _, _ = select.select([control], [], [], IDLE if later else None)
        if not ready:
            importlib.import_module(later.pop(0))
            gc.freeze()
            continue
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            os._exit(0)
        while later and message == b"later":
            importlib.import_module(later.pop(0))
        if os.fork() == 0:
            status = 1
            try:
                control.close()
                client = socket.socket(fileno=descriptors[0])
                supervisor.supervise(client)
                status = 0
            finally:
                os._exit(status)
        os.close(descriptors[0])


class ForkServer:
    """The client's side: starts the server, hands it jobs.

    Attributes:
        info: what the server said when it was ready (torch version), or None.
    """

    def __init__(self) -> None:
        self.info: dict | None = None
        self._reading = threading.Lock()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, until close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        package = str(Path(__file__).resolve().parents[2])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(theirs.fileno()), package],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=os.environ | QUICK_FORKS | OF_THE_RANKS,
                cwd="/",
                start_new_session=True,
            )
        self._control = ours

    def wait_until_ready(self) -> None:
        """Block until torch is imported.

        Raises:
            UserError: the import failed; the sentence ends with Python's own.
        """
        with self._reading:
            if self.info is not None:
                return
            message = self._control.recv(4096)
            if message:
                self.info = json.loads(message)
                return
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        last = lines[-1] if lines else f"exit status {self._process.returncode}"
        raise UserError(
            f"the environment is broken, torch cannot be imported ({last}): "
            "run `make tour` once, or `workshop doctor` to see what is missing",
            exit_status=3,
        )

    def submit(self, job: dict) -> socket.socket:
        """Start a run; the outcome arrives on the returned socket."""
        self.wait_until_ready()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                code = job["source"] + Path(job["check_path"]).read_text("utf-8")
                message = b"later" if NEEDS_LATER.search(code) else b"run"
                socket.send_fds(self._control, [message], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise UserError(
                    f"the grader's server has ended ({error}): start again",
                    exit_status=3,
                ) from error
        ours.sendall(json.dumps(job).encode() + b"\n")
        return ours

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the server; runs in progress end because their client is gone."""
        self._control.close()
        if self.info is None:  # still importing: it would not listen for seconds
            self._process.kill()
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def receive_line(sock: socket.socket) -> bytes:
    """Everything up to a line feed (a message is one line of JSON)."""
    parts = []
    while True:
        part = sock.recv(1 << 20)
        parts.append(part)
        if not part or part.endswith(b"\n"):
            return b"".join(parts)
