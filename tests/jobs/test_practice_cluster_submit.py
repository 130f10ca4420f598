"""The fixtures for job scripts: what a job did is what they report."""

import textwrap

import pytest

pytestmark = pytest.mark.full


def script(checkout, text: str) -> str:
    path = checkout / "probe.sbatch"
    path.write_text("#!/bin/bash\n" + textwrap.dedent(text))
    return path.name


def test_a_job_reports_its_nodes_output_and_status(submit, checkout):
    name = script(
        checkout,
        """\
        #SBATCH --job-name=probe
        #SBATCH --output=%x-%j.out
        srun --ntasks-per-node=1 hostname
        echo "$1 $COLOR" >&2
        exit 7
        """,
    )
    job = submit(name, "--nodes=3", args=["word"], env={"COLOR": "red"}, timeout=30)
    assert (job.state, job.exit_code, job.restarts) == ("FAILED", 7, 0)
    assert job.nodes == ["n1", "n2", "n3"]
    assert sorted(job.output.splitlines()) == ["n1", "n2", "n3", "word red"]
    assert (checkout / f"probe-{job.id}.out").exists()


def test_a_job_can_be_watched_while_it_runs(submit, checkout):
    name = script(checkout, "echo begun\nsleep 60\n")
    number = submit.start(name)
    job = submit.until(number, lambda job: "begun" in job.output, timeout=30)
    assert job.state == "RUNNING"
    submit.cluster.run(["scancel", str(number)], check=True)
    assert submit.wait(number, timeout=30).state == "CANCELLED"
