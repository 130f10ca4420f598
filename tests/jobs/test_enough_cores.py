"""Job scripts count cores for ranks and their data workers, and warn where they lack.

Most tests run a script on paper: by bash, beside stubs of what it calls and with the
variables that Slurm or PBS would set. Those at the end submit it to Slurm.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.jobs.pbs_jobs import LIMIT

ROOT = Path(__file__).resolve().parents[2]
STARTER = "src/starter/train_ddp.py"
TORCHRUNS = ["multinode_torchrun", "singlenode_torchrun", "scaling_array"]
TASKS = ["multinode_srun", "multinode_mpirun", "requeue"]  # one for each rank
ON_PBS = [
    "multinode_torchrun",
    "multinode_ssh",
    "multinode_mpirun",
    "chained",
    "scaling_array",
    "distributed_data_parallel",
]
TOLD = re.compile(r"^Warning: .*$", re.M)
ASKED = re.compile(r"Ask for them: (.*)$", re.M)
THREADS = re.compile(r"OMP_NUM_THREADS=(\d+)")
STUBS = {
    "torchrun": "env",
    "python": "env",
    "mpirun": "env",
    "srun": "env",
    "scontrol": "echo n1",
    "setpriv": "exit 1",
    "pbs_tmrsh": "echo $*",
    "ssh": "echo $*",
    "workshop": "echo 13.head",
    "qdel": "true",
}


@pytest.fixture
def folder(tmp_path):
    """A workshop's folder with job scripts, programs, and stubs of commands."""
    ignore = shutil.ignore_patterns("site.sh")
    shutil.copytree(ROOT / "job_scripts", tmp_path / "job_scripts", ignore=ignore)
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "stubs").mkdir()
    for name, does in STUBS.items():
        stub(tmp_path, name, does)
    return tmp_path


def stub(folder, name, does):
    path = folder / "stubs" / name
    path.write_text(f"#!/bin/bash\n{does}\n")
    path.chmod(0o755)


def bash(folder, words, variables):
    launchers = ("SLURM", "PBS_", "OMP_", "WORKSHOP_SITE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(launchers)}
    path = f"{folder}/stubs:/usr/bin:/bin"
    return subprocess.run(
        ["bash", *words],
        cwd=folder,
        env={**kept, "PATH": path, **variables},
        capture_output=True,
        text=True,
    )


def in_slurm(folder, name, *args, cores=2, gpus=8, **more):
    """A batch script as Slurm starts it: (what it prints, what it warns of)."""
    variables = {
        "SLURM_JOB_ID": "7",
        "SLURM_ARRAY_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "1",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_NNODES": "2",
        "SLURM_NTASKS": "2",
        "SLURM_CPUS_ON_NODE": str(cores),
        "SLURM_CPUS_PER_TASK": str(cores),
        "SLURM_NODEID": "0",
    }
    if gpus:
        variables["SLURM_GPUS_ON_NODE"] = str(gpus)
    script = f"job_scripts/{name}.sbatch"
    done = bash(folder, [script, *args], variables | more)
    assert done.returncode == 0, done.stderr
    return done.stdout, TOLD.findall(done.stderr)


def in_pbs(folder, name, *, cores=2, gpus=8, hosts=2, **more):
    """The same with PBS; cores and GPUs are those of a host."""
    if name == "distributed_data_parallel":
        hosts = 1
    rows = [("ncpus", cores * hosts), ("walltime", "00:10:00")]
    rows += [("ngpus", gpus * hosts)] if gpus else []
    lines = [f"    Resource_List.{key} = {value}" for key, value in rows]
    stub(folder, "qstat", f"echo {shlex.quote(chr(10).join(lines))}")
    nodes = folder / "nodes"
    nodes.write_text("".join(f"n{number + 1}\n" for number in range(hosts)))
    variables = {
        "PBS_JOBID": "12.head",
        "PBS_NODEFILE": str(nodes),
        "PBS_O_WORKDIR": str(folder),
        "PBS_O_QUEUE": "workq",
        "PBS_ARRAY_INDEX": "1",
        "NCPUS": str(cores),
    }
    done = bash(folder, [f"job_scripts/{name}.pbs"], variables | more)
    assert done.returncode == 0, done.stderr
    return done.stdout, TOLD.findall(done.stderr)


def only(told):
    """What the one warning asks for."""
    assert len(told) == 1, told
    return ASKED.findall(told[0])[0]


FIRST, *OTHERS = TORCHRUNS
ALL = [pytest.param(name, marks=pytest.mark.full) for name in OTHERS]


@pytest.mark.parametrize("name", [FIRST, *ALL])
def test_torchrun_needs_cores_for_all_ranks_of_the_node(name, folder):
    workers = ["--workers", "2"]
    _, told = in_slurm(folder, name, *workers, cores=2, gpus=8)
    assert only(told) == "#SBATCH --cpus-per-task=24"
    assert "2 core(s) for 8 rank(s) with 2 data worker(s) each" in told[0]
    assert only(in_slurm(folder, name, *workers, cores=23)[1])
    printed, told = in_slurm(folder, name, *workers, cores=24)
    assert told == [] and set(THREADS.findall(printed)) == {"1"}
    printed, told = in_slurm(folder, name, *workers, cores=48)
    assert told == [] and set(THREADS.findall(printed)) == {"4"}  # 6 less 2 workers


@pytest.mark.full
@pytest.mark.parametrize("name", TASKS)
def test_task_needs_cores_for_its_one_rank(name, folder):
    _, told = in_slurm(folder, name, "--workers=3", cores=1)
    assert only(told) == "#SBATCH --cpus-per-task=4"
    printed, told = in_slurm(folder, name, "--workers=3", cores=12)
    assert told == [] and set(THREADS.findall(printed)) == {"9"}


@pytest.mark.full
@pytest.mark.parametrize("name", [*TORCHRUNS, *TASKS])
def test_cores_for_each_gpu_count_without_cores_for_each_task(name, folder):
    """--cpus-per-gpu=6 in the script's place of --cpus-per-task: Slurm sets no more."""
    of_node: dict = {"SLURM_CPUS_PER_TASK": "", "SLURM_CPUS_ON_NODE": "48"}
    of_node |= {"SLURM_NTASKS": "16"} if name in TASKS else {}
    printed, told = in_slurm(folder, name, "--workers", "2", gpus=8, **of_node)
    assert told == [] and set(THREADS.findall(printed)) == {"4"}
    share = "SRUN_CPUS_PER_TASK=6\n" if name in TASKS else "SRUN_CPUS_PER_TASK=48\n"
    assert share in printed or name == "multinode_mpirun"


@pytest.mark.full
@pytest.mark.parametrize("name", ON_PBS)
def test_host_of_pbs_needs_cores_for_all_its_ranks(name, folder):
    _, told = in_pbs(folder, name, ARGS="--workers 2")
    hosts = 1 if name == "distributed_data_parallel" else 2
    assert only(told) == f"#PBS -l select={hosts}:ncpus=24:ngpus=8:mem=96gb"
    printed, told = in_pbs(folder, name, cores=48, ARGS="--workers 2")
    assert told == [] and set(THREADS.findall(printed)) == {"4"}


@pytest.mark.full
def test_site_that_counts_for_the_whole_job_is_told_so(folder):
    site = folder / "job_scripts/site.sh"
    site.write_text("WORKSHOP_SITE=nci_gadi SITE_PROJECT=ab12\n")
    activate = folder / "none" / "bin"
    activate.mkdir(parents=True)
    (activate / "activate").write_text("")
    given: dict = {"SITE_ENVIRONMENT": "none", "ARGS": "--workers 2"}
    _, told = in_pbs(folder, "multinode_torchrun", **given)
    assert only(told) == "#PBS -l ncpus=48"


@pytest.mark.full
def test_without_gpus_nothing_is_compared(folder):
    for name in ("multinode_torchrun", "multinode_srun"):
        assert in_slurm(folder, name, "--workers", "2", gpus=0)[1] == []
    assert in_pbs(folder, "multinode_torchrun", gpus=0, ARGS="--workers 2")[1] == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "arguments", "needed"),
    [
        ("", "", 8),  # the program of the script reads its data itself
        ("src/08_multinode_torchrun.py", "10 5", 8),
        (STARTER, "", 24),
        (STARTER, "--workers 0", 8),
        (STARTER, "--workers=5 --epochs 2", 48),
        ("my.py", "--num-workers 1", 16),
        ("my.py", "--num_workers=1", 16),
        ("missing.py", "--workers-too 9", 8),
    ],
)
def test_number_of_workers_is_what_the_program_starts(
    program, arguments, needed, folder
):
    (folder / "my.py").write_text("loader = DataLoader(data, num_workers=4)\n")
    name = "multinode_torchrun"
    _, told = in_slurm(folder, name, *arguments.split(), SCRIPT=program)
    assert only(told) == f"#SBATCH --cpus-per-task={needed}"
    _, told = in_pbs(folder, name, SCRIPT=program, ARGS=arguments)
    assert f":ncpus={needed}:" in only(told)


def test_default_that_is_assumed_is_that_of_the_starters():
    for name in ("train_ddp", "train_fsdp"):
        text = (ROOT / "src" / "starter" / f"{name}.py").read_text(encoding="utf-8")
        assert re.search(r'"--workers", .*default=2\b', text), name
        assert "num_workers" in text


@pytest.mark.full
def test_interactive_job_asks_srun_and_only_on_its_first_node(folder):
    variables = {
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "n[1-2]",
        "SLURM_NTASKS": "2",
        "SLURM_NNODES": "2",
        "SLURM_GPUS_ON_NODE": "2",
        "SLURM_CPUS_ON_NODE": "1",
    }
    words = ["job_scripts/interactive.sh"]  # its own program has no workers
    done = bash(folder, words, {**variables, "SLURM_NODEID": "0"})
    assert only(TOLD.findall(done.stderr)) == "srun --cpus-per-task=2"
    words.append(STARTER)
    done = bash(folder, words, {**variables, "SLURM_NODEID": "0"})
    assert only(TOLD.findall(done.stderr)) == "srun --cpus-per-task=6"
    done = bash(folder, words, {**variables, "SLURM_NODEID": "1"})
    assert done.returncode == 0 and done.stderr == ""


COMMAND = re.compile(r"(?:sbatch|qsub|srun|workshop doctor --job --submit --) (.*)")


def test_each_command_with_gpus_asks_for_cores_and_memory():
    """In the scripts' first lines, and on the pages."""
    files = [*(ROOT / "job_scripts").iterdir(), *(ROOT / "docs").rglob("*.rst")]
    seen = 0
    for path in files:
        if not path.is_file():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            found = COMMAND.search(line)
            asks = found[1] if found else ""
            if not re.search(r"--(gres=gpu|gpus)|ngpus=", asks):
                continue
            seen += 1
            of_slurm = "--cpus-per-task=" in asks and "--mem-per-cpu=" in asks
            of_pbs = "ncpus=" in asks and ":mem=" in asks
            assert of_slurm or of_pbs, f"{path.name}: {line}"
    assert seen >= 15


@pytest.mark.parametrize("path", sorted((ROOT / "job_scripts").glob("*.sbatch")))
def test_memory_grows_with_the_cores(path):
    assert "\n#SBATCH --mem-per-cpu=2G\n" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / "job_scripts").glob("*.pbs")))
def test_chunk_asks_for_memory(path):
    assert re.search(r"^#PBS -l select=\S+:mem=4gb$", path.read_text(), re.M)


# On a practice cluster whose nodes have 4 cores and 2 GPUs

TELLS = """\
import os
rank = os.environ.get("RANK", os.environ.get("SLURM_PROCID"))
names = ("OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_CPU")
words = ["rank", rank, *(os.environ[name] for name in names)]
os.write(1, (" ".join(words) + "\\n").encode())  # at once: two ranks share the pipe
"""
WORKER = ["--workers", "1"]


@pytest.fixture
def tells(checkout):
    (checkout / "tells.py").write_text(TELLS)
    return {"SCRIPT": "tells.py"}


def ranks(output):
    return sorted(re.findall(r"^rank (\d) (\d+) (\d+) (\d+)$", output, re.M))


@pytest.mark.full
def test_gpus_without_cores_are_told_in_one_line_whose_cure_works(submit, tells):
    script = "job_scripts/multinode_torchrun.sbatch"
    job = submit(script, "--gres=gpu:2", args=WORKER, env=tells, timeout=240)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    directive = only(TOLD.findall(job.output))
    assert directive == "#SBATCH --cpus-per-task=4"
    assert ranks(job.output) == [(str(rank), "1", "2", "2048") for rank in range(4)]

    more = ["--gres=gpu:2", directive.split()[1], "--mem-per-cpu=1G"]
    job = submit(script, *more, args=WORKER, env=tells, timeout=240)
    assert TOLD.findall(job.output) == []
    assert ranks(job.output) == [(str(rank), "1", "4", "1024") for rank in range(4)]


@pytest.mark.full
def test_task_of_srun_without_cores_is_told(submit, tells):
    script = "job_scripts/multinode_srun.sbatch"
    job = submit(script, "--gres=gpu:2", args=WORKER, env=tells, timeout=240)
    directive = only(TOLD.findall(job.output))
    assert directive == "#SBATCH --cpus-per-task=2"
    job = submit(
        script,
        "--gres=gpu:2",
        directive.split()[1],
        args=WORKER,
        env=tells,
        timeout=240,
    )
    assert TOLD.findall(job.output) == [], job.output
    assert [row[2] for row in ranks(job.output)] == ["2"] * 4


@pytest.mark.full
@pytest.mark.parametrize("option", ["--cpus-per-gpu=4", "--mem=4G", "--mem-per-gpu=4G"])
def test_other_ways_to_ask_are_refused_beside_the_directives(submit, option):
    words = ["sbatch", "--gres=gpu:2", option, "job_scripts/multinode_torchrun.sbatch"]
    done = submit.run(words)
    assert done.returncode == 1 and "mutually exclusive" in done.stderr


@pytest.mark.full
def test_gpus_of_a_pbs_job_without_cores_are_told(pbs, qsub, tells):
    if pbs.real:
        pytest.skip("counts with the four GPUs that each host of the rehearsal has")
    select = ("-l", "select=2:ncpus=1:ngpus=2", "-l", "place=scatter")
    given = {"SCRIPT": "nothing.py", "ARGS": "--workers 2"}
    job = pbs.wait(qsub("multinode_torchrun", *select, **given), LIMIT)
    assert job.exit_status == 0, job.output
    asked = only(TOLD.findall(job.output))
    assert asked == "#PBS -l select=2:ncpus=6:ngpus=2:mem=24gb"
