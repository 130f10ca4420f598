"""Builds of sites for tests, in forks of a process that has imported Sphinx once.

To import Sphinx, the theme and the extensions takes twice as long as to build a small
site. Each build is a process of its own, in which torch cannot be imported and nothing
can be reached; no module of a site is loaded before the fork.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

# what conf.py names that is not the site's own
PRELOADED = (
    *("sphinx.cmd.build", "sphinx.builders.html", "sphinx.ext.intersphinx"),
    *("notfound.extension", "sphinx_copybutton", "sphinx_design"),
    *("sphinxext.opengraph", "sphinx_rtd_theme", "tomllib"),
)
ADDRESS = "https://workshop.example/"
OF_READ_THE_DOCS = {
    "READTHEDOCS": "True",
    "READTHEDOCS_CANONICAL_URL": ADDRESS,
    "READTHEDOCS_LANGUAGE": "en",
    "READTHEDOCS_VERSION": "latest",
}
ARGUMENTS = ("-W", "-n", "--keep-going", "-q", "-E", "-b", "html")


class SphinxBuilds:
    """Builds pages as Read the Docs would, one after the other."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            # a warm Python has torch already
            env={**os.environ, "COLD_PYTHON": "1", **OF_READ_THE_DOCS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def build(self, source: Path, target: Path) -> str:
        """Build pages afresh: nitpicky, warnings are errors, offline, without torch.

        Returns:
            what Sphinx said about a failure; empty if the site was built.
        """
        assert self._server.stdin and self._server.stdout
        doctrees = f"{target}-doctrees"
        arguments = [*ARGUMENTS, "-d", doctrees, str(source), str(target)]
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as log:
            order = {"folder": str(source), "arguments": arguments, "log": log.name}
            self._server.stdin.write(f"{json.dumps(order)}\n")
            self._server.stdin.flush()
            status = self._server.stdout.readline().strip()
            if status == "0":
                return ""
            return f"{log.read()}\nsphinx-build: exit status {status or 'unknown'}"

    def close(self) -> None:
        self._server.communicate()


def refuse(self, address, *rest) -> None:
    raise OSError(f"the build wanted to reach {address}")


def carry_out(order: dict) -> int:
    """Run sphinx-build in a fork; its exit status."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    status = 1
    try:
        log = os.open(order["log"], os.O_WRONLY)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(order["folder"])
        status = sys.modules["sphinx.cmd.build"].main(order["arguments"])
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve() -> None:
    """Carry out the order on each line of the standard input, until it is closed."""
    import socket

    sys.modules["torch"] = None  # type: ignore[assignment]
    socket.socket.connect = socket.socket.connect_ex = refuse  # type: ignore
    sys.path.remove(str(Path(__file__).parent))  # its modules are no site's
    for name in PRELOADED:
        import_module(name)
    for line in sys.stdin:
        print(carry_out(json.loads(line)), flush=True)


if __name__ == "__main__":
    serve()
