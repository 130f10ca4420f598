"""Rules about scripts that bash can't read, or reads to another end."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath

from . import pages
from .rule import ERROR, WARNING, Problem, Table
from .script import Script

TABLE = Table()
SHELLS = ("bash", "sh", "dash")
SAID = re.compile(r"^\S*bash: line (\d+): (.+)$", re.MULTILINE)
OPEN = re.compile(r"unexpected (?:EOF|end of file)")
UNENDED = re.compile(r"warning: here-document at line (\d+) .*wanted `(.+)'")
PLACEHOLDER = re.compile(r"<[A-Za-z][\w -]*>")


def reads_bash(script: Script) -> bool:
    """Whether the file is for bash; one that doesn't say so is taken for it."""
    first = script.lines[0]
    if script.is_line or script.is_part or script.dialect == "kubernetes":
        return False
    if not first.startswith("#!"):
        return True
    words = [word for word in first[2:].split() if not word.startswith("-")]
    names = [PurePosixPath(word).name for word in words]
    return any(name in SHELLS for name in names[:2])


@lru_cache(maxsize=1)  # two rules ask
def said_of(text: str) -> tuple[int, str]:
    """The line and the words of bash, which reads the text without running it."""
    bash = shutil.which("bash")
    if bash is None:
        return 0, ""
    # BASH_ENV would name a file that bash runs first
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
    # the script itself would switch these patterns on, if it ran
    patterns = ["-O", "extglob"] if "extglob" in text else []
    done = subprocess.run(
        [bash, *patterns, "-n"],
        input=text.encode("utf-8", "surrogateescape"),
        env=environment,
        capture_output=True,
        timeout=60,
    )
    said = SAID.search(done.stderr.decode("utf-8", "replace"))
    return (int(said[1]), said[2]) if said else (0, "")


def said_by_bash(script: Script) -> tuple[int, str]:
    """The line and the words of bash about the file; no words if it can read it."""
    if not reads_bash(script):
        return 0, ""
    return said_of("\n".join(script.lines))


@TABLE.add("DT015", ERROR, pages.READ_THE_SCRIPT)
def bash_cannot_read(script: Script) -> Iterator[Problem]:
    """bash can't read the script

    bash runs a script up to the line that it can't read, and ends there. On a cluster
    that may be after hours in the queue.

    Cure:
        See where a quote, a bracket or a block is opened and not closed.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        if [ -e env.sh ]; then
          source env.sh

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        if [ -e env.sh ]; then
          source env.sh
        fi
    """
    line, words = said_by_bash(script)
    if words and not UNENDED.search(words):
        written = [n for n, text in enumerate(script.lines, 1) if text.strip()]
        line = min(line, written[-1])
        what = f"bash can't read it: {words}"
        yield Problem(line, what, cure_of(words, script.lines[line - 1]))


@TABLE.add("DT016", WARNING, pages.READ_THE_SCRIPT)
def text_without_an_end(script: Script) -> Iterator[Problem]:
    """A here-document without its last line

    bash takes everything up to the end of the file as its text, so no command below it
    runs.

    Cure:
        Write the last line as after <<, alone and without a blank before it.

    Bad:
        #!/bin/bash
        #SBATCH --nodes=1
        cat > hosts.txt <<EOF
        node1
         EOF
        echo ready

    Good:
        #!/bin/bash
        #SBATCH --nodes=1
        cat > hosts.txt <<EOF
        node1
        EOF
        echo ready
    """
    _, words = said_by_bash(script)
    unended = UNENDED.search(words)
    if unended:
        line, last = int(unended[1]), unended[2]
        what = f"the text that begins here has no last line with `{last}` alone"
        cure = f"write `{last}` alone in its last line, without a blank before it"
        yield Problem(line, what, cure)


def cure_of(words: str, line: str) -> str:
    """What to do about a line that bash names with these words."""
    placeholder = PLACEHOLDER.search(line)
    if placeholder:
        return f"write your own value in place of `{placeholder[0]}`"
    if OPEN.search(words):
        return "close what is still open: it began in that line or above"
    return "mend that line, or the block that it ends"
