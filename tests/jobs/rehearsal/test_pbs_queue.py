"""Output, arrays, chains and commands, as OpenPBS 23.06 was seen to behave."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.jobs.rehearsal.shared import HOSTS, no_process
from tests.launched import wait_until
from workshop.cluster.pbs import Delays, PbsError, Rehearsal, tasks

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[3]


def test_blocking_qsub_returns_before_the_output_is_there(cluster, tmp_path):
    """The file came 65 to 110 ms later."""
    (tmp_path / "job.pbs").write_text("echo out\n")
    late = Delays(output=2)
    with Rehearsal(cluster, hosts=HOSTS, home=tmp_path, delays=late) as pbs:
        pbs.run("qsub", "-W", "block=true", "job.pbs", cwd=tmp_path)
        assert not (tmp_path / "job.pbs.o1").exists()
        assert pbs.wait("1").output == "out\n"
    assert (tmp_path / "job.pbs.o1").exists()


def test_output_is_copied_after_the_end(pbs, submit, tmp_path):
    """NAME.oNUM and NAME.eNUM (number only, without .server) in the submit directory,
    copied after the end."""
    job_id = submit("echo out; echo err >&2; sleep 1\n", "-N", "named")
    number = job_id.split(".")[0]
    pbs.wait(job_id, 20, "R")
    assert not list(tmp_path.glob("named.*"))
    pbs.wait(job_id, 20)
    assert (tmp_path / f"named.o{number}").read_text() == "out\n"
    assert (tmp_path / f"named.e{number}").read_text() == "err\n"


def test_output_goes_where_asked(run, tmp_path):
    """-j oe merges; -o dir/ gives dir/JOBID.OU; variables in -o are taken literally."""
    job = run("echo out; echo err >&2\n", "-j", "oe")
    number = job.id.split(".")[0]
    assert (tmp_path / f"job.pbs.o{number}").read_text() == "out\nerr\n"
    assert not (tmp_path / f"job.pbs.e{number}").exists()
    (tmp_path / "logs").mkdir()
    job = run("echo out\n", "-o", "logs/")
    assert (tmp_path / "logs" / f"{job.id}.OU").read_text() == "out\n"
    run("echo out\n", "-o", "$PBS_JOBID.log")
    assert (tmp_path / "$PBS_JOBID.log").read_text() == "out\n"


def test_output_without_a_folder_stays_on_the_host(pbs, run):
    """A missing directory: output stays in /var/spool/pbs/undelivered, the job
    "succeeds"."""
    job = run("echo out\n", "-o", "missing/out")
    assert job.exit_status == 0
    kept = pbs.state / "hosts/n1/spool/pbs/undelivered" / f"{job.id}.OU"
    assert kept.read_text() == "out\n"


def test_kept_output(pbs, submit, tmp_path):
    """-k doe writes in place while the job runs; -k oe puts files in $HOME."""
    job_id = submit("echo out; sleep 30\n", "-k", "doe", "-o", "now.log")
    wait_until((tmp_path / "now.log").exists)
    pbs.run("qdel", job_id)
    kept = pbs.wait(submit("echo out\n", "-k", "oe"), 20)
    number = kept.id.split(".")[0]
    assert (pbs.home / f"job.pbs.o{number}").read_text() == "out\n"
    assert not (tmp_path / f"job.pbs.o{number}").exists()
    pbs.wait(job_id, 30)


# Arrays and chains


def test_array(pbs, submit, tmp_path):
    """Arrays -J 0-3: ids 90[].head, 90[2].head; PBS_ARRAY_INDEX, PBS_ARRAY_ID; files
    NAME.o90.2; qstat -t."""
    job_id = submit("echo $PBS_JOBID $PBS_ARRAY_INDEX $PBS_ARRAY_ID\n", "-J", "0-2")
    number = job_id.split("[")[0]
    assert job_id == f"{number}[].head"
    pbs.wait(job_id, 30)
    for k in range(3):
        text = (tmp_path / f"job.pbs.o{number}.{k}").read_text()
        assert text == f"{number}[{k}].head {k} {number}[].head\n"
    listed = pbs.run("qstat", "-x", "-t").stdout
    assert f"{number}[2].head" in listed
    assert f"{number}[2].head" not in pbs.run("qstat", "-x").stdout


def children(submit, parent):
    kinds = ("afterok", "afternotok", "afterany")
    return [submit("true\n", "-W", f"depend={kind}:{parent}") for kind in kinds]


def ran(pbs, job_ids):
    return [pbs.wait(job_id, 30).exit_status == 0 for job_id in job_ids]


@pytest.mark.parametrize(
    ("end", "expected"),
    [("exit 1", [False, True, True]), ("exit 0", [True, False, True])],
)
def test_dependent_jobs_follow_the_exit_status(pbs, submit, tmp_path, end, expected):
    """Parent fails: afternotok and afterany run, afterok is deleted. Parent succeeds:
    afterok and afterany run, afternotok is deleted. Parent already finished: judged
    by its result."""
    text = f"cd {tmp_path}; until [ -e go ]; do sleep 0.1; done; {end}\n"
    parent = submit(text)
    waiting = children(submit, parent)
    assert [pbs.job(job_id).state for job_id in waiting] == ["H", "H", "H"]
    (tmp_path / "go").touch()
    assert ran(pbs, waiting) == expected
    assert ran(pbs, children(submit, parent)) == expected


def test_qdel_of_a_running_parent_counts_as_failed(pbs, submit, tmp_path):
    """Parent qdel'ed while running: afternotok and afterany run."""
    parent = submit("touch $PBS_O_WORKDIR/up; sleep 60\n")
    waiting = children(submit, parent)
    wait_until((tmp_path / "up").exists)
    pbs.run("qdel", parent)
    assert ran(pbs, waiting) == [False, True, True]


def test_qdel_of_a_waiting_parent_holds_its_children_for_ever(pbs, submit):
    """Parent qdel'ed while queued: all three stay in H forever. Unknown parent:
    accepted, then deleted."""
    parent = submit("true\n", "-l", "select=1:ncpus=100")
    waiting = children(submit, parent)
    pbs.run("qdel", parent)
    pbs.wait(submit("true\n"), 20)
    assert [pbs.job(job_id).state for job_id in waiting] == ["H", "H", "H"]
    orphan = submit("true\n", "-W", "depend=afterany:9999")
    assert pbs.wait(orphan, 20).exit_status is None


def test_jobs_wait_for_free_hosts(pbs, submit, tmp_path):
    """A job that does not fit beside the running ones is queued."""
    whole = ("-l", "select=3:ncpus=8", "-l", "place=scatter")
    text = f"cd {tmp_path}; until [ -e go ]; do sleep 0.1; done; hostname\n"
    first, second = (submit(text, *whole) for _ in range(2))
    pbs.wait(first, 20, "R")
    assert pbs.job(second).state == "Q"
    (tmp_path / "go").touch()
    assert pbs.wait(second, 30).output == "n1\n"


def test_job_submits_a_job(pbs, run, tmp_path):
    """`qsub` from inside a job works."""
    (tmp_path / "next.pbs").write_text("echo second\n")
    job = run("cd $PBS_O_WORKDIR && qsub next.pbs\n")
    following = pbs.wait(job.output.strip(), 20)
    assert following.output == "second\n"
    assert following.submitted_from == tmp_path


# Commands


def test_qstat_shows_what_scripts_read(pbs, run):
    """Resource_List.* and Exit_status; a finished job only with -x."""
    job = run("exit 4\n", "-l", "select=2:ncpus=2:ngpus=2", "-l", "place=scatter")
    shown = pbs.run("qstat", "-xf", job.id).stdout
    for line in ("ngpus = 4", "select = 2:ncpus=2:ngpus=2", "place = scatter"):
        assert f"    Resource_List.{line}\n" in shown
    assert "    Exit_status = 4\n" in shown
    assert "Job has finished" in pbs.run("qstat", job.id).stderr
    assert pbs.run("qstat", "9999").stderr == "qstat: Unknown Job Id 9999.head\n"


def test_script_may_come_from_stdin(pbs, tmp_path):
    """`qsub < job.pbs` names the job STDIN."""
    command = ["sh", "-c", "echo 'echo $PBS_JOBNAME' | qsub"]
    done = pbs.run(*command, cwd=tmp_path)
    assert pbs.wait(done.stdout.strip(), 20).output == "STDIN\n"


def test_refusal_reaches_the_user(pbs, tmp_path):
    """Unknown queue (exit 170)."""
    (tmp_path / "job.pbs").write_text("true\n")
    with pytest.raises(PbsError, match=r"^qsub: Unknown queue$") as refused:
        pbs.qsub("-q", "gpu", "job.pbs", cwd=tmp_path)
    assert refused.value.status == 170


def test_every_command_says_that_it_is_a_rehearsal(pbs):
    for path in (pbs.state / "bin").iterdir():
        done = pbs.run(path.name, "--help")
        assert done.returncode == 0
        assert "rehearsal of PBS, not of OpenPBS itself" in done.stdout


def test_rehearsal_from_the_command_line(cluster, tmp_path):
    """`python -m workshop.cluster.pbs COMMAND` has the commands on its PATH.

    The second one, which is left while its job starts tasks, counts on.
    """
    words = [sys.executable, "-m", "workshop.cluster.pbs", "--state"]
    words += [cluster.state, "sh", "-c"]
    tasks = "touch $PBS_O_WORKDIR/up; while true; do pbs_tmrsh n1 /bin/true; done"
    (tmp_path / "tasks.pbs").write_text(tasks)
    for command, printed in {
        "echo hostname | qsub; exit 5": "1.head\n",
        "qsub tasks.pbs; until [ -e up ]; do sleep 0.1; done; exit 5": "2.head\n",
    }.items():
        done = subprocess.run(
            [*words, command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (5, printed, "")


def test_command_of_a_rehearsal_that_ends_is_no_fault(cluster, tmp_path, capfd):
    """A task that is asked for when nothing can be started any more."""
    (tmp_path / "job.pbs").write_text("pbs_tmrsh n1 /bin/true\n")
    with Rehearsal(cluster, hosts=HOSTS, home=tmp_path) as pbs:
        begin = pbs.tasks.start

        def start(host, argv, *more):
            if argv[0] == "/bin/true":
                pbs.tasks.closed = True
            return begin(host, argv, *more)

        pbs.tasks.start = start
        pbs.qsub("job.pbs", cwd=tmp_path)
        end = time.monotonic() + 20
        while not pbs.tasks.closed:
            assert time.monotonic() < end
            time.sleep(0.02)
    assert capfd.readouterr().err == ""


def test_session_is_killed_until_none_is_left(monkeypatch):
    """One has ended before its signal; another starts while we look at the first."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    looks = [[ended.pid]]

    def look(session):
        return looks.pop() if looks else members(session)

    members = tasks.session_members
    monkeypatch.setattr(tasks, "session_members", look)
    try:
        tasks.signal_session(sleeper.pid, signal.SIGKILL)
        assert sleeper.wait(timeout=20) == -signal.SIGKILL
    finally:
        sleeper.kill()
        sleeper.wait()


def test_line_that_is_written_in_pieces_stays_one(tmp_path):
    """pbsdsh may report the end of a task before the last piece was carried."""
    output = tmp_path / "output"
    demux = tasks.Demux()
    pipe = demux.pipe_to(output)
    os.write(pipe, b"whole\nls: ")
    while not output.exists() or b"whole" not in output.read_bytes():
        time.sleep(0.01)
    with output.open("ab") as file:
        file.write(b"exit status 2\n")
    os.write(pipe, b"no such file\nno end")
    os.close(pipe)
    demux.finish()
    lines = ["whole", "exit status 2", "ls: no such file", "no end"]
    assert output.read_text().splitlines() == lines


def test_nothing_is_left_of_a_rehearsal(cluster, tmp_path):
    """Its end ends jobs, tasks and ssh, and removes its files."""
    script = tmp_path / "job.pbs"
    script.write_text(
        f"ssh n2 sleep 2002 & pbs_tmrsh n1 /bin/sleep 2001 & touch {tmp_path}/up; wait"
    )
    with Rehearsal(cluster, hosts=HOSTS, home=tmp_path, ssh=True) as pbs:
        pbs.qsub("job.pbs", cwd=tmp_path)
        wait_until((tmp_path / "up").exists)
    assert no_process(pbs, "sleep 200")
    assert not pbs.state.exists()
