"""The capstone from end to end: four nodes, one of them lost, and all points.

The solution's job runs twice on the practice cluster, with half of the steps.
"""

import pytest

from grader.commands.capstone.evidence import read_runs
from grader.commands.capstone.judge import judge
from practice_cluster.rehearsal import Delays
from tests.jobs.conftest import WAITING

pytestmark = pytest.mark.full

SMALL = ["--width=24", "--heads=4", "--blocks=1", "--context=8"]
LONG = 400  # seconds, on a machine that has much else to do


@pytest.fixture
def slow(cluster):
    """Call it with a delay, then with "off"; at the end every node is on."""
    yield cluster.delay
    cluster.delay("off")
    for node in cluster.status().nodes:
        if not node.power:
            cluster.on(node.name)


def account(submit, checkout, job, run):
    """What the page tells a reader to keep."""
    said = submit.run(["scontrol", "show", "job", str(job)]).stdout
    (checkout / "capstone" / run / "accounting.txt").write_text(said)


def test_the_solution_survives_a_lost_node_and_has_all_points(
    submit, checkout, cluster, slow
):
    given, script = {"STEPS": "30"}, "solutions/capstone/capstone.sbatch"
    log = checkout / "capstone" / "disturbed" / "log.txt"
    job = submit(script, args=["undisturbed"], env=given, timeout=LONG)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    assert len(job.nodes) == 4
    account(submit, checkout, job.id, "undisturbed")
    slow("5ms")
    number = submit.start(script, args=["disturbed"], env=given)

    def half_done(seen):
        said = log.read_text() if log.exists() else ""
        return "checkpoint-10" in said and "Step 15" in said

    seen = submit.until(
        number, lambda now: half_done(now) or now.state not in WAITING, timeout=LONG
    )
    assert seen.state == "RUNNING", f"it was too quick for a fault: {seen}"
    cluster.off("n3")
    submit.until(number, lambda now: now.restarts == 1, timeout=LONG)
    slow("off")
    job = submit.wait(number, timeout=LONG)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), log.read_text()
    assert (job.restarts, job.nodes) == (1, ["n1", "n2", "n4"])
    account(submit, checkout, job.id, "disturbed")
    judgment = judge(checkout / "capstone", checkout)
    gaps = [each.missing for each in judgment.judged if each.missing]
    assert (judgment.points, gaps, judgment.broken) == (100, [], "")
    assert_losses_are_as_the_page_says(checkout / "capstone")


def assert_losses_are_as_the_page_says(folder):
    """Bit for bit on the same layout, and nearly on another one."""
    runs = read_runs(folder)
    first = runs["disturbed"].attempts[-1].first
    one, other = (runs[name].history("losses") for name in sorted(runs))
    assert first in (10, 20)
    for step, loss in one.items():
        assert abs(loss - other[step]) <= (0 if step < first else 0.003), step


def test_the_frame_trains_and_what_it_lacks_is_told(submit, checkout, tmp_path):
    args, given = ["undisturbed", *SMALL], {"STEPS": "2"}
    if (checkout / "capstone").exists():
        (checkout / "capstone").rename(tmp_path / "of_another_test")
    job = submit("job_scripts/capstone.sbatch", args=args, env=given, timeout=LONG)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    judgment = judge(checkout / "capstone", checkout)
    gaps = " ".join(each.missing for each in judgment.judged)
    for words in ("data 8 x tensor 1", "no bytes_on_rank_0", "torch.float32"):
        assert words in gaps
    assert "The undisturbed run has saved no checkpoint." in gaps
    assert "trained on four nodes" not in gaps


def test_the_frame_for_pbs_trains_on_four_hosts(start_pbs, checkout, tmp_path):
    """Undisturbed, in rehearsal; its accounting is read as that of Slurm is."""
    if (checkout / "capstone").exists():
        (checkout / "capstone").rename(tmp_path / "of_another_test")
    offer = {"hosts": ["n1", "n2", "n3", "n4"], "home": tmp_path}
    offer |= {"numbers": checkout / ".workshop" / "pbs_jobs"}
    with start_pbs(**offer, delays=Delays().divided_by(10)) as pbs:
        given = ["-v", "RUN=undisturbed,STEPS=2", "job_scripts/capstone.pbs"]
        job = pbs.wait(pbs.qsub(*given, cwd=checkout), LONG)
        run = checkout / "capstone" / "undisturbed"
        assert job.exit_status == 0, job.output + (run / "log.txt").read_text()
        said = pbs.run("qstat", "-xf", job.id, cwd=checkout).stdout
    (run / "accounting.txt").write_text(said)
    read = read_runs(checkout / "capstone")["undisturbed"]
    assert read.accounting["job"] == read.attempts[0].start["job"] == job.id
    assert (read.accounting["state"], read.accounting["status"]) == ("F", "0")
    assert read.accounting["restarts"] == "0"
    assert read.attempts[0].hosts == ["n1", "n2", "n3", "n4"]


def test_a_range_of_nodes_and_tasks_per_node_gives_the_fewest(submit):
    """Why the frame has no such directive: three of four free nodes."""
    said = []
    for more in (["--ntasks-per-node=1"], []):
        words = ["sbatch", "--wait", "--nodes=3-4", *more, "--output=nodes.out"]
        done = submit.run([*words, "--wrap", "echo $SLURM_NNODES"])
        assert done.returncode == 0, done.stderr
        said.append((submit.folder / "nodes.out").read_text().strip())
    assert said == ["3", "4"]
