"""test_isolation.py once more as an ordinary user, who owns the workshop and its files.

Tests in a container are root's: there, a few of its attempts run as another user.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.geteuid() != 0, reason="test_isolation.py is that, here"),
]
ROOT = Path(__file__).resolve().parents[2]
ORDINARY = "nobody"
# What this user could do without a world of its own; afterwards the tree is hashed.
ATTEMPTS = (
    "appends to another learner's file",
    "reads the solutions",
    "changes a program of the workshop",
    "writes into the home",
    "unmounts it in a world of its own",
    "kills the process that watches it",
)
# Root's Python may lie in root's home: show each folder of it, and nothing beside.
SHOW = """
set -e
for folder in $FOLDERS; do
  setpriv $IDENTITY test -x "$folder/bin/python3" && continue
  mkdir "$PLACE/shown"
  mount --bind "$folder" "$PLACE/shown"
  top=/$(echo "$folder" | cut -d / -f 2)
  mountpoint -q "$top" || mount -t tmpfs -o mode=755 none "$top"
  mkdir -p "$folder"
  mount --bind "$PLACE/shown" "$folder"
  umount "$PLACE/shown"
  rmdir "$PLACE/shown"
done
exec setpriv $IDENTITY "$@"
"""


@pytest.fixture
def place():
    """A folder that an ordinary user may enter, with a workshop of that user."""
    with tempfile.TemporaryDirectory(prefix="user-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        shutil.copy(ROOT / "pyproject.toml", place)
        ours = ("workshop", "solutions", "exercises", "tests")
        cached = shutil.ignore_patterns("__pycache__")
        for name in ours:
            shutil.copytree(ROOT / name, place / "workshop" / name, ignore=cached)
        shutil.move(place / "pyproject.toml", place / "workshop")
        (place / "home").mkdir()
        user = pwd.getpwnam(ORDINARY)
        for path in (place / "workshop", place / "home"):
            subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", path])
        yield place


@pytest.mark.cold("this interpreter is another user's")
def test_attempts_of_an_ordinary_user_are_refused(place):
    user = pwd.getpwnam(ORDINARY)
    identity = f"--reuid={user.pw_uid} --regid={user.pw_gid} --clear-groups"
    folders = " ".join(dict.fromkeys([sys.base_prefix, sys.prefix]))
    home = {"HOME": str(place / "home"), "TMPDIR": str(place / "home")}
    words = {"IDENTITY": identity, "FOLDERS": folders, "PLACE": str(place)}
    tests = "tests/grader/test_isolation.py::test_attempt_is_refused"
    python = [f"{sys.prefix}/bin/python", "-m", "pytest", "-q", "-rs"]
    chosen = [f"{tests}[{name}]" for name in ATTEMPTS]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", SHOW, "sh", *python, *chosen],
        cwd=place / "workshop",
        env=os.environ | home | words,
        capture_output=True,
        text=True,
    )
    if done.stderr.startswith("unshare: unshare failed"):
        pytest.skip(f"root may not mount here: {done.stderr.strip()}")
    if forbidden := re.search(r"needs namespaces: (.*)", done.stdout):
        pytest.skip(f"this kernel forbids {ORDINARY}: {forbidden[1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ATTEMPTS)} passed" in done.stdout
