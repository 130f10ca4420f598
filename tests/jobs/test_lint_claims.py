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


@pytest.mark.parametrize(
    ("directive", "code", "said"),
    [
        ("#SBATCH --gres=gpu:1:a100", "DT020", "Invalid generic resource"),
        ("#SBATCH --gpus=1:a100", "DT020", "Invalid generic resource"),
        (
            "#SBATCH --mem=100M\n#SBATCH --mem-per-cpu=10M",
            "DT021",
            "are mutually exclusive",
        ),
        ("#SBATCH \u2013nodes=2", "DT025", "Invalid directive"),
    ],
)
def test_wrong_requests_are_refused(sbatch, directive, code, said):
    done, codes = sbatch(directive)
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert code in codes


def test_words_of_sbatch_are_no_number(submit, checkout):
    text = (
        'JID=$(sbatch --hold --wrap hostname); sbatch --dependency="afterok:$JID" '
        "--wrap hostname; status=$?; scancel ${JID##* }; exit $status"
    )
    done = submit.run(["bash", "-c", text])
    assert done.returncode != 0 and "dependency" in done.stderr, done.stderr
    assert "DT023" in {found.rule.code for found in lint(text)}
    numbered = text.replace("sbatch --hold", "sbatch --parsable --hold")
    done = submit.run(["bash", "-c", numbered])
    assert done.returncode == 0, done.stderr
    assert "DT023" not in {found.rule.code for found in lint(numbered)}


STEPS = (
    "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=2\n{}for i in 1 2; do\n"
    "  srun -n 1 {} sh -c 'date +%s.%N; sleep 2; date +%s.%N' > $i.txt &\ndone\nwait\n"
)


@pytest.mark.parametrize(
    ("directive", "options", "waits"),
    [
        ("", "", True),
        ("", "--exact", False),
        ("", "--cpus-per-task=1", False),
        ("#SBATCH --gres=gpu:2\n", "--exact", True),
        ("#SBATCH --gres=gpu:2\n", "--exact --gres=gpu:1", False),
    ],
)
def test_step_takes_what_it_does_not_share(submit, checkout, directive, options, waits):
    text = STEPS.format(directive, options)
    (checkout / "rule.sbatch").write_text(text)
    assert submit("rule.sbatch", "--output=rule-%j.out").state == "COMPLETED"
    times = []
    for name in ("1.txt", "2.txt"):
        times.append([float(x) for x in (checkout / name).read_text().split()])
    (_, first_end), (second_start, _) = sorted(times)
    assert (second_start >= first_end) == waits
    told = {found.rule.code for found in lint(text.replace("sh -c", "python"))}
    assert ("DT137" in told) == waits


def test_step_reads_the_list_of_a_loop(submit, checkout):
    text = (
        "#!/bin/bash\n#SBATCH --nodes=2\n"
        "scontrol show hostnames $SLURM_JOB_NODELIST > hosts\n"
        "while read -r host; do\n  srun -N 1 -n 1 -w $host hostname{}\ndone < hosts\n"
    )
    for rest, count in (("", 1), (" < /dev/null", 2)):
        (checkout / "rule.sbatch").write_text(text.format(rest))
        job = submit("rule.sbatch", "--output=rule-%j.out")
        assert len(job.output.split()) == count, job.output
        told = {found.rule.code for found in lint(text.format(rest))}
        assert ("DT138" in told) == (count == 1)
