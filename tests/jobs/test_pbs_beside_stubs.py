"""What a .pbs asks for and what it starts, seen without a cluster.

The script is read, or run by bash beside stubs of the commands that it calls.
"""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.jobs.pbs_jobs import LAUNCHERS, ROOT, SCRIPTS
from workshop.cluster.jobs import sites
from workshop.cluster.pbs.request import read_directives, read_request

pytestmark = pytest.mark.full


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


# What reaches a host by pbs_tmrsh and by ssh: nothing that the script has exported.
BARE = 'env -i PBS_JOBID=12.head PATH=/bin:/usr/bin HOME="$HOME"'
REMOTE = {
    "pbs_tmrsh": f'shift; {BARE} "$@"',
    "ssh": 'env -i HOME="$HOME" PATH=/bin:/usr/bin bash -c "${@: -1}"',
    "torchrun": 'echo "host: $PET_LOG_DIR."',
    "setpriv": "exit 1",
    "workshop": 'echo "$*" > submitted; echo 13.head',
    "qdel": "true",
}


def logs_on_hosts(folder, name, **variables):
    """Where torchrun writes the logs of ranks on each of two hosts with GPUs."""
    shutil.copytree(ROOT / "job_scripts", folder / "job_scripts", dirs_exist_ok=True)
    (folder / "job_scripts" / "site.sh").unlink(missing_ok=True)
    environment = folder / "job_scripts" / "site_environment.sh"
    text = environment.read_text()
    environment.write_text(text.replace("/dev/nvidiactl", "/dev/null"))
    for tool, does in REMOTE.items():
        path = folder / "stubs" / tool
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{does}\n")
        path.chmod(0o755)
    activate = folder / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True, exist_ok=True)
    activate.write_text(f"PATH={folder}/stubs:$PATH\n")
    given = {"NODES": "n1\nn2\n", "HOME": str(folder), "PBS_O_QUEUE": "workq"}
    given["PBS_ARRAY_INDEX"] = "2"
    script = ["bash", folder / "job_scripts" / f"{name}.pbs"]
    done = beside_stubs(folder, script, **given, **variables)
    assert done.returncode == 0, done
    found = re.findall(r"^host: (.*)\.$", done.stdout, re.M)
    assert len(found) == 2, done
    assert found[0] == found[1]
    return found[0].removesuffix(f"/{socket.gethostname()}")


@pytest.mark.parametrize(
    "name", ["multinode_torchrun", "multinode_ssh", "chained", "scaling_array"]
)
def test_logs_of_ranks_go_where_the_job_says_on_each_host(name, tmp_path, monkeypatch):
    monkeypatch.delenv("LOGS", raising=False)
    assert logs_on_hosts(tmp_path, name) == "logs/job12.head"
    assert logs_on_hosts(tmp_path, name, LOGS="all") == "all"
    assert logs_on_hosts(tmp_path, name, LOGS="") == ""


def test_chain_hands_logs_on_only_as_they_were_given(tmp_path, monkeypatch):
    """Not the folder of this job, which the environment of a host with GPUs chose."""
    monkeypatch.delenv("LOGS", raising=False)
    for given, handed_on in (
        ({}, ""),
        ({"LOGS": ""}, ",LOGS="),
        ({"LOGS": "all"}, ",LOGS=all"),
    ):
        logs_on_hosts(tmp_path, "chained", RANKS_PER_NODE="1", **given)
        said = (tmp_path / "submitted").read_text()
        assert said.endswith(f",RANKS_PER_NODE=1{handed_on}\n"), said
