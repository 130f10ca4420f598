"""How a job ends, as OpenPBS 23.06 was seen to behave.

The seconds of PBS are divided by FACTOR here.
"""

import re
import textwrap
import time

import pytest

from tests.jobs.rehearsal.shared import FACTOR, SCATTER, no_process
from tests.launched import wait_until
from workshop.cluster.pbs import tasks

pytestmark = pytest.mark.full


def test_qdel_signals_the_first_host_only(pbs, submit, tmp_path):
    """qdel: SIGTERM to every process of the job on the first host only, SIGKILL 20 s
    later; pbs_tmrsh passes nothing on; Exit_status 271."""
    job_id = submit(
        """\
        cd $PBS_O_WORKDIR
        trap 'echo script >> signals' TERM
        for host in n1 n2; do
          pbs_tmrsh $host /bin/bash -c "cd $PWD; trap 'echo $host >> signals' TERM
            touch up.$host; while true; do sleep 0.1; done" &
        done
        while true; do wait; done
        """,
        *SCATTER,
    )
    for host in ("n1", "n2"):
        wait_until((tmp_path / f"up.{host}").exists)
    start = time.monotonic()
    assert pbs.run("qdel", job_id).returncode == 0
    job = pbs.wait(job_id, 30)
    assert time.monotonic() - start > 20 / FACTOR
    assert job.exit_status == 271
    assert set((tmp_path / "signals").read_text().split()) == {"n1", "script"}
    assert no_process(pbs, "up.n")


def test_script_without_a_trap_dies_at_once(pbs, submit, tmp_path):
    """A script that only calls pbsdsh dies at once on SIGTERM, and the tasks are
    killed about 2 s later; pbsdsh passes SIGTERM on to them, on all hosts."""
    task = tmp_path / "task.sh"
    task.write_text(
        f"cd {tmp_path}\ntrap 'echo TERM >> got.'$PBS_NODENUM TERM\n"
        "touch up.$PBS_NODENUM\nwhile true; do sleep 0.05; done\n"
    )
    job_id = submit(f"pbsdsh -- /bin/bash {task}\n", *SCATTER)
    for index in (0, 1):
        wait_until((tmp_path / f"up.{index}").exists)
    pbs.run("qdel", job_id)
    assert pbs.wait(job_id, 30).exit_status == 271
    assert (tmp_path / "got.1").exists()
    assert no_process(pbs, str(task))


def test_task_that_prints_after_sigterm_writes_into_a_broken_pipe(
    pbs, submit, tmp_path
):
    """pbs_demux dies of the same SIGTERM: a task that prints in its SIGTERM handler
    gets BrokenPipeError. Send task output to files."""
    (tmp_path / "task.py").write_text(
        textwrap.dedent(
            """\
            import pathlib, signal, sys, time
            here = pathlib.Path(sys.argv[1])
            def save(*_):
                try:
                    print("saving", flush=True)
                    (here / "printed").touch()
                except BrokenPipeError:
                    (here / "broken").touch()
            signal.signal(signal.SIGTERM, save)
            (here / "up").touch()
            while True: time.sleep(0.05)
            """
        )
    )
    job_id = submit(
        """\
        trap : TERM
        pbsdsh -- python3 $PBS_O_WORKDIR/task.py $PBS_O_WORKDIR &
        while true; do wait; done
        """
    )
    wait_until((tmp_path / "up").exists)
    pbs.run("qdel", job_id)
    wait_until((tmp_path / "broken").exists)
    pbs.wait(job_id, 30)
    assert not (tmp_path / "printed").exists()


def test_walltime_ends_a_job(pbs, submit, tmp_path):
    """walltime: SIGTERM, SIGKILL 10 s later; Exit_status -29; the job's output holds
    `=>> PBS: job killed: walltime 36 exceeded limit 20`."""
    text = f"trap 'echo term' TERM\ntouch {tmp_path}/ready\n"
    text += "while true; do sleep 0.1; done\n"
    job_id = submit(text, "-l", "walltime=600", "-j", "oe")
    wait_until((tmp_path / "ready").exists)
    start = time.monotonic()
    pbs.expire(job_id)
    job = pbs.wait(job_id, 60)
    assert job.exit_status == -29
    said = r"=>> PBS: job killed: walltime \d+ exceeded limit 600\n"
    assert re.search(said, job.output)
    assert "term\n" in job.output
    assert time.monotonic() - start > 10 / FACTOR


def test_blocking_qsub_returns_227_after_the_walltime(pbs, tmp_path):
    """`qsub -W block=true` then returns 227, else the exit status of the job."""
    blocking = ("qsub", "-W", "block=true")
    (tmp_path / "a.pbs").write_text("sleep 60\n")
    done = pbs.run(*blocking, "-l", "walltime=1", "a.pbs", cwd=tmp_path)
    assert done.returncode == 227
    (tmp_path / "b.pbs").write_text("exit 3\n")
    assert pbs.run(*blocking, "b.pbs", cwd=tmp_path).returncode == 3


def test_usr1_kills_the_login_shell(pbs, submit, tmp_path):
    """`qsig -s SIGUSR1` kills the login shell above the script, so the job ends
    (Exit_status 266) though the script traps USR1."""
    job_id = submit(
        """\
        cd $PBS_O_WORKDIR; trap 'touch trapped' USR1; touch up
        while true; do sleep 0.1; done
        """
    )
    wait_until((tmp_path / "up").exists)
    pbs.run("qsig", "-s", "SIGUSR1", job_id)
    assert pbs.wait(job_id, 30).exit_status == 266


def test_usr1_reaches_the_script_if_the_login_shell_traps_it(pbs, submit, tmp_path):
    """With `trap : USR1` in ~/.bash_profile it reaches the script."""
    profile = pbs.home / ".bash_profile"
    text = profile.read_text()
    try:
        profile.write_text(f"{text}trap : USR1\n")
        job_id = submit(
            """\
            cd $PBS_O_WORKDIR; trap 'touch trapped; exit 0' USR1; touch up
            while true; do sleep 0.1; done
            """
        )
        wait_until((tmp_path / "up").exists)
        pbs.run("qsig", "-s", "SIGUSR1", job_id)
        assert pbs.wait(job_id, 30).exit_status == 0
    finally:
        profile.write_text(text)
    assert (tmp_path / "trapped").exists()


def test_only_plain_ssh_survives_a_job(pbs, run):
    """At job end tasks of pbsdsh, pbs_tmrsh and `ssh h pbs_attach -j $PBS_JOBID cmd`
    are removed; plain ssh processes stay."""
    run(
        """\
        attach=$(command -v pbs_attach)
        pbs_tmrsh n2 /bin/sleep 1001 &
        pbsdsh -- sleep 1002 &
        ssh n2 "$attach -j $PBS_JOBID sh -c 'touch $PWD/attached; exec sleep 1003'" &
        ssh n2 "touch $PWD/there; exec sleep 1004" &
        until [ -e attached ] && [ -e there ]; do sleep 0.1; done
        sleep 1
        """,
        *SCATTER,
    )
    gone = [no_process(pbs, f"sleep 100{k}") for k in (1, 2, 3, 4)]
    assert gone == [True, True, True, False]


def test_task_that_starts_while_its_job_ends_is_removed(pbs, submit, monkeypatch):
    """Else the job would wait for it forever, on its hosts (seen at load 40)."""
    kill = tasks.Task.signal

    def signal_and_start(task, number):
        kill(task, number)
        running = pbs.job(job_id).running
        if len(running.tasks) == 2:  # the two of pbsdsh
            running.start_task("n2", ["/bin/sleep", "1005"])

    job_id = submit("pbsdsh -- sleep 1006 &\nsleep 2\n", *SCATTER)
    monkeypatch.setattr(tasks.Task, "signal", signal_and_start)
    pbs.wait(job_id, 60)
    assert no_process(pbs, "sleep 1005")


def test_exit_statuses(run):
    """The script's own code; 137 = script killed by 9 (128+9); 127 = bad #!."""
    assert run("exit 7\n").exit_status == 7
    assert run("#!/bin/bash\nkill -9 $$\n").exit_status == 137
    assert run("#!/no/such/shell\ntrue\n").exit_status == 127
