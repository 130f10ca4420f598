"""What docs/lessons/09_slurm says about Slurm, tried on the practice cluster.

Each test is named after its sentence on the page. What the shipped scripts do is tested
in test_09_slurm_training.py and test_09_slurm_ends.py; nothing here needs torch.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import lesson_source
from workshop.cluster.cli import cluster

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
PAGE = lesson_source("09_slurm")
SCRIPTS = sorted((ROOT / "job_scripts").glob("*.sbatch"))
ENVIRONMENT = """\
import json, os, sys
name = f"told.{sys.argv[1]}.{os.environ['SLURM_PROCID']}.json"
with open(name, "w") as file:  # srun cuts long lines into pieces
    json.dump({"where": sys.argv[1], **os.environ}, file)
"""


@pytest.fixture
def sbatch(submit, checkout):
    """Submit a script given as text; refused or not, ended or not."""

    def write(text, name="claim.sbatch"):
        (checkout / name).write_bytes(text.encode())
        return name

    def run(text, *options, **more):
        return submit(write(text), "--output=claim-%j.out", *options, **more)

    run.write, run.start, run.run, run.look = (
        write,
        submit.start,
        submit.run,
        submit.look,
    )
    return run


def test_up_gives_as_many_nodes_as_the_page_says():
    up = cluster.commands["up"]
    default = {option.name: option.default for option in up.params}
    assert (default["nodes"], default["cpus"], default["gpus"]) == (4, 4, 2)
    said = "``up`` gives you four nodes, and each claims 4 CPUs and 2 GPUs"
    assert said in " ".join(PAGE.split())


def bash(*lines):
    return "\n".join(["#!/bin/bash", *lines]) + "\n"


def test_directives_after_the_first_command_are_ignored_without_a_word(sbatch):
    before, after = "#SBATCH --nodes=2", "hostname"
    job = sbatch(bash(before, after))
    assert len(job.nodes) == 2
    job = sbatch(bash(after, before))
    assert job.nodes == [job.output.strip()]
    assert job.state == "COMPLETED"


def test_option_on_the_command_line_wins_over_a_directive(sbatch):
    assert len(sbatch(bash("#SBATCH --nodes=2", "hostname"), "--nodes=3").nodes) == 3


@pytest.fixture(scope="module")
def told(submit, checkout):
    """The environments of a script, of its four tasks, and of a step on one node."""
    (checkout / "environment.py").write_text(ENVIRONMENT)
    (checkout / "told.sbatch").write_text(
        bash(
            "python3 environment.py script",
            "srun python3 environment.py task",
            "srun --nodes=1 --ntasks=1 python3 environment.py step",
        )
    )
    options = ["--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=2", "--gres=gpu:2"]
    job = submit("told.sbatch", "--output=told-%j.out", *options)
    assert job.state == "COMPLETED", job.output
    lines = [json.loads(path.read_text()) for path in checkout.glob("told.*.json")]
    assert len(lines) == 1 + 4 + 1
    return job, lines


def values(told, where, name):
    """Of all processes there, in the order of their numbers."""
    found = [line for line in told[1] if line["where"] == where]
    found.sort(key=lambda line: int(line["SLURM_PROCID"]))
    return [line.get(name) for line in found]


@pytest.mark.parametrize(
    ("name", "in_script", "in_tasks"),
    [
        ("SLURM_JOB_NUM_NODES", "2", ["2"] * 4),
        ("SLURM_NNODES", "2", ["2"] * 4),
        ("SLURM_JOB_NODELIST", "n[1-2]", ["n[1-2]"] * 4),
        ("SLURM_NODEID", "0", ["0", "0", "1", "1"]),
        ("SLURM_PROCID", "0", ["0", "1", "2", "3"]),
        ("SLURM_LOCALID", "0", ["0", "1", "0", "1"]),
        ("SLURM_NTASKS", "4", ["4"] * 4),
        ("SLURM_CPUS_PER_TASK", "2", ["2"] * 4),
        ("SLURM_GPUS_ON_NODE", "2", ["2"] * 4),
        ("CUDA_VISIBLE_DEVICES", "0,1", ["0,1"] * 4),
        ("SLURM_RESTART_COUNT", None, [None] * 4),
    ],
)
def test_what_slurm_tells_a_job(name, in_script, in_tasks, told):
    assert f"``{name}``" in PAGE
    assert values(told, "script", name) == [in_script]
    assert values(told, "task", name) == in_tasks


def test_job_is_known_to_all_its_tasks_and_starts_where_it_was_submitted(
    told, checkout
):
    for where, count in (("script", 1), ("task", 4)):
        assert values(told, where, "SLURM_JOB_ID") == [str(told[0].id)] * count
        assert values(told, where, "SLURM_SUBMIT_DIR") == [str(checkout)] * count
        assert values(told, where, "PWD") == [str(checkout)] * count


def test_number_of_nodes_in_a_task_is_that_of_the_step(told):
    assert values(told, "step", "SLURM_NNODES") == ["1"]
    assert values(told, "step", "SLURM_JOB_NUM_NODES") == ["2"]


def test_variables_that_are_not_set_unless_asked_for(sbatch):
    names = ("SLURM_CPUS_PER_TASK", "SLURM_GPUS_ON_NODE")
    job = sbatch(bash(*(f'echo "[${{{name}-not set}}]"' for name in names)))
    assert job.output.splitlines() == ["[not set]"] * 2
    job = sbatch(bash("set -u", 'echo "$SLURM_CPUS_PER_TASK"'))
    assert job.state == "FAILED"
    assert "SLURM_CPUS_PER_TASK: unbound variable" in job.output


def test_port_of_every_job_lies_between_20000_and_29999(submit):
    lines = {
        line.split("=", 1)[1]
        for script in SCRIPTS
        for line in script.read_text().splitlines()
        if re.match(r"(port|MASTER_PORT)=", line)
    }
    assert len(lines) == 2  # with the count of restarts from either variable
    for line in lines:
        for number in (1, 909, 9090, 123456, 48151623):
            program = f"SLURM_JOB_ID={number} restarts=0; echo {line}"
            done = subprocess.run(["bash", "-c", program], capture_output=True)
            assert 20000 <= int(done.stdout) <= 29999, program
    ports = submit.run(["cat", "/proc/sys/net/ipv4/ip_local_port_range"], node="n1")
    assert int(ports.stdout.split()[0]) >= 32768


def test_jobs_with_one_port_have_numbers_that_are_far_apart():
    """ "The factor 11 gives each job 11 ports of its own"."""
    script = (ROOT / "job_scripts/multinode_torchrun.sbatch").read_text("utf-8")
    (line,) = re.findall(r"^port=.*$", script, re.M)
    form = r"port=\$\(\((\d+) \+ \(SLURM_JOB_ID \* (\d+) \+ .*\) % (\d+)\)\)"
    first, factor, ports = map(int, re.fullmatch(form, line).groups())
    assert (first, factor) == (20000, 11)

    def of_job(number: int) -> set[int]:
        return {(number * factor + restarts) % ports for restarts in range(factor)}

    assert len(of_job(1)) == 11, "the first start and ten restarts"
    apart = next(n for n in range(1, ports) if of_job(0) & of_job(n))
    assert f"numbers are at least {apart} apart" in " ".join(PAGE.split())


def test_folder_of_output_must_exist(submit, checkout, sbatch):
    script = sbatch.write(bash("hostname"))
    job = submit(script, "--output=nowhere/%j.out")
    assert (job.state, job.output) == ("FAILED", "")
    assert not (checkout / "nowhere").exists()


def test_standard_error_goes_to_the_same_file_unless_error_names_another(sbatch):
    script = bash("echo one", "echo two >&2")
    assert sbatch(script).output == "one\ntwo\n"
    assert sbatch(script, "--error=claim-%j.err").output == "one\ntwo\n"  # both files


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/bash\r\nhostname\r\n", "Batch script contains DOS line breaks"),
        ("hostname\n", "This does not look like a batch script"),
    ],
)
def test_script_that_sbatch_refuses(text, words, sbatch):
    done = sbatch.run(["sbatch", sbatch.write(text)])
    assert done.returncode != 0 and words in done.stderr
    assert words in PAGE


def test_echo_after_srun_turns_a_failure_into_a_success(sbatch):
    lines = ["srun bash -c 'exit 3'", "echo done"]
    assert sbatch(bash(*lines)).state == "COMPLETED"
    job = sbatch(bash("set -e", *lines))
    assert (job.state, job.exit_code) == ("FAILED", 3)


def test_job_that_waits_for_a_success_goes_by_the_status_of_the_script(submit, sbatch):
    failed = sbatch(bash("exit 3"))
    script = sbatch.write(bash("hostname"))
    waiting = submit.start(script, f"--dependency=afterok:{failed.id}")
    show = ["scontrol", "show", "job", str(waiting)]
    seen = submit.run(show).stdout
    submit.run(["scancel", str(waiting)])
    assert re.search(r"JobState=PENDING Reason=Dependency", seen), seen


def test_gres_counts_per_node_and_gpus_for_the_whole_job(sbatch):
    script = bash("srun printenv CUDA_VISIBLE_DEVICES")
    seen = sbatch(script, "--nodes=2", "--ntasks-per-node=1", "--gres=gpu:2").output
    assert [line.count(",") + 1 for line in seen.split()] == [2, 2]
    seen = sbatch(script, "--nodes=2", "--ntasks-per-node=1", "--gpus=2").output
    assert [line.count(",") + 1 for line in seen.split()] == [1, 1]


def test_second_task_of_the_page_ends_first_and_srun_waits_for_the_others(
    submit, checkout
):
    """The recorded runs of 09_one_fails, whatever the order of their lines."""
    start = ["srun", "--ntasks=3"]
    program = "docs/examples/09_one_fails.sh"
    done = submit.run([*start, program])
    assert done.returncode == 3
    assert done.stdout.count("has finished") == 2
    text = (checkout / program).read_text()
    assert "\nsleep 4 && " in text
    slow = checkout / "one_fails.sh"  # so that no busy machine lets them finish first
    slow.write_text(text.replace("\nsleep 4 && ", "\nsleep 100 && "))
    slow.chmod(0o755)
    done = submit.run([*start, "--kill-on-bad-exit=1", f"./{slow.name}"])
    assert done.returncode == 143
    assert "has finished" not in done.stdout


COMMANDS = re.findall(r"``((?:squeue|sinfo) -[^`]+)``", PAGE)


def test_commands_of_the_page_are_understood(submit):
    assert len(COMMANDS) >= 4
    for command in COMMANDS:
        done = submit.run(["bash", "-c", command])
        assert done.returncode == 0, f"{command}: {done.stderr}"


def site_options(name):
    program = f"source job_scripts/sites/{name}.sh; NODES=2 TIME=1 site_options"
    done = subprocess.run(
        ["bash", "-c", f"TASKS_PER_NODE=1; {program}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split()) - {"--nodes=2", "--time=1"}


def test_table_of_sites_is_what_the_files_say():
    assert site_options("plain_slurm") == set()
    assert site_options("mit_supercloud") == {
        "--partition=xeon-g6-volta",
        "--gres=gpu:volta:2",
        "--ntasks-per-node=1",
        "--cpus-per-task=40",
    }
    for words in (
        "``xeon-g6-volta``",
        "``gpu:volta:2``",
        "40, divided among the tasks",
    ):
        assert words in PAGE


ONE_PORT = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --nodelist=n1,n2
#SBATCH --ntasks-per-node=1
source job_scripts/site_environment.sh
srun --kill-on-bad-exit=1 torchrun --nnodes=2 --nproc-per-node=1 --rdzv-id=training \\
  --rdzv-backend=c10d --rdzv-endpoint=n1:29500 --rdzv-conf=join_timeout=60 at_work.py
"""


@pytest.mark.nightly
def test_two_jobs_with_one_port_and_id_train_fine_alone_and_not_together(
    submit, checkout, sbatch
):
    (checkout / "at_work.py").write_text("import time\ntime.sleep(8)\n")
    script = sbatch.write(ONE_PORT)
    assert submit(script, "--output=claim-%j.out").state == "COMPLETED"
    both = [submit.start(script, "--output=claim-%j.out") for _ in range(2)]
    states = [submit.wait(number).state for number in both]
    assert states != ["COMPLETED", "COMPLETED"]
