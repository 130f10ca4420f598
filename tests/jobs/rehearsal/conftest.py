"""The rehearsal of PBS that these tests share; its seconds are divided by FACTOR."""

import textwrap

import pytest

from tests.jobs.rehearsal.shared import FACTOR, HOSTS
from workshop.cluster.pbs import Delays, Rehearsal


@pytest.fixture(scope="module")
def pbs(cluster, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / ".bash_profile").write_text("export FROM_PROFILE=yes\n")
    delays = Delays().divided_by(FACTOR)
    offer = {"hosts": HOSTS, "ngpus": 4, "home": home}
    with Rehearsal(cluster, **offer, delays=delays, ssh=True) as pbs:
        yield pbs


@pytest.fixture
def submit(pbs, tmp_path):
    """Submit the text of a script from an empty folder; the job's id."""

    def submit(text, *options, **more):
        script = tmp_path / "job.pbs"
        script.write_text(textwrap.dedent(text))
        return pbs.qsub(*options, "job.pbs", cwd=tmp_path, **more)

    return submit


@pytest.fixture
def run(pbs, submit):
    """The job of a script, once it has finished."""
    return lambda *args, **more: pbs.wait(submit(*args, **more), 60)
