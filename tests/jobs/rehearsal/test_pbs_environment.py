"""What a job and its tasks find, as OpenPBS 23.06 was seen to behave."""

import re

import pytest

from tests.jobs.rehearsal.shared import SCATTER

pytestmark = pytest.mark.full


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


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
        say() { kind=$1; shift; pbsdsh "$@" -- sh -c "echo $kind \\$(hostname)"; }
        say each; say 1 -n 1; say 7 -n 7; say host -h n2; say five -c 5
        """,
        *("-l", "select=2:mpiprocs=2", "-l", "place=scatter"),
    )
    each, five = ["each n1", "each n2"] * 2, ["five n1", "five n2"] * 2 + ["five n1"]
    lines = [*each, *five, "1 n1", "7 n2", "host n2"]  # a task's lines may come late
    assert sorted(job.output.splitlines()) == sorted(lines)


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
        pbs_tmrsh 10.77.0.12 hostname
        pbs_tmrsh n2 printf '[%s]\n' 'a  b' '$HOME' --
        echo lost | pbs_tmrsh n2 cat
        pbs_tmrsh n3 hostname; echo $?
        pbs_tmrsh n2; echo $?
        """,
        *SCATTER,
    )
    lines = job.output.splitlines()
    statuses = [line for line in lines if line.isdigit()]
    assert statuses == ["5", "9", "254", "255", "255", "255"]
    printed = [line for line in lines if line.startswith("[")]  # perhaps late
    assert printed == ["[a  b]", "[$HOME]", "[--]"]
    assert set(lines) == {*statuses, *printed, "n2"}
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
        pbs_tmrsh n1 ls $TMPDIR
        pbs_tmrsh n2 ls -d $TMPDIR $TMPDIR/mine
        """,
        *SCATTER,
    )
    assert set(job.output.splitlines()) == {"mine", f"/var/tmp/pbs.{job.id}"}
    assert not list(pbs.state.glob("hosts/*/tmp/*"))


def test_submit_shells_environment_does_not_change_path(run):
    """`qsub -V` with an active venv: VIRTUAL_ENV reaches the job script, but its PATH
    is reset by /etc/profile; a task has the submit shell's PATH."""
    text = "echo $VIRTUAL_ENV; echo $PATH; pbsdsh -- sh -c 'echo $PATH'\n"
    venv, path, task = run(text, "-V", env={"VIRTUAL_ENV": "/venv"}).output.split()
    assert venv == "/venv"
    assert "/usr/local/bin:" in path
    assert task.endswith("/bin:/usr/bin:/bin")
