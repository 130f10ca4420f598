"""A learner's job script harms nothing, neither by itself nor in its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import CLUSTER, needs
from workshop.grader.checks import checks_in
from workshop.grader.engine import isolation
from workshop.grader.verdicts.verdict import Kind

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        bool(why := isolation.probe()), reason=f"needs namespaces: {why}"
    ),
    pytest.mark.usefixtures("trees_are_unchanged"),
]
ROOT = Path(__file__).resolve().parents[2]

# Which options a job script has, how its nodes run a shell, and places that are never
# a job's; in a rehearsed job of PBS, HOME is the check's own folder.
JOBS = {
    "sbatch": ("#SBATCH --ntasks-per-node=1", "srun", ("/etc/mine", "$HOME/mine")),
    "pbs": ("#PBS -l select=2:ncpus=1,place=scatter", "pbsdsh --", ("/etc/mine",)),
}
SCRIPT = """#!/bin/bash
{options}
tries() {{
  for path in {places}; do
    (echo harm >> "$path") 2> /dev/null && echo "$1 wrote $path"
  done
  cat {other} {root}/solutions/09_two_jobs.sbatch 2> /dev/null
  kill -0 {watching} 2> /dev/null && echo "$1 could end what watches it"
  touch "mine-$1" && echo "$1 has tried"
}}
tries script
{each} bash -c "cd '$PWD'; $(declare -f tries); tries node"
"""
SUBMIT = '''
import pytest
from workshop.grader import expect

@pytest.mark.ranks(1, init=False, limit=60)
def test_answer(exercise_path, scheduler):
    """It writes into its own folder only."""
    job = scheduler.submit(exercise_path, nodes=2)
    said = [line for line in job.output.splitlines() if "srun: " not in line]
    wanted = ["node has tried", "node has tried", "script has tried"]
    expect.equal(sorted(said), wanted, "the output")
'''


@needs(CLUSTER)
@pytest.mark.parametrize("suffix", JOBS)
def test_job_script_does_no_harm(suffix, hiding_engine, learners, victim):
    options, each, places = JOBS[suffix]
    checks = victim.parent / "tests" / "exercises" / "test_it.py"
    checks.parent.mkdir(parents=True, exist_ok=True)
    checks.write_text(SUBMIT)
    answer = victim.parent / "exercises" / f"it.{suffix}"
    answer.parent.mkdir(exist_ok=True)
    for folder in ("job_scripts", "src"):
        if not (victim.parent / folder).exists():
            (victim.parent / folder).symlink_to(ROOT / folder)
    (answer.parent / "catalog.toml").touch()
    watching = hiding_engine._server
    assert watching is not None
    script = SCRIPT.format(
        options=options,
        each=each,
        places=" ".join(f'"{place}"' for place in (victim, *places)),
        other=learners / "bob" / "03_ring_all_reduce.py",
        root=ROOT,
        watching=watching._process.pid,
    )
    answer.write_text(script)
    verdict = hiding_engine.run_check(checks_in(checks)[0], script, answer)
    assert watching._process.poll() is None
    assert verdict.kind is Kind.RIGHT, verdict.message
    assert verdict.lines == []  # nothing was left unchecked, as without a cluster
