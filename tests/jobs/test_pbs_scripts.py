"""Each .pbs, submitted as it is through the rehearsal of PBS, on 2 and on 3 hosts."""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grader.jobs import sites
from practice_cluster.rehearsal import Delays, Rehearsal
from practice_cluster.rehearsal.request import read_directives, read_request

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
# the capstone asks for four hosts: tests/jobs/test_20_capstone.py has them
SCRIPTS = {path.name for path in (ROOT / "job_scripts").glob("*.pbs")}
SCRIPTS = sorted(SCRIPTS - {"capstone.pbs"})
LAUNCHERS = {  # how ranks are started on many hosts, and what is trained then
    "torchrun": "08_multinode_torchrun",
    "ssh": "08_multinode_torchrun",
    "mpirun": "09_srun",
}
EPOCH = re.compile(r"^\[node (\d+) local (\d+) rank (\d+)\] Epoch (\d+) ", re.M)
ACCURACY = re.compile(r"^Test accuracy [\d.]+% \((\d+) of 359\)$", re.M)
NEAR = 15  # test images of 359: the ranks draw other random numbers than one process
LIMIT = 300  # seconds for a job that trains; it takes 10 where nothing else runs

# Says where it runs, then is the training.
SAYS_HOST = """\
import os, runpy, socket, sys
sys.path.insert(0, "src")
rank = os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"]
sys.stdout.write(f"rank {rank} is on {socket.gethostname()}\\n")
runpy.run_path("src/NAME.py", run_name="__main__")
"""
# A rank that fails, while the others would stay forever.
FAILS = """\
import os, sys, time
if (os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK", "1")) == "1":
    print("this rank fails", flush=True)
    sys.exit(7)
time.sleep(1000)
"""


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


# The files


@pytest.mark.parametrize("name", SCRIPTS)
def test_default_request_fits_a_plain_openpbs(name):
    """Two hosts (or one), no GPUs, little memory, every directive in force."""
    text = (ROOT / "job_scripts" / name).read_text(encoding="utf-8")
    written = re.findall(r"^#PBS", text, re.M)
    assert len(read_directives(text)) == len(written) > 3
    request = read_request([], Path(), {}, lambda: text, gpus=False)
    one = name == "distributed_data_parallel.pbs"
    assert len(request.chunks) == (1 if one else 2)
    assert request.place == ("free" if one else "scatter")
    assert request.chunks[0].amount.ncpus == 2
    assert request.chunks[0].amount.mem_mb <= 4096
    assert request.walltime == 600
    assert request.name == name.removesuffix(".pbs")


# Jobs


@pytest.fixture(scope="module")
def offer(checkout, tmp_path_factory):
    """Three hosts; a home of its own, in which Open MPI may be started by root."""
    home = tmp_path_factory.mktemp("home")
    allow = "OMPI_ALLOW_RUN_AS_ROOT"
    (home / ".bash_profile").write_text(f"export {allow}=1 {allow}_CONFIRM=1\n")
    for name in set(LAUNCHERS.values()):
        text = SAYS_HOST.replace("NAME", name)
        (checkout / f"says_host_{name}.py").write_text(text)
    (checkout / "fails.py").write_text(FAILS)
    (checkout / "nothing.py").write_text("")
    return {
        "hosts": ["n1", "n2", "n3"],
        "ngpus": 4,
        "home": home,
        "ssh": True,
        "numbers": checkout / ".workshop" / "pbs_jobs",
    }


@pytest.fixture(scope="module")
def pbs(start_pbs, offer):
    with start_pbs(**offer, delays=Delays().divided_by(10)) as pbs:
        yield pbs


@pytest.fixture
def submit(pbs, checkout):
    """Submit a script of job_scripts with variables; the id of the job."""

    def submit(name, *options, **variables):
        given = ",".join(f"{key}={value}" for key, value in variables.items())
        more = ["-v", given] if given else []
        return pbs.qsub(*options, *more, f"job_scripts/{name}.pbs", cwd=checkout)

    return submit


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
    return correct(done.stdout)


def needs_gpus(pbs, number):
    if pbs.real and not pbs.gpus:
        pytest.skip(f"no host of this PBS has {number} GPU(s)")


@pytest.mark.parametrize(
    ("hosts", "per_host"), [pytest.param(2, 2, marks=pytest.mark.quick), (3, 1)]
)
def test_many_hosts_train_as_one_device(
    pbs, submit, checkout, one_device, hosts, per_host
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
        launcher: submit(
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


def test_one_host_starts_a_rank_for_each_gpu(pbs, submit, one_device):
    needs_gpus(pbs, 2)
    job_id = submit(
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


def test_number_of_ranks_comes_from_the_request(pbs, submit):
    """One for each GPU, else for each CPU; a host that is named twice counts once."""
    needs_gpus(pbs, 1)
    scatter = ("-l", "place=scatter")
    jobs = {
        submit("multinode_torchrun", "-l", select, *scatter, SCRIPT="nothing.py"): ranks
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


def test_scaling_array_measures_one_host_then_two(pbs, submit, checkout):
    small = "--blocks 1 --context 8"
    first = submit("scaling_array", RANKS_PER_NODE=1, ARGS=small)
    pbs.wait(first, LIMIT)
    number = first.partition("[")[0]
    measured = sorted((checkout / "scaling").glob(f"{number}.*.csv"))
    assert [path.name for path in measured] == [
        f"{number}.nodes1.csv",
        f"{number}.nodes2.csv",
    ]
    rows = [path.read_text().splitlines()[1:] for path in measured]
    assert [{row.split(",")[1] for row in some} for some in rows] == [{"1"}, {"2"}]


def test_members_of_an_array_have_ports_of_their_own(pbs, submit):
    job_id = submit("multinode_torchrun", "-J", "0-1", SCRIPT="nothing.py")
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
        ("multinode_mpirun", 7),
    ],
)
def test_failing_rank_gives_the_job_its_exit_status(pbs, submit, name, status):
    """The other ranks would stay forever; the job does not."""
    variables = {"SCRIPT": "fails.py", "RANKS_PER_NODE": 1, "MAX_RESTARTS": 0}
    job = pbs.wait(submit(name, **variables), LIMIT)
    assert job.exit_status == status, job.output
    assert "this rank fails\n" in job.output
    end = time.monotonic() + LIMIT
    for host in job.distinct_hosts:
        while "fails.py" in pbs.processes(host):
            assert time.monotonic() < end, f"a rank outlives its job on {host}"
            time.sleep(0.1)


def beside_stubs(folder, words, **variables):
    """What ``words`` do beside an mpirun and a pbs_tmrsh that print their words."""
    stubs, nodes = folder / "stubs", folder / "nodes"
    stubs.mkdir(exist_ok=True)
    for name in {"mpirun", "pbs_tmrsh", "qstat"} - {p.name for p in stubs.iterdir()}:
        (stubs / name).write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
        (stubs / name).chmod(0o755)
    nodes.write_text(variables.pop("NODES"))
    job = {"PBS_JOBID": "12.head", "PBS_NODEFILE": str(nodes), "NCPUS": "2"}
    job |= {"PBS_O_WORKDIR": str(folder), "PATH": f"{stubs}:{os.environ['PATH']}"}
    environment = os.environ | job | variables
    return subprocess.run(words, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("nodes", ["n1\nn2\n", "n1.hpc.test\nn2.hpc.test\n"])
def test_agent_of_mpirun_names_hosts_as_the_node_file_does(nodes, tmp_path):
    agent = ["bash", ROOT / "job_scripts" / "tmrsh_agent.sh", "n2", "orted", "-x"]
    said = beside_stubs(tmp_path, agent, NODES=nodes).stdout.splitlines()
    assert said == [nodes.split()[1], "/bin/bash", "-lc", "orted -x"]


def test_mpirun_passes_on_the_network_and_refuses_a_folder_with_a_space(tmp_path):
    script = ["bash", ROOT / "job_scripts" / "multinode_mpirun.pbs"]
    for name in ("work", "my work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job_scripts").symlink_to(ROOT / "job_scripts")
    network = {"NODES": "n1\nn2\n", "GLOO_SOCKET_IFNAME": "ib0"}
    told = beside_stubs(tmp_path / "work", script, **network)
    assert "-x\nGLOO_SOCKET_IFNAME\n" in told.stdout, told.stderr
    assert "NCCL_SOCKET_IFNAME" not in told.stdout
    refused = beside_stubs(tmp_path / "my work", script, **network)
    assert refused.returncode == 2
    assert refused.stderr.endswith("/my work: its name has a space\n")


CHUNKS = {  # on the hosts of the node file -> ranks on each
    "n1\nn1\n": ("select=2:ncpus=2 on one host", 4),
    "n1\nn2\n": ("place=scatter", 2),
    "n1\nn1\nn2\nn2\n": ("mpiprocs=2", 2),
}


@pytest.mark.parametrize("nodes", CHUNKS, ids=lambda nodes: CHUNKS[nodes][0])
def test_all_cores_of_a_host_get_a_rank(nodes, tmp_path):
    """qstat has the sum over all chunks, NCPUS is that of one chunk."""
    (tmp_path / "stubs").mkdir()
    qstat = tmp_path / "stubs" / "qstat"
    qstat.write_text("#!/bin/sh\necho '    Resource_List.ncpus = 4'\n")
    qstat.chmod(0o755)
    (tmp_path / "job_scripts").symlink_to(ROOT / "job_scripts")
    hosts = len(set(nodes.split()))
    for launcher in LAUNCHERS:
        script = ["bash", ROOT / "job_scripts" / f"multinode_{launcher}.pbs"]
        done = beside_stubs(tmp_path, script, NODES=nodes)
        ranks = CHUNKS[nodes][1]
        assert f": {ranks} rank(s) on each of n1" in done.stdout, (launcher, done)
    script = ["bash", ROOT / "job_scripts" / "distributed_data_parallel.pbs"]
    done = beside_stubs(tmp_path, script, NODES=nodes, SCRIPT="fails.py")
    if hosts == 1:
        assert "12.head: 4 rank(s) on " in done.stdout
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("on 2 hosts, use ")


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
    program = shutil.which("sshd", path="/usr/sbin:/sbin")
    if program is None:
        pytest.skip("no sshd: sudo apt-get install openssh-server")
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
    offer = {"hosts": ["n1", "n2"], "numbers": checkout / ".workshop" / "pbs_jobs"}
    with Rehearsal(cluster, **offer, home=home) as pbs:
        script = "job_scripts/multinode_ssh.pbs"
        job = pbs.wait(pbs.qsub("-v", given, script, cwd=checkout), LIMIT)
    said = job.output + (tmp_path / "sshd.log").read_text()
    assert job.exit_status == 0, said
    assert "Accepted publickey" in said
    assert re.findall(r"is on (n\d)$", job.output, re.M) in (["n1", "n2"], ["n2", "n1"])
    assert places(job.output) == {(0, 0, 0), (1, 0, 1)}


# A host fails


@pytest.fixture
def fragile(cluster, offer):
    """A rehearsal in which a host that fails is soon noticed."""
    delays = replace(Delays().divided_by(10), host_lost=1)
    with Rehearsal(cluster, **offer, delays=delays) as pbs:
        yield pbs
        for host in list(pbs.lost):
            pbs.restore(host)


def lose_after_a_save(pbs, checkout, name, snapshot):
    """The job of a script whose second host has failed in its training."""
    given = "EPOCHS=40,SAVE_EVERY=1"
    job_id = pbs.qsub(*ONE_CORE, "-v", given, f"job_scripts/{name}.pbs", cwd=checkout)
    wait_for_change(checkout / "snapshots" / snapshot.format(job_id), None)
    pbs.lose("n2")
    return pbs.wait(job_id, LIMIT)


def test_job_that_loses_a_host_resumes_on_others(fragile, checkout):
    job = lose_after_a_save(fragile, checkout, "multinode_torchrun", "job{}.pt")
    assert (job.exit_status, job.run_count) == (0, 2), job.output
    assert job.distinct_hosts == ["n1", "n3"]
    assert "Resuming from" in job.output


def test_chain_that_loses_a_host_has_one_successor(fragile, checkout):
    """-r n: run again, the job would submit a second one beside it."""
    job = lose_after_a_save(fragile, checkout, "chained", "chain{}.pt")
    assert (job.exit_status, job.run_count) == (-14, 1)
    last = fragile.wait(numbered(fragile, job.id, 1).id, LIMIT)
    assert last.exit_status == 0, last.output
    assert "Resuming from" in last.output
    assert numbered(fragile, job.id, 2).hosts == []  # removed by the last
    with pytest.raises(KeyError):
        numbered(fragile, job.id, 3)


# The chain


CHAIN = {"EPOCHS": 12, "SAVE_EVERY": 2}
ONE_CORE = ("-l", "select=2:ncpus=1", "-l", "place=scatter")


def numbered(pbs, job_id, k):
    """The job that was submitted ``k`` jobs later."""
    return pbs.job(str(int(job_id.split(".")[0]) + k))


def asked_of(pbs, job_id):
    """What ``qstat -xf`` says of a job."""
    text = pbs.run("qstat", "-xf", job_id).stdout.replace("\n\t", "")
    return dict(re.findall(r"(?m)^    (\S+) = (.*)$", text))


def successor(pbs, job_id):
    """The job that a job of the chain submits, once it has."""
    end = time.monotonic() + 60
    while True:
        try:
            return numbered(pbs, job_id, 1)
        except KeyError:
            assert time.monotonic() < end, "no successor"
            time.sleep(0.1)


def wait_for_change(path, seen, seconds=LIMIT):
    """When the file was written, once that is not ``seen``."""
    end = time.monotonic() + seconds
    while (now := path.stat().st_mtime_ns if path.exists() else None) == seen:
        assert time.monotonic() < end, f"{path} is not written"
        time.sleep(0.02)
    return now


def test_chain_of_three_jobs_equals_one_long_job(pbs, submit, checkout):
    """Two jobs are ended by the walltime, wherever they are; bit for bit the same."""
    first = submit("chained", *ONE_CORE, "-l", "walltime=00:07:00", **CHAIN)
    snapshot = checkout / "snapshots" / f"chain{first}.pt"
    seen = None
    for k in (0, 1):
        job = numbered(pbs, first, k)
        pbs.wait(job.id, LIMIT, "R")
        seen = wait_for_change(snapshot, seen)
        pbs.expire(job.id)
        assert pbs.wait(job.id, 60).exit_status == -29
        said = pbs.job(job.id).output
        assert f"received SIGTERM, {numbered(pbs, first, k + 1).id} continues" in said
    last = pbs.wait(numbered(pbs, first, 2).id, LIMIT)
    assert last.exit_status == 0, last.output
    assert "Resuming from" in last.output
    assert numbered(pbs, first, 3).hosts == [], "the successor was not removed"
    asked = asked_of(pbs, last.id)
    assert asked["Resource_List.walltime"] == "00:07:00"
    assert asked["Resource_List.select"] == "2:ncpus=1"
    with pytest.raises(KeyError):
        numbered(pbs, first, 4)

    long = submit(
        "multinode_torchrun", *ONE_CORE, **CHAIN, SNAPSHOT="snapshots/long.pt"
    )
    assert pbs.wait(long, LIMIT).exit_status == 0
    compare = [sys.executable, "src/06_compare_snapshots.py", "snapshots/long.pt"]
    done = subprocess.run(
        [*compare, snapshot], cwd=checkout, capture_output=True, text=True
    )
    assert "Equal in every bit" in done.stdout, done.stdout


@pytest.fixture
def house(checkout):
    """The checkout, in which no site is chosen afterwards."""
    yield checkout
    sites.forget(checkout)


def test_chain_keeps_the_project_and_the_request(pbs, submit, house):
    """The successor has all options of the site, and what its job was asked for."""
    sites.choose(house, "plain_pbs", ("PROJECT=ab12", "QUEUE=other"))
    asked = ("-P", "ab12", *ONE_CORE, "-l", "walltime=00:07:00")
    first = submit("chained", *asked, SCRIPT="fails.py", RANKS_PER_NODE=1)
    pbs.wait(first, LIMIT)
    for k in (0, 1):
        asked = asked_of(pbs, numbered(pbs, first, k).id)
        assert asked["project"] == "ab12"
        assert asked["Resource_List.walltime"] == "00:07:00"
        assert asked["Resource_List.place"] == "scatter"
        assert asked["Resource_List.select"] == "2:ncpus=1"


def test_chain_asks_gadi_for_the_whole_job_again(tmp_path):
    """A select= beside ncpus= would be refused."""
    (tmp_path / "exercises").mkdir()
    shutil.copy(ROOT / "exercises" / "catalog.toml", tmp_path / "exercises")
    ignore = shutil.ignore_patterns("site.sh")
    shutil.copytree(ROOT / "job_scripts", tmp_path / "job_scripts", ignore=ignore)
    sites.choose(tmp_path, "nci_gadi", ("PROJECT=ab12",))
    (tmp_path / "stubs").mkdir()
    for name, does in {
        "qstat": "echo '    Resource_List.walltime = 00:05:00'",
        "qsub": 'echo "$*" > asked; cat "${@: -1}" >> asked; echo 13.head',
        "qdel": "true",
    }.items():
        (tmp_path / "stubs" / name).write_text(f"#!/bin/bash\n{does}\n")
        (tmp_path / "stubs" / name).chmod(0o755)
    script = ["bash", tmp_path / "job_scripts" / "chained.pbs"]
    done = beside_stubs(tmp_path, script, NODES="n1\nn2\n", PBS_O_QUEUE="gpuvolta")
    assert ", then 13.head\n" in done.stdout, done
    words, *copy = (tmp_path / "asked").read_text().splitlines()
    assert words.startswith("-q gpuvolta -W depend=afterany:12.head -v SNAPSHOT=")
    for line in ("-Pab12", "-lncpus=96", "-lwalltime=00:05:00", "-r n"):
        assert f"#PBS {line}" in copy
    assert "select=" not in "".join(x for x in copy if x.startswith("#PBS"))


def test_chain_ends_where_a_job_fails_by_itself(pbs, submit):
    first = pbs.wait(submit("chained", SCRIPT="fails.py", RANKS_PER_NODE=1), LIMIT)
    assert first.exit_status == 1
    assert numbered(pbs, first.id, 1).hosts == []
    with pytest.raises(KeyError):
        numbered(pbs, first.id, 2)


def test_chain_ends_where_a_job_saved_nothing(pbs, submit, checkout):
    (checkout / "sleeps.py").write_text("import time\ntime.sleep(1000)\n")
    first = submit("chained", SCRIPT="sleeps.py", RANKS_PER_NODE=1)
    pbs.wait(first, 60, "R")
    second = successor(pbs, first)
    time.sleep(0.5)  # the script goes on to start the training
    pbs.expire(first)
    assert pbs.wait(first, 60).exit_status == -29
    second = pbs.wait(second.id, LIMIT)
    assert second.exit_status == 1
    assert "The last job saved nothing: give it more time" in second.output
    with pytest.raises(KeyError):
        numbered(pbs, first, 2)
