"""No folder for temporary files: one sentence with the right cure from each command."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workshop.doctor import machine as doctor
from workshop.doctor.programs import Check
from workshop.errors import UserError
from workshop.grader.engine import forkserver
from workshop.system import temporary

ROOT = Path(__file__).resolve().parents[2]
PYTHON = f"{sys.prefix}/bin/python"  # the warm one of the tests lies in /tmp
WORLD = ["unshare", "--user", "--map-root-user", "--mount"]
READ_ONLY = """
for folder in /tmp /var/tmp /usr/tmp; do
  [ ! -d $folder ] || mount -t tmpfs -o ro none $folder || exit 99
done
exec "$@"
"""
NO_PROGRAMS = """
for folder in /tmp /var/tmp; do mount -t tmpfs -o noexec none $folder || exit 99; done
exec "$@"
"""
SENTENCE = "neither /tmp nor /var/tmp can be written to"
CURE = 'mkdir -p ~/tmp && export TMPDIR="$HOME/tmp"'
TMPDIR = ("TMPDIR", "TEMP", "TMP")


def without_tmp(
    *command: str, world: str = READ_ONLY, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command where /tmp and /var/tmp are read-only."""
    return subprocess.run(
        [*WORLD, "sh", "-c", world, "sh", *command],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k not in TMPDIR} | more,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module", autouse=True)
def may_mount():
    done = without_tmp("true")
    if done.returncode:
        pytest.skip(f"this machine forbids user namespaces: {done.stderr.strip()}")


def test_check_names_the_folder_and_its_cure():
    started = (
        "import sys; sys.path[:0] = sys.argv[1:]; from workshop.grader.engine.engine "
    )
    started += "import Engine; Engine().warm()"
    done = without_tmp(PYTHON, "-c", started, str(ROOT))
    assert f"UserError: {SENTENCE}: name a folder of your own: {CURE}" in done.stderr


def test_tour_names_the_folder_and_its_cure():
    done = without_tmp(PYTHON, "tools/tour.py")
    assert done.returncode == 1
    assert done.stderr == f"tour: {SENTENCE}: name a folder of your own: {CURE}\n"


def test_doctor_calls_the_folder_broken():
    code = "from workshop.doctor.machine import _disk, _gloo; "
    code += "print(*_disk(), *_gloo(), sep='\\n')"
    lines = without_tmp(PYTHON, "-c", code).stdout.splitlines()
    broken = [line for line in lines if "ok=False" in line]
    assert len(broken) == 2, lines
    assert all(SENTENCE in line and CURE in line for line in broken)


def test_cure_works():
    folder = ROOT / ".workshop" / "tmp_of_a_test"
    folder.mkdir(parents=True, exist_ok=True)
    code = "from workshop.system import temporary; print(repr(temporary.problem()))"
    done = without_tmp(PYTHON, "-c", code, TMPDIR=str(folder))
    shutil.rmtree(folder)
    assert done.stdout == "''\n", done.stderr


def test_path_that_the_locale_cannot_spell_is_named_with_its_cure(monkeypatch):
    """Python ends so where LC_ALL=C and PYTHONUTF8=0 meet a path with umlauts."""
    error = "raise UnicodeEncodeError('utf-8', 'x', 0, 1, 'surrogates not allowed')"
    monkeypatch.setattr(forkserver, "BOOT", error)
    with (
        contextlib.closing(forkserver.ForkServer()) as server,
        pytest.raises(UserError, match="can't spell the path of the workshop"),
    ):
        server.wait_until_ready()


def check_where_no_program_may_run(name: str) -> subprocess.CompletedProcess[str]:
    command = "from workshop.cli import main; main()"
    words = PYTHON, "-c", command, "check", "--solutions", name
    return without_tmp(*words, world=NO_PROGRAMS, WORKSHOP_NO_CLUSTER="1")


def test_job_script_is_not_called_wrong_where_no_program_may_run():
    done = check_where_no_program_may_run("09_node_rank")
    said = " ".join(done.stdout.split())
    assert "no program may run from /tmp, which is mounted with noexec" in said
    assert CURE in said and "wrong value" not in said
    assert done.returncode == 3


def test_python_is_checked_where_no_program_may_run():
    assert check_where_no_program_may_run("02_rank_arithmetic").returncode == 0


def test_doctor_names_a_folder_that_no_program_may_run_from(monkeypatch):
    def row() -> Check:
        (found,) = [one for one in doctor._disk() if one.name == "temporary"]
        return found

    assert row().ok is True and "noexec" not in row().detail
    monkeypatch.setattr(temporary, "runs_programs", lambda _folder: False)
    assert row().ok is False and "noexec" in row().detail
    assert row().cure == temporary.CURE
