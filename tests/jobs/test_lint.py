"""What no job script may contain, whatever it does: found by reading the files."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "job_scripts"
SCRIPTS = sorted([*FOLDER.glob("*.sbatch"), *FOLDER.glob("*.pbs")])
SHELL = sorted([*SCRIPTS, *FOLDER.glob("*.sh"), *FOLDER.glob("sites/*.sh")])
SHELL = [path for path in SHELL if path.name != "site.sh"]  # the user's own
NAMED = [
    "singlenode_torchrun.sbatch",
    "multinode_torchrun.sbatch",
    "multinode_srun.sbatch",
    "multinode_mpirun.sbatch",
    "interactive.sh",
    "requeue.sbatch",
    "scaling_array.sbatch",
    "capstone.sbatch",
    "distributed_data_parallel.pbs",
    "multinode_torchrun.pbs",
    "multinode_mpirun.pbs",
    "multinode_ssh.pbs",
    "chained.pbs",
    "scaling_array.pbs",
    "capstone.pbs",
    "site_environment.sh",
    "sites/plain_slurm.sh",
    "sites/plain_pbs.sh",
    "sites/nci_gadi.sh",
    "sites/mit_supercloud.sh",
    "sites/template.sh",
]
# What belongs to one site or one user, and a port that two jobs would share.
NOT_IN_A_SCRIPT = {
    "a fixed port": r"(?:port[= ]|PORT=|:)(?:[1-9]\d{3,4})\b",
    "an account or project": r"^#(?:SBATCH (?:--account|-A)|PBS -P)",
    "a partition or queue": r"^#(?:SBATCH (?:--partition|-p)|PBS -q)\b",
    "an address of a user": r"^#(?:SBATCH --mail-user|PBS -M)|@\w+\.\w+",
    "a module": r"\bmodule (?:load|purge)",
    "a path of one machine": r"(?:^|[\s=\"'])/(?!bin/|usr/bin/|dev/|tmp\b)\w+/\w",
    "a fixed number of ranks": r"nproc[-_]per[-_]node=\d|-np \d",
}
PBS_VARIABLE = re.compile(r"\bPBS_\w+|\bNCPUS\b")
SLURM_VARIABLE = re.compile(r"\b(?:SLURM|SBATCH|SRUN)_\w+")


def body(text: str) -> str:
    """Without comments, but with the directives."""
    lines = text.splitlines()
    kept = [x for x in lines if not x.startswith("#") or re.match(r"#(SBATCH|PBS)", x)]
    return "\n".join(re.sub(r"\s#\s.*", "", line) for line in kept)


def found_in(text: str, suffix: str) -> list[str]:
    """What is wrong with the text of a job script, in words."""
    faults = []
    if "\r" in text:
        faults.append("CRLF line ends: PBS refuses them")
    if not text.startswith("#!/bin/bash\n"):
        faults.append("it does not begin with #!/bin/bash")
    if "depend=afterany" in text and "\n#PBS -r n\n" not in text:
        faults.append("run again, it would submit a second successor: #PBS -r n")
    first = None
    for number, line in enumerate(text.splitlines(), 1):
        directive = re.match(r"#(SBATCH|PBS)\b", line)
        if directive and first:
            faults.append(f"line {number}: a directive after line {first} is ignored")
        if directive and (directive[1] == "PBS") != (suffix == ".pbs"):
            faults.append(f"line {number}: a directive of another scheduler")
        if directive and suffix == ".pbs" and " # " in line:
            faults.append(f"line {number}: PBS refuses a comment after a directive")
        if not first and line.strip() and not line.startswith("#"):
            first = number
    foreign = SLURM_VARIABLE if suffix == ".pbs" else PBS_VARIABLE
    faults += [
        f"{name} is of another scheduler" for name in foreign.findall(body(text))
    ]
    for what, pattern in NOT_IN_A_SCRIPT.items():
        if hit := re.search(pattern, body(text), re.M):
            faults.append(f"{what}: {hit[0].strip()}")
    return faults


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_job_script_fits_every_site_and_two_jobs_at_once(path):
    assert found_in(path.read_bytes().decode(), path.suffix) == []


GOOD = "#!/bin/bash\n#SBATCH --nodes=2\nset -eu\nsrun hostname\n"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("\n", "\r\n"), "CRLF"),
        (("#!/bin/bash", "#!/bin/sh"), "does not begin"),
        (("srun", "#SBATCH --exclusive\nsrun"), "line 4: a directive after line 3"),
        (("#SBATCH --nodes=2", "#PBS -l ncpus=2"), "directive of another scheduler"),
        (("srun hostname", "srun echo $PBS_JOBID"), "PBS_JOBID is of another"),
        (("set -eu", "MASTER_PORT=29500"), "a fixed port"),
        (("hostname", "torchrun --rdzv-endpoint=$h:29400"), "a fixed port"),
        (("--nodes=2", "--account=ab12"), "an account"),
        (("--nodes=2", "--partition=gpu"), "a partition"),
        (("--nodes=2", "--mail-user=me"), "a user"),
        (("set -eu", "module load cuda"), "a module"),
        (("hostname", "/home/me/train.py"), "a path"),
        (("hostname", "torchrun --nproc-per-node=4 x.py"), "number of ranks"),
    ],
)
def test_lint_finds(change, fault):
    assert found_in(GOOD, ".sbatch") == []
    assert any(fault in each for each in found_in(GOOD.replace(*change), ".sbatch"))


def test_lint_finds_slurm_in_a_pbs_script():
    text = "#!/bin/bash\n#PBS -N x # name\necho $SLURM_JOB_ID\n"
    faults = " ".join(found_in(text, ".pbs"))
    assert "SLURM_JOB_ID is of another" in faults and "refuses a comment" in faults


def test_lint_finds_a_chain_that_forks_when_its_job_runs_again():
    text = "#!/bin/bash\nqsub -W depend=afterany:$PBS_JOBID chain.pbs\n"
    assert any("a second successor" in fault for fault in found_in(text, ".pbs"))
    kept = text.replace("\n", "\n#PBS -r n\n", 1)
    assert found_in(kept, ".pbs") == []


def test_every_script_that_is_promised_exists():
    missing = [name for name in NAMED if not (FOLDER / name).exists()]
    assert not missing


@pytest.mark.parametrize("path", SHELL, ids=lambda path: path.name)
def test_every_file_that_a_script_calls_exists(path):
    text = path.read_text()
    if path.parent.name == "sites":
        return
    called = re.findall(r"\b(?:src|job_scripts)/[\w/]+\.\w+", text)
    named = [name for name in called if name != "job_scripts/site.sh"]
    for name in named:
        assert (ROOT / name).exists(), f"{path.name} names {name}"
    if path.suffix in (".sbatch", ".pbs"):
        assert f"job_scripts/{path.name}" in named, f"how is {path.name} submitted?"


def test_what_srun_starts_may_be_started():
    for path in SHELL:
        for name in re.findall(
            r"(?:^|\s)(?:\./)?(job_scripts/\w+\.sh) ", path.read_text()
        ):
            started = not re.search(rf"source {name}", path.read_text())
            assert not started or os.access(ROOT / name, os.X_OK), name


def test_restarted_ranks_do_not_meet_in_the_store_of_dead_ones():
    for path in SCRIPTS:
        text = path.read_text()
        if "--max-restarts" in text:
            assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in text, path.name


def test_srun_ends_all_tasks_when_one_fails():
    for path in FOLDER.glob("*.sbatch"):
        for command in re.findall(r"^srun .*(?:\\\n.*)*", path.read_text(), re.M):
            if "--ntasks=1 " not in command:
                assert "--kill-on-bad-exit=1" in command, path.name
