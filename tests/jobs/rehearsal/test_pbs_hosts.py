"""Jobs that start again, hosts that fail, as OpenPBS 23.06 was seen to behave."""

import pytest

from tests.jobs.rehearsal.shared import HOSTS, SCATTER, qstat_full
from tests.launched import wait_until
from workshop.cluster.pbs import Delays, Rehearsal

pytestmark = pytest.mark.full


@pytest.fixture
def patient(cluster, tmp_path):
    """A rehearsal of its own, in which a host that fails is soon noticed."""
    delays = Delays(output=0, rerun=0, host_lost=1.5)
    with Rehearsal(cluster, hosts=HOSTS, home=tmp_path, delays=delays) as pbs:
        yield pbs
        for host in list(pbs.lost):
            pbs.restore(host)


WAITS_ONCE = """\
cd $PBS_O_WORKDIR
echo run on $(cat $PBS_NODEFILE)
[ ! -e up ] || exit 0
touch up
while true; do pbs_tmrsh n2 /bin/sleep 1000; echo came back; done
"""


def test_qrerun_starts_a_job_again(patient, tmp_path):
    """qrerun is for operators; SIGKILL at once, the same id, run_count 2, output is
    appended. A user is not authorized (159); -r n refuses."""
    (tmp_path / "job.pbs").write_text(WAITS_ONCE)
    job_id = patient.qsub(*SCATTER, "job.pbs", cwd=tmp_path)
    wait_until((tmp_path / "up").exists)
    done = patient.run("qrerun", job_id)
    said = f"qrerun: Unauthorized Request  {job_id}\n"
    assert (done.returncode, done.stderr) == (159, said)
    patient.rerun(job_id)
    job = patient.wait(job_id, 60)
    assert (job.exit_status, job.output) == (0, "run on n1 n2\n" * 2)
    assert "    run_count = 2\n" in qstat_full(patient, job_id)
    (tmp_path / "up").unlink()
    fixed = patient.qsub(*SCATTER, "-r", "n", "job.pbs", cwd=tmp_path)
    wait_until((tmp_path / "up").exists)
    with pytest.raises(ValueError, match="cannot be run again"):
        patient.rerun(fixed)


def test_job_that_loses_a_host_runs_again_elsewhere(patient, tmp_path):
    """The job hangs, is requeued, has the same id, runs on other hosts; the output of
    its first run is lost."""
    (tmp_path / "job.pbs").write_text(WAITS_ONCE)
    job_id = patient.qsub(*SCATTER, "job.pbs", cwd=tmp_path)
    wait_until((tmp_path / "up").exists)
    patient.lose("n2")
    assert "state = down" in patient.run("pbsnodes", "-a").stdout
    job = patient.wait(job_id, 60)
    assert (job.exit_status, job.output) == (0, "run on n1 n3\n")
    assert "    run_count = 2\n" in qstat_full(patient, job_id)


@pytest.mark.parametrize("host", ["n1", "n2"])
def test_job_with_r_n_ends_when_it_loses_a_host(patient, tmp_path, host):
    """With `-r n`: Exit_status -14, ends; afterany runs."""
    (tmp_path / "job.pbs").write_text(WAITS_ONCE)
    job_id = patient.qsub(*SCATTER, "-r", "n", "job.pbs", cwd=tmp_path)
    (tmp_path / "next.pbs").write_text("true\n")
    after = f"depend=afterany:{job_id}"
    following = patient.qsub("-W", after, "next.pbs", cwd=tmp_path)
    wait_until((tmp_path / "up").exists)
    patient.lose(host)
    assert patient.wait(job_id, 60).exit_status == -14
    assert patient.wait(following, 60).exit_status == 0


def test_excl_has_its_hosts_alone(patient, tmp_path):
    (tmp_path / "job.pbs").write_text("sleep 1000\n")
    shape = "-l", "select=3:ncpus=1", "-l"
    for place in ("place=scatter:excl", "place=scatter", "place=scatter:excl"):
        patient.qsub(*shape, place, "job.pbs", cwd=tmp_path)
    assert [job.state for job in patient.jobs] == ["R", "Q", "Q"]
    patient.run("qdel", "1", "3")
    patient.wait("2", 60, "R")


def test_hosts_may_have_full_names(cluster, tmp_path):
    """Node file with full names, vnodes stay short: pbs_tmrsh takes n2.hpc.test and the
    address, refuses n2."""
    (tmp_path / "job.pbs").write_text(
        "cat $PBS_NODEFILE; hostname; getent hosts n2 | tr -s ' '\n"
        "for host in n2.hpc.test 10.77.0.12 n2; do\n"
        "  pbs_tmrsh $host hostname; echo status $?; done\n"
        "pbsdsh -h n1.hpc.test hostname\n"
    )
    offer = {"hosts": HOSTS, "home": tmp_path, "domain": "hpc.test"}
    with Rehearsal(cluster, **offer) as pbs:
        job = pbs.wait(pbs.qsub(*SCATTER, "job.pbs", cwd=tmp_path), 60)
        assert "exec_host = n1/0+n2/0\n" in qstat_full(pbs, job.id)
    names = ["n1.hpc.test", "n2.hpc.test", "n1", "10.77.0.12 n2.hpc.test n2"]
    lines = job.output.splitlines()
    assert lines[:4] == names
    statuses = [line for line in lines[4:] if line.startswith("status")]
    assert statuses == ["status 0", "status 0", "status 255"]
    tasks = set(lines[4:]) - set(statuses)  # what they print may come late
    assert tasks == {"n2", "n1"} and len(lines) == 4 + 3 + 3
