"""``workshop doctor --job`` in jobs of PBS: it starts itself on all hosts by pbsdsh.

pbsdsh ends with 0 whatever its tasks do, and starts them in the home folder, with a
short PATH and none of the job script's exports. In Slurm: test_never_meet.py.
"""

from collections import Counter
from typing import NamedTuple

import pytest

from workshop.cluster.pbs import Delays

pytestmark = pytest.mark.full

PORT = 29571
SCRIPT = """\
#!/bin/bash
#PBS -N doctor
#PBS -l select=2:ncpus=2
#PBS -l place=scatter
#PBS -j oe
cd "$PBS_O_WORKDIR"
source job_scripts/site_environment.sh
SETTING
host=$(head -n 1 "$PBS_NODEFILE")
workshop doctor --job --rdzv-endpoint "ENDPOINT"
status=$?
ls -A .workshop
exit $status
"""


class Outcome(NamedTuple):
    """How the job ended, what it printed, where it ran.

    Of the rehearsal also how often each host was looked at, and by which words.
    """

    status: int
    said: str
    hosts: str  # "n1, n2"
    looked: Counter | None = None
    words: list[str] | None = None  # of the command that looked, on the last host


@pytest.fixture(scope="module")
def pbs(start_pbs, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    offer = {"hosts": ["n1", "n2"], "home": home, "delays": Delays().divided_by(10)}
    with start_pbs(**offer) as pbs:
        yield pbs


@pytest.fixture
def doctor(pbs, checkout):
    """Ask it in a job of two hosts; ``options`` are those of qsub."""

    def doctor(*options, endpoint=f"$host:{PORT}", setting=""):
        text = SCRIPT.replace("ENDPOINT", endpoint).replace("SETTING", setting)
        (checkout / "doctor.pbs").write_text(text)
        before = 0 if pbs.real else len(pbs.tasks.all)
        job = pbs.wait(pbs.qsub(*options, "doctor.pbs", cwd=checkout), 120)
        ended = Outcome(job.exit_status, job.output, ", ".join(job.distinct_hosts))
        if pbs.real:
            return ended
        tasks = [
            (task.host, task.order.argv)
            for task in pbs.tasks.all[before:]
            if "workshop.doctor.job" in " ".join(task.order.argv)
        ]
        looked = Counter(host for host, _ in tasks)
        return ended._replace(looked=looked, words=tasks[-1][1])

    return doctor


@pytest.mark.parametrize("mpiprocs", [1, 2])
def test_hosts_that_can_meet_are_each_looked_at_once(doctor, mpiprocs):
    """With mpiprocs=2, the node file names each host twice: n1 n1 n2 n2."""
    select = f"select=2:ncpus=2:mpiprocs={mpiprocs}"
    done = doctor("-l", select, "-l", "place=scatter")
    assert done.status == 0, done
    said = f"Checked from {done.hosts}: nothing keeps the nodes apart.\n"
    assert done.said == said
    assert done.looked in (None, {"n1": 1, "n2": 1})


def test_localhost_is_found_and_fails_the_job(doctor):
    done = doctor(endpoint=f"localhost:{PORT}")
    assert done.status == 1, done
    assert done.said == (
        f"- the endpoint is the node itself (localhost on {done.hosts}), so each node "
        "waits alone: use a name of the first node that the others can resolve\n"
    )
    assert done.looked in (None, {"n1": 1, "n2": 1})


def test_settings_that_the_script_exports_reach_all_hosts(doctor):
    """Although tasks of pbsdsh do not get them: torchrun's ranks will have them."""
    done = doctor(setting="export GLOO_SOCKET_IFNAME=ib0")
    assert done.status == 1, done
    for host in done.hosts.split(", "):
        assert f"- {host} has no interface ib0 (GLOO_SOCKET_IFNAME)" in done.said


def test_python_of_a_module_finds_its_libraries_on_all_hosts(doctor):
    """`module load` exports where they are; without them, it would not even start."""
    path = "LD_LIBRARY_PATH=/opt/python/lib"
    done = doctor(setting=f"export {path}")
    assert done.status == 0, done
    assert done.words is None or done.words[:2] == ["/usr/bin/env", path]
