"""`workshop lint`, and the same without anything but Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.lint.corpus import BAD, GOOD, HERE, ROOT
from workshop.lint.command import run
from workshop.lint.linting import lint
from workshop.lint.rules import RULES

BAD_ONE = HERE / "bad" / "n_times_n_gpus.sbatch"
ONLY_WARNINGS = HERE / "good" / "lightning_srun.sbatch"
QUIET = ROOT / "job_scripts" / "multinode_torchrun.sbatch"
HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n"


def command(*words, stdin="", cwd=ROOT, **variables):
    """The linter alone: no site-packages, and nothing of the user's."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "workshop.lint", *map(str, words)],
        input=stdin,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
    )


def workshop(*words, **options):
    code = "from workshop.cli import main; main()"
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("variables", {})}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        env=variables,
        capture_output=True,
        text=True,
        **options,
    )


@pytest.mark.parametrize(
    ("path", "status"), [(BAD_ONE, 1), (ONLY_WARNINGS, 0), (QUIET, 0)]
)
def test_status_is_1_with_an_error_and_0_without(path, status):
    assert command(path).returncode == status


def test_good_script_is_called_quiet():
    assert command(QUIET).stdout == f"{QUIET}: no findings\n"


def test_finding_has_file_line_code_reason_cure_and_page():
    said = command(BAD_ONE).stdout
    assert f"{BAD_ONE}:9: error DT101: srun starts 4 tasks, 2 on each of 2" in said
    assert "    why   torchrun, accelerate and deepspeed start" in said
    assert "    cure  #SBATCH --ntasks-per-node=1\n" in said
    assert '    read  docs/lessons/09_slurm/1_script.rst, "Read the script"\n' in said
    assert said.endswith("1 error, 2 warnings\n")


def test_reason_is_given_once_for_each_rule(tmp_path):
    copy = shutil.copy(BAD_ONE, tmp_path)
    said = command(BAD_ONE, copy, BAD_ONE).stdout
    assert said.count("error DT101") == 2 and said.count("    why   torchrun,") == 1
    assert said.endswith("2 errors, 4 warnings in 2 files\n")


def test_each_of_two_lines_has_its_own_findings():
    line = "torchrun --nnodes=2 --node-rank=0 train.py"
    done = command("--line", line, "--line", "python train.py", "--line", line)
    assert done.stdout.count("error DT201") == 2
    assert "--line 2: no findings" in done.stdout


def test_standard_input_and_a_line_are_read():
    text = BAD_ONE.read_text(encoding="utf-8")
    assert "-:9: error DT101" in command("-", stdin=text).stdout
    done = command("--line", "torchrun --nnodes=2 --master-addr=n1 train.py")
    assert done.returncode == 1 and "DT202" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a job script, - for standard input, or --line"),
        (["nowhere.sbatch"], "cannot read nowhere.sbatch: No such file or directory"),
        (["tests"], "cannot read tests: Is a directory"),
        (["/dev/null"], "/dev/null is empty"),
        (["/bin/sh"], "isn't a script: it holds bytes that no text has"),
        (["--explain", "DT999"], "no rule has the code DT999: they are from DT001"),
    ],
)
def test_bad_input_is_one_sentence(words, said):
    for done in (command(*words), workshop("lint", *words, cwd=ROOT)):
        assert done.returncode == 2
        assert said in done.stderr and done.stderr.count("\n") == 1


def test_unknown_form_is_one_sentence():
    done = workshop("lint", "--format", "xml", str(QUIET))
    assert done.returncode == 2
    assert "--format is one of text, json, sarif, not 'xml'" in done.stderr


def test_both_commands_say_the_same():
    assert workshop("lint", BAD_ONE).stdout == command(BAD_ONE).stdout
    assert workshop("lint", BAD_ONE).returncode == 1


@pytest.mark.cold("a Python that has nothing but its standard library")
def test_copy_of_the_package_works_alone(tmp_path):
    """What a site does: workshop/lint and workshop/errors.py, and nothing else."""
    bare = [sys.executable, "-S", "-c", "import click"]
    assert subprocess.run(bare, env={}, capture_output=True).returncode == 1
    shutil.copytree(ROOT / "workshop" / "lint", tmp_path / "workshop" / "lint")
    shutil.copy(ROOT / "workshop" / "errors.py", tmp_path / "workshop")
    done = command(BAD_ONE, cwd=tmp_path)
    assert done.returncode == 1 and "DT101" in done.stdout, done.stderr


def test_script_is_never_run(tmp_path):
    job = tmp_path / "job.sbatch"
    mark = tmp_path / "mark"
    job.write_text(f"{HEAD}touch {mark}\nx=$(touch {mark})\nsrun touch {mark}\n")
    command(job)
    assert not mark.exists()


def test_json_has_every_field():
    told = json.loads(command(BAD_ONE, "--format", "json").stdout)
    assert told["files"] == [str(BAD_ONE)] and told["errors"] == 1
    first = told["findings"][0]
    assert set(first) == {
        *("file", "line", "code", "severity"),
        *("what", "why", "cure", "page"),
    }
    assert first["page"] == "docs/lessons/09_slurm/1_script.html#read-the-script"


def test_sarif_is_what_code_hosts_read():
    """The fields that GitHub's documentation calls required, and known rules."""
    told = json.loads(command(BAD_ONE, "--format", "sarif").stdout)
    assert told["version"] == "2.1.0" and "sarif-2.1.0" in told["$schema"]
    (one_run,) = told["runs"]
    driver = one_run["tool"]["driver"]
    assert driver["name"] == "workshop lint"
    assert [rule["id"] for rule in driver["rules"]] == [rule.code for rule in RULES]
    for result in one_run["results"]:
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == str(BAD_ONE)
        assert place["region"]["startLine"] > 0
        assert result["level"] in ("error", "warning") and result["message"]["text"]


def test_explain_shows_a_rule_with_both_examples(capsys):
    done = command("--explain", "dt101")
    assert done.returncode == 0
    assert done.stdout.startswith("DT101 One launcher per rank instead of one per node")
    assert "\nBad:\n" in done.stdout and "\nGood:\n" in done.stdout


FIXED = "srun -K python x.py\n"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"{HEAD}MASTER_PORT=29500\n{FIXED}", ["DT207"]),
        (f"{HEAD}MASTER_PORT=29500 # workshop: ignore DT207\n{FIXED}", []),
        (f"{HEAD}# workshop: ignore DT207, DT301\nMASTER_PORT=29500\n{FIXED}", []),
        (f"{HEAD}# One job a node. workshop: ignore DT207\nMASTER_PORT=29500\n", []),
        (f"{HEAD}# workshop: ignore\nMASTER_PORT=29500\n{FIXED}", []),
        (f"{HEAD}# workshop: ignore DT208\nMASTER_PORT=29500\n{FIXED}", ["DT207"]),
        (f"{HEAD}# workshop: ignore DT207\n\nMASTER_PORT=29500\n{FIXED}", ["DT207"]),
        (f"{HEAD}# workshop: ignore-file DT207\n\nMASTER_PORT=29500\n{FIXED}", []),
        (f"{HEAD}MASTER_PORT=29500\n# workshop: ignore-file DT207\n", ["DT207"]),
        # a comment can't stand in the middle of a command
        (
            f"{HEAD}# workshop: ignore DT208\nsrun -K torchrun --nnodes=2 \\\n"
            "  --rdzv-backend=c10d --rdzv-endpoint=$a \\\n  --rdzv-id=1 x.py\n",
            [],
        ),
    ],
)
def test_comment_silences_a_rule_where_it_stands(text, codes):
    assert [each.rule.code for each in lint(text)] == codes


def test_secret_is_never_printed():
    key = "0123456789abcdef0123456789abcdef01234567"
    text = f"#!/bin/bash\nexport WANDB_API_KEY={key}\nwandb login {key}\n"
    found = lint(text)
    assert [each.rule.code for each in found] == ["DT404", "DT404"]
    assert key not in str([(each.what, each.cure) for each in found])


def test_all_scripts_at_once_are_read_in_a_moment(capsys):
    """As a pre-commit hook does."""
    assert run([str(path) for path in (*GOOD, *BAD)], []) == 1
    assert "errors" in capsys.readouterr().out
