"""The rehearsal of PBS behaves as OpenPBS 23.06 was seen to behave.

Each docstring says what was seen; the seconds of PBS are divided by FACTOR here.
"""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from practice_cluster.rehearsal import Delays, Job, PbsError, Rehearsal, tasks
from practice_cluster.rehearsal.placement import Amount, Refused, fit, why_not
from practice_cluster.rehearsal.request import read_request
from tests.launched import wait_until

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
FACTOR = 10
HOSTS = ["n1", "n2", "n3"]


# Requests: what qsub accepts, and which host gets what


def asked(*options, script="true\n", gpus=True, environ=None):
    return read_request(list(options), Path(), environ or {}, lambda: script, gpus)


def hosts_of(request, hosts=3):
    """Each host: ncpus=8, ngpus=4, mem=16gb."""
    capacity = {f"node0{k + 1}": Amount(8, 4, 16 * 1024) for k in range(hosts)}
    return fit(request.chunks, request.place, capacity), capacity


PLACED = [
    # request, lines of the node file, OMP_NUM_THREADS
    ("-lselect=2:ncpus=2:ngpus=2:mem=1gb -lplace=scatter", "1 2", 2),
    ("-lselect=2:ncpus=2:ngpus=2:mpiprocs=1 -lplace=scatter", "1 2", 2),
    ("-lselect=2:ncpus=2:ngpus=2:mpiprocs=2 -lplace=scatter", "1 1 2 2", 2),
    ("-lselect=2:ncpus=4:mpiprocs=2:ompthreads=3 -lplace=scatter", "1 1 2 2", 3),
    ("-lselect=2:ncpus=2:ngpus=2", "1 1", 2),
    ("-lncpus=4 -lngpus=4 -lmem=10GB", "1", 4),
    ("-lnodes=2:ppn=2", "1 1 2 2", 2),
    ("-lselect=1:host=node03+1:host=node02:mpiprocs=2", "3 2 2", 1),
    ("-lselect=2:ncpus=2 -lplace=scatter:excl", "1 2", 2),
    ("-lselect=2:ncpus=2 -lplace=excl", "1 1", 2),
]


@pytest.mark.parametrize(("options", "lines", "threads"), PLACED)
def test_chunks_go_where_place_says(options, lines, threads):
    """Without place=scatter, two chunks may share a host; the job-wide form is one
    chunk; Torque's nodes=2:ppn=2 becomes select=2:ncpus=2:mpiprocs=2, scatter."""
    request = asked(*options.split())
    hosts, _ = hosts_of(request)
    job = Job(1, request, Path(), {}, hosts=hosts)
    assert job.nodefile.split() == [f"node0{k}" for k in lines.split()]
    assert request.chunks[0].ompthreads == threads


def test_job_wide_request_becomes_one_packed_chunk():
    """`ncpus=4 -l ngpus=4 -l mem=10GB` becomes select=1:..., place=pack."""
    shown = asked("-lncpus=4", "-lngpus=4", "-lmem=10GB").shown_resources()
    assert shown == {"select": "1:ncpus=4:ngpus=4:mem=10GB", "place": "pack"}


SHORT_OF_CORES = "Not Running: Insufficient amount of resource: ncpus"
TOO_FEW_HOSTS = "Can Never Run: Not enough total nodes available"


@pytest.mark.parametrize(
    ("options", "comment"),
    [
        ("-lncpus=16 -lngpus=8", SHORT_OF_CORES),
        ("-lselect=4 -lplace=scatter", TOO_FEW_HOSTS),
        ("-lselect=1:ncpus=1:host=n9", SHORT_OF_CORES),
    ],
)
def test_impossible_request_stays_in_the_queue(options, comment):
    """More than one node in the job-wide form, or more chunks than hosts: queued."""
    request = asked(*options.split())
    found, capacity = hosts_of(request)
    assert found is None
    assert why_not(request.chunks, request.place, capacity) == comment


CONFLICT = '"-lresource=" cannot be used with "select" or "place", resource is: '
ILLEGAL = "Illegal attribute or resource value Resource_List"
REFUSED = [
    ("-lnodes=2:ppn=2:gpus=2", "node(s) specification error", 1),
    ("-lselect=2 -lncpus=2", f"{CONFLICT}ncpus", 5),
    ("-lselect=2 -lngpus=2", f"{CONFLICT}ngpus", 5),
    ("-lselect=2 -lnodes=2", "Cannot be used with select or place: nodes", 6),
    ("-lplace=pack -lnodes=2", "Cannot be used with select or place: nodes", 6),
    ("-lstorage=scratch/ab12", "Unknown resource Resource_List.storage", 187),
    ("-lwd", "Unknown resource Resource_List.wd", 187),
    ("-ljobfs=10GB", "Unknown resource Resource_List.jobfs", 187),
    ("-lselect=1:ncpus=two", f"{ILLEGAL}.ncpus", 166),
    ("-lwalltime=long", f"{ILLEGAL}.walltime", 166),
    ("-qgpu", "Unknown queue", 170),
]


@pytest.mark.parametrize(("options", "words", "status"), REFUSED)
def test_refusals_use_the_words_of_pbs(options, words, status):
    """Forms of Torque and of one site are refused; a select forbids -l ncpus=."""
    with pytest.raises(Refused) as refused:
        asked(*options.split())
    assert (str(refused.value), refused.value.status) == (words, status)


def test_place_may_say_who_shares_a_host():
    """place=scatter:excl; other words are refused."""
    assert asked("-lplace=scatter:excl").whole
    assert not asked("-lplace=scatter:shared").whole
    with pytest.raises(Refused, match="place="):
        asked("-lplace=scatter:mine")


def test_page_says_what_was_seen():
    """What the tests of this file hold the rehearsal to."""
    page = " ".join((ROOT / "docs" / "lessons" / "10_pbs.rst").read_text().split())
    shown = [words for options, words, _ in REFUSED if "=2 -l" in options]
    for words in (shown[0], "Cannot be used with select or place: nodes"):
        assert f"``{words}``" in page
    for sentence in (
        "The umask of a job is 0077",  # test_nobody_else_reads_what_a_job_writes
        "it is a number such as ``40000001``",  # test_tasks_of_pbsdsh_have_...
        "it refuses ``n2`` with 255",  # test_hosts_may_have_full_names
        "in the script ``PBS_NODENUM`` is always 0",  # test_variables_of_a_job
        "``nodes=2:ppn=2`` (Torque), without ``select``",
        "Each new shell continues to count jobs",  # ..._from_the_command_line
    ):
        assert sentence in page, sentence
    setup = (ROOT / "docs" / "setup.rst").read_text()
    interactive = setup.split("$ qsub -I ")[1].splitlines()[1]
    assert 'cd "$PBS_O_WORKDIR"' in interactive, "it opens in the home folder"


def test_select_of_the_script_forbids_ncpus_on_the_command_line():
    """`select=..` with `-l ncpus=` is refused, wherever each is written."""
    with pytest.raises(Refused, match="cannot be used"):
        asked("-lncpus=96", script="#PBS -l select=2\ntrue\n")


def test_gpus_are_a_resource_that_a_server_may_not_have():
    """`ngpus` had to be created; what was not is an unknown resource."""
    with pytest.raises(Refused, match=r"Unknown resource Resource_List\.ngpus"):
        asked("-lselect=1:ngpus=1", gpus=False)


def test_windows_line_ends_are_refused():
    """CRLF line ends are refused ("script contains cr, lf")."""
    with pytest.raises(Refused, match="script contains cr, lf"):
        asked(script="#!/bin/bash\r\ntrue\r\n")


def test_comment_behind_a_directive_is_refused():
    """A comment after a directive is refused ("directive error")."""
    with pytest.raises(Refused, match="directive error"):
        asked(script="#PBS -N train # the name\ntrue\n")


def test_directive_after_the_first_command_is_ignored():
    """Directives after the first command are silently ignored."""
    script = "#!/bin/bash\n\n# a comment\n#PBS -N a\ncd /\n#PBS -l walltime=60\n"
    request = asked(script=script)
    assert request.name == "a"
    assert request.walltime is None


def test_several_options_stand_on_one_line():
    """Several options on one #PBS line work."""
    request = asked(script="#PBS -N a -j oe -l walltime=01:30:00\ntrue\n")
    assert (request.name, request.join, request.walltime) == ("a", "oe", 5400)


def test_name_with_a_space_is_refused():
    """-N "a b" is refused."""
    with pytest.raises(Refused):
        asked(script='#PBS -N "a b"\ntrue\n')


def test_command_line_wins_over_the_script():
    """An option of qsub replaces the directive."""
    request = asked("-Nmine", "-lselect=3", script="#PBS -N a -l select=2\ntrue\n")
    assert (request.name, len(request.chunks)) == ("mine", 3)


def test_variables_are_given_by_name_and_value():
    """qsub -v X=, and -V for the whole environment."""
    given = asked("-v", "A=1,B='2,3',C", environ={"C": "4"}).variables
    assert given == {"A": "1", "B": "2,3", "C": "4"}
    assert asked("-V", environ={"C": "4"}).variables == {"C": "4"}


# Jobs


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


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


SCATTER = ("-l", "select=2:ncpus=2", "-l", "place=scatter")


def test_job_starts_at_home_in_a_login_shell(pbs, run):
    """The script is started by `-bash`, a login shell that reads ~/.bash_profile, then
    run by its own #! line; cwd is $HOME, $0 is the spool copy."""
    job = run(
        """\
        #!/usr/bin/python3
        import os, sys
        print(os.getcwd(), sys.argv[0], os.environ["FROM_PROFILE"])
        print(open(f"/proc/{os.getppid()}/cmdline").read().strip(chr(0)))
        """
    )
    place, parent = job.output.splitlines()
    assert place == f"{pbs.home} /var/spool/pbs/mom_priv/jobs/{job.id}.SC yes"
    assert parent == "-bash"


def test_variables_of_a_job(run, tmp_path):
    """Set are PBS_JOBID=12.head, PBS_O_WORKDIR ...; not set are PBS_NODEID,
    PBS_NUM_NODES, PBS_NP, PBS_NCPUS, PBS_NGPUS and CUDA_VISIBLE_DEVICES."""
    job = run("env; cat $PBS_NODEFILE\n", *SCATTER, "-N", "named")
    env = variables(job.output)
    assert re.fullmatch(r"[0-9]+\.head", job.id)
    expected = {
        "PBS_JOBID": job.id,
        "PBS_NODEFILE": f"/var/spool/pbs/aux/{job.id}",
        "TMPDIR": f"/var/tmp/pbs.{job.id}",
        "PBS_O_WORKDIR": str(tmp_path),
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBNAME": "named",
        "PBS_NODENUM": "0",
        "PBS_TASKNUM": "1",
        "PBS_O_HOST": "login",
        "NCPUS": "2",
        "OMP_NUM_THREADS": "2",
    }
    assert {name: env.get(name) for name in expected} == expected
    not_set = re.compile("PBS_(NODEID|VNODENUM|(NUM_|N)NODES|NP|NCPUS|NGPUS|GPUFILE)")
    assert not list(filter(not_set.fullmatch, env))
    assert "CUDA_VISIBLE_DEVICES" not in env
    assert job.output.splitlines()[-2:] == ["n1", "n2"]


def test_tasks_of_pbsdsh_have_a_bare_environment(pbs, run):
    """PBS_JOBID, NCPUS and qsub -v reach a task, what the script exports does not;
    PBS_NODENUM is the index of the host; PBS_NODEFILE is unset on the first host; PATH
    is /bin:/usr/bin, cwd is $HOME; exit status is always 0."""
    job = run(
        """\
        export LOST=1
        pbsdsh -- bash -c 'env > env.$PBS_NODENUM; exit 3' > messages
        echo status $?; cat messages
        """,
        *SCATTER,
        *("-v", "GIVEN=1"),
    )
    envs = [variables((pbs.home / f"env.{k}").read_text()) for k in (0, 1)]
    for index, env in enumerate(envs):
        assert (env["PBS_JOBID"], env["PBS_NODENUM"]) == (job.id, str(index))
        assert env["PBS_TASKNUM"] == ("00000002", "40000001")[index]
        assert (env["GIVEN"], env["NCPUS"]) == ("1", "2")
        assert (env["PATH"], env["PWD"]) == ("/bin:/usr/bin", str(pbs.home))
        assert not {"LOST", "FROM_PROFILE"} & set(env)
    assert "PBS_NODEFILE" not in envs[0]
    assert envs[1]["PBS_NODEFILE"] == f"/var/spool/pbs/aux/{job.id}"
    assert job.output.startswith("status 0\n")
    said = [f"pbsdsh: task 0x0000000{k} exit status 3" for k in (0, 1)]
    assert job.output.splitlines()[1:] == said


def test_login_shell_gives_a_task_the_path_of_the_profile(pbs, run):
    """With `-- bash -lc` PATH is the one of /etc/profile."""
    run("pbsdsh -- bash -lc 'echo $PATH > path; command -v pbsdsh >> path'\n")
    path, found = (pbs.home / "path").read_text().split()
    assert "/usr/local/bin:" in path
    assert found.endswith("/bin/pbsdsh")


def test_pbsdsh_starts_a_task_for_each_line_of_the_node_file(run):
    """One task per line; -n takes a line index, not a host index, and wraps around;
    -h (not in the release) starts one task; -c goes round the hosts."""
    job = run(
        """\
        pbsdsh hostname; sleep 0.2; pbsdsh -n 1 hostname; sleep 0.2
        pbsdsh -n 7 hostname; sleep 0.2; pbsdsh -h n2 hostname; sleep 0.2
        pbsdsh -c 5 hostname
        """,
        *("-l", "select=2:mpiprocs=2", "-l", "place=scatter"),
    )
    names = job.output.split()
    assert sorted(names[:4]) == ["n1", "n1", "n2", "n2"]
    assert names[4:7] == ["n1", "n2", "n2"]
    assert sorted(names[7:]) == ["n1", "n1", "n1", "n2", "n2"]


def test_pbsdsh_wants_two_dashes_before_a_command_with_options(run):
    """`--` is needed as soon as the command has options; -u does not exist. Usage
    errors end with 1; `pbsdsh hostname -s` eats the -s."""
    job = run(
        """\
        pbsdsh bash -lc true; echo $?; pbsdsh -u hostname; echo $?; pbsdsh; echo $?
        pbsdsh hostname -s
        """
    )
    assert job.output.split() == ["1", "1", "1", "n1"]
    assert "invalid option -- 'l'" in job.error
    assert "invalid option -- 'u'" in job.error


def test_relative_path_is_no_program_of_a_task(run):
    """Relative paths fail: cwd is $HOME."""
    job = run(
        """\
        cd $PBS_O_WORKDIR; echo 'echo yes' > here; chmod +x here
        ./here; pbsdsh ./here
        """
    )
    assert job.output == "yes\npbsdsh: task 0x00000000 exit status 254\n"


def test_pbs_tmrsh_returns_the_exit_status_of_a_program(run):
    """5 -> 5, kill -9 -> 9; `pbs_tmrsh h 'a; b'` -> 254; arguments arrive verbatim;
    localhost, a foreign host and no program are refused with 255, an address is not;
    stdin is not passed."""
    job = run(
        r"""
        pbs_tmrsh n2 /bin/sh -c 'exit 5'; echo $?
        pbs_tmrsh n2 /bin/sh -c 'kill -9 $$'; echo $?
        pbs_tmrsh n2 'echo a; echo b'; echo $?
        pbs_tmrsh localhost hostname; echo $?
        pbs_tmrsh 10.77.0.12 hostname; sleep 0.2
        pbs_tmrsh n2 printf '[%s]\n' 'a  b' '$HOME' --; sleep 0.2
        echo lost | pbs_tmrsh n2 cat
        pbs_tmrsh n3 hostname; echo $?
        pbs_tmrsh n2; echo $?
        """,
        *SCATTER,
    )
    expected = ["5", "9", "254", "255", "n2", "[a  b]", "[$HOME]", "[--]", "255", "255"]
    assert job.output.splitlines() == expected
    assert f'pbs_tmrsh: host "n3" is not a node in job <{job.id}>\n' in job.error
    assert "No such file" in job.error


def test_ssh_gives_nothing_of_the_job(pbs, run):
    """By ssh none of PBS_*, NCPUS, TMPDIR or -v; PATH is sshd's default, cwd $HOME."""
    job = run("ssh n2 'hostname; pwd; env'; ssh n3 exit 4; echo $?\n", "-v", "A=1")
    host, place, *lines = job.output.splitlines()
    assert (host, place, lines[-1]) == ("n2", str(pbs.home), "4")
    env = variables("\n".join(lines))
    assert env["PATH"] == "/usr/local/bin:/usr/bin:/bin:/usr/games"
    assert not [n for n in env if n.startswith("PBS") or n in ("A", "NCPUS", "TMPDIR")]


def test_nobody_else_reads_what_a_job_writes(run, tmp_path):
    """umask is 0077 in jobs and tasks, output files are 0600; -W umask=022 changes
    both."""
    wider = ("-W", "umask=022")
    for options, mask, rights in (((), 0o077, 0o600), (wider, 0o022, 0o644)):
        job = run("umask; pbsdsh -- sh -c umask\n", *options)
        assert [int(text, 8) for text in job.output.split()] == [mask, mask]
        assert job.output_path.stat().st_mode & 0o777 == rights


def test_temporary_folder_is_on_every_host_and_removed(pbs, run):
    """TMPDIR=/var/tmp/pbs.JOBID is made on every host and removed at the end."""
    job = run(
        """\
        touch $TMPDIR/mine
        pbs_tmrsh n1 ls $TMPDIR; sleep 0.2
        pbs_tmrsh n2 ls -d $TMPDIR $TMPDIR/mine
        """,
        *SCATTER,
    )
    assert job.output == f"mine\n/var/tmp/pbs.{job.id}\n"
    assert not list(pbs.state.glob("hosts/*/tmp/*"))


def test_submit_shells_environment_does_not_change_path(run):
    """`qsub -V` with an active venv: VIRTUAL_ENV reaches the job script, but its PATH
    is reset by /etc/profile; a task has the submit shell's PATH."""
    text = "echo $VIRTUAL_ENV; echo $PATH; pbsdsh -- sh -c 'echo $PATH'\n"
    venv, path, task = run(text, "-V", env={"VIRTUAL_ENV": "/venv"}).output.split()
    assert venv == "/venv"
    assert "/usr/local/bin:" in path
    assert task.endswith("/bin:/usr/bin:/bin")


# Signals and ends


def no_process(pbs, words):
    """No host runs a command with these words in it."""
    listed = [pbs.cluster.run(["ps", "-eo", "args"], node=host) for host in pbs.hosts]
    return not any(words in done.stdout for done in listed)


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
        ssh n2 $attach -j $PBS_JOBID sleep 1003 &
        ssh n2 sleep 1004 &
        sleep 2
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


def qstat_full(pbs, job_id):
    return pbs.run("qstat", "-xf", job_id).stdout


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
        "for host in n2.hpc.test 10.77.0.12 n2; do pbs_tmrsh $host hostname; echo $?\n"
        "  sleep 0.2; done; pbsdsh -h n1.hpc.test hostname\n"
    )
    offer = {"hosts": HOSTS, "home": tmp_path, "domain": "hpc.test"}
    with Rehearsal(cluster, **offer) as pbs:
        job = pbs.wait(pbs.qsub(*SCATTER, "job.pbs", cwd=tmp_path), 60)
        assert "exec_host = n1/0+n2/0\n" in qstat_full(pbs, job.id)
    names = ["n1.hpc.test", "n2.hpc.test", "n1", "10.77.0.12 n2.hpc.test n2"]
    tasks = ["n2", "0", "n2", "0", "255", "n1"]
    assert job.output.splitlines() == names + tasks


# Output


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
    """`python -m practice_cluster.rehearsal COMMAND` has the commands on its PATH.

    The second one, which is left while its job starts tasks, counts on.
    """
    words = [sys.executable, "-m", "practice_cluster.rehearsal", "--state"]
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
