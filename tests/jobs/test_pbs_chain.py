"""chained.pbs, and jobs that lose a host: training continues from what was saved."""

import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from tests.jobs.pbs_jobs import LIMIT
from workshop.cluster.jobs import sites
from workshop.cluster.pbs import Delays, Rehearsal

pytestmark = pytest.mark.full

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


def test_chain_of_three_jobs_equals_one_long_job(pbs, qsub, checkout):
    """Two jobs are ended by the walltime, wherever they are; bit for bit the same."""
    first = qsub("chained", *ONE_CORE, "-l", "walltime=00:07:00", **CHAIN)
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

    long = qsub("multinode_torchrun", *ONE_CORE, **CHAIN, SNAPSHOT="snapshots/long.pt")
    assert pbs.wait(long, LIMIT).exit_status == 0
    compare = [
        sys.executable,
        "src/instruments/06_compare_snapshots.py",
        "snapshots/long.pt",
    ]
    done = subprocess.run(
        [*compare, snapshot], cwd=checkout, capture_output=True, text=True
    )
    assert "Equal in every bit" in done.stdout, done.stdout


@pytest.fixture
def house(checkout):
    """The checkout, in which no site is chosen afterwards."""
    yield checkout
    sites.forget(checkout)


def test_chain_keeps_the_project_and_the_request(pbs, qsub, house):
    """The successor has all options of the site, and what its job was asked for."""
    sites.choose(house, "plain_pbs", ("PROJECT=ab12", "QUEUE=other"))
    asked = ("-P", "ab12", *ONE_CORE, "-l", "walltime=00:07:00")
    first = qsub("chained", *asked, SCRIPT="fails.py", RANKS_PER_NODE=1)
    pbs.wait(first, LIMIT)
    for k in (0, 1):
        asked = asked_of(pbs, numbered(pbs, first, k).id)
        assert asked["project"] == "ab12"
        assert asked["Resource_List.walltime"] == "00:07:00"
        assert asked["Resource_List.place"] == "scatter"
        assert asked["Resource_List.select"] == "2:ncpus=1"


def test_chain_ends_where_a_job_fails_by_itself(pbs, qsub):
    first = pbs.wait(qsub("chained", SCRIPT="fails.py", RANKS_PER_NODE=1), LIMIT)
    assert first.exit_status == 1
    assert numbered(pbs, first.id, 1).hosts == []
    with pytest.raises(KeyError):
        numbered(pbs, first.id, 2)


def test_chain_ends_where_a_job_saved_nothing(pbs, qsub, checkout):
    (checkout / "sleeps.py").write_text("import time\ntime.sleep(1000)\n")
    first = qsub("chained", SCRIPT="sleeps.py", RANKS_PER_NODE=1)
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


@pytest.mark.nightly
def test_job_that_loses_a_host_resumes_on_others(fragile, checkout):
    job = lose_after_a_save(fragile, checkout, "multinode_torchrun", "job{}.pt")
    assert (job.exit_status, job.run_count) == (0, 2), job.output
    assert job.distinct_hosts == ["n1", "n3"]
    assert "Resuming from" in job.output


@pytest.mark.nightly
def test_chain_that_loses_a_host_has_one_successor(fragile, checkout):
    """-r n: run again, the job would qsub a second one beside it."""
    job = lose_after_a_save(fragile, checkout, "chained", "chain{}.pt")
    assert (job.exit_status, job.run_count) == (-14, 1)
    last = fragile.wait(numbered(fragile, job.id, 1).id, LIMIT)
    assert last.exit_status == 0, last.output
    assert "Resuming from" in last.output
    assert numbered(fragile, job.id, 2).hosts == []  # removed by the last
    with pytest.raises(KeyError):
        numbered(fragile, job.id, 3)
