"""causes.toml, the one base of what the diagnosis, the search and lesson 19 know."""

from __future__ import annotations

import re
import sys

import pytest

from tests.docs.pages import lesson_source
from tests.grader.test_diagnose import ROOT, written
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed, is_consequence
from workshop.lesson_pages import page_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = (ROOT / "workshop/diagnose/causes.toml").read_text(encoding="utf-8")
RULES = tomllib.loads(TEXT)["cause"]
IN_LOGS = [rule for rule in RULES if rule.get("messages") or rule.get("maybe")]
PAGE = lesson_source("19_when_it_breaks")
GALLERY = tomllib.loads((ROOT / "gallery/catalog.toml").read_text(encoding="utf-8"))
SHEET = (ROOT / "docs/cheat_sheet.rst").read_text(encoding="utf-8")
ROW = re.compile(
    r"^   +\* - (.*?)\n +- .*?(?=\n +\* -|\n\n|\Z)", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"``([^`]+)``|\*([^*]+ by peer)\*")
# Causes whose lines no public thread shows with this cause. Both have a card of the
# gallery. In the threads that were found, their lines had other causes (a full /dev/shm
# or memory, a wrong interface).
WITHOUT_A_THREAD = {"cut_mapped_file", "stale_store"}
# an error as a program prints it, among what a cell shows as code
PRINTED = re.compile(r"Error\b|EADDR|Expected to|Missing key|timed? out|closed by peer")


@pytest.mark.parametrize("rule", IN_LOGS, ids=lambda rule: rule["name"])
def test_every_cause_has_two_real_lines_a_speaker_and_what_settles_it(rule):
    assert len(rule["lines"]) >= 2
    assert rule["speaker"] and rule["confirm"] and rule["cure"]
    for source in rule["sources"]:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", source), source
    for line in rule["lines"]:
        messages = [*rule.get("messages", []), *rule.get("maybe", [])]
        assert any(re.search(message, line) for message in messages), line


def test_every_cause_names_a_thread_but_those_that_are_known_to_lack_one():
    """Whoever finds a thread takes its name out: WITHOUT_A_THREAD only shrinks."""
    lacking = {rule["name"] for rule in IN_LOGS if not rule["sources"]}
    added, found = lacking - WITHOUT_A_THREAD, WITHOUT_A_THREAD - lacking
    assert not added, f"no public thread shows the lines of {sorted(added)}"
    assert not found, f"take {sorted(found)} out of WITHOUT_A_THREAD"
    assert len(WITHOUT_A_THREAD) <= 2


@pytest.mark.parametrize("rule", IN_LOGS, ids=lambda rule: rule["name"])
def test_messages_mean_the_same_in_a_browser_and_with_marks_before_them(rule):
    for message in [*rule.get("messages", []), *rule.get("maybe", [])]:
        assert not message.startswith("^"), message
        assert not re.search(r"\(\?[aiLmsux]|\(\?P|\\Z", message), message


@pytest.mark.parametrize("rule", IN_LOGS, ids=lambda rule: rule["name"])
def test_a_line_of_a_cause_alone_is_a_candidate_of_the_diagnosis(rule, tmp_path):
    """Or explained by a more telling one."""
    where = "srun: error: n1: task 9: Exited\n" if "needs" in rule else ""
    for line in rule["lines"]:
        text = f"{where}os.makedirs(folder)\n{line}\n"
        log = written(tmp_path, text)
        found = candidates(load(ROOT), log, first_failed(log))
        names = {each.cause.name for each in found}
        explained = {name for each in found for name in each.cause.explains}
        harmless = all(each.kind == "noise" for each in log.lines if each.text == line)
        assert rule["name"] in names | explained or harmless, (line, names)


def test_every_group_is_a_table_of_the_lesson():
    groups = {rule["group"] for rule in RULES if "group" in rule}
    assert groups == set(re.findall(r"^\.\. causes:: (.+)$", PAGE, re.MULTILINE))


def test_every_cause_with_messages_has_a_row_or_a_card():
    for rule in IN_LOGS:
        assert ("group" in rule) != bool(rule.get("gallery")), rule["name"]


def patterns():
    """Every expression that the diagnosis or the search compares a line with."""
    entries = [*RULES, *GALLERY["failure"]]
    return [m for e in entries for m in [*e.get("messages", []), *e.get("maybe", [])]]


def lines_of_tables():
    """(file, error line) of the Common mistakes tables and the cheat sheet."""
    files = [ROOT / "docs/cheat_sheet.rst", *(ROOT / "docs/lessons").rglob("*.rst")]
    for path in files:
        text = page_text(path)
        parts = re.split(
            r"^(?:Common mistakes|Ten failures and their cures)\n", text, flags=re.M
        )
        for part in parts[1:]:
            table = re.split(r"\n[^\n]+\n[-=]{4,}\n", part.partition("\n\n")[2])[0]
            for cell in ROW.findall(table):
                for code in CODE.findall(" ".join(cell.split())):
                    line = code[0] or code[1]
                    if PRINTED.search(line):
                        yield path.name, line


@pytest.mark.parametrize(("page", "line"), sorted(set(lines_of_tables())))
def test_error_line_of_a_pages_table_leads_to_an_entry(page, line):
    known = any(re.search(pattern, line) for pattern in patterns())
    known = known or "Caught " in line  # whose own error follows
    assert known or is_consequence(line), f"{page}: no entry knows {line}"


def test_tables_have_error_lines():
    assert len(set(lines_of_tables())) > 15
    assert {page for page, _ in lines_of_tables()} >= {"cheat_sheet.rst"}
