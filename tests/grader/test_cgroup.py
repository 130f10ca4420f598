"""What a container or a batch job may use is less than what its machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from workshop.doctor import cgroup
from workshop.doctor import machine as doctor
from workshop.doctor.cgroup import Limits, limits

GB = 10**9
NO_LIMIT_V1 = 9223372036854771712


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Write control groups of one's own: the lines of /proc/self/cgroup, and files."""
    monkeypatch.setattr(cgroup, "ROOT", tmp_path / "sys")
    monkeypatch.setattr(cgroup, "OWN_GROUPS", tmp_path / "own")

    def write(own: str, files: dict[str, object]) -> None:
        (tmp_path / "own").write_text(own)
        for name, content in files.items():
            path = tmp_path / "sys" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{content}\n")

    return write


def version_2(folder: str, memory: object, used: int, cpu: str) -> dict[str, object]:
    """The files of a group; ``folder`` ends with a slash, or is empty."""
    return {
        "cgroup.controllers": "cpu memory",
        f"{folder}memory.max": memory,
        f"{folder}memory.current": used,
        f"{folder}memory.stat": "anon 5\nfile 9\ninactive_file 0",
        f"{folder}cpu.max": cpu,
    }


def version_1(folder: str, memory: int, used: int, quota: int) -> dict[str, object]:
    return {
        f"memory/{folder}memory.limit_in_bytes": memory,
        f"memory/{folder}memory.usage_in_bytes": used,
        f"cpu,cpuacct/{folder}cpu.cfs_quota_us": quota,
        f"cpu,cpuacct/{folder}cpu.cfs_period_us": 100000,
    }


OF_VERSION_1 = "4:memory:{0}\n3:cpu,cpuacct:{0}\n1:name=systemd:/\n0::/\n"


def test_container_of_version_2_sees_its_group_as_the_root(plant):
    plant("0::/\n", version_2("", 2 * GB, GB // 2, "150000 100000"))
    assert limits() == Limits(2 * GB, 3 * GB // 2, 1.5)


def test_container_of_version_1_is_told_a_path_that_only_the_host_has(plant):
    own = OF_VERSION_1.format("/docker/0123456789ab")
    plant(own, version_1("", 2 * GB, GB // 2, 100000))
    assert limits() == Limits(2 * GB, 3 * GB // 2, 1.0)


def test_group_around_the_own_one_may_be_the_tightest(plant):
    inner = version_2("slurm/job_1/step_0/", "max", 0, "max 100000")
    outer = version_2("slurm/job_1/", 4 * GB, GB, "200000 100000")
    plant("0::/slurm/job_1/step_0\n", inner | outer)
    assert limits() == Limits(4 * GB, 3 * GB, 2.0)


def test_groups_of_others_do_not_count(plant):
    plant("0::/mine\n", version_2("yours/", GB, 0, "100000 100000"))
    assert limits() == Limits()


@pytest.mark.parametrize("version", [1, 2])
def test_no_limit_is_none(plant, version):
    if version == 1:
        plant(OF_VERSION_1.format("/"), version_1("", NO_LIMIT_V1, GB, -1))
    else:
        plant("0::/\n", version_2("", "max", GB, "max 100000"))
    assert limits() == Limits()


def test_machine_with_both_versions_has_the_limits_of_both(plant):
    files = version_1("", NO_LIMIT_V1, GB, 50000)
    for name, content in version_2("", 3 * GB, GB, "max 100000").items():
        files[f"unified/{name}"] = content
    plant(OF_VERSION_1.format("/"), files)
    assert limits() == Limits(3 * GB, 2 * GB, 0.5)


def test_cached_files_are_not_taken_memory(plant):
    files = version_2("", 2 * GB, 2 * GB, "max 100000")
    files["memory.stat"] = f"anon {GB // 2}\ninactive_file {3 * GB // 2}"
    plant("0::/\n", files)
    assert limits() == Limits(2 * GB, 3 * GB // 2, None)


def test_machine_without_control_groups_has_no_limits(monkeypatch):
    monkeypatch.setattr(cgroup, "OWN_GROUPS", Path("/nowhere"))
    assert limits() == Limits()


def test_doctor_reports_what_the_container_may_use(plant, monkeypatch):
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda pid: set(range(8)))
    plant("0::/\n", version_2("", 2 * GB, GB // 2, "100000 100000"))
    cores, memory, *_ = doctor._machine()
    assert "1 usable" in cores.detail and "of 8" in cores.detail
    assert "1.5 GB free of 2.0 GB" in memory.detail
    assert memory.ok is False and "--memory" in memory.cure


def test_doctor_reports_a_part_of_a_core(plant, monkeypatch):
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda pid: set(range(8)))
    plant("0::/\n", version_2("", 64 * GB, 0, "250000 100000"))
    assert "2.5 usable" in doctor._machine()[0].detail


def test_doctor_reports_the_machine_where_nothing_is_limited(plant, monkeypatch):
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda pid: set(range(8)))
    plant("0::/\n", {})
    cores, memory, *_ = doctor._machine()
    assert (cores.ok, cores.detail) == (True, "8 usable")
    assert memory.detail.endswith("GB free")
