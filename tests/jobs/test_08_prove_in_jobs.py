"""`workshop doctor --job --submit` on the practice cluster: healthy, and with faults.

Each fault is planted on a node and named by the doctor; tests/grader/test_proof.py
shows what it says of measurements that no practice cluster gives.
"""

import contextlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

BIN = Path(sys.executable).parent


@pytest.fixture
def prove(submit):
    """Ask for a proof, as on a login node; ``options`` are sbatch's."""

    def prove(*options, **env):
        words = [BIN / "workshop", "doctor", "--job", "--submit", "--", *options]
        path = f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin"
        return submit.run(words, env={"PATH": path, **env}, timeout=300)

    return prove


@contextlib.contextmanager
def mounted(cluster, node: str, place: str, *mount: str):
    """Something is mounted over a place of one node."""
    cluster.run(["mount", *mount, place], node=node, check=True)
    try:
        yield
    finally:
        cluster.run(["umount", place], node=node, check=True)


def findings(done) -> list[str]:
    """What is wrong, as the doctor says it at the end."""
    assert done.returncode == 1, done
    return re.findall(r"^- (.+)$", done.stdout, re.M)


def test_healthy_cluster_is_shown_and_nothing_is_found(prove):
    done = prove()
    assert done.returncode == 0, done
    page = done.stdout
    assert page.endswith("Nothing is wrong with what the job got.\n")
    for words in (
        r"proving 4 ranks, each on CPU, .*, backend gloo",
        r"\n   3  n2 +cpu +\d+\S* +[\d.]+ \(eth0\)",
        r"\nn2: /dev/shm .* ulimit -l .* -n .* -u ",
        r"\n  Python .*, torch .*, NCCL ",
        r"\nbusbw inside a node, GB/s: 4 KiB ",
        r"\nbusbw between nodes, GB/s: 4 KiB ",
        r"\neth0 announces 10 Gbit/s, which is 1.250 GB/s",
        r"\nsnapshots: written with \d+ MB/s",
        r"seen by every rank within",
        r"\nresumed from a snapshot: the same parameters",
        r"\nfirst step \d+.\d s after the submission",
    ):
        assert re.search(words, page), f"{words} in {page}"


def test_full_shared_memory_of_one_node_is_found(prove, cluster):
    small = ("-t", "tmpfs", "-o", "size=32m", "none")
    with mounted(cluster, "n2", "/dev/shm", *small):
        found = findings(prove("--nodelist=n1,n2"))
    assert len(found) == 1, found
    assert found[0].startswith("/dev/shm of n2 has 34 MB: a DataLoader")


def test_another_version_on_one_node_is_found(prove, cluster, tmp_path):
    distribution = importlib.metadata.distribution("torch")
    metadata = next(
        Path(str(distribution.locate_file(file)))
        for file in distribution.files or []
        if file.name == "METADATA" and file.parent.name.startswith("torch-")
    )
    other = tmp_path / "METADATA"
    text = metadata.read_text(encoding="utf-8")
    other.write_text(re.sub(r"(?m)^Version: .*$", "Version: 2.6.0", text))
    with mounted(cluster, "n2", str(metadata), "--bind", str(other)):
        found = findings(prove("--nodelist=n1,n2"))
    assert len(found) == 1, found
    assert re.match(
        r"torch: 2\.\d+.* on n1; 2\.6\.0 on n2: activate the same", found[0]
    )


@pytest.mark.nightly
def test_slow_link_is_found(prove, cluster):
    cluster.rate("100mbit")
    try:
        found = findings(prove())
    finally:
        cluster.rate("off")
    assert len(found) == 1, found
    link = r"the link between the nodes carries 0\.0\d+ GB/s, and eth0 announces 1\.25"
    assert re.match(link, found[0])


def test_wrong_interface_is_found_before_ranks_wait_for_each_other(prove):
    found = findings(prove(GLOO_SOCKET_IFNAME="ib0"))
    assert [line[:45] for line in found] == [
        "n1 has no interface ib0 (GLOO_SOCKET_IFNAME):",
        "n2 has no interface ib0 (GLOO_SOCKET_IFNAME):",
    ]


def test_job_that_fails_is_diagnosed_from_its_log(prove):
    """The folder for its snapshot isn't there."""
    done = prove(SNAPSHOT="nowhere/at/all.pt")
    assert findings(done) == ["the job has measured nothing: see its log"]
    assert "Cause: The program refused an argument" in done.stdout
    assert "argument --snapshot: nowhere/at/all.pt: cannot write" in done.stdout


def test_scheduler_that_refuses_the_job_has_said_why(prove):
    done = prove("--time=tomorrow")
    assert done.returncode == 2, done
    assert "sbatch: error: " in done.stderr
    assert "sbatch did not take the job, see above" in done.stderr
    assert "Traceback" not in done.stderr


def test_job_of_pbs_is_submitted_and_read(cluster, checkout):
    """In a clean login shell of the rehearsal, at a site of PBS."""
    site = checkout / "job_scripts" / "site.sh"
    words = [sys.executable, "-m", "workshop.cluster.pbs", "--state", cluster.state]
    words += [BIN / "workshop", "doctor", "--job", "--submit"]
    site.write_text("WORKSHOP_SITE=plain_pbs\n")
    try:
        done = subprocess.run(
            list(map(str, words)),
            cwd=checkout,
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        site.unlink()
    assert done.returncode == 0, done
    assert "2 rank(s) on each of n1 n2, meeting at n1:" in done.stdout
    assert "resumed from a snapshot: the same parameters" in done.stdout
    assert done.stdout.endswith("Nothing is wrong with what the job got.\n")
