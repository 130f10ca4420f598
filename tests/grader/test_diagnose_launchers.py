"""``workshop diagnose`` on what launchers and schedulers say of an end.

Shortened and reworded from public threads, which causes.toml names as sources.
"""

from __future__ import annotations

import pytest

from tests.grader.test_diagnose_other_hands import read, told

BLOCK = """\
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK {rank} PID 35980 RUNNING AT node42
=   {how}
===================================================================================

"""
EXITED = BLOCK.format(rank=0, how="EXIT STATUS: 1")
KILLED = BLOCK.format(rank=1, how="KILLED BY SIGNAL: 9 (Killed)")
RAISED = """\
{label}Traceback (most recent call last):
{label}  File "test_ddp.py", line 28, in <module>
{label}    optimizer = build()
{label}ValueError: bad learning rate -1
"""
STEPS = "step 10 loss 3.1\nstep 20 loss 3.0\n"
PALS = "x4006c0s6b0n0.hsn.example.org: rank {rank} {how}\n"


@pytest.mark.parametrize("label", ["[0] ", ""])
def test_rank_that_hydra_killed_after_an_exit_is_no_cause(tmp_path, label):
    text = RAISED.format(label=label) + EXITED + KILLED
    said = told(tmp_path, text)
    assert said[0].startswith("First to fail: rank 0")
    assert said[1] == "    Failed because of it, or later: rank 1"
    assert any("ValueError: bad learning rate" in row for row in said)
    assert not any("SIGKILL" in row for row in said)


def test_rank_that_hydra_killed_after_a_crash_is_no_cause(tmp_path):
    crashed = BLOCK.format(rank=3, how="KILLED BY SIGNAL: 11 (Segmentation fault)")
    assert read(tmp_path, KILLED + crashed) == ((3,), None, "segmentation_fault")


def test_only_rank_that_hydra_saw_killed_was_killed(tmp_path):
    assert read(tmp_path, STEPS + KILLED) == ((1,), "killed", "killed")


def test_which_of_several_killed_ranks_was_first_hydra_does_not_tell(tmp_path):
    first, sure, likeliest = read(tmp_path, KILLED + KILLED.replace("RANK 1", "RANK 2"))
    assert (first, sure, likeliest) == ((), None, "killed")


@pytest.mark.parametrize(
    "how, cause",
    [
        ("died from signal 11", "segmentation_fault"),
        ("died from signal 6", "aborted"),
        ("died from signal 9", "killed"),
        ("exited with code 139", "segmentation_fault"),
        ("exited with code 1", None),
    ],
)
@pytest.mark.parametrize("ends", ["", PALS.format(rank=0, how="died from signal 15")])
def test_rank_that_pals_names_failed_and_a_terminated_one_did_not(
    tmp_path, how, cause, ends
):
    text = STEPS + PALS.format(rank=16, how=how) + ends
    first, _, likeliest = read(tmp_path, text)
    assert (first, likeliest) == ((16,), cause)
    victims = "    Failed because of it, or later: rank 0" in told(tmp_path, text)
    assert victims == bool(ends)


def test_terminated_rank_alone_says_that_another_one_left(tmp_path):
    text = STEPS + PALS.format(rank=0, how="died from signal 15")
    assert told(tmp_path, text)[0].startswith("This log only says that another rank")


def test_rank_whose_shell_was_terminated_says_that_another_one_left(tmp_path):
    text = STEPS + PALS.format(rank=3, how="exited with code 143")
    assert told(tmp_path, text)[0].startswith("This log only says that another rank")


def test_rank_that_exited_with_0_did_not_fail(tmp_path):
    text = STEPS + PALS.format(rank=0, how="exited with code 0")
    assert told(tmp_path, text)[0].startswith("No failure found")


def test_agent_that_was_terminated_is_no_healthy_run(tmp_path):
    text = STEPS + (
        "W1130 12:13:49.388000 126 torch/distributed/elastic/agent/server/api.py:723] "
        "Received 15 death signal, shutting down workers\n"
    )
    assert read(tmp_path, text) == (None, None, "terminated")


MEMBER = "Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {next}/{size}\n"
TIME = (
    "slurmstepd: error: *** JOB 221 ON n1 CANCELLED AT 2023-01-18T08:39:52 DUE TO TIME "
    "LIMIT ***\n"
)


def announced(ranks, size, label=""):
    rows = [MEMBER.format(rank=rank, next=rank + 1, size=size) for rank in ranks]
    return "".join(label + row for row in rows)


@pytest.mark.parametrize("labels", [("", ""), ("0: ", "1: ")])
def test_ranks_that_each_node_counts_from_0_are_doubled(tmp_path, labels):
    text = "".join(announced(range(4), 8, label) for label in labels)
    assert read(tmp_path, text + TIME)[1] == "rank_twice"


@pytest.mark.parametrize(
    "text",
    [
        announced(range(8), 8),
        announced(range(4), 8),  # the log of one node
        announced([0, 0, 1], 8),
        announced(range(4), 16) * 2,
        # two loggers write each line
        announced(range(4), 8) + announced(range(4), 8, "INFO: "),
        # it was started twice
        announced(range(4), 8) + "ValueError: x\n" + announced(range(4), 8),
    ],
)
def test_ranks_that_are_not_doubled(tmp_path, text):
    assert read(tmp_path, text + TIME)[1] != "rank_twice"


def test_time_that_ended_before_the_first_step_needs_a_look_first(tmp_path):
    assert read(tmp_path, announced(range(8), 8) + TIME)[1:] == (None, "time_limit")
    assert any(
        "hung at its start" in x for x in told(tmp_path, announced([0], 8) + TIME)
    )
    assert read(tmp_path, announced(range(8), 8) + STEPS + TIME)[1] == "time_limit"
    assert read(tmp_path, TIME)[1] == "time_limit"


@pytest.mark.parametrize(
    "line, cause",
    [
        ("srun: unrecognized option '--container-image'", "no_pyxis"),
        ("srun: unrecognized option '--container-mounts=/a:/b'", "no_pyxis"),
        ("srun: unrecognized option '--no-container-mount-home'", "no_pyxis"),
        ("srun: unrecognized option '--quotatype=auto'", "unknown_option"),
        ("sbatch: unrecognized option '--gpus-per-node=8'", "unknown_option"),
    ],
)
def test_option_that_is_not_known_is_no_limit_of_the_scheduler(tmp_path, line, cause):
    assert (
        read(tmp_path, f'{line}\nTry "srun --help" for more information\n')[1] == cause
    )


DENIED = """\
slurmstepd: error: pyxis: container start failed with error code: 1
slurmstepd: error: pyxis: printing enroot log file:
slurmstepd: error: pyxis:   {line}
slurmstepd: error: pyxis:   [ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with \
return code 1
slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1
"""


@pytest.mark.parametrize(
    "line, cause",
    [
        (
            "nvidia-container-cli: container error: file lookup failed: "
            "/proc/4/root/data/pyxis_nemo/etc/debian_version: permission denied",
            "container_rights",
        ),
        (
            "nvidia-container-cli: ldcache error: process /usr/sbin/ldconfig.real "
            "failed with error code: 1",
            "container_gpu",
        ),
        (
            "nvidia-container-cli: initialization error: open failed: /dev/nvidiactl: "
            "permission denied",
            "container_gpu",
        ),
    ],
)
def test_missing_right_of_a_container_is_no_matter_of_its_gpus(tmp_path, line, cause):
    assert read(tmp_path, DENIED.format(line=line))[1] == cause


CHILD = "Command '['/usr/bin/python3', '-u', 'train.py', '--local_rank=3']' {how}\n"
UNMARKED = "Traceback (most recent call last):\nValueError: bad learning rate -1\n"


@pytest.mark.parametrize(
    "text",
    [
        "[2023-05-15 13:15:07,634] [ERROR] [launch.py:434:sigkill_handler] ['/b/py', "
        "'-u', '-m', 'a.b', '--local_rank=3', '--deepspeed', 'c.json'] exits with "
        "return code = -9\n",
        "subprocess.CalledProcessError: "
        + CHILD.format(how="died with <Signals.SIGBUS: 7>."),
        UNMARKED + CHILD.format(how="returned non-zero exit status 1."),
    ],
)
def test_command_of_the_child_that_failed_names_its_local_rank(tmp_path, text):
    said = told(tmp_path, STEPS + text)[0]
    assert said.startswith("First to fail: rank 3 (the launcher reports ")
    assert said.endswith("its number is the local rank of its node)")


@pytest.mark.parametrize(
    "text",
    [
        CHILD.format(how="returned non-zero exit status 1."),  # which error it had?
        # a rank that waited for too long aborts itself
        "['/b/python', '--local_rank=3'] exits with return code = -6\n",
        "['/b/python', '--local_rank=3'] exits with return code = 0\n",
    ],
)
def test_command_of_a_child_alone_does_not_prove_that_it_was_first(tmp_path, text):
    assert read(tmp_path, STEPS + text)[0] is None


def test_error_that_several_processes_raised_names_no_single_rank(tmp_path):
    text = UNMARKED * 2 + CHILD.format(how="returned non-zero exit status 1.")
    assert read(tmp_path, text)[0] == ()
    assert "the same error is there 2 times" in told(tmp_path, text)[0]


def test_actor_of_ray_that_died_has_the_rank_that_its_process_told(tmp_path):
    text = (
        "(WorkerDict pid=1412, ip=172.31.41.244) [rank 5] micro-batch 31/64\n"
        "(WorkerDict pid=1409, ip=172.31.41.244) [rank 2] micro-batch 31/64\n"
        "Traceback (most recent call last):\n"
        '  File "main_ppo.py", line 64, in main\n'
        "ray.exceptions.RayActorError: The actor died unexpectedly before finishing.\n"
        "\tclass_name: WorkerDict\n"
        "\tpid: {pid}\n"
        "The actor is dead because its worker process has died. Task was killed due to "
        "the node running low on memory.\n"
    )
    said = told(tmp_path, text.format(pid=1412))
    assert said[0] == "First to fail: rank 5 (Ray says that its process died)"
    assert not any("own words" in row for row in said)
    assert read(tmp_path, text.format(pid=77))[0] is None
