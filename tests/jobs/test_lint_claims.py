"""What the linter's rules say about Slurm, tried on the practice cluster.

That ``SLURM_LOCALID`` begins at 0 on every node is in test_09_slurm_claims.py.
"""

from __future__ import annotations

import re

import pytest

from workshop.lint.linting import lint

pytestmark = pytest.mark.full


@pytest.fixture
def sbatch(submit, checkout):
    """``sbatch(directive, command)``: what sbatch says, and the codes of the rules."""

    def run(directive, command="hostname", *options):
        text = f"#!/bin/bash\n{directive}\n{command}\n"
        (checkout / "rule.sbatch").write_text(text)
        done = submit.run(["sbatch", *options, "rule.sbatch"])
        return done, {found.rule.code for found in lint(text)}

    return run


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("gpu-per-node=2", "unrecognized option"),
        ("timelimit=10", "unrecognized option"),
        ("gpus-per=1", "ambiguous"),
        ("tim=5", "ambiguous"),
    ],
)
def test_names_that_are_no_options_are_refused(sbatch, option, said):
    done, codes = sbatch(f"#SBATCH --{option}")
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert "DT017" in codes


@pytest.mark.parametrize("option", ["ntasks-per-n=2", "partit=main", "nodes=1"])
def test_abbreviation_of_one_option_is_taken(sbatch, option):
    done, codes = sbatch(f"#SBATCH --{option}")
    assert done.returncode == 0, done.stderr
    assert "DT017" not in codes


@pytest.mark.parametrize(
    ("option", "code", "shown"),
    [
        ("time=24:00", "DT018", "TimeLimit=00:24:00"),
        ("mem=64", "DT019", "mem=64M"),
    ],
)
def test_numbers_without_their_units(submit, sbatch, option, code, shown):
    done, codes = sbatch(f"#SBATCH --{option}", "hostname", "--hold", "--parsable")
    assert done.returncode == 0, done.stderr
    number = done.stdout.strip()
    told = submit.run(["scontrol", "show", "job", number]).stdout
    submit.run(["scancel", number])
    assert shown in told and code in codes


def test_step_may_not_want_more_cores_than_the_job_has(submit, checkout):
    text = (
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=2\n"
        "#SBATCH --cpus-per-task=1\nsrun -K --cpus-per-task={} python3 -c 1\n"
    )
    (checkout / "rule.sbatch").write_text(text.format(2))
    job = submit("rule.sbatch", "--output=rule-%j.out")
    assert re.search("More processors requested than permitted", job.output)
    assert "DT132" in {found.rule.code for found in lint(text.format(2))}
    (checkout / "rule.sbatch").write_text(text.format(1))
    assert submit("rule.sbatch", "--output=rule-%j.out").state == "COMPLETED"
