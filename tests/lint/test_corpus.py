"""What the linter says of scripts as people publish them, and of our own."""

from __future__ import annotations

import pytest

from tests.lint.corpus import BAD, GOOD, ROOT, promised
from workshop.author.answers import read_answers
from workshop.catalog import load_catalog
from workshop.lint.linting import lint
from workshop.skeleton import with_answers

# Of lesson 10: each shows one mistake, on purpose.
TRAPS = ROOT / "docs" / "examples" / "pbs_traps"
SHOWN = ROOT / "docs" / "examples" / "lint_four_launchers.sbatch"  # wrong on purpose
JOBS = (".sbatch", ".pbs", ".sh")
OURS = sorted(
    path
    for folder in ("job_scripts", "solutions", "docs/examples", "gallery")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in JOBS and TRAPS not in path.parents and path != SHOWN
)


def errors(text: str) -> list[str]:
    found = [each for each in lint(text) if each.is_error]
    return [f"{each.line}: {each.rule.code} {each.what}" for each in found]


ANSWERS = {
    answer.id: answer
    for exercise in load_catalog(ROOT)
    if exercise.suffix in JOBS
    for answer in read_answers(exercise.answers, exercise.name)
}
RIGHT = [name for name, answer in ANSWERS.items() if answer.is_right]


def filled_in(name: str) -> str:
    """The job script with the known answer of this name."""
    answer = ANSWERS[name]
    (solution,) = (ROOT / "solutions").glob(f"{answer.exercise}.*")
    return with_answers(solution.read_text(encoding="utf-8"), answer.code)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_good_script_gives_no_error(path):
    assert errors(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_bad_script_gives_its_codes_and_no_others(path):
    text = path.read_text(encoding="utf-8")
    assert sorted(each.rule.code for each in lint(text)) == promised(text)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_own_scripts_give_no_error(path):
    assert errors(path.read_text(encoding="utf-8")) == []


def test_our_job_scripts_give_no_finding_at_all():
    scripts = [path for path in OURS if path.parent == ROOT / "job_scripts"]
    found = {path.name: lint(path.read_text(encoding="utf-8")) for path in scripts}
    assert len(found) > 15
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answer_to_an_exercise_gives_no_error(name):
    assert errors(filled_in(name)) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("09_one_launcher_per_node/as_it_was", "DT101"),
        ("09_one_launcher_per_node/nodes_forgotten", "DT102"),
        ("09_one_launcher_per_node/without_srun", "DT103"),
        ("09_one_launcher_per_node/directive_at_the_end", "DT001"),
        ("09_one_launcher_per_node/space_in_the_directive", "DT003"),
        ("09_node_rank/double_quotes", "DT107"),
        ("09_node_rank/kept_in_a_variable", "DT107"),
        ("09_node_rank/quotes_without_a_shell", "DT120"),
        ("09_node_rank/each_its_own_master", "DT206"),
        ("09_node_rank/localhost", "DT203"),
        ("09_node_rank/node_rank_forgotten", "DT202"),
        ("09_node_rank/not_waited_for", "DT303"),
        ("09_two_jobs/number_as_it_is", "DT210"),
        ("09_dead_task/no_kill", "DT301"),
        ("09_dead_task/status_lost_in_a_pipe", "DT302"),
        ("09_dead_task/status_of_echo", "DT304"),
        ("10_every_node/pbs_nodeid", "DT108"),
        ("10_every_node/localhost", "DT203"),
        ("10_every_node/no_waiting", "DT303"),
        ("10_bare_environment/status_of_pbsdsh", "DT310"),
    ],
)
def test_mistake_that_the_grader_knows_is_found(name, code):
    assert code in [each.rule.code for each in lint(filled_in(name))]


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("first_host_only", {"DT103"}),
        ("pbs_nodeid", {"DT103", "DT108"}),
        ("relative", {"DT116"}),
    ],
)
def test_traps_of_lesson_10_are_found(name, codes):
    text = (TRAPS / f"{name}.pbs").read_text(encoding="utf-8")
    assert {each.rule.code for each in lint(text) if each.is_error} == codes


def test_there_are_enough_scripts_of_both_kinds():
    assert len(GOOD) >= 30
    assert len(BAD) >= 40
