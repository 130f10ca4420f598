"""``workshop grade`` with the real engine: hostile answers, unprotected files."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.grader.small_house import command, grade, quiet_environment, statuses
from workshop.grader.engine import isolation


@pytest.mark.nightly
def test_hostile_submissions_do_not_change_the_others_grades(house, tmp_path):
    code = {
        "alice": "def add(a):\n    return a + 1\n",
        "bob": "def add(a):\n    return a + 7\n",
        "eve": "import os\nos._exit(0)\n",
        "grace": "def add(a):\n    while True:\n        pass\n",
        "mallory": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        "oscar": "def add(a:\n",
        "peggy": b"# Ren\xe9\n",
        "sybil": "import glob\nfor name in glob.glob('{}/**/*.py', recursive=True):\n"
        "    open(name, 'a').write('# sybil was here')\n"
        "def add(a):\n    return a\n".format(tmp_path / "class"),
        "trent": b"\xef\xbb\xbfdef add(a):\r\n    return a + 1\r\n",
        "victor": (house / "exercises" / "01_one.py").read_text(),
    }
    for name, text in code.items():
        folder = tmp_path / "class" / name
        folder.mkdir(parents=True)
        raw = text if isinstance(text, bytes) else text.encode()
        (folder / "01_one.py").write_bytes(raw)
    written = list((tmp_path / "class").rglob("*.py"))
    before = [path.read_bytes() for path in written]
    words = [str(tmp_path / "class"), "--each", "-e", "one", "--jobs", "2"]
    result, told, _ = grade(house, *words, real=True)
    assert result.returncode == 0
    assert [path.read_bytes() for path in written] == before
    found = {name: statuses(one)[0] for name, one in told.items()}
    assert found.pop("alice") == "right"
    assert found.pop("trent") == "right"  # as Windows writes files
    assert found.pop("victor") == "not started"
    assert set(found.values()) == {"wrong"}
    assert told["peggy"]["exercises"][0]["verdict"] == "does not load"
    assert "not UTF-8" in told["peggy"]["exercises"][0]["message"]


FORBID = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


@pytest.mark.full
@pytest.mark.skipif(bool(why := isolation.probe()), reason=f"needs namespaces: {why}")
def test_where_files_are_not_protected_it_is_said(house, tmp_path):
    """One sentence, and everything is graded."""
    folder = tmp_path / "alice"
    folder.mkdir()
    (folder / "01_one.py").write_text("def add(a):\n    return a + 1\n")
    unshare = ["unshare", "--user", "--map-root-user", "sh", "-c", FORBID, "sh"]
    words = "grade", str(folder), "-e", "one", "--json", "out.json"
    done = subprocess.run(
        [*unshare, *command(*words, real=True)],
        cwd=house,
        env=quiet_environment(),
        capture_output=True,
        text=True,
    )
    assert "The answers could change this machine's files: " in done.stdout
    told = json.loads((house / "out.json").read_text())["learners"]
    assert (done.returncode, statuses(told[0])[0]) == (0, "right")
