"""The practice cluster for tests of job scripts, and a way to submit them.

``submit("job_scripts/x.sbatch", "--nodes=2")`` submits the file as it is, from a copy
of the working tree whose .venv is this one's, waits for the job and returns a Job.
"""

import os
import re
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.jobs import pbs_jobs, which_pbs
from tests.needs import CLUSTER, skip_without
from tools.fresh_copy import copy_tree
from workshop.cluster.nodes import Cluster
from workshop.cluster.pbs import Delays

ROOT = Path(__file__).resolve().parents[2]
# What the test run itself has set and a user's shell has not.
FOREIGN = re.compile(
    r"PYTEST_|PYTHONPATH|RANK$|LOCAL_|WORLD_SIZE|MASTER_|SLURM|SBATCH_|PBS_|OMPI_|PMI"
    r"|TORCHELASTIC|GROUP_|VIRTUAL_ENV"
)
WAITING = {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED"}
WAITING |= {"SIGNALING", "STOPPED"}  # for a moment, when a signal was sent


class Job(NamedTuple):
    """What became of a job.

    ``exit_code``: of its script, or 128 + the signal that ended it. ``output``: all
    that it wrote so far. ``restarts``: how often it was requeued.
    """

    id: int
    state: str
    exit_code: int
    output: str
    nodes: list[str]
    restarts: int


class Submitter:
    """Submits from one folder to one cluster."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder

    def __call__(self, script, *options, args=(), env=None, timeout=120) -> Job:
        """`args` are the script's own; `env` is added to the environment."""
        return self.wait(self.start(script, *options, args=args, env=env), timeout)

    def start(self, script, *options, args=(), env=None) -> int:
        """The number of the job; it may not have begun yet."""
        words = ["sbatch", "--parsable", *options, script, *args]
        done = self.run(words, env=env, timeout=30)
        assert done.returncode == 0, f"{words} was refused: {done.stderr}"
        return int(done.stdout.strip().split(";")[0])

    def run(self, words, *, node=None, env=None, timeout=120):
        """A command in the folder, in the environment of a user who just logged in."""
        foreign = [name for name in os.environ if FOREIGN.match(name)]
        cleaner = ["env", *(word for name in foreign for word in ("-u", name))]
        # Open MPI refuses root, whom tests in a container are.
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        given = [f"{key}={value}" for key, value in {**root, **(env or {})}.items()]
        given += [f"SLURM_CONF={self.cluster.state}/slurm/slurm.conf"]
        words = [*cleaner, *given, *words]
        return self.cluster.run(words, node, cwd=self.folder, timeout=timeout)

    def wait(self, job: int, timeout: float = 120) -> Job:
        """The job once it has ended; the test fails if it has not within `timeout`."""
        return self.until(job, lambda seen: seen.state not in WAITING, timeout)

    def until(self, job: int, happened, timeout: float = 120) -> Job:
        """The job once ``happened(job)``."""
        end = time.monotonic() + timeout
        while not happened(seen := self.look(job)):
            if time.monotonic() > end:
                self.cluster.run(["scancel", str(job)])
                pytest.fail(f"job {job} was {seen.state} after {timeout} s:\n{seen}")
            time.sleep(0.1)
        return seen

    def look(self, job: int) -> Job:
        """What Slurm says of the job now, and its output so far."""
        done = self.cluster.run(["scontrol", "-o", "show", "job", str(job)], check=True)
        fact = dict(re.findall(r"(\w+)=(\S*)", done.stdout.splitlines()[0]))
        status, signal = map(int, fact["ExitCode"].split(":"))
        names = dict.fromkeys([fact.get("StdOut", ""), fact.get("StdErr", "")])
        paths = [Path(name) for name in names if name]
        nodes = fact.get("NodeList", "")
        if nodes and nodes != "(null)":
            expand = ["scontrol", "show", "hostnames", nodes]
            nodes = self.cluster.run(expand, check=True).stdout
        return Job(
            id=job,
            state=fact["JobState"],
            exit_code=128 + signal if signal else status,
            output="".join(p.read_text(errors="replace") for p in paths if p.exists()),
            nodes=nodes.split() if nodes != "(null)" else [],
            restarts=int(fact["Restarts"]),
        )


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory):
    """Nobody's: a login shell runs the start files that it finds there.

    Those of pyenv wait a minute for a lock, also for that of a shell that was killed.
    """
    before, folder = os.environ["HOME"], tmp_path_factory.mktemp("home")
    os.environ["HOME"] = str(folder)
    yield folder
    os.environ["HOME"] = before


@pytest.fixture(scope="module")
def cluster():
    """Four nodes with 4 CPUs and 2 GPUs each, for all tests of a file."""
    if which_pbs.REAL:
        pytest.skip("needs the practice cluster, and WORKSHOP_PBS=real is another one")
    skip_without(CLUSTER)
    place = tempfile.TemporaryDirectory(prefix="jobs-", dir="/tmp")  # a short path
    with place as folder, Cluster(Path(folder) / "cluster") as cluster:
        cluster.up(nodes=4, cpus=4, gpus=2, stay=False)
        yield cluster


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """On a real cluster, temporary folders are where all hosts see them."""
    if which_pbs.REAL and not config.option.basetemp:
        config.option.basetemp = ROOT / ".workshop" / "pbs_tests"
        config.option.basetemp.parent.mkdir(exist_ok=True)


@pytest.fixture(scope="module")
def start_pbs(request):
    """``start_pbs(**offer)``: the rehearsal with this offer, or the PBS on PATH."""
    if not which_pbs.REAL:
        return partial(which_pbs.Played, request.getfixturevalue("cluster"))
    if reason := which_pbs.why_not():
        pytest.skip(reason)
    return lambda **offer: which_pbs.RealPbs()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the working tree, as a clone would be, with the environment.

    The digits network is a narrow one, so that a training takes a moment.
    """
    folder = tmp_path_factory.mktemp("workshop")
    copy_tree(folder)
    data = folder / "src" / "common" / "data.py"
    data.write_text(re.sub(r"^WIDTH = \d+", "WIDTH = 16", data.read_text(), flags=re.M))
    warm = Path(sys.executable).parent.parent  # of this machine alone
    (folder / ".venv").symlink_to(sys.prefix if which_pbs.REAL else warm)
    return folder


@pytest.fixture(scope="module")
def submit(cluster, checkout) -> Submitter:
    """Submit a job script from the checkout and wait for the job."""
    return Submitter(cluster, checkout)


@pytest.fixture(scope="module")
def offer(checkout, tmp_path_factory):
    """Three hosts; a home of its own, in which Open MPI may be started by root."""
    home = tmp_path_factory.mktemp("home")
    allow = "OMPI_ALLOW_RUN_AS_ROOT"
    (home / ".bash_profile").write_text(f"export {allow}=1 {allow}_CONFIRM=1\n")
    for name in set(pbs_jobs.LAUNCHERS.values()):
        text = pbs_jobs.SAYS_HOST.replace("NAME", name)
        (checkout / f"says_host_{name}.py").write_text(text)
    (checkout / "fails.py").write_text(pbs_jobs.FAILS)
    (checkout / "nothing.py").write_text("")
    return {
        "hosts": ["n1", "n2", "n3"],
        "ngpus": 4,
        "home": home,
        "ssh": True,
        "number_file": checkout / ".workshop" / "pbs_jobs",
    }


@pytest.fixture(scope="module")
def pbs(start_pbs, offer):
    """A PBS that waits a tenth of what OpenPBS does; some files have their own."""
    with start_pbs(**offer, delays=Delays().divided_by(10)) as pbs:
        yield pbs


@pytest.fixture
def qsub(pbs, checkout):
    """Submit a script of job_scripts with variables; the id of the job."""

    def qsub(name, *options, **variables):
        given = ",".join(f"{key}={value}" for key, value in variables.items())
        more = ["-v", given] if given else []
        return pbs.qsub(*options, *more, f"job_scripts/{name}.pbs", cwd=checkout)

    return qsub
