"""`workshop submit` reads a script before it hands it over."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lint.corpus import ROOT
from tests.lint.test_command import workshop
from workshop.cluster.jobs import sites
from workshop.cluster.pbs.placement import Refused, parse_request
from workshop.errors import UserError

RIGHT = "#!/bin/bash\n#SBATCH --nodes=1\nset -e\nsrun hostname\n"
WARNS = "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py\n"
WRONG = "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --standalone train.py\n"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A workshop with job scripts, as the working folder, and a sbatch that answers."""
    ignore = shutil.ignore_patterns("site.sh")
    shutil.copytree(ROOT / "job_scripts", tmp_path / "job_scripts", ignore=ignore)
    (tmp_path / "exercises").mkdir()
    shutil.copy(ROOT / "exercises" / "catalog.toml", tmp_path / "exercises")
    for tool in ("sbatch", "qsub"):
        path = tmp_path / "bin" / tool
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "{tool} got ${{@: -1}}"\n')
        path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def submit(house, text, *words, name="job.sbatch"):
    (house / name).write_text(text)
    return workshop("submit", *words, name, cwd=house)


def test_right_script_is_submitted_without_a_word(house):
    done = submit(house, RIGHT)
    assert (done.returncode, done.stdout) == (0, "sbatch got job.sbatch\n")
    assert done.stderr == ""


def test_warnings_are_shown_and_the_job_is_submitted(house):
    done = submit(house, WARNS)
    assert (done.returncode, done.stdout) == (0, "sbatch got job.sbatch\n")
    assert "job.sbatch:3: warning DT301" in done.stderr


def test_script_with_errors_is_not_submitted(house):
    done = submit(house, WRONG)
    assert (done.returncode, done.stdout) == (2, "")
    assert "job.sbatch:3: error DT102" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == (
        "workshop: not submitted: cure 1 error, or add --anyway before the script"
    )


def test_script_with_errors_is_submitted_anyway(house):
    done = submit(house, WRONG, "--anyway")
    assert (done.returncode, done.stdout) == (0, "sbatch got job.sbatch\n")
    assert "error DT102" in done.stderr


def test_dry_run_shows_the_errors_and_the_command(house):
    done = submit(house, WRONG, "--dry-run")
    assert done.returncode == 0 and "error DT102" in done.stderr
    assert "sbatch --nodes=2 " in done.stdout


@pytest.mark.parametrize(
    ("directives", "options"),
    [
        ("#SBATCH -N 4\n#SBATCH -t 60\n", ["--nodes=4", "--time=60"]),
        ("#SBATCH --nodes 3 --time=1-0\n", ["--nodes=3", "--time=1-0"]),
        ("#SBATCH --nodes=2\n#SBATCH -n 8\n", ["--nodes=2", "--ntasks-per-node=4"]),
        ("#SBATCH -N2\necho x\n#SBATCH -N3\n", ["--nodes=2"]),
    ],
)
def test_site_gets_what_the_script_asks_for_in_any_form(house, directives, options):
    (house / "job.sbatch").write_text(f"#!/bin/bash\n{directives}srun hostname\n")
    assert set(options) <= set(sites.plan(house, "job.sbatch").command)


def test_select_behind_a_comma_is_read(house):
    text = "#!/bin/bash\n#PBS -l walltime=00:20:00,select=3:ncpus=8\nhostname\n"
    (house / "job.pbs").write_text(text)
    command = sites.plan(house, "job.pbs").command
    assert "-lselect=3:ncpus=2:mem=4gb" in command and "-lwalltime=00:20:00" in command


def test_form_of_torque_is_refused_in_one_sentence(house):
    """It became one chunk of two cores, and nothing said so."""
    text = "#!/bin/bash\n#PBS -l nodes=2:ppn=16\nhostname\n"
    done = submit(house, text, name="job.pbs")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "job.pbs:2 asks in Torque's form, nodes=2:ppn=16" in done.stderr
    assert "write #PBS -l select=2:ncpus=16 and #PBS -l place=scatter" in done.stderr
    with pytest.raises(UserError, match="Torque's form"):
        sites.plan(house, "job.pbs", nodes=3)


def test_rehearsal_reads_the_form_of_torque_and_refuses_a_mixture():
    known = {"ncpus", "mem", "mpiprocs"}
    chunks, place = parse_request({"nodes": "2:ppn=16"}, known)
    assert [chunk.amount.ncpus for chunk in chunks] == [16, 16] and place == "scatter"
    with pytest.raises(Refused, match="no -l ncpus beside -l nodes"):
        parse_request({"nodes": "2:ppn=16", "ncpus": "2"}, known)


def wrapper(house: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    """What the page's own sbatch does with these words."""
    return subprocess.run(
        ["bash", ROOT / "docs/examples/lint_sbatch.sh", *words],
        env={
            **os.environ,
            "REAL_SBATCH": str(house / "bin" / "sbatch"),
            "LINT_FOLDER": str(ROOT),
            **variables,
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("text", "variables", "status"),
    [
        (RIGHT, {}, 0),
        (WARNS, {}, 0),
        (WRONG, {}, 1),
        (WRONG, {"LINT": "no"}, 0),
        (WRONG, {"LINT_PYTHON": "false"}, 0),  # as one that's older than 3.10
    ],
)
def test_wrapper_of_the_page_stops_a_script_with_errors(house, text, variables, status):
    (house / "job.sbatch").write_text(text)
    done = wrapper(house, "--parsable", "job.sbatch", **variables)
    assert done.returncode == status, done.stderr
    assert done.stdout == ("" if status else "sbatch got job.sbatch\n")
    assert ("not submitted" in done.stderr) == bool(status)


@pytest.mark.parametrize("left", ["", "Epoch 0\n"])
@pytest.mark.parametrize(("text", "status"), [(RIGHT, 0), (WRONG, 1)])
def test_wrapper_reads_the_script_and_no_file_of_an_option(house, left, text, status):
    (house / "old.out").write_text(left)
    (house / "job.sbatch").write_text(text)
    done = wrapper(house, "-o", "old.out", "job.sbatch")
    assert done.returncode == status, done.stderr
    assert "old.out" not in done.stderr
    assert ("not submitted" in done.stderr) == bool(status)
