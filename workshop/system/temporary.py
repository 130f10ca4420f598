"""Is there a folder for temporary files, and may programs run from it?

A full or read-only /tmp is not rare, nor is one that is mounted with noexec.
"""

from __future__ import annotations

import os
import tempfile

CURE = 'name a folder of your own: mkdir -p ~/tmp && export TMPDIR="$HOME/tmp"'


def problem() -> str:
    """Why no temporary file can be written; "" where one can be.

    Python takes the first folder that works of $TMPDIR, /tmp, /var/tmp, /usr/tmp and
    the one it is started in. The grader's server is started in /, so the last of them
    would leave the two with different folders: it doesn't count, unless it was named.
    """
    try:
        place = tempfile.gettempdir()
    except FileNotFoundError:
        place = ""
    named = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    if place and (place != os.getcwd() or place in named):
        return ""
    return "neither /tmp nor /var/tmp can be written to"


def runs_programs(folder: str) -> bool:
    """Whether a program may be started from there; no with the option noexec."""
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def problem_of_programs() -> str:
    """Why no program can be put into a temporary folder and started; "" if one can."""
    place = tempfile.gettempdir()
    if runs_programs(place):
        return ""
    return f"no program may run from {place}, which is mounted with noexec"
