"""What docs/lessons/10_pbs says of copied scripts: each is submitted and looked at.

The scripts are those of docs/examples/pbs_traps, through the rehearsal of PBS; what the
rehearsal itself imitates is tested in rehearsal/.
"""

import inspect
import re
from pathlib import Path

import pytest
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent

from tests.docs.pages import lesson_source
from tests.jobs import which_pbs
from workshop.cluster.pbs import Delays

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
TRAPS = ROOT / "docs" / "examples" / "pbs_traps"
PAGE = lesson_source("10_pbs")
RECORDED = "".join(
    path.read_text() for path in (ROOT / "docs" / "transcripts").glob("10_*.txt")
)
# Four agents for two nodes: each says where it starts what.
TOO_MANY_AGENTS = """\
#PBS -l select=2:ncpus=2:mpiprocs=2
#PBS -l place=scatter
#PBS -j oe
cd "$PBS_O_WORKDIR"
pbsdsh -- /bin/bash -lc "cd '$PWD' && source job_scripts/site_environment.sh &&
  exec torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d \\
    --rdzv-endpoint=$(hostname):29411 --rdzv-conf=join_timeout=20 --rdzv-id=1 who.py"
"""
WHO = """\
import os, socket
print("rank", os.environ["RANK"], "on", socket.gethostname(), flush=True)
"""


@pytest.fixture(scope="module")
def pbs(start_pbs, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    delays = Delays().divided_by(10)
    offer = {"hosts": ["n1", "n2"], "home": home, "delays": delays, "ssh": True}
    with start_pbs(**offer) as pbs:
        yield pbs


@pytest.fixture
def run(pbs, checkout):
    """The finished job of a script of docs/examples/pbs_traps."""

    def run(name, *options):
        script = TRAPS / f"{name}.pbs"
        return pbs.wait(pbs.qsub(*options, str(script), cwd=checkout), 120)

    return run


def test_each_trap_is_on_the_page():
    for path in TRAPS.iterdir():
        assert path.name in PAGE
        assert str(path.relative_to(ROOT)) in RECORDED, f"no transcript of {path.name}"


def test_ten_lines_are_ten_and_use_the_first_of_two_hosts():
    """The output names two hosts, then two ranks; both ranks ran on the first host."""
    script = ROOT / "docs" / "examples" / "10_first_job.pbs"
    assert len(script.read_text(encoding="utf-8").splitlines()) == 10
    shown = (ROOT / "docs" / "transcripts" / "10_first_job.txt").read_text("utf-8")
    assert "\nn1\nn2\n" in shown
    ranks = re.findall(r"^rank (\d) of 2 .* host (\S+)$", shown, re.M)
    assert ranks == [("0", "n1"), ("1", "n1")]


@pytest.mark.nightly
def test_torchrun_on_the_first_host_only_waits_for_a_second(run):
    """`Waits, then RendezvousTimeoutError`; nothing ran on the second host."""
    job = run("first_host_only")
    assert job.exit_status == 1
    assert "RendezvousTimeoutError" in job.output
    # as a word: a temporary folder in a traceback may have the letters in its name
    assert not re.search(rf"\b{job.distinct_hosts[1]}\b", job.output)


def test_no_pbs_sets_pbs_nodeid(run):
    """`invalid int value: ''`"""
    job = run("pbs_nodeid")
    assert job.exit_status == 2
    assert "--node-rank/--node_rank: invalid int value: ''" in job.output


def test_a_task_finds_what_belongs_to_the_job_and_no_exports(pbs, run, checkout):
    """Of two variables, the one of qsub -v arrives; the folder is the home."""
    job = run("who_gets_what", "-v", "GIVEN=yes")
    _, script, pbsdsh, pbs_tmrsh, ssh = re.split("^== ", job.output, flags=re.M)
    first, second = job.distinct_hosts
    assert f"{first}, in {checkout}, torchrun: yes" in script
    assert " EXPORTED=yes GIVEN=yes NCPUS=2 " in script
    for task in (pbsdsh, pbs_tmrsh):
        assert f"{second}, in {pbs.home}, torchrun: no" in task
        assert f" EXPORTED= GIVEN=yes NCPUS=2 PBS_JOBID={job.id} PBS_NODENUM=1" in task
    assert f"{second}, in {pbs.home}, torchrun: " in ssh
    assert " EXPORTED= GIVEN= NCPUS= PBS_JOBID= PBS_NODENUM= " in ssh
    assert " PBS_NODEID= " in job.output


def test_bash_c_takes_one_word_and_the_next_line_is_of_the_job_script(pbs, run):
    """The training runs once, on the first host, and not where it should."""
    job = run("lines")
    assert job.exit_status == 0
    assert job.output == f"training on {job.distinct_hosts[0]} in {pbs.home}\n"


def test_double_quotes_are_filled_in_by_the_first_host(run):
    """Both tasks claim to be host 0 on the first, and a cd that fails stops nothing."""
    job = run("quotes")
    assert job.exit_status == 0
    claim = f"training as host 0 on {job.distinct_hosts[0]}\n"
    assert job.output.count(claim) == 2
    assert job.output.count("No such file or directory") == 2


def test_exit_status_of_pbsdsh_is_always_0(run):
    job = run("exit_status")
    assert "pbsdsh ended with 0\n" in job.output
    assert "pbs_tmrsh ended with 3\n" in job.output
    said = [f"pbsdsh: task 0x0000000{k} exit status 3" for k in (0, 1)]
    lines = job.output.splitlines()  # the profile of a login shell may print, too
    assert sorted(line for line in lines if line.startswith("pbsdsh: task")) == said


def test_relative_paths_are_not_found_by_tasks(run):
    job = run("relative")
    assert job.output.count("README.md\n") == 1
    assert job.output.count("exit status 2\n") == 1
    assert job.output.count("exit status 254\n") == 2
    assert job.exit_status == 0


def test_program_of_the_environment_is_not_found_by_tasks(pbs, checkout):
    """`No such file or directory`, `exit status 254`"""
    script = checkout / "bare.pbs"
    script.write_text(
        "#PBS -j oe\ncd $PBS_O_WORKDIR\nsource job_scripts/site_environment.sh\n"
        "pbsdsh -- torchrun --help\n"
    )
    job = pbs.wait(pbs.qsub("bare.pbs", cwd=checkout), 60)
    assert job.exit_status == 0
    assert "exit status 254\n" in job.output


def test_two_lines_for_a_host_are_two_agents_there(pbs, checkout):
    """Four agents for two nodes; not all belong to the job, which ends with 0."""
    (checkout / "who.py").write_text(WHO)
    (checkout / "agents.pbs").write_text(TOO_MANY_AGENTS)
    job = pbs.wait(pbs.qsub("agents.pbs", cwd=checkout), 120)
    assert job.exit_status == 0
    assert len(re.findall(r"^rank \d on ", job.output, re.M)) <= 2
    assert len(re.findall(r"task 0x\w+ exit status [1-9]", job.output)) == 2


@which_pbs.needs("mpirun")
def test_open_mpi_that_is_told_no_hosts_stays_on_the_first(pbs, checkout):
    """An Open MPI without PBS support starts all of them on the first host."""
    (checkout / "mpi.pbs").write_text(
        "#PBS -l select=2:ncpus=1\n#PBS -l place=scatter\n#PBS -j oe\n"
        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
        "mpirun --oversubscribe -np 2 hostname\n"
    )
    job = pbs.wait(pbs.qsub("mpi.pbs", cwd=checkout), 60)
    assert job.exit_status == 0, job.output
    assert job.output.split() == [job.distinct_hosts[0]] * 2


def test_torchruns_that_have_finished_wait_five_minutes_for_the_others():
    """ "a torchrun that has finished waits up to five minutes for the others"."""
    parameters = inspect.signature(LocalElasticAgent).parameters
    assert parameters["exit_barrier_timeout"].default == 300
