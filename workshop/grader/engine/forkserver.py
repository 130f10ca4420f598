"""The client of the warm process: starts it, hands it jobs.

``python -c BOOT FD`` runs ``serve`` of ``server.py`` in it. Forking after the import
makes four fresh ranks in about 0.1 s where a new interpreter needs seconds.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from workshop.errors import UserError
from workshop.grader.verdicts.outcome import Job
from workshop.system import temporary
from workshop.system.environment import NO_GPU, OF_THE_RANKS
from workshop.versions import missing_module

NEEDS_LATER = re.compile(
    r"optim|parallel|DDP|fsdp|fully_shard|DTensor|compile|utils\.data|"
    r"distributed\.(tensor|nn|checkpoint|pipelining)"
)
# The current folder is taken off the path: a learner's random.py must not be found.
BOOT_IMPORT = "from workshop.grader.engine.server import serve"
BOOT = (
    "import gc, sys; gc.disable(); "  # a quarter of the imports' time, for nothing
    "sys.path[:] = [p for p in sys.path if p] + [sys.argv[2]]; "
    f"{BOOT_IMPORT}; serve(int(sys.argv[1]))"
)


# With Python's objects in malloc's memory, and that in pages of 2 MB, a fork of the
# server copies a hundred entries of its page table, not fifty thousand.
QUICK_FORKS = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "PYTHONMALLOC": "malloc",
}


class ForkServer:
    """The client's side: starts the server, hands it jobs.

    Attributes:
        info: what the server said when it was ready (torch version), or None.
    """

    def __init__(self) -> None:
        self.info: dict | None = None
        self._reading = threading.Lock()
        if why := temporary.problem():
            raise UserError(f"{why}: {temporary.CURE}", exit_status=3)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, until close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        package = str(Path(__file__).resolve().parents[3])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(theirs.fileno()), package],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=os.environ | QUICK_FORKS | OF_THE_RANKS | NO_GPU,
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
        if "No module named" in last:
            raise UserError(missing_module(last), exit_status=3)
        if "surrogates not allowed" in last:
            raise UserError(
                "the locale of this shell can't spell the path of the workshop: "
                "export PYTHONUTF8=1",
                exit_status=3,
            )
        raise UserError(
            f"the environment is broken, torch cannot be imported ({last}): "
            "run `make tour` once, or `workshop doctor` to see what is missing",
            exit_status=3,
        )

    def submit(self, job: Job) -> socket.socket:
        """Start a run; the outcome arrives on the returned socket."""
        self.wait_until_ready()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                code = job.source + Path(job.check_path).read_text("utf-8")
                needs_all = bool(NEEDS_LATER.search(code))
                request = {"checks": job.check_path, "needs_all": needs_all}
                message = json.dumps(request).encode()
                socket.send_fds(self._control, [message], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise UserError(
                    f"the grader's server has ended ({error}): start again",
                    exit_status=3,
                ) from error
        ours.sendall(job.as_line())
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
