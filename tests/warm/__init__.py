"""A Python that starts warm, for tests that start hundreds of programs.

A cold start of a script that imports torch costs 1.3 s of CPU, a torchrun with two
ranks about 12 s. So a test session has one server (`server.py`) which has imported
torch, and a folder of wrappers: its `python`, `torchrun`, ... run `client.py`, which
asks the server for a fork of it and ends as that ends. What cannot be the same in a
fork (`terms.py`) starts cold by itself, and everything does where COLD_PYTHON is set.

    session = WarmPython()          # Linux only; WarmPython(python) of another venv
    session.bin / "python"          # also .venv/bin of another folder may link there
    session.close()
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def is_possible() -> bool:
    """Whether starts can be warm here, and nobody has asked for cold ones."""
    return sys.platform == "linux" and not os.environ.get("COLD_PYTHON")


class WarmPython:
    """The server of a test session and the folder of its wrappers.

    Attributes:
        environment: a folder to be used as `.venv`; its `bin` holds the wrappers.
        cold: the interpreter that the wrappers stand for.
    """

    def __init__(self, python: Path | None = None) -> None:
        self.cold = python or Path(sys.executable)
        self._outside: dict[str, str | None] = {}  # variables as they were before
        self.folder = Path(tempfile.mkdtemp(prefix="warm-", dir="/tmp"))
        self.environment = self.folder / "venv"
        self.bin = self.environment / "bin"
        self._make_environment()
        # The server ends when this end of its standard input is closed, by whatever.
        reading, self._lifeline = os.pipe()
        self.log = self.folder / "log"
        log = self.log.open("wb")
        # Many a session starts no program, so the server's imports wait for the first
        # start, and that waits for them.
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.folder / "socket"))
        listening.listen(256)
        names, number = ",".join(SERVERS_OWN), listening.fileno()
        self._server = subprocess.Popen(
            [self.cold, HERE / "server.py", self.folder, names, str(number)],
            pass_fds=[number],
            stdin=reading,
            stdout=log,
            stderr=log,
            cwd="/",
            env=server_environment(),
            start_new_session=True,
        )
        os.close(reading)
        listening.close()
        log.close()

    def enter(self) -> None:
        """Programs that this process starts find the wrappers first in their PATH."""
        own = {
            "WARM_PYTHON_BIN": str(self.bin),
            "WARM_COLD_PYTHON": str(self.cold),
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "WORKSHOP_VISIBLE": str(self.folder),  # to ranks of the grader
        }
        tuning = [name for name in os.environ if OF_OPENBLAS.match(name)]
        self._outside = {name: os.environ.get(name) for name in (*own, *tuning)}
        for name in tuning:
            del os.environ[name]
        os.environ.update(own)

    def started(self) -> set[str]:
        """The names of the programs that were started so far, warm or cold."""
        try:
            return set((self.folder / "started").read_text().split())
        except FileNotFoundError:
            return set()

    def close(self) -> None:
        """End the server and all that it has started; its folder goes, too."""
        for name, value in self._outside.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        os.close(self._lifeline)
        self._server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_environment(self) -> None:
        """Everything in .venv, by links; what starts with its Python is a copy."""
        own = self.cold.parent
        self.bin.mkdir(parents=True)
        for entry in own.parent.iterdir():
            if entry.name != own.name:
                (self.environment / entry.name).symlink_to(entry)
        for program in own.iterdir():
            self._wrap(program)

    def _wrap(self, program: Path) -> None:
        target = self.bin / program.name
        shebang = f"#!{self.cold.parent}/python".encode()
        if program.name.startswith("python"):
            if not program.name.endswith("-config"):
                self._write(target, self._client())
        elif program.name.startswith("activate"):
            text = program.read_text(encoding="utf-8")
            own = str(program.parent.parent)
            target.write_text(text.replace(own, str(self.environment)))
        elif program.is_file() and (text := program.read_bytes()).startswith(shebang):
            rest = text.partition(b"\n")[2].decode()
            self._write(target, f"#!{self.bin}/python\n{rest}")
        else:
            target.symlink_to(program)

    def _client(self) -> str:
        settings = (
            f"SOCKET = {str(self.folder / 'socket')!r}\nCOLD = {str(self.cold)!r}\n"
        )
        text = (HERE / "client.py").read_text(encoding="utf-8")
        return f"#!{self._interpreter()} -IS\n{settings}{text}"

    def _interpreter(self) -> Path:
        """A short path to the Python below .venv: the kernel reads 127 letters."""
        link = self.folder / "python"
        if not link.is_symlink():
            link.symlink_to(Path(sys._base_executable).resolve())
        return link

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def server_environment() -> dict[str, str]:
    """As a user's shell is, and then what makes forks of the server quick and safe."""
    kept = {k: v for k, v in os.environ.items() if not OF_OPENBLAS.match(k)}
    kept.pop("PYTHONPATH", None)  # or each program would have its folders twice
    return kept | SERVERS_OWN


# A user sets these for a machine; a job of PBS has none, and would start cold.
OF_OPENBLAS = re.compile("OPENBLAS_(?!NUM_THREADS)")
# No threads of a library's own, of which a fork would know nothing; and Python's
# objects in malloc's pages of 2 MB: a fork copies few entries of the page table.
SERVERS_OWN = {
    "OPENBLAS_NUM_THREADS": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "PYTHONMALLOC": "malloc",
}
