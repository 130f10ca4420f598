"""What the pages of the site say of the workshop's own commands is true."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.docs.pages import ROOT, sources
from workshop.grader.verdicts.verdict import EXIT_STATUS, MAX_LINES, Kind

USING = (ROOT / "docs" / "using_the_exercises.rst").read_text(encoding="utf-8")
SETUP = (ROOT / "docs" / "setup.rst").read_text(encoding="utf-8")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_table_of_verdicts_has_every_kind_and_no_other():
    table = USING[USING.index("* - Verdict") : USING.index("For scripts,")]
    rows = re.findall(r"^   \* - (.+)$", table, re.M)
    assert sorted(rows) == sorted(kind.value for kind in Kind)


def test_the_longest_verdict_is_as_long_as_the_page_says():
    assert f"at most {MAX_LINES} lines" in flat(USING)


def test_the_exit_statuses_are_as_the_page_says():
    sentence = "0 right, 1 wrong, 2 not started, 3 environment broken, 4 not fully "
    sentence += "checked"
    assert sentence in flat(USING)
    words = {"environment broken": "environment"}
    told = [one.split(maxsplit=1) for one in sentence.split(", ")]
    expected = {words.get(name, name): int(number) for number, name in told}
    assert expected == EXIT_STATUS


def command_line():
    """The command line of ``workshop``."""
    if importlib.util.find_spec("workshop.cli") is None:
        pytest.skip("the command workshop is not there yet")
    from workshop.cli import cli

    return cli


def test_every_command_of_the_table_exists_and_the_table_has_all():
    table = USING[USING.index("* - Command") : USING.index("``workshop COMMAND")]
    named = set(re.findall(r"``workshop (\w+)", table))
    grading = {"grade"}  # it has a section of its own
    assert named | grading == set(command_line().commands)


def test_every_workshop_command_on_a_page_exists():
    commands = set(command_line().commands)
    for page in sources():
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"(?:\$ |``)workshop ([a-z]+)\b", text):
            assert name in commands, f"{page.name}: workshop {name}"


def test_every_make_target_on_a_page_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    for page in sources():
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"(?:\$ |``)make (?:[A-Z]+=\S+ )?([a-z]+)\b", text):
            assert name in targets, f"{page.name}: make {name}"


def test_the_keys_of_watch_are_as_the_page_says():
    files = (ROOT / "workshop" / "learner" / "watch").glob("*.py")
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    for key in re.findall(r"``([a-z])`` (?:for|to)", flat(USING)):
        assert f'"{key}"' in source, f"watch takes no key {key}"


def test_the_sentences_of_a_stopped_installation_are_the_real_ones():
    files = (ROOT / "tools" / "environment.py", ROOT / "Makefile")
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    # messages are put together from pieces; their words must be there in order
    words = flat(re.sub(r'"\s*\n\s*f?"', "", source))
    section = SETUP[SETUP.index("When the installation stops") :]
    terms = re.findall(r"^(\S[^\n]+)\n   \S", section, re.M)
    assert len(terms) == 4
    for term in terms:
        pieces = term.replace("the disk is full", "is full").split(" 3.10 ")
        assert all(piece in words for piece in pieces), term


def test_the_states_of_doctor_are_the_real_ones():
    display = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "workshop").rglob("*.py")
    )
    for state in ("works", "absent", "broken"):
        assert f'"{state}"' in display, state
        assert re.search(rf"^{state}$", SETUP, re.M), state
