#!/usr/bin/env python3
# ruff: noqa: UP010, UP024, UP030, UP032, UP036
"""Find the workshop's environment in .venv, or have it made (tools/install.py).

    python3 tools/environment.py

`make` runs this before everything else. A stamp in .venv remembers what was installed,
so a run that finds nothing to do is quick. Python 2 runs this file, too: the wrong
Python gets a sentence, not a SyntaxError.

Exit status: 0 ready; 2 with one sentence that says what is missing and the cure.
"""

from __future__ import print_function

import hashlib
import json
import os
import platform
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PYTHON = os.path.join(ROOT, ".venv", "bin", "python")
STAMP = os.path.join(ROOT, ".venv", ".workshop-stamp.json")
TOO_OLD = "environment: this is Python {0}, the workshop needs 3.10 or newer: {1}\n"

COMMAND = "make PYTHON={0} tour"


def main():
    if is_ready():
        print("Environment ready: Python {python}, torch {torch}".format(**stamp()))
        return 0
    if sys.version_info < (3, 10):
        sys.stderr.write(TOO_OLD.format(platform.python_version(), newer_python()))
        return 2
    sys.stdout.flush()
    # inside .venv itself, the interpreter to build on is the one below it
    base = getattr(sys, "_base_executable", sys.executable)
    return os.execv(base, [base, os.path.join(ROOT, "tools", "install.py")])


def is_ready():
    """Whether .venv was made for these inputs, this Python and still starts."""
    found = stamp()
    kept = all(found.get(key) == value for key, value in wanted().items())
    old = sys.version_info < (3, 10)
    same = old or same_minor(found.get("python"))
    return kept and same and venv_version() == found.get("python")


def wanted():
    """What the stamp must say for .venv to be used unchanged."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        try:
            with open(os.path.join(ROOT, name), "rb") as file:
                digest.update(file.read())
        except (IOError, OSError) as error:
            sys.stderr.write("environment: cannot read {0}: {1}\n".format(name, error))
            sys.exit(2)
    # scripts in .venv/bin begin with its path, so a moved folder needs a new one
    return {"inputs": digest.hexdigest(), "folder": ROOT}


def stamp():
    """The stamp of .venv; empty when there is none or it is damaged."""
    try:
        with open(STAMP) as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    except (IOError, OSError, ValueError):
        return {}


def venv_version():
    """The version of the interpreter in .venv, or None when it does not start."""
    code = "import encodings, platform; print(platform.python_version())"
    return output(PYTHON, "-I", "-c", code)


def same_minor(version):
    """Whether a version is of the 3.x that runs this; 3.11.2 and 3.11.7 are alike."""
    return str(version).split(".")[:2] == platform.python_version().split(".")[:2]


def newer_python():
    """The cure for an old Python: a newer one of this machine, where there is one."""
    for minor in (12, 11, 13, 10, 14):
        name = "python3.{0}".format(minor)
        if output(name, "--version"):  # a name on PATH can be a shim without a Python
            return "there is a newer one here, use it with: " + COMMAND.format(name)
    return "install one, then name it, for example: " + COMMAND.format("python3.11")


def output(*command):
    """What a command prints; None when it fails or is not there."""
    try:
        text = subprocess.check_output(command, stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError):
        return None
    return text.decode("utf-8", "replace").strip()


if __name__ == "__main__":
    sys.exit(main())
