"""The table of rules: each is explained, shown, and tied to a page."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from tests.lint.corpus import BAD, ROOT, promised
from workshop.lint.linting import lint
from workshop.lint.rules import RULES

PACKAGE = ROOT / "workshop" / "lint"
TITLE = re.compile(r"^(.+)\n([=~-])\2{2,}$", re.M)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_bad_example_gives_the_rule_alone_and_the_good_one_nothing(rule):
    assert [each.rule.code for each in lint(rule.bad)] == [rule.code]
    assert lint(rule.good) == []


def test_codes_are_unique_and_in_order():
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"DT\d{3}", code) for code in codes)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_rule_says_what_why_and_how_to_cure_it(rule):
    assert rule.severity in ("error", "warning", "note")
    for text in (rule.title, rule.reason, rule.cure, rule.bad, rule.good):
        assert text.strip()
    assert not rule.title.endswith(".") and rule.reason.endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_page_of_a_rule_has_that_section(rule):
    page = ROOT / f"{rule.page.name}.rst"
    titles = [match[0] for match in TITLE.findall(page.read_text(encoding="utf-8"))]
    assert rule.page.heading in titles


def test_anchor_is_the_one_that_sphinx_makes():
    nodes = pytest.importorskip("docutils.nodes")
    for rule in RULES:
        made = nodes.make_id(rule.page.heading)
        assert rule.page.anchor == f"{rule.page.name}.html#{made}"


def test_every_error_is_found_in_a_script_of_the_corpus():
    """Not only in the rule's own example."""
    found = {code for path in BAD for code in promised(path.read_text("utf-8"))}
    missing = {rule.code for rule in RULES if rule.severity == "error"} - found
    assert missing == {"DT007"}  # git would mend the line ends of such a file


def imports(path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module))
    return found


def test_package_needs_the_standard_library_alone():
    """So that a site can copy it, with workshop/errors.py."""
    for path in PACKAGE.glob("*.py"):
        foreign = {
            name
            for name in imports(path)
            if name.split(".")[0] not in sys.stdlib_module_names
        }
        assert foreign <= {"workshop.errors"}, path.name
    assert imports(ROOT / "workshop" / "errors.py") == set()
