"""The steps of an installation: shown while they run, explained when they fail."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from environment import ROOT

STATE = Path(ROOT, ".workshop")
LOG = STATE / "environment.log"
NEEDED_GB = 3  # of CPU-only PyTorch and the rest, unpacked, with some air
SENTENCES = {  # what a failed command prints: what that means, and the cure
    r"No space left|quota exceeded": "the disk of {root} is full ({free:.1f} GB free, "
    "the environment needs {needed} GB): make room or clone the workshop onto another "
    "disk",
    r"Permission denied|Read-only file system": "cannot write into {root} ({found}): "
    "clone the workshop into a folder of your own",
    r"ensurepip is not|No module named '?(?:venv|ensurepip)": "{python} cannot create "
    "environments, its venv module is missing: {venv}",
    r"dns error|NameResolutionError|name resolution|NewConnectionError|ProxyError|"
    r"(?:Connect|Read)Timeout|timed out|[Cc]onnection (?:refused|reset)|ProtocolError|"
    r"Network is unreachable|No route to host|RemoteDisconnected|IncompleteRead|"
    r"certificate verify failed|invalid peer certificate|error sending request": (
        "cannot reach the package index ({found}): check the network, the proxy "
        "(HTTPS_PROXY) and PIP_INDEX_URL, then run the same command again"
    ),
    r"(?<=distribution found for )[\w.-]+|(?<=no versions of )[\w.-]+|"
    r"(?<=no version of )[\w.-]+|(?<=ecause only )[\w.-]+|"
    r"(?<=user requested \(constraint\) )[\w.-]+|"
    r"[\w.-]+(?=\S* (?:was not found in|has no (?:usable )?wheels|needs to be d))": (
        "the package index has no {found} for Python {version} on {machine}: check "
        "PIP_INDEX_URL, PIP_NO_INDEX and pip's configuration"
    ),
}


class Stop(Exception):
    """What a failed command printed, with a last line that says what failed."""


def explain(text: str) -> str:
    """One sentence for a failure, from what was printed."""
    debian = shutil.which("apt-get") and "sudo apt-get install python3-venv"
    facts = {
        "root": ROOT,
        "free": shutil.disk_usage(ROOT).free / 1e9,
        "needed": NEEDED_GB,
        "python": sys.executable,
        "venv": debian or "install Python's venv and ensurepip modules",
        "version": platform.python_version(),
        "machine": platform.machine(),
    }
    for pattern, sentence in SENTENCES.items():
        if found := re.search(pattern, text):
            return sentence.format(found=found[0], **facts)
    return text.splitlines()[-1]


class Step:
    """A line on the screen: what is being done, then how long it took.

    On a terminal it shows the running seconds and what is being downloaded; elsewhere
    each large download has a line.
    """

    def __init__(self, title: str):
        self.title, self.note, self.loading = title, "", ""
        self.started = time.monotonic()
        self.over = threading.Event()
        self.ticker = threading.Thread(target=self.tick, daemon=True)

    def __enter__(self) -> Step:
        if sys.stdout.isatty():
            self.ticker.start()
        else:
            print(f"  {self.title} ...", flush=True)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.over.set()
        if self.ticker.ident:
            self.ticker.join()
        outcome = "failed" if kind else "done"
        note = f"  ({self.note})" if self.note and not kind else ""
        print(f"  {self.title}: {outcome} after {self.seconds()}{note}", flush=True)

    def seconds(self) -> str:
        return f"{time.monotonic() - self.started:.0f} s"

    def tick(self) -> None:
        while not self.over.wait(0.2):
            line = f"  {self.title} ... {self.seconds()}  {self.loading}"
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{line[:width]}", end="", flush=True)
        print("\r\033[K", end="")

    def run(self, *command: str, **more: str) -> str:
        """What a command prints, which goes into the log, too. Stop if it fails."""
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables(more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        printed = ["no output"]
        try:
            with LOG.open("a", encoding="utf-8") as log:
                for line in process.stdout or ():
                    printed.append(line)
                    self.saw(line)
                    print(line, end="", file=log, flush=True)
        except BaseException:
            process.kill()
            raise
        finally:
            status = process.wait()
        text = "".join(printed[1:])
        if status:
            last = printed[-1].strip()[:120]
            failed = f"{self.title} failed (exit status {status}: {last})"
            raise Stop(f"{text}\n{failed}: the full log is .workshop/environment.log")
        return text

    def saw(self, line: str) -> None:
        """Note a large download in a line of uv's or pip's output."""
        if found := re.match(r"\s*Downloading (\S+ \((\d\d+.*M|.*G)i?B\))", line):
            self.loading = f"downloading {found[1]}"
            if not self.ticker.ident:
                print(f"    {self.loading}", flush=True)


def variables(more: dict[str, str]) -> dict[str, str]:
    """The environment of a command: the user's, but nothing outside this folder."""
    mine = {"PIP_CACHE_DIR": f"{STATE}/cache/pip", "UV_CACHE_DIR": f"{STATE}/cache/uv"}
    theirs = {name: value for name, value in os.environ.items() if name != "PIP_TARGET"}
    return {**mine, **more, **theirs, "PIP_USER": "0"}
