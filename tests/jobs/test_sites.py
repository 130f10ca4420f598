"""`workshop site` and `workshop submit`: what is written, shown and submitted."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from workshop.cluster.jobs import sites
from workshop.diagnose.prefixes import clean
from workshop.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
TORCHRUN = "job_scripts/multinode_torchrun.sbatch"
PBS = "job_scripts/multinode_torchrun.pbs"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A workshop with job scripts and no chosen site, as the working folder."""
    ignore = shutil.ignore_patterns("site.sh")
    shutil.copytree(ROOT / "job_scripts", tmp_path / "job_scripts", ignore=ignore)
    (tmp_path / "exercises").mkdir()
    shutil.copy(ROOT / "exercises" / "catalog.toml", tmp_path / "exercises")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def workshop(*words, **variables):
    code = "from workshop.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
    )


def sentence(done) -> str:
    """The one line by which a command has refused its input."""
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_each_site_has_a_title_settings_and_both_functions():
    known = sites.sites(ROOT)
    assert {"plain_slurm", "plain_pbs", "nci_gadi", "mit_supercloud"} <= set(known)
    for path in (ROOT / "job_scripts" / "sites").glob("*.sh"):
        text = path.read_text()
        assert text.startswith("# "), path
        assert "\nsite_options() {" in text and "\nsite_environment() {" in text, path
        for key in re.findall(r"SITE_([A-Z_]+)", text):
            own = {"SCHEDULER", "REPLACES_RESOURCES", "KEY"}
            documented = dict(sites.SETTING.findall(text))
            assert key in own or key in documented, f"{path.name} explains no {key}"


def test_what_was_never_run_at_a_site_is_said():
    for name in ("nci_gadi", "mit_supercloud"):
        text = (ROOT / "job_scripts" / "sites" / f"{name}.sh").read_text()
        assert "never run there" in text, name


def test_without_a_chosen_site_it_is_the_plain_one(house):
    assert sites.chosen(house) is None
    planned = sites.plan(house, TORCHRUN)
    assert planned.site == "plain_slurm" and planned.rewritten is None
    assert planned.command == ["sbatch", "--nodes=2", "--time=00:10:00", TORCHRUN]
    planned = sites.plan(house, PBS, ("-N", "mine"), nodes=3, time="01:00:00")
    assert planned.site == "plain_pbs"
    assert planned.command == [
        "qsub",
        "-lselect=3:ncpus=2:mem=4gb",
        "-lplace=scatter",
        "-lwalltime=01:00:00",
        "-N",
        "mine",
        PBS,
    ]


def test_settings_become_options_and_reach_the_job(house):
    given = ("GPUS_PER_NODE=4", "CPUS_PER_NODE=32", "QUEUE=gpu", "PROJECT=ab12")
    sites.choose(house, "plain_slurm", given)
    options = sites.plan(house, TORCHRUN).command[1:-1]
    assert {"--partition=gpu", "--account=ab12", "--gres=gpu:4"} < set(options)
    assert "--cpus-per-task=32" in options, "one task, torchrun, gets all cores"
    options = sites.plan(house, "job_scripts/multinode_srun.sbatch").command[1:-1]
    assert {"--ntasks-per-node=4", "--cpus-per-task=8"} < set(options)


def test_options_of_the_user_replace_those_of_the_site(house):
    sites.choose(house, "plain_pbs", ("QUEUE=gpu", "PROJECT=ab12"))
    own = ("-l", "select=1:ncpus=8", "-qfast", "-lwalltime=1,place=free")
    assert sites.plan(house, PBS, own).command == ["qsub", "-Pab12", *own, PBS]


def test_gadi_gets_resources_of_the_whole_job_and_no_select(house):
    sites.choose(house, "nci_gadi", ("PROJECT=ab12", "STORAGE=gdata/ab12"))
    planned = sites.plan(house, PBS)
    assert planned.command == ["qsub", PBS]
    lines = planned.rewritten.splitlines()
    directives = [line for line in lines if line.startswith("#PBS")]
    assert lines[0] == "#!/bin/bash"
    assert directives[:7] == [
        "#PBS -Pab12",
        "#PBS -qgpuvolta",
        "#PBS -lncpus=96",
        "#PBS -lngpus=8",
        "#PBS -lmem=760GB",
        "#PBS -lwalltime=00:10:00",
        "#PBS -lstorage=gdata/ab12",
    ]
    assert "#PBS -N multinode_torchrun" in directives
    assert not any("select" in line or "place" in line for line in directives)
    body = [
        line for line in (house / PBS).read_text().splitlines() if "#PBS" not in line
    ]
    assert [line for line in lines if "#PBS" not in line] == body


def test_dry_run_shows_what_submit_does(house, tmp_path):
    sites.choose(house, "nci_gadi", ("PROJECT=ab12",))
    shown = workshop("submit", "--dry-run", PBS, "-N", "mine").stdout
    fake = tmp_path / "bin"
    fake.mkdir()
    tool = fake / "qsub"
    tool.write_text('#!/bin/bash\necho "qsub ${*:1:$#-1}" in "$PWD"\ncat "${@: -1}"\n')
    tool.chmod(0o755)
    path = f"{fake}:{os.environ['PATH']}"
    done = workshop("submit", PBS, "-N", "mine", PATH=path)
    assert done.returncode == 0, done.stderr
    command, copy = done.stdout.split("\n", 1)
    assert command == f"qsub -N mine in {house}"
    assert f"qsub -N mine {PBS}\n" in shown and shown.endswith(copy)


def test_submit_ends_with_the_status_of_the_scheduler(house, tmp_path):
    tool = tmp_path / "sbatch"
    tool.write_text("#!/bin/bash\necho no >&2\nexit 3\n")
    tool.chmod(0o755)
    done = workshop("submit", TORCHRUN, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stderr) == (3, "no\n")


def test_site_is_written_listed_and_forgotten(house):
    done = workshop("site", "plain_slurm", "--set", "QUEUE=a b")
    assert done.returncode == 0, done.stderr
    assert "SITE_QUEUE='a b'\n" in (house / "job_scripts/site.sh").read_text()
    assert "* plain_slurm" in workshop("site").stdout
    assert "No site is chosen" in workshop("site", "--forget").stdout
    assert not (house / "job_scripts/site.sh").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["site", "mars"], "there is no job_scripts/sites/mars.sh: choose one of"),
        (["site", "template"], "copy template.sh to template.sh"),
        (
            ["site", "nci_gadi"],
            "nci_gadi needs more: workshop site nci_gadi --set PROJ",
        ),
        (["site", "plain_slurm", "--set", "QUEUE"], "is not KEY=VALUE"),
        (["site", "plain_slurm", "--set", "QUEUE=$(id)"], "is not KEY=VALUE"),
        (["site", "plain_slurm", "--set", "MOON=1"], "no setting MOON: it has QUEUE"),
        (["site", "--set", "QUEUE=a"], "needs the NAME of a site"),
        (["submit", "x.sh"], "is not a job script: name a file that ends in .sbatch"),
        (["submit", "missing.pbs"], "missing.pbs is not a job script"),
    ],
)
def test_bad_input_is_one_sentence(words, said, house):
    assert said in sentence(workshop(*words))
    assert not (house / "job_scripts/site.sh").exists()


def test_script_of_another_scheduler_is_refused(house):
    sites.choose(house, "plain_pbs", ())
    with pytest.raises(
        UserError, match="is for sbatch, and the site plain_pbs has qsub"
    ):
        sites.plan(house, TORCHRUN)


def test_broken_site_file_is_named(house):
    (house / "job_scripts/sites/broken.sh").write_text("# Ours.\nfi\n")
    sites.choose(house, "broken", ())
    with pytest.raises(UserError, match=r"job_scripts/sites/broken.sh does not work: "):
        sites.plan(house, TORCHRUN)


# site_environment.sh, which every job reads on its nodes


def environment(house, ending='python -c "import sys; print(sys.prefix)"', **variables):
    script = f"set -euo pipefail; source job_scripts/site_environment.sh; {ending}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PBS"))}
    kept["PATH"] = "/usr/bin:/bin"
    return subprocess.run(
        ["bash", "-c", script],
        env={**kept, **variables},
        capture_output=True,
        text=True,
    )


def test_job_uses_the_environment_of_make_tour(house):
    (house / ".venv").symlink_to(ROOT / ".venv")
    done = environment(house, ending="command -v torchrun; echo $-")
    assert done.returncode == 0, done.stderr
    torchrun, options = done.stdout.split()
    assert torchrun.endswith(".venv/bin/torchrun")
    assert "e" in options and "u" in options, "set -eu must be on again"


def test_missing_environment_is_one_sentence(house):
    said = sentence(environment(house))
    assert "there is no Python environment in .venv" in said and "make tour" in said


def test_site_that_brings_no_torchrun_is_named(house):
    folder = house / "empty" / "bin"
    folder.mkdir(parents=True)
    (folder / "activate").write_text("")
    sites.choose(house, "plain_slurm", ("ENVIRONMENT=empty",))
    assert "no torchrun after site_environment of" in sentence(environment(house))


def test_site_of_another_scheduler_ends_the_job(house):
    sites.choose(house, "plain_pbs", ())
    said = sentence(environment(house, SLURM_JOB_ID="1"))
    assert "the site plain_pbs has another scheduler than this job" in said


def test_interface_of_the_site_reaches_gloo_and_nccl(house):
    (house / ".venv").symlink_to(ROOT / ".venv")
    sites.choose(house, "plain_slurm", ("INTERFACE=ib0",))
    done = environment(house, "echo $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME")
    assert done.stdout == "ib0 ib0\n"


SHOW = "source job_scripts/site_environment.sh && env"
OF_FAILURES = ("NCCL_DEBUG", "TORCH_FR_", "PET_", "TORCHELASTIC_", "LOGS")


def exported(house, **variables):
    """What a job of this folder exports for the time when it fails."""
    bin_folder = house / "bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "torchrun").write_text("#!/bin/sh\n")
    (bin_folder / "torchrun").chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OF_FAILURES)}
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", SHOW],
        cwd=house,
        env={**kept, "PATH": path, "SLURM_JOB_ID": "7", **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs if name.startswith(OF_FAILURES)}


def test_job_with_gpus_lets_nccl_and_the_flight_recorder_speak(house):
    script = house / "job_scripts/site_environment.sh"
    text = script.read_text()
    assert text.count("/dev/nvidiactl") == 1
    script.write_text(text.replace("/dev/nvidiactl", "/dev/null"))  # a GPU's file
    assert exported(house) == {
        "NCCL_DEBUG": "WARN",
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_FR_DUMP_TEMP_FILE": f"{house}/recorder_7_",
        **logs_in("logs/job7"),
    }
    assert exported(house, NCCL_DEBUG="INFO")["NCCL_DEBUG"] == "INFO"
    assert "PET_TEE" not in exported(house, LOGS="")
    script.write_text(text.replace("/dev/nvidiactl", "/dev/no_such_device"))
    assert exported(house) == {}


def logs_in(folder):
    """What makes torchrun write one log per rank there."""
    return {
        "PET_LOG_DIR": f"{folder}/{socket.gethostname()}",
        "PET_TEE": "3",
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank${rank}]: ",
    }


def test_job_writes_one_log_per_rank_if_asked(house):
    assert exported(house, LOGS="logs") == {"LOGS": "logs", **logs_in("logs")}


def test_log_of_each_rank_is_in_a_folder_of_its_host(house):
    """task.sh runs on each node, and the batch script on the first one only."""
    script = "source job_scripts/site_environment.sh && job_scripts/task.sh env"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=house,
        env={**os.environ, "SLURM_JOB_ID": "7", "LOGS": "all", "SLURMD_NODENAME": "n2"},
        capture_output=True,
        text=True,
    )
    assert "\nPET_LOG_DIR=all/n2\n" in done.stdout, done


def test_rank_stands_before_each_line_and_diagnose_takes_it_off(house, tmp_path):
    """Through the real torchrun, two ranks: one fails."""
    program = tmp_path / "fails.py"
    program.write_text(
        "import os, pathlib, time\n"
        "print('hello', flush=True)\n"
        "said = pathlib.Path(__file__).with_name('said')\n"
        "if os.environ['RANK'] == '0':\n"
        "    said.touch()\n"
        "    time.sleep(600)  # torchrun ends it\n"
        "while not said.exists():\n"
        "    time.sleep(0.01)\n"
        "raise ValueError('no such head')\n"
    )
    run = f"torchrun --standalone --nproc-per-node=2 {program}"
    done = subprocess.run(
        ["bash", "-c", f"source job_scripts/site_environment.sh && {run}"],
        cwd=house,
        env={**os.environ, "SLURM_JOB_ID": "7", "LOGS": "all"},
        capture_output=True,
        text=True,
    )
    assert sorted(done.stdout.splitlines()) == ["[rank0]: hello", "[rank1]: hello"]
    assert "[rank1]: ValueError: no such head" in done.stderr
    (log,) = house.glob(f"all/{socket.gethostname()}/*/attempt_0/1/stderr.log")
    assert log.read_text().rstrip().endswith("ValueError: no such head")
    rows = clean(done.stdout + done.stderr)
    assert {row.rank for row in rows if row.text == "hello"} == {0, 1}
    assert "ValueError: no such head" in [row.text for row in rows]
