"""Create or repair the environment in .venv: a venv, uv in it, and by uv all the rest.

tools/environment.py starts this when there is something to do. uv picks the build of
PyTorch that suits the machine. Where PyTorch's own index does not serve, what pip's
settings name is used; where there is no uv, pip installs.

Exit status: 0 ready; 2 with one sentence that says what is missing and the cure.
"""

from __future__ import annotations

import ast
import fcntl
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import environment
from environment import PYTHON, ROOT
from steps import LOG, NEEDED_GB, STATE, Step, Stop, explain

VENV = Path(ROOT, ".venv")
UV = VENV / "bin" / "uv"
INSTALLING = VENV / ".workshop-installing"
CONSTRAINTS = ["--constraint", f"{ROOT}/constraints.txt"]
WHAT = [*CONSTRAINTS, "--editable", f"{ROOT}[site,dev]"]
OPTIONS = {  # settings of pip, as uv calls them
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
    "cert": "--cert",
}


def main() -> int:
    """Make the environment; every failure becomes one sentence and an exit status."""
    try:
        STATE.mkdir(exist_ok=True)
        for folder in (ROOT, STATE):  # read-only, someone else's, full?
            tempfile.TemporaryFile(dir=folder).close()
        with (STATE / "environment.lock").open("w") as lock:
            wait_for(lock)
            return environment.main() if environment.is_ready() else build()
    except KeyboardInterrupt:
        sentence = "interrupted; the next run repairs what is half installed"
        print(f"\nenvironment: {sentence}", file=sys.stderr)
        return 130
    except (Stop, OSError) as error:
        print("environment:", explain(str(error)), file=sys.stderr)
        return 2


def wait_for(lock: IO[str]) -> None:
    """Only one `make` at a time may change .venv."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another command is creating .venv: waiting for it to finish", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def build() -> int:
    """The steps, each announced before it starts and timed when it is done."""
    started = time.monotonic()
    print("The workshop's environment, in .venv (full log: .workshop/environment.log)")
    LOG.write_text("")
    if reason := why_from_scratch():
        if shutil.disk_usage(ROOT).free < NEEDED_GB * 1e9:
            raise Stop("No space left")
        with Step(f"creating .venv {reason}") as step:
            create_venv(step)
    INSTALLING.touch()  # still there at the next run: interrupted
    if reason or not is_complete():
        with Step("reaching the package index") as step:
            command = installer(step)
        with Step("installing PyTorch and the tools") as step:
            step.run(*command)
    with Step("importing torch") as step:
        versions = import_torch(step)
    stamp = json.dumps({**environment.wanted(), **versions}, indent=1)
    Path(environment.STAMP).write_text(stamp + "\n")
    INSTALLING.unlink()
    print(f"Environment ready after {time.monotonic() - started:.0f} s")
    return 0


def why_from_scratch() -> str:
    """Why .venv is made from nothing, to be shown; empty: it can be kept."""
    version, here = environment.venv_version(), platform.python_version()
    if not os.path.lexists(VENV):
        return f"with Python {here}"
    if version is None:
        return "from scratch (the old one does not start)"
    if not environment.same_minor(version):
        return f"from scratch (it had Python {version}, this is {here})"
    if INSTALLING.exists():
        return "from scratch (its installation was interrupted)"
    if environment.stamp().get("folder", ROOT) != ROOT:
        return "from scratch (the folder was moved or copied)"
    has_pip = environment.output(*pip("--version"))
    return "" if has_pip else "from scratch (it has no pip)"


def is_complete() -> bool:
    """Whether everything is there, or could be installed from uv's cache."""
    if not UV.exists():
        return False
    with Step("looking at what is installed") as step:
        complete = succeeds(step, [*uv(), "--offline"])
        step.note = "complete" if complete else "something is missing"
    return complete


def create_venv(step: Step) -> None:
    """Replace .venv by a new one with pip in it; leave alone what is no folder."""
    if VENV.is_symlink() or VENV.is_file():
        raise Stop(".venv is a file or a link, not an environment: move it away first")
    shutil.rmtree(VENV, ignore_errors=True)
    step.run(sys.executable, "-I", "-m", "venv", str(VENV))


def installer(step: Step) -> list[str]:
    """The command that installs everything: the first way on which all is found."""
    soon = ("--retries=1", "--timeout=10")
    try:
        step.run(*pip("install", "--only-binary=uv", *soon, *CONSTRAINTS, "uv"))
    except Stop as stop:
        if "the package index has no uv" not in explain(str(stop)):
            raise
        step.note = "no uv for this machine: pip installs"
        return pip("install", *WHAT)
    plain = uv()
    # auto: the build for the CPU where there is no GPU, else for the GPU's driver
    suited = [*plain, "--torch-backend=" + os.environ.get("UV_TORCH_BACKEND", "auto")]
    limits = {"UV_HTTP_RETRIES": "1", "UV_HTTP_TIMEOUT": "10"}  # not for minutes
    if succeeds(step, [*suited, "--dry-run"], **limits):
        return suited
    step.note = "not PyTorch's own: everything from where pip's settings say"
    return plain


def succeeds(step: Step, command: list[str], **more: str) -> bool:
    try:
        step.run(*command, **more)
    except Stop:
        return False
    return True


def uv() -> list[str]:
    """The command of uv that installs everything from where pip's settings say."""
    options = [*settings_of_pip(), "--compile-bytecode", f"--python={PYTHON}"]
    options += ["--build-constraints", CONSTRAINTS[1]]
    return [str(UV), "pip", "install", *options, *WHAT]


def settings_of_pip() -> list[str]:
    """The indexes that pip is told: uv does not read pip's settings by itself."""
    text = environment.output(*pip("config", "list")) or ""  # passwords: not logged
    named: dict[str, str] = {}
    for section in ("global", "install", ":env:"):  # the later, the stronger
        for name, value in re.findall(rf"(?m)^{section}\.([\w-]+)=(.+)$", text):
            named[name] = ast.literal_eval(value) or named.get(name, "")
    if "proxy" in named:
        os.environ.setdefault("ALL_PROXY", named["proxy"])
    options = ["--index-strategy=unsafe-best-match"]  # as pip: the newest of all
    if named.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
        named = {"find-links": named.get("find-links", "")}
    for name, option in OPTIONS.items():
        for one in named.get(name, "").split():
            if name != "find-links" or "://" in one or os.path.exists(one):  # as pip
                options.append(f"{option}={one}")
    return options


def pip(*arguments: str) -> list[str]:
    """pip of .venv, blind to PYTHONPATH and to packages in the user's home."""
    quiet = ("--disable-pip-version-check", "--no-input")
    return [PYTHON, "-I", "-m", "pip", *quiet, *arguments]


def import_torch(step: Step) -> dict[str, str]:
    """The versions of Python and of torch, for the stamp."""
    code = "import platform, torch; print(platform.python_version(), torch.__version__)"
    python, torch = step.run(PYTHON, "-I", "-c", code).split()[-2:]
    step.note = f"torch {torch}"
    return {"python": python, "torch": torch}


if __name__ == "__main__":
    sys.exit(main())
