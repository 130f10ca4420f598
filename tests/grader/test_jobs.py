"""Checks of job scripts: a dry run of bash beside stubs, and what it saw."""

from __future__ import annotations

import dataclasses
import os
import textwrap
from pathlib import Path

import pytest

from tests.grader.written_jobs import GOOD, HEAD, write
from workshop.cluster.jobs.job import STILL_RUNNING, Job, Launch, OpenTodo
from workshop.cluster.jobs.scheduler import Scheduler
from workshop.grader import expect

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def dry(tmp_path):
    return Scheduler(tmp_path, str(ROOT), why_dry="there is no Slurm")


def test_dry_run_sees_one_launch_per_node(dry, tmp_path):
    job = dry.submit(write(tmp_path, GOOD), nodes=3)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    assert job.hosts("torchrun") == ["n1", "n2", "n3"] == job.nodes
    assert job.started("torchrun")[2].option("--nnodes") == "3"


def test_dry_run_starts_one_program_for_each_task(dry, tmp_path):
    text = GOOD.replace("per-node=1", "per-node=4")
    job = dry.submit(write(tmp_path, text), nodes=2)
    assert job.hosts("torchrun") == ["n1"] * 4 + ["n2"] * 4


def test_dry_run_expands_variables_where_bash_does(dry, tmp_path):
    line = "srun bash -c 'torchrun --node-rank=$SLURM_NODEID x.py'\n"
    job = dry.submit(write(tmp_path, HEAD + line), nodes=2)
    assert [one.option("--node-rank") for one in job.launches] == ["0", "1"]
    job = dry.submit(write(tmp_path, HEAD + line.replace("'", '"')), nodes=2)
    assert [one.option("--node-rank") for one in job.launches] == ["0", "0"]


def test_dry_run_gives_pbsdsh_tasks_a_bare_environment(dry, tmp_path):
    text = """\
    export NOT_PASSED_ON=1
    pbsdsh -- bash -c 'echo "$(hostname) $PBS_NODENUM $PWD [$NOT_PASSED_ON]"'
    """
    script = write(tmp_path, textwrap.dedent(text), "job.pbs")
    job = dry.submit(script, nodes=2)
    home = os.environ["HOME"]
    assert job.output.splitlines() == [f"n1 0 {home} []", f"n2 1 {home} []"]


def test_two_dry_runs_are_two_jobs(dry, tmp_path):
    line = "srun torchrun --rdzv-id=$SLURM_JOB_ID x.py\n"
    jobs = dry.submit_twice(write(tmp_path, HEAD + line))
    told = [[launch.option("--rdzv-id") for launch in job.launches] for job in jobs]
    assert told == [["48", "48"], ["49", "49"]]


def test_script_may_ask_for_a_job_number_on_paper(dry, tmp_path):
    script = write(tmp_path, "echo job $SLURM_JOB_ID\n")
    job = dry.submit(script, on_paper=True, env={"SLURM_JOB_ID": "48151623"})
    assert job.output == "job 48151623\n"


def test_python_computes_for_the_script_in_a_dry_run(dry, tmp_path):
    text = """\
    echo $(python -c 'print(6 * 7)') $(python3 - <<< 'print("x-m")') "$SLURM_JOB_UID"
    python -c 'import os, sys; os.execvp("torchrun", sys.argv)' src/train.py
    python3 src/train.py || true
    """
    job = dry.submit(write(tmp_path, textwrap.dedent(text)))
    assert job.output == f"42 x-m {os.getuid()}\n"
    assert job.started("torchrun")[0].args == ("src/train.py",)
    assert job.started("python3")[-1].args == ("src/train.py",)


def test_what_torchrun_takes_from_its_environment_counts(dry, tmp_path):
    line = "PET_NNODES=3:3 PET_NPROC_PER_NODE=4 torchrun --nproc_per_node=2 x.py\n"
    (launch,) = dry.submit(write(tmp_path, HEAD + line)).launches
    assert (launch.nodes, launch.option("--nproc-per-node")) == ("3", "2")
    line = "torchrun --nnodes=1:3 x.py\n"
    (launch,) = dry.submit(write(tmp_path, HEAD + line)).launches
    assert launch.nodes == "1:3"


WARNING = (
    "Setting OMP_NUM_THREADS environment variable for each process to be 1\n"
    "*****************************************\n"
)


def test_job_that_waits_for_nodes_without_torchrun_says_so():
    launches = [Launch("torchrun", "n1", (), "/")]
    nodes = ["n1.cluster", "n2.cluster"]
    job = Job("1", STILL_RUNNING, None, "step 1\n" + WARNING, nodes, launches, [])
    said = "torchrun was started on n1 only, and waits for n1, n2"
    assert job.ending.startswith(f"the job did not end: {said}: start all")
    hangs = dataclasses.replace(job, nodes=nodes[:1])
    assert hangs.ending == "the job did not end; its last output: step 1"


def test_job_has_not_the_variables_of_the_check(dry, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    text = 'echo "[${RANK-}${MASTER_ADDR-}]"\n'
    assert dry.submit(write(tmp_path, text)).output == "[]\n"


def test_option_that_is_not_there_is_no_forgotten_return():
    launch = Launch("torchrun", "n2", ("--nnodes", "3:3", "x.py"), "/")
    expect.told([launch], "--nnodes", "3")
    with pytest.raises(expect.Mismatch) as caught:
        expect.told([launch], "--rdzv-id", "7")
    assert str(caught.value) == "torchrun on n2 didn't get --rdzv-id"
    assert caught.value.suspicion == ""
    with pytest.raises(expect.Mismatch, match="--nnodes of torchrun on n2: is '3'"):
        expect.told([launch], "--nnodes", "2")


def test_launch_fails_on_the_hosts_that_were_asked_for(dry, tmp_path):
    script = write(tmp_path, HEAD + "srun torchrun x.py\n")
    job = dry.submit(script, nodes=3, only_launch=True, failing_hosts=("n2",))
    assert (job.state, job.exit_code) == ("FAILED", 2)
    assert job.hosts("torchrun") == ["n1", "n2", "n3"]
    assert dry.submit(script, nodes=3, only_launch=True).state == "COMPLETED"


def test_task_of_pbsdsh_that_fails_is_told_of_in_a_dry_run(dry, tmp_path):
    text = f"echo $PBS_JOBID; pbsdsh -- {tmp_path}/.venv/bin/torchrun x.py\n"
    script = write(tmp_path, text, "job.pbs")
    job = dry.submit(script, only_launch=True, failing_hosts=("n2",))
    said = ["4711.head", "pbsdsh: task 0x00000001 exit status 2"]
    assert (job.exit_code, job.output.splitlines()) == (0, said)
    job = dry.submit(script, only_launch=True)
    assert job.output.splitlines() == ["4712.head"]  # each job has another number


def test_how_srun_is_called_is_written_down(dry, tmp_path):
    text = HEAD + "SLURM_WAIT=60 timeout 9 srun --ntasks=2 torchrun x.py\n"
    job = dry.submit(write(tmp_path, text), nodes=2)
    assert job.state == "COMPLETED", job.output
    (srun,) = job.started("srun")
    assert (srun.option("--ntasks"), srun.option("--wait")) == ("2", "60")
    assert [launch.args[0] for launch in job.started("timeout")] == ["9"]
    assert job.hosts("torchrun") == ["n1", "n2"]


def test_what_a_shell_did_not_find_is_the_complaint(dry, tmp_path):
    job = dry.submit(write(tmp_path, "cd nowhere\necho a\necho b\nfalse\n"))
    assert job.complaint.endswith(
        "job.sbatch: line 1: cd: nowhere: No such file or directory"
    )
    assert dry.submit(write(tmp_path, "false\n")).complaint.startswith("the job ended")


def test_dry_run_that_does_not_end_is_stopped(dry, tmp_path):
    job = dry.submit(write(tmp_path, "echo before\nsleep 60\n"), limit=0.5)
    assert (job.state, job.exit_code, job.output) == ("STILL RUNNING", None, "before\n")


def test_open_hole_is_named_with_its_line(dry, tmp_path):
    text = 'echo start\necho "TODO 2 of 2 is still open" >&2; exit 64\n'
    with pytest.raises(OpenTodo) as caught:
        dry.submit(write(tmp_path, text))
    assert str(caught.value) == "TODO 2 of 2"
    assert caught.value.line_of_script == 2


@pytest.mark.parametrize(
    "args", [("--node-rank", "1"), ("--node_rank=1",), ("--node-rank=1", "x.py")]
)
def test_option_is_found_however_it_is_written(args):
    launch = Launch("torchrun", "n1", args, "/")
    assert launch.option("--node_rank") == "1"
    assert launch.option("--nnodes") is None
