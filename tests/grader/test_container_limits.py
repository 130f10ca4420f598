"""The limits of a container with Docker's defaults, set by hand: no engine is needed.

No namespaces for users, 64 MB of shared memory, a limit on memory and cores: checks
give the same verdicts there, and what is missing is named with the option that gives
it. `tests/jobs/test_workshop_container.py` asks a real engine the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from workshop.cluster.nodes import containers, machine
from workshop.doctor import machine as doctor
from workshop.grader.engine import supervisor
from workshop.learner.exposure import say_once

ROOT = Path(__file__).resolve().parents[2]
WORLD = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
LIMITS = """
mount -t tmpfs -o size={shared},noexec none /dev/shm || exit 99
echo 0 > /proc/sys/user/max_user_namespaces || exit 99
exec "$@"
"""


def limited(*command: str, shared: str = "64m", **more: str):
    """Run a command as in a container with Docker's defaults."""
    return subprocess.run(
        [*WORLD, "sh", "-c", LIMITS.format(shared=shared), "sh", *command],
        cwd=ROOT,
        env={**os.environ, "container": "by hand", **more},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def limits():
    if limited("true").returncode:
        pytest.skip("this machine forbids the namespaces that set the limits")


WORKSHOP = "from workshop.cli import main; main()"
CHECK = [sys.executable, "-c", WORKSHOP, "check", "--solutions", "02_rank_arithmetic"]
SAID = ROOT / ".workshop" / "without_isolation"


@pytest.mark.full
def test_verdicts_are_the_same_and_no_isolation_is_said_once(limits):
    SAID.unlink(missing_ok=True)
    first, second = limited(*CHECK), limited(*CHECK)
    SAID.unlink(missing_ok=True)
    for done in (first, second):
        assert done.returncode == 0, done.stdout + done.stderr
        assert "02_rank_arithmetic: right" in done.stdout
    assert first.stdout.count("without isolation") == 1
    assert second.stdout.count("without isolation") == 0


@pytest.mark.full
def test_pytest_says_once_that_nothing_is_isolated(limits):
    command = [sys.executable, "-m", "pytest", "--solutions", "-k", "rank_arithmetic"]
    done = limited(*command, "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("without isolation") == 1


def test_check_works_with_full_shared_memory(limits):
    done = limited(*CHECK, shared="1m")
    assert "02_rank_arithmetic: right" in done.stdout, done.stdout + done.stderr


def test_another_machine_and_another_reason_are_said_again(tmp_path, monkeypatch):
    said: list[str] = []

    def say(text: str, style: str) -> None:
        said.append(text)

    for why in ("forbidden", "forbidden", "", "too old"):
        say_once(tmp_path, why, say)
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    say_once(tmp_path, "too old", say)
    assert len(said) == 3


def test_check_goes_elsewhere_where_shared_memory_has_no_room(monkeypatch):
    holds = supervisor._can_hold_a_check
    assert holds("/nowhere") is False
    room = os.statvfs("/dev/shm")
    monkeypatch.setattr(os, "statvfs", lambda _folder: replaced(room, f_flag=0))
    assert holds("/dev/shm") is True
    monkeypatch.setattr(supervisor, "NEEDED_ROOM", 1 << 60)
    assert holds("/dev/shm") is False


def test_check_goes_elsewhere_where_programs_may_not_run(monkeypatch):
    """Docker mounts /dev/shm with noexec."""
    room = os.statvfs("/dev/shm")
    forbids = replaced(room, f_flag=os.ST_NOEXEC | os.ST_NOSUID)
    monkeypatch.setattr(os, "statvfs", lambda _folder: forbids)
    assert supervisor._can_hold_a_check("/dev/shm") is False


def replaced(found: os.statvfs_result, **fields) -> SimpleNamespace:
    names = [name for name in dir(found) if name.startswith("f_")]
    return SimpleNamespace(**{name: getattr(found, name) for name in names} | fields)


def test_job_script_is_right_as_far_as_docker_lets_it_be_tried(limits):
    """Stand-ins for the scheduler's programs must be found before the real ones."""
    name = "09_one_launcher_per_node"
    check = [sys.executable, "-c", WORKSHOP, "check", "--solutions", name]
    done = limited(*check, WORKSHOP_NO_CLUSTER="1")
    assert f"{name}: not fully checked" in done.stdout, done.stdout + done.stderr


# What is missing, and the option that gives it


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Pretend to be in a container; returns a function that says what it may do."""
    monkeypatch.setattr(containers, "MARKS", (tmp_path,))

    def write(user: int, seccomp: int = 2, rights: int = 0, **files: str) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        status = f"Name:\tx\nSeccomp:\t{seccomp}\nCapEff:\t{rights:016x}\n"
        (tmp_path / "status").write_text(status)
        monkeypatch.setattr(containers, "STATUS", tmp_path / "status")
        (tmp_path / "mounts").write_text(files.get("mounts", COVERED))
        monkeypatch.setattr(containers, "MOUNTS", tmp_path / "mounts")
        (tmp_path / "apparmor").write_text(files.get("apparmor", "unconfined\n"))
        monkeypatch.setattr(containers, "APPARMOR", tmp_path / "apparmor")

    return write


COVERED = "proc /proc proc rw 0 0\ntmpfs /proc/kcore tmpfs rw 0 0\n"
OPEN = "proc /proc proc rw 0 0\n"
SECCOMP = "--security-opt seccomp=unconfined"
PATHS = "--security-opt systempaths=unconfined"
APPARMOR = "--security-opt apparmor=unconfined"
ADMIN, NET = "--cap-add SYS_ADMIN", "--cap-add NET_ADMIN"
BOTH_RIGHTS = 1 << 21 | 1 << 12


@pytest.mark.parametrize(
    ("about", "isolation", "cluster"),
    [
        ({"user": 1000}, [SECCOMP], [SECCOMP, PATHS]),
        ({"user": 1000, "seccomp": 0}, [], [PATHS]),
        ({"user": 1000, "seccomp": 0, "mounts": OPEN}, [], []),
        ({"user": 0}, [SECCOMP], [ADMIN, NET]),
        ({"user": 0, "rights": 1 << 21}, [SECCOMP], [NET]),
        ({"user": 0, "rights": BOTH_RIGHTS, "seccomp": 0}, [], []),
        (
            {"user": 1000, "apparmor": "docker-default (enforce)\n"},
            [SECCOMP, APPARMOR],
            [SECCOMP, PATHS, APPARMOR],
        ),
    ],
)
def test_only_the_options_that_suffice_are_named(plant, about, isolation, cluster):
    plant(**about)
    assert containers.options_for_namespaces() == isolation
    assert containers.options_for_namespaces(new_proc=True) == cluster


def test_machine_that_is_no_container_gets_no_options(monkeypatch):
    monkeypatch.setattr(containers, "MARKS", ())
    for name in ("container", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert containers.options_for_namespaces(new_proc=True) == []


def test_cures_in_a_container_name_options_and_neither_privileged_nor_a_container(
    plant, monkeypatch
):
    plant(user=1000)
    cure = machine.cure_for_namespaces()
    assert SECCOMP in cure and PATHS in cure and "--privileged" not in cure
    answer = {"exposed": "[Errno 1] unshare: Operation not permitted"}
    monkeypatch.setattr(doctor, "probe", lambda *given: answer)
    (isolation,) = doctor._isolation()
    assert "`docker compose run --rm cluster`" in isolation.cure
    assert isolation.cure.endswith(f"`docker run {SECCOMP}`")
    plant(user=1000, seccomp=0)
    assert "grade other people's answers in a container" not in isolation.cure


def test_small_shared_memory_is_named_with_its_option(plant, monkeypatch):
    class Small:
        free = 64_000_000

    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: Small)
    plant(user=1000)
    check = doctor._shared_memory()
    assert check.ok is None and "64 MB free in /dev/shm" in check.detail
    assert "--shm-size=1g" in check.cure
