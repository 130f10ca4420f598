"""Each .pbs, submitted as it is through the rehearsal of PBS, on 2 and on 3 hosts."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.jobs import which_pbs
from tests.jobs.pbs_jobs import LAUNCHERS, LIMIT, SAYS_HOST, SCRIPTS
from tests.needs import needs, path_of, skip_without
from workshop.cluster.pbs import Rehearsal

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
EPOCH = re.compile(r"^\[node (\d+) local (\d+) rank (\d+)\] Epoch (\d+) ", re.M)
ACCURACY = re.compile(r"^Test accuracy [\d.]+% \((\d+) of 359\)$", re.M)
NEAR = 15  # test images of 359: the ranks draw other random numbers than one process


def at_least_once_a_rank(hosts, per_host):
    return {
        (node, local, node * per_host + local)
        for node in range(hosts)
        for local in range(per_host)
    }


def places(output):
    """(node, local rank, rank) of all who trained."""
    return {tuple(map(int, found[:3])) for found in EPOCH.findall(output)}


def correct(output):
    found = ACCURACY.findall(output)
    assert len(found) == 1, output
    return int(found[0])


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    """Right answers of 359 after the same training by one process."""
    done = subprocess.run(
        [sys.executable, ROOT / "src/01_single_device.py", "3", "3", "--width=16"],
        cwd=tmp_path_factory.mktemp("one"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return correct(done.stdout)


def needs_gpus(pbs, number):
    if pbs.real and not pbs.gpus:
        pytest.skip(f"no host of this PBS has {number} GPU(s)")


@which_pbs.needs("mpirun")
@pytest.mark.parametrize(
    ("hosts", "per_host"),
    [
        pytest.param(2, 2, marks=pytest.mark.quick),
        pytest.param(3, 1, marks=pytest.mark.nightly),
    ],
)
def test_many_hosts_train_as_one_device(
    pbs, qsub, checkout, one_device, hosts, per_host
):
    """All three launchers at once: jobs that share hosts do not meet each other."""
    options = []
    variables: dict = {"EPOCHS": 3, "SAVE_EVERY": 3}
    variables["ARGS"] = f"--batch-size {32 // (hosts * per_host)}"
    if (hosts, per_host) != (2, 2):  # what the scripts ask for by themselves
        if hosts > len(pbs.hosts):
            pytest.skip(f"pbsnodes has {len(pbs.hosts)} free hosts of {hosts}")
        options = ["-l", f"select={hosts}:ncpus=1", "-l", "place=scatter"]
    jobs = {
        launcher: qsub(
            f"multinode_{launcher}",
            *options,
            SCRIPT=f"says_host_{trained}.py",
            **variables,
        )
        for launcher, trained in LAUNCHERS.items()
    }
    for launcher, job_id in jobs.items():
        job = pbs.wait(job_id, LIMIT)
        assert job.exit_status == 0, (launcher, job.output)
        assert places(job.output) == at_least_once_a_rank(hosts, per_host)
        on = dict(re.findall(r"^rank (\d) is on (\S+)$", job.output, re.M))
        names = [on[str(rank)] for rank in range(hosts * per_host)]
        assert len(set(names)) == hosts, (launcher, names)
        assert all(names.count(name) == per_host for name in names)
        assert abs(correct(job.output) - one_device) <= NEAR
        assert (checkout / "snapshots" / f"job{job.id}.pt").exists()


@pytest.mark.nightly
@needs("mpirun")
def test_launchers_find_hosts_by_their_full_names(cluster, checkout, offer):
    """Where the node file has n1.hpc.test: pbs_tmrsh refuses n1, mpirun says n1."""
    given = "EPOCHS=1,SAVE_EVERY=1,RANKS_PER_NODE=1,SCRIPT=says_host_"
    with Rehearsal(cluster, **offer, domain="hpc.test") as pbs:
        jobs = {
            launcher: pbs.qsub(
                *("-v", f"{given}{trained}.py"),
                f"job_scripts/multinode_{launcher}.pbs",
                cwd=checkout,
            )
            for launcher, trained in LAUNCHERS.items()
        }
        for launcher, job_id in jobs.items():
            job = pbs.wait(job_id, LIMIT)
            assert job.exit_status == 0, (launcher, job.output)
            assert "1 rank(s) on each of n1.hpc.test n2.hpc.test, " in job.output
            on = set(re.findall(r"^rank \d is on (n\d)$", job.output, re.M))
            assert on == {"n1", "n2"}, launcher


def test_one_host_starts_a_rank_for_each_gpu(pbs, qsub, one_device):
    needs_gpus(pbs, 2)
    job_id = qsub(
        "distributed_data_parallel",
        *("-l", "select=1:ncpus=2:ngpus=2"),
        EPOCHS=3,
        SAVE_EVERY=3,
        ARGS="--batch-size 16",
    )
    job = pbs.wait(job_id, LIMIT)
    assert job.exit_status == 0, job.output
    assert f"Job {job.id}: 2 rank(s) on {job.hosts[0]}\n" in job.output
    assert "on 2 ranks, each on " in job.output
    assert abs(correct(job.output) - one_device) <= NEAR


def test_number_of_ranks_comes_from_the_request(pbs, qsub):
    """One for each GPU, else for each CPU; a host that is named twice counts once."""
    needs_gpus(pbs, 1)
    scatter = ("-l", "place=scatter")
    jobs = {
        qsub("multinode_torchrun", "-l", select, *scatter, SCRIPT="nothing.py"): ranks
        for select, ranks in {
            "select=2:ncpus=4:ngpus=1": 1,
            "select=2:ncpus=2:mpiprocs=2": 2,
        }.items()
    }
    for job_id, ranks in jobs.items():
        job = pbs.wait(job_id, LIMIT)
        assert job.exit_status == 0, job.output
        number = int(job_id.split(".")[0])
        names = job.distinct_hosts
        begin = rf"^Job {job_id}: {ranks} rank\(s\) on each of {names[0]}"
        assert re.search(rf"{begin}\S* {names[1]}", job.output, re.M), job.output
        assert f":{20000 + number * 11 % 10000}\n" in job.output


@pytest.mark.nightly
def test_scaling_array_measures_one_host_then_two(pbs, qsub, checkout):
    small = "--blocks 1 --context 8"
    first = qsub("scaling_array", RANKS_PER_NODE=1, ARGS=small)
    pbs.wait(first, LIMIT)
    number = first.partition("[")[0]
    measured = sorted((checkout / "scaling").glob(f"{number}.*.csv"))
    assert [path.name for path in measured] == [
        f"{number}.nodes1.csv",
        f"{number}.nodes2.csv",
    ]
    rows = [path.read_text().splitlines()[1:] for path in measured]
    assert [{row.split(",")[1] for row in some} for some in rows] == [{"1"}, {"2"}]


def test_members_of_an_array_have_ports_of_their_own(pbs, qsub):
    job_id = qsub("multinode_torchrun", "-J", "0-1", SCRIPT="nothing.py")
    assert pbs.wait(job_id, LIMIT).exit_status == 0
    members = [pbs.job(job_id.replace("[]", f"[{k}]")) for k in (0, 1)]
    ports = [re.findall(r":(\d{5})$", job.output, re.M)[0] for job in members]
    assert int(ports[1]) == int(ports[0]) + 1


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("distributed_data_parallel", 7),
        ("multinode_torchrun", 1),  # torchrun ends with 1, whatever its rank says
        ("multinode_ssh", 1),
        pytest.param("multinode_mpirun", 7, marks=which_pbs.needs("mpirun")),
    ],
)
def test_failing_rank_gives_the_job_its_exit_status(pbs, qsub, name, status):
    """The other ranks would stay forever; the job does not."""
    variables = {"SCRIPT": "fails.py", "RANKS_PER_NODE": 1, "MAX_RESTARTS": 0}
    job = pbs.wait(qsub(name, **variables), LIMIT)
    assert job.exit_status == status, job.output
    assert "this rank fails\n" in job.output
    end = time.monotonic() + LIMIT
    for host in job.distinct_hosts:
        while "fails.py" in pbs.processes(host):
            assert time.monotonic() < end, f"a rank outlives its job on {host}"
            time.sleep(0.1)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_that_was_submitted_elsewhere_says_so(pbs, checkout, tmp_path, name):
    job_id = pbs.qsub(str(checkout / "job_scripts" / name), cwd=tmp_path)
    job = pbs.wait(job_id, 60)
    if "[]" in job_id:  # of an array: one of its members
        job = pbs.job(job_id.replace("[]", "[1]"))
    assert job.exit_status == 2
    assert job.output == (
        f"{tmp_path} has no job_scripts/site_environment.sh: "
        "run qsub in the workshop's folder\n"
    )


SSHD_CONFIG = """\
Port 2222
HostKey FOLDER/key
AuthorizedKeysFile FOLDER/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
"""
SSH_CONFIG = """\
Port 2222
IdentityFile FOLDER/key
UserKnownHostsFile FOLDER/known_hosts
"""
START_SSHD = """\
if [ "$(id -u)" = 0 ]; then mount -t tmpfs tmpfs /run && mkdir /run/sshd; fi
exec "$0" -D -e -f "$1"
"""


@pytest.fixture
def sshd(cluster, tmp_path):
    """A real sshd on two hosts; the folder with an `ssh` that finds it."""
    skip_without("sshd", "ssh", "ssh-keygen")
    program = path_of("sshd")
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"],
        check=True,
    )
    for name, text in {"sshd_config": SSHD_CONFIG, "ssh_config": SSH_CONFIG}.items():
        (tmp_path / name).write_text(text.replace("FOLDER", str(tmp_path)))
    (tmp_path / "bin").mkdir()
    client = tmp_path / "bin" / "ssh"
    client.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {tmp_path}/ssh_config "$@"\n')
    client.chmod(0o755)
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    start = ["unshare", "--mount", *user, "sh", "-c", START_SSHD, program]
    servers = []
    with (tmp_path / "sshd.log").open("w") as log:
        for host in ("n1", "n2"):
            words = [*start, tmp_path / "sshd_config"]
            servers.append(cluster.popen(words, node=host, stdout=log, stderr=log))
    yield tmp_path / "bin"
    for server in servers:
        server.terminate()  # ends nsenter; sshd is told to end with it
        server.wait()


def test_ssh_script_trains_by_way_of_a_real_sshd(cluster, checkout, sshd, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bash_profile").write_text(f"PATH={sshd}:$PATH\n")
    (checkout / "says_host.py").write_text(
        SAYS_HOST.replace("NAME", "08_multinode_torchrun")
    )
    given = "EPOCHS=1,SAVE_EVERY=1,RANKS_PER_NODE=1,SCRIPT=says_host.py"
    offer = {"hosts": ["n1", "n2"], "number_file": checkout / ".workshop" / "pbs_jobs"}
    with Rehearsal(cluster, **offer, home=home) as pbs:
        script = "job_scripts/multinode_ssh.pbs"
        job = pbs.wait(pbs.qsub("-v", given, script, cwd=checkout), LIMIT)
    said = job.output + (tmp_path / "sshd.log").read_text()
    assert job.exit_status == 0, said
    assert "Accepted publickey" in said
    assert re.findall(r"is on (n\d)$", job.output, re.M) in (["n1", "n2"], ["n2", "n1"])
    assert places(job.output) == {(0, 0, 0), (1, 0, 1)}
