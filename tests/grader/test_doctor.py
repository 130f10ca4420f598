"""workshop doctor: a report on this machine that never hangs and never breaks."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.launched import wait_until
from workshop.doctor import machine as doctor
from workshop.doctor import programs
from workshop.doctor.machine import Check
from workshop.system import processes


def find(results: list[Check], name: str) -> Check:
    (check,) = [check for check in results if check.name == name]
    return check


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def only(tmp_path, monkeypatch):
    """A PATH with nothing but what the test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_this_machine_can_check_exercises():
    results = doctor.checks()
    assert doctor.broken(results) == []
    for name in ("Python", "torch", "gloo"):
        assert find(results, name).ok is True
    names = [check.name for check in results]
    assert len(names) == len(set(names))
    assert names[:2] == ["Python", "torch"]


@pytest.mark.cold("what is imported is the subject")
def test_nothing_of_torch_is_imported_by_the_report_itself():
    code = "import sys, workshop.doctor.machine; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_absent_optional_parts_are_no_failure(only):
    for check in (*doctor._mpi(), *doctor._slurm(), *doctor._pbs()):
        assert check.ok is None
    (containers,) = doctor._containers()
    (chromium,) = doctor._chromium()
    assert (containers.ok, chromium.ok) == (None, None)


def test_absent_package_comes_with_its_command(only):
    program(only, "apt-get", "")
    assert doctor._mpi()[0].cure == "sudo apt-get install openmpi-bin"
    assert doctor._slurm()[0].cure == "sudo apt-get install slurm-wlm"
    assert doctor._chromium()[0].cure == "sudo apt-get install chromium"


def test_versions_are_the_programs_own_words(only):
    program(
        only, "mpirun", "echo warning >&2; echo 'mpirun (Open MPI) 4.1.4'; echo more"
    )
    assert doctor._mpi() == [Check("MPI", True, "mpirun (Open MPI) 4.1.4")]


def test_answering_controller_is_told_from_a_silent_one(only, monkeypatch):
    monkeypatch.setattr(doctor, "COMMAND_LIMIT", 1)
    program(only, "sbatch", "echo slurm-wlm 22.05.8")
    program(only, "sinfo", "echo 2; echo 3")
    assert doctor._slurm() == [Check("Slurm", True, "slurm-wlm 22.05.8, 5 nodes")]
    program(only, "sinfo", "exec /bin/sleep 60")
    (silent,) = doctor._slurm()
    assert silent.ok is None
    assert "no controller answers" in silent.detail


def test_hanging_program_is_killed_with_its_children(only, monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "COMMAND_LIMIT", 1)
    pid = tmp_path / "pid"
    program(only, "qsub", f"/bin/sleep 60 & echo $! > {pid}; wait")
    program(only, "pbsdsh", "")
    (check,) = doctor._pbs()
    assert check.ok is None
    assert "no answer within 1 s" in check.detail
    child = int(pid.read_text())
    # it is killed, but may not have had a core to end on; "?": it is gone
    wait_until(lambda: processes.state_of(child) in ("Z", "?"), 10)


def test_docker_without_its_daemon_is_not_ready(only):
    program(only, "docker", '[ "$1" = --version ] && echo Docker version 28.2')
    (check,) = doctor._containers()
    assert check.ok is None
    assert "no daemon answers" in check.detail
    program(only, "podman", "echo podman version 4.3.1")
    assert doctor._containers() == [Check("containers", True, "podman version 4.3.1")]


@pytest.mark.cold("a warm Python has imported torch already")
def test_torch_that_does_not_import_is_a_broken_part(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libgomp.so.1 is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    results = doctor.checks()
    torch = find(results, "torch")
    assert torch.ok is False and "libgomp.so.1 is missing" in torch.detail
    assert torch.cure == "make tour repairs the environment"
    assert [check.name for check in doctor.broken(results)] == ["torch", "gloo"]


def test_missing_torch_is_a_broken_part(monkeypatch):
    monkeypatch.setattr(doctor, "installed_torch", lambda: None)
    (check,) = doctor.broken(doctor._torch_and_devices())
    assert "not installed" in check.detail


def test_a_torch_that_is_too_old_is_a_broken_part(monkeypatch):
    monkeypatch.setattr(doctor, "installed_torch", lambda: "2.7.1+cu126")
    (check,) = doctor.broken(doctor._torch_and_devices())
    assert check.detail == "2.7.1+cu126 is too old, the grader needs 2.8 or newer"


def test_a_torch_newer_than_what_was_tried_works_but_is_named(monkeypatch):
    assert doctor._how_well_tried("2.8.0") == "2.8.0, tried with 2.8 to 2.14"
    assert "newer" not in doctor._how_well_tried("2.14.1")
    monkeypatch.setattr(doctor, "NEWEST_TRIED_TORCH", "2.8")
    check = find(doctor._torch_and_devices(), "torch")
    assert check.ok is True
    assert "is newer than what was tried" in check.detail


def test_ranks_that_never_meet_are_a_broken_part(monkeypatch):
    monkeypatch.setattr(doctor, "GLOO_PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(doctor, "TORCH_LIMIT", 0.5)
    monkeypatch.setattr(doctor, "GLOO_LIMIT", 0.5)
    (check,) = doctor.broken(doctor._gloo())
    assert "two ranks can't connect: no answer within 1 s" in check.detail
    assert "GLOO_SOCKET_IFNAME" in check.cure


def test_wrong_sum_is_a_broken_part(monkeypatch):
    wrong = doctor.GLOO_PROBE.replace("rank + 1.0", "rank + 2.0")
    monkeypatch.setattr(doctor, "GLOO_PROBE", wrong)
    assert doctor.broken(doctor._gloo())


def test_surrounding_launcher_does_not_mislead_the_ranks(monkeypatch):
    for name, value in {"RANK": "3", "WORLD_SIZE": "9", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    (check,) = doctor._gloo()
    assert check.ok is True


def test_check_that_raises_becomes_a_line(monkeypatch):
    def broken():
        raise OSError("the disk vanished")

    monkeypatch.setattr(doctor, "_disk", broken)
    monkeypatch.setattr(doctor, "_gloo", broken)
    results = doctor.checks()
    assert "the disk vanished" in find(results, "disk").detail
    assert [check.name for check in doctor.broken(results)] == ["gloo"]


def test_few_open_files_are_named_with_the_command(monkeypatch):
    import resource

    limits = {resource.RLIMIT_NOFILE: 256, resource.RLIMIT_NPROC: -1}
    monkeypatch.setattr(
        resource, "getrlimit", lambda limit: (limits.get(limit, 65536),) * 2
    )
    check = doctor._limits()
    assert check.ok is None
    assert check.detail == (
        "256 open files, unlimited processes, 0.1 MB of locked memory: too few open "
        "files"
    )
    assert check.cure == "ulimit -n 1024 in this shell, or in your job script"
    limits[resource.RLIMIT_NOFILE] = 1024
    assert doctor._limits().ok is True


def test_full_disk_is_named(monkeypatch):
    full = SimpleNamespace(total=10, used=10, free=0)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: full)
    results = doctor._disk()
    assert [check.ok for check in results] == [False, False]
    assert all("make room" in check.cure for check in results)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([], Check("practice cluster", True, "can run here: workshop cluster up")),
        (
            ["this machine has no munged: `sudo apt-get install munge`"],
            Check(
                "practice cluster",
                None,
                "this machine has no munged",
                "sudo apt-get install munge",
            ),
        ),
        (
            ["this machine forbids it: start it with `docker run --cap-add X`"],
            Check(
                "practice cluster",
                None,
                "this machine forbids it",
                "start it with docker run --cap-add X",
            ),
        ),
    ],
)
def test_the_practice_cluster_is_offered_or_what_it_lacks(
    monkeypatch, reasons, expected
):
    monkeypatch.setattr("workshop.cluster.nodes.machine.missing", lambda: reasons)
    assert doctor._practice_cluster() == [expected]
