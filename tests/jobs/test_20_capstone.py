"""The frames of the capstone's job scripts, on four nodes.

The solution runs from end to end, a node of its second run lost, as lesson 20 shows it:
the transcript 20_capstone.
"""

import re
from dataclasses import replace

import pytest

from tests.launched import wait_until
from workshop.capstone.evidence import read_runs
from workshop.capstone.fetch import fetch_missing
from workshop.capstone.judge import judge
from workshop.cluster.pbs import Delays, Rehearsal

pytestmark = pytest.mark.full

SMALL = ["--width=24", "--heads=4", "--blocks=1", "--context=8"]
LONG = 400  # seconds, on a machine that has much else to do


def test_the_frame_trains_and_what_it_lacks_is_told(submit, checkout, tmp_path):
    args, given = ["undisturbed", *SMALL], {"STEPS": "2"}
    if (checkout / "capstone").exists():
        (checkout / "capstone").rename(tmp_path / "of_another_test")
    job = submit("job_scripts/capstone.sbatch", args=args, env=given, timeout=LONG)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    told = fetch_missing(
        checkout / "capstone", [lambda words: submit.run(words).stdout]
    )
    assert "accounting.txt is new: scontrol's answer on" in told[0]
    judgment = judge(checkout / "capstone", checkout)
    gaps = " ".join(each.missing for each in judgment.judged)
    for words in ("data 8 x tensor 1", "no bytes_on_rank_0", "torch.float32"):
        assert words in gaps
    assert "The undisturbed run has saved no checkpoint." in gaps
    assert "trained on four nodes" not in gaps
    settings = submit.run(["scontrol", "show", "config"]).stdout
    assert re.search(r"^MinJobAge += 300 sec", settings, re.M)  # "five minutes"


def test_the_frame_for_pbs_trains_on_four_hosts(start_pbs, checkout, tmp_path):
    """Undisturbed, in rehearsal; its accounting is read as that of Slurm is."""
    if (checkout / "capstone").exists():
        (checkout / "capstone").rename(tmp_path / "of_another_test")
    offer = {"hosts": ["n1", "n2", "n3", "n4"], "home": tmp_path}
    offer |= {"number_file": checkout / ".workshop" / "pbs_jobs"}
    with start_pbs(**offer, delays=Delays().divided_by(10)) as pbs:
        given = ["-v", "RUN=undisturbed,STEPS=2", "job_scripts/capstone.pbs"]
        job = pbs.wait(pbs.qsub(*given, cwd=checkout), LONG)
        run = checkout / "capstone" / "undisturbed"
        assert job.exit_status == 0, job.output + (run / "log.txt").read_text()
        told = fetch_missing(
            checkout / "capstone",
            [lambda words: pbs.run(*words, cwd=checkout).stdout],
        )
    assert "accounting.txt is new: qstat's answer on" in told[0]
    read = read_runs(checkout / "capstone")["undisturbed"]
    assert read.accounting["job"] == read.attempts[0].start["job"] == job.id
    assert (read.accounting["state"], read.accounting["status"]) == ("F", "0")
    assert read.accounting["restarts"] == "0"
    assert read.attempts[0].hosts == ["n1", "n2", "n3", "n4"]


@pytest.mark.nightly
def test_the_solution_for_pbs_survives_the_loss_of_a_host(cluster, checkout, tmp_path):
    """On two hosts, with spare ones. The id stays the same, and so does its port."""
    if (checkout / "capstone").exists():
        (checkout / "capstone").rename(tmp_path / "of_another_test")
    delays = replace(Delays().divided_by(10), host_lost=1)
    run = checkout / "capstone" / "disturbed"
    number_file = checkout / ".workshop" / "pbs_jobs"
    with Rehearsal(
        cluster, home=tmp_path, number_file=number_file, delays=delays
    ) as pbs:
        asks = ["-l", "select=2:ncpus=2", "-l", "place=scatter"]
        given = ["-v", "RUN=disturbed,STEPS=60", "solutions/capstone/capstone.pbs"]
        number = pbs.qsub(*asks, *given, cwd=checkout)
        wait_until((run / "checkpoint-10" / ".metadata").exists, LONG)
        pbs.lose("n2")
        job = pbs.wait(number, LONG)
        pbs.restore("n2")
        said = pbs.run("qstat", "-xf", job.id, cwd=checkout).stdout
    assert (job.exit_status, job.run_count) == (0, 2), (
        job.output + (run / "log.txt").read_text()
    )
    (run / "accounting.txt").write_text(said)
    disturbed = read_runs(checkout / "capstone")["disturbed"]
    first, second = disturbed.attempts
    assert first.hosts == ["n1", "n2"] and second.hosts == ["n1", "n3"]
    assert first.start["job"] == second.start["job"] == job.id
    assert second.first >= 10 and second.first % 10 == 0 and not first.end
    assert second.end["steps"] == 60
    assert disturbed.accounting["restarts"] == "1"


def test_a_range_of_nodes_and_tasks_per_node_gives_the_fewest(submit):
    """Why the frame has no such directive: three of four free nodes."""
    said = []
    for more in (["--ntasks-per-node=1"], []):
        words = ["sbatch", "--wait", "--nodes=3-4", *more, "--output=nodes.out"]
        done = submit.run([*words, "--wrap", "echo $SLURM_NNODES"])
        assert done.returncode == 0, done.stderr
        said.append((submit.folder / "nodes.out").read_text().strip())
    assert said == ["3", "4"]
