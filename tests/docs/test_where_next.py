"""The page "Where next": the switches of other libraries, and their sources."""

import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
from switches import load_libraries, table

TOOL = ROOT / "tools" / "library_switches.py"
FIELDS = {"lesson", "here", "there", "note", "file", "text"}
LIBRARIES = load_libraries()
SWITCHES = [
    pytest.param(switch, id=f"{library['name']}: {switch['here']}")
    for library in LIBRARIES
    for switch in library["switch"]
]
SHORTEST = 3  # letters of a word that says something


def words_of(text: str) -> set[str]:
    """Words in small letters, with underscores for hyphens."""
    found = re.findall(r"[a-z0-9_]+", text.lower().replace("-", "_"))
    return {word.strip("_") for word in found if len(word) >= SHORTEST}


@pytest.mark.parametrize("switch", SWITCHES)
def test_switch_stands_in_the_line_that_it_is_from(switch):
    assert set(switch) == FIELDS
    assert switch["there"].count("`") % 2 == 0
    assert words_of(f"{switch['there']} {switch['here']}") & words_of(switch["text"])


@pytest.mark.parametrize("switch", SWITCHES)
def test_lesson_of_a_switch_exists(switch):
    assert list((ROOT / "docs" / "lessons").glob(f"{switch['lesson']}_*"))


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["name"])
def test_every_library_says_which_version_was_read(library):
    assert re.fullmatch(r"[0-9a-f]{40}", library["commit"])
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", library["date"])
    shown = table(library)
    assert library["date"] in shown
    assert shown.count(library["commit"]) == len(library["switch"])


def clone_of(folder, library, *, without=""):
    """A repository of one commit that has the texts of a library's switches."""
    clone = folder / library["repository"].split("/")[1]
    clone.mkdir()
    for switch in library["switch"]:
        file = clone / switch["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        if switch["here"] != without:
            with file.open("a") as opened:
                opened.write(switch["text"] + "\n")
    name = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["add", "."], [*name, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(clone), *command], check=True)


def look_up(folder):
    command = [sys.executable, str(TOOL), str(folder), "--newest"]
    return subprocess.run(command, capture_output=True, text=True)


def test_tool_finds_all_switches_and_names_what_it_did_not_look_at(tmp_path):
    first, *others = LIBRARIES
    clone_of(tmp_path, first)
    done = look_up(tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{first['name']}: all {len(first['switch'])}" in done.stdout
    assert done.stdout.count("not looked at") == len(others)


def test_tool_names_a_switch_that_has_gone(tmp_path):
    library = LIBRARIES[-1]
    gone = library["switch"][2]
    clone_of(tmp_path, library, without=gone["here"])
    done = look_up(tmp_path)
    assert done.returncode == 1
    assert repr(gone["text"]) in done.stdout
