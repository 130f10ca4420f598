#!/usr/bin/env python3
# ruff: noqa: B904, E402, UP004, UP010, UP024, UP030, UP032, UP036
"""Create, repair or just find the workshop's environment in .venv.

    python3 tools/environment.py

`make` runs this before everything else. The second run takes no time: a stamp in
.venv remembers what was installed. It uses the standard library only, and syntax
that Python 2 can parse, so that a wrong Python gets a sentence, not a SyntaxError.

Exit status: 0 ready, 2 with one sentence that says what is missing and the cure.
"""

from __future__ import print_function

import sys

NEEDED = (3, 10)
if sys.version_info < (3, 3):
    sys.stderr.write(
        "environment: this is Python {0}.{1}, the workshop needs 3.10 or newer: "
        "install one, then name it, for example: make PYTHON=python3.11 tour\n".format(
            *sys.version_info[:2]
        )
    )
    sys.exit(2)

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, ".workshop-stamp.json")
INSTALLING = os.path.join(VENV, ".workshop-installing")
STATE = os.path.join(ROOT, ".workshop")
LOG = os.path.join(STATE, "environment.log")
NEEDED_BYTES = 3 * 10**9  # of CPU-only PyTorch and the rest, unpacked, with some air
ANSWER_LIMIT = 60  # seconds the package index gets for its first answer

OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError"
    r"|Connection refused|Temporary failure in name resolution|Network is unreachable"
    r"|RemoteDisconnected|Connection reset|IncompleteRead|ProtocolError"
    r"|certificate verify failed|Connection to .* timed out|No route to host"
)


class Stop(Exception):
    """What the user must know, in one sentence."""


def main():
    """Bring .venv into the state that pyproject.toml and constraints.txt ask for."""
    fingerprint = wanted()
    if is_ready(fingerprint):
        say_ready()
        return
    check_python()
    check_folder()
    with Lock():
        if is_ready(fingerprint):  # another `make` has just done it
            say_ready()
            return
        build(fingerprint)


def say_ready():
    stamp = read_stamp()
    print("Environment ready: Python {python}, torch {torch}".format(**stamp))


def build(fingerprint):
    """The steps, each announced before it starts and timed when it is done."""
    started = time.time()
    print("The workshop's environment, in .venv (full log: .workshop/environment.log)")
    open(LOG, "w").close()
    reason = why_anew()
    if reason:
        check_disk()
        check_venv_module()
        with Step("creating .venv" + reason):
            create_venv()
    write(INSTALLING, "being installed; without a stamp beside it: interrupted\n")
    if reason or not install_what_is_here():
        check_disk()
        with Step("reaching the package index") as step:
            install_installer(step)
        with Step("installing PyTorch and the tools") as step:
            install_everything(step)
        with Step("compiling them"):
            compile_everything()
    with Step("importing torch") as step:
        versions = import_torch()
        step.note = "torch " + versions["torch"]
    write(STAMP, json.dumps(dict(fingerprint, **versions), indent=1) + "\n")
    os.remove(INSTALLING)
    print("Environment ready after {0:.0f} s".format(time.time() - started))


# What is there


def wanted():
    """What the stamp must say for .venv to be used as it is."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        try:
            with open(os.path.join(ROOT, name), "rb") as file:
                digest.update(file.read())
        except (IOError, OSError) as error:
            raise Stop("cannot read {0} of the workshop: {1}".format(name, error))
    # Scripts in .venv/bin begin with its path, so a moved folder needs a new one.
    return {"inputs": digest.hexdigest(), "folder": ROOT}


def read_stamp():
    """The stamp of .venv; empty when there is none or it is damaged."""
    try:
        with open(STAMP) as file:
            stamp = json.load(file)
        return stamp if isinstance(stamp, dict) else {}
    except (IOError, OSError, ValueError):
        return {}


def is_ready(fingerprint):
    """Whether .venv was made for these inputs, this Python and still starts."""
    stamp = read_stamp()
    if not all(stamp.get(key) == value for key, value in fingerprint.items()):
        return False
    if sys.version_info >= NEEDED and not same_minor(stamp.get("python")):
        return False
    return venv_version() == stamp.get("python")


def venv_version():
    """The version of the interpreter in .venv, or None when it does not start."""
    code = "import encodings, platform; print(platform.python_version())"
    try:
        output = subprocess.check_output(
            [PYTHON, "-I", "-c", code], stderr=subprocess.STDOUT
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return output.decode("utf-8", "replace").strip()


def same_minor(version):
    """Whether a version is of the 3.x that runs this; 3.11.2 and 3.11.7 are alike."""
    return str(version).split(".")[:2] == platform.python_version().split(".")[:2]


def why_anew():
    """Why .venv must be made from nothing, to be shown; empty: it can be kept."""
    if not os.path.lexists(VENV):
        return " with Python " + platform.python_version()
    version = venv_version()
    if version is None:
        return " anew (the old one does not start)"
    if not same_minor(version):
        return " anew (it had Python {0}, this is {1})".format(
            version, platform.python_version()
        )
    if os.path.exists(INSTALLING):
        return " anew (its installation was interrupted)"
    if read_stamp().get("folder", ROOT) != ROOT:
        return " anew (the folder was moved or copied)"
    if run_quietly([PYTHON, "-I", "-m", "pip", "--version"]):
        return " anew (it has no pip)"
    return ""


# Checks: each raises Stop with one sentence


def check_python():
    if sys.version_info >= NEEDED:
        return
    # Asked for its version because a name on PATH can be a shim without a Python.
    names = ["python" + version for version in ("3.12", "3.11", "3.13", "3.10")]
    newer = [name for name in names if run_quietly([name, "--version"]) == 0]
    cure = "install one, then name it, for example: make PYTHON=python3.11 tour"
    if newer:
        cure = "there is a newer one here, use it with: make PYTHON={0} tour".format(
            newer[0]
        )
    raise Stop(
        "this is Python {0}, the workshop needs 3.10 or newer: {1}".format(
            platform.python_version(), cure
        )
    )


def check_folder():
    """The workshop's folder must take new files (read-only mounts, foreign owner)."""
    try:
        os.makedirs(STATE, exist_ok=True)
        with tempfile.TemporaryFile(dir=ROOT):
            pass
        with tempfile.TemporaryFile(dir=STATE):
            pass
    except (IOError, OSError) as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Stop(disk_full())
        raise Stop(
            "cannot write into {0} ({1}): clone the workshop into a folder of "
            "your own".format(ROOT, error.strerror)
        )


def check_disk():
    place = VENV if os.path.isdir(VENV) else ROOT
    if shutil.disk_usage(place).free < NEEDED_BYTES:
        raise Stop(disk_full())


def disk_full():
    return (
        "the disk of {0} is full ({1:.1f} GB free, the environment needs {2:.0f} GB): "
        "make room or clone the workshop onto another disk".format(
            ROOT, shutil.disk_usage(ROOT).free / 1e9, NEEDED_BYTES / 1e9
        )
    )


def check_venv_module():
    try:
        import ensurepip  # noqa: F401  (Debian ships it apart, in python3-venv)
        import venv  # noqa: F401
    except ImportError:
        raise Stop(no_venv())


def no_venv():
    cure = "install Python's venv and ensurepip modules"
    if shutil.which("apt-get"):
        cure = "sudo apt-get install python3-venv"
    return "{0} cannot create environments, its venv module is missing: {1}".format(
        sys.executable or "this Python", cure
    )


# Steps


def create_venv():
    if os.path.islink(VENV) or os.path.isfile(VENV):
        raise Stop(
            ".venv is a file or a link, not an environment: move it away, then "
            "run the same command again"
        )
    # Run from within .venv itself, the interpreter to build on is the one below it.
    base = getattr(sys, "_base_executable", None) or sys.executable
    shutil.rmtree(VENV, ignore_errors=True)
    status, tail = run([base, "-I", "-m", "venv", VENV])
    if status == 0:
        return
    if re.search(r"ensurepip|No module named '?venv", tail):
        raise Stop(no_venv())
    raise Stop(explain(tail, "python -m venv", status))


def install_what_is_here():
    """Install without the network; True if everything needed was there already."""
    with Step("looking at what is installed") as step:
        status, _ = run(pip("install", "--no-index") + what())
        step.note = "complete" if status == 0 else "something is missing"
    return status == 0


def install_installer(step):
    """A pip that shows its downloads, and the index's first answer, soon."""
    command = pip("install", "--retries", "1", "--timeout", "10", "--upgrade")
    command += ["--constraint", os.path.join(ROOT, "constraints.txt")]
    command += ["pip", "setuptools"]
    status, tail = run(command, step, ANSWER_LIMIT)
    if status is None:
        raise Stop(no_network("no answer within {0} s".format(ANSWER_LIMIT)))
    if status:
        raise Stop(explain(tail, "pip", status))


def install_everything(step):
    command = pip("install", "--no-compile") + what()
    if "raw" in run(pip("install", "--help"))[1]:  # pip 24.1 and newer
        command += ["--progress-bar", "raw"]
    status, tail = run(command, step)
    if status:
        raise Stop(explain(tail, "pip", status))


def compile_everything():
    """Byte code for all packages but not their own tests, on all cores.

    pip would compile one file after the other, three times as long as it unpacks;
    without byte code every later import of torch would pay for it.
    """
    skip = "[/\\\\](tests?|benchmarks)[/\\\\]"
    packages = os.path.join(VENV, "lib")
    run([PYTHON, "-I", "-m", "compileall", "-q", "-j", "0", "-x", skip, packages])


def what():
    """The arguments of pip that name what is installed."""
    return [
        "--no-build-isolation",
        "--constraint",
        os.path.join(ROOT, "constraints.txt"),
        "--editable",
        ROOT + "[site,dev]",
    ]


def pip(*arguments):
    """pip of .venv, blind to PYTHONPATH and to packages in the user's home."""
    command = [PYTHON, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    return command + list(arguments)


def import_torch():
    code = (
        "import json, platform, torch; print(json.dumps("
        "{'python': platform.python_version(), 'torch': torch.__version__}))"
    )
    status, tail = run([PYTHON, "-I", "-c", code])
    try:
        return json.loads(tail.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Stop(explain(tail, "import torch", status))


# Failures in words


def explain(tail, what_failed, status):
    """One sentence for the failure that the last lines of a log describe."""
    if re.search(r"No space left on device|Errno 28|Disk quota exceeded", tail):
        return disk_full()
    found = OFFLINE.search(tail)
    if found:
        return no_network(found.group(0))
    missing = re.search(
        r"No matching distribution found for (\S+)"
        r"|The user requested \(constraint\) (\S+)[^$]*ResolutionImpossible",
        tail,
    )
    if missing:
        return (
            "the package index has no {0} for Python {1} on {2}: check "
            "PIP_INDEX_URL, PIP_NO_INDEX and pip's configuration".format(
                missing.group(1) or missing.group(2),
                platform.python_version(),
                platform.machine(),
            )
        )
    if re.search(r"Permission denied|Errno 13", tail):
        return "a file could not be written (permission denied): see " + shown(LOG)
    last = [line for line in tail.strip().splitlines() if line.strip()] or ["no output"]
    return "{0} failed (exit status {1}: {2}): the full log is {3}".format(
        what_failed, status, last[-1].strip()[:120], shown(LOG)
    )


def no_network(reason):
    return (
        "cannot reach the package index ({0}): check the network, the proxy "
        "(HTTPS_PROXY) and PIP_INDEX_URL, then run the same command again".format(
            reason
        )
    )


def shown(path):
    """A path as a user would type it from the workshop's folder."""
    return os.path.relpath(path, ROOT)


# Running and showing


def run(command, step=None, limit=None):
    """Run a command into the log. Returns its exit status (None: over the limit)
    and the last of its output."""
    environment = dict(os.environ, PIP_USER="0", PYTHONDONTWRITEBYTECODE="")
    environment.pop("PIP_TARGET", None)
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    tail = []
    over = threading.Event()
    timer = threading.Timer(limit or 0, lambda: (over.set(), process.kill()))
    if limit:
        timer.start()
    try:
        with open(LOG, "ab") as log:
            for raw in process.stdout or ():
                line = raw.decode("utf-8", "replace").rstrip()
                if not line.startswith("Progress "):
                    log.write(raw)
                    log.flush()
                    tail.append(line)
                    del tail[:-60]
                if step:
                    step.saw(line)
        process.wait()
    except (IOError, OSError) as error:  # the log itself did not fit on the disk
        process.kill()
        process.wait()
        tail.append(str(error))
    finally:
        timer.cancel()
        if process.poll() is None:
            process.terminate()
            process.wait()
    return (None if over.is_set() else process.returncode), "\n".join(tail)


def run_quietly(command):
    """The exit status of a command whose output nobody needs; 1 if it is absent."""
    try:
        return subprocess.call(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return 1


class Step(object):
    """One line on the screen: what is being done, then how long it took.

    On a terminal the line shows the running seconds and the current package;
    elsewhere only the large downloads get a line of their own.
    """

    def __init__(self, title):
        self.title = title
        self.note = ""
        self.activity = ""
        self.terminal = sys.stdout.isatty()
        self.done = threading.Event()

    def __enter__(self):
        self.started = time.time()
        if self.terminal:
            self.ticker = threading.Thread(target=self.tick)
            self.ticker.daemon = True
            self.ticker.start()
        else:
            self.say("  {0} ...".format(self.title))
        return self

    def __exit__(self, kind, error, trace):
        self.done.set()
        seconds = time.time() - self.started
        outcome = "failed" if kind else "done"
        note = "  ({0})".format(self.note) if self.note and not kind else ""
        line = "{0} after {1:.0f} s{2}".format(outcome, seconds, note)
        if self.terminal:
            self.ticker.join()
            self.say("\r\033[K  {0}: {1}".format(self.title, line))
        else:
            self.say("  {0}: {1}".format(self.title, line))

    def tick(self):
        width = shutil.get_terminal_size().columns
        while not self.done.wait(0.2):
            seconds = time.time() - self.started
            line = "  {0} ... {1:.0f} s  {2}".format(self.title, seconds, self.activity)
            sys.stdout.write("\r\033[K" + line[: width - 1])
            sys.stdout.flush()

    def saw(self, line):
        """Take the current activity from a line of pip's output."""
        progress = re.match(r"Progress (\d+) of (\d+)", line)
        loading = re.match(r"\s*Downloading (\S+) \(([\d.]+) ([kMG]?B)\)", line)
        if progress and int(progress.group(2)):
            share = 100.0 * int(progress.group(1)) / int(progress.group(2))
            self.activity = "{0} {1:.0f} %".format(self.activity.split(" ")[0], share)
        elif loading:
            self.activity = loading.group(1).split("/")[-1]
            large = loading.group(3) == "GB" or (
                loading.group(3) == "MB" and float(loading.group(2)) >= 10
            )
            if large and not self.terminal:
                name = self.activity.split("-")[0]
                self.say(
                    "    downloading {0} ({1} {2})".format(name, *loading.groups()[1:])
                )
        elif line.startswith("Installing collected packages:"):
            count = len(line.split(":", 1)[1].split(","))
            self.activity = "unpacking {0} packages".format(count)
            if not self.terminal:
                self.say("    " + self.activity)
        elif line.startswith("Collecting "):
            self.activity = line.split()[1]

    @staticmethod
    def say(text):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


class Lock(object):
    """Only one `make` at a time may change .venv; the others wait and say so."""

    def __enter__(self):
        import fcntl

        self.file = open(os.path.join(STATE, "environment.lock"), "w")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (IOError, OSError):
            print("Another command is creating .venv: waiting for it to finish")
            sys.stdout.flush()
            fcntl.flock(self.file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_):
        self.file.close()


def write(path, text):
    """Write a small file so that it is either the old or the new one."""
    with open(path + ".tmp", "w") as file:
        file.write(text)
    os.rename(path + ".tmp", path)


def guarded():
    """Run :func:`main`; every failure becomes one sentence and an exit status."""
    try:
        main()
        return 0
    except Stop as stop:
        sentence = str(stop)
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nenvironment: interrupted; the next run repairs what is half installed\n"
        )
        return 130
    except (IOError, OSError) as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        sentence = disk_full() if full else str(error)
    sys.stderr.write("environment: " + sentence + "\n")
    return 2


if __name__ == "__main__":
    sys.exit(guarded())
