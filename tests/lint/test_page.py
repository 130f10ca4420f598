"""docs/lint.rst: its table, its numbers, and who links to it."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.lint.corpus import HERE, ROOT
from tools.lint_rules import GROUPS, TABLE, rst, table
from workshop.lint.linting import lint
from workshop.lint.rules import RULES


def test_table_is_the_one_that_the_rules_make():
    assert TABLE.read_text(encoding="utf-8") == table(), (
        "docs/lint_rules.inc is old: python tools/lint_rules.py"
    )


def test_table_has_every_rule_once():
    rows = re.findall(r"^   \* - (DT\d+),", table(), re.M)
    assert rows == [rule.code for rule in RULES]
    assert {rule.code[:3] for rule in RULES} == set(GROUPS)


@pytest.mark.parametrize("name", ["index.rst", "README.md", "CHANGELOG.md"])
def test_number_of_rules_is_the_real_one(name):
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    assert f"finds {len(RULES)} kinds of mistakes" in text


@pytest.mark.parametrize(
    "name",
    [
        "index.rst",
        "docs/lessons/09_slurm/3_look.rst",
        "docs/lessons/10_pbs/4_end.rst",
        "docs/using_the_exercises.rst",
    ],
)
def test_page_is_linked_from(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert ":ref:`lint`" in text or "<lint>`" in text


def test_ignored_line_of_the_page_is_quiet_and_needed():
    text = (ROOT / "docs/examples/lint_ignored.sbatch").read_text(encoding="utf-8")
    assert lint(text) == []
    without = text.replace("workshop: ignore", "workshop:")
    assert [each.rule.code for each in lint(without)] == ["DT207"]


def test_workflow_of_the_page_may_read_a_private_repository():
    """What isn't in `permissions` is forbidden, and both actions need to read."""
    text = (ROOT / "docs/examples/lint_github.yaml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {
        "actions": "read",
        "contents": "read",
        "security-events": "write",
    }
    uses = [step.get("uses", "") for step in workflow["jobs"]["job-scripts"]["steps"]]
    assert uses[0].startswith("actions/checkout@")
    assert uses[-1].startswith("github/codeql-action/upload-sarif@")
    assert "workshop/lint and workshop/errors.py" in text  # the runner has no others


def test_corpus_is_of_this_folder():
    assert (HERE / "good").is_dir() and (HERE / "bad").is_dir()


def test_what_one_types_keeps_its_hyphens_and_quotes():
    core = pytest.importorskip("docutils.core")
    typed = """srun --ntasks="$N" -- bash -c 'cd "$W"'"""
    settings = {"smart_quotes": True}
    parts = core.publish_parts(rst(typed), settings_overrides=settings)
    assert typed in parts["whole"]
