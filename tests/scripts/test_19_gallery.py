"""The failure gallery: each program fails as its card says, and the cured one doesn't.

That the broken programs fail is what tests/docs/test_transcripts.py checks of their
recordings: `pytest --co -q tests/docs/test_transcripts.py -k "still_prints and 19_"`.
"""

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from common.gallery import (
    SYMPTOMS,
    GalleryError,
    find_failure,
    load_gallery,
    tomllib,
)
from tests.needs import skip_without
from tools import transcripts
from tools.fresh_copy import fresh_copy
from tools.transcript_catalog import Entry, load_catalog
from workshop.lesson_pages import lesson_names

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "gallery"
GALLERY = load_gallery()
PROGRAM = ROOT / "src/instruments/19_gallery.py"


def cured(name: str) -> Entry:
    """The run of the cured program, as a transcript would record it."""
    entry, failure = load_catalog()[f"19_{name}"], GALLERY[name]
    command = f"python src/instruments/19_gallery.py {name} --cured"
    shown = {"command": command, "shows": failure.cured_shows}
    return Entry(**{**vars(entry), **shown, "status": 0})


@pytest.fixture(scope="module")
def tree():
    with fresh_copy() as copy:
        yield copy


def case(name: str):
    on_nodes = GALLERY[name].needs == "cluster"
    marks = [pytest.mark.full, pytest.mark.nodes] if on_nodes else pytest.mark.nightly
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [case(name) for name in GALLERY])
def test_cured_program_runs(name, tree):
    entry = cured(name)
    skip_without(*entry.needs)
    transcripts.run_in(tree, entry)


@pytest.mark.parametrize("name", GALLERY)
def test_recording_shows_what_the_card_says(name):
    failure, entry = GALLERY[name], load_catalog()[f"19_{name}"]
    text = transcripts.body(entry)
    assert re.search(failure.shows, text, re.M), f"record 19_{name} again"
    assert text.startswith(f"$ {failure.command}\n"), f"record 19_{name} again"


@pytest.mark.parametrize("name", GALLERY)
def test_programs_are_small_and_need_torch_alone(name):
    for text in (GALLERY[name].text(), GALLERY[name].cured_text()):
        tree = ast.parse(text)
        docstring = ast.get_docstring(tree)
        assert docstring, f"{name}: say in a sentence what it does"
        assert docstring[-1] == "."
        assert 10 <= len(text.splitlines()) <= 45, f"{name}: 10 to 45 lines"
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for module in names:
                first = module.partition(".")[0]
                assert first in {"torch", *sys.stdlib_module_names}, f"{name}: {module}"


def test_every_program_is_in_the_catalog():
    assert {path.stem for path in FOLDER.rglob("*.py")} == set(GALLERY)


def test_every_symptom_has_failures_and_every_lesson_exists():
    assert {failure.symptom for failure in GALLERY.values()} <= set(SYMPTOMS)
    for failure in GALLERY.values():
        same = [one for one in lesson_names(ROOT) if one[:2] == failure.lesson]
        assert len(same) == 1, f"{failure.name}: no lesson {failure.lesson}"
        assert failure.needs in ("", "cluster"), failure.name
        assert len(failure.title) <= 60, f"{failure.name}: a shorter title"
        assert f"gallery/{failure.name}.py" in failure.command


ON_NODES = "link_down slow_link node_off wrong_interface dropped_port clock_behind"


@pytest.mark.parametrize("name", ON_NODES.split())
def test_failure_of_a_node_or_its_network_is_played_on_two_nodes(name):
    failure = GALLERY[name]
    assert failure.needs == "cluster"
    assert failure.command == f"gallery/two_nodes.sh python gallery/{name}.py"


# The catalog's reader


def written(tmp_path, **fields) -> Path:
    """A catalog with one entry, altered."""
    first = tomllib.loads((FOLDER / "catalog.toml").read_text("utf-8"))["failure"][0]
    lines = [f"{k} = {v!r}" for k, v in {**first, **fields}.items() if v is not None]
    path = tmp_path / "catalog.toml"
    path.write_text("\n".join(["[[failure]]", *lines]))
    return path


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "Port-in-use"}, "no name in snake_case"),
        ({"symptom": "explodes"}, "no symptom 'explodes'"),
        ({"cure": None}, "unknown or missing: .'cure'"),
        ({"color": "red"}, "unknown or missing: .'color'"),
        ({"shows": "("}, "unterminated subpattern"),
    ],
)
def test_mistakes_in_the_catalog_get_a_sentence(tmp_path, fields, words):
    with pytest.raises(GalleryError, match=words):
        load_gallery(written(tmp_path, **fields))


def test_unknown_name_offers_near_ones():
    with pytest.raises(GalleryError, match="did you mean port_in_use"):
        find_failure(GALLERY, "port_is_in_use")
    with pytest.raises(GalleryError, match="--list shows all"):
        find_failure(GALLERY, "zzz")


# The cure below a program


def cured_text_of(tmp_path, cure: str) -> str:
    failure = GALLERY["port_in_use"]
    (tmp_path / "port_in_use.py").write_text('"""It fails."""\n\na\nb\na\n' + cure)
    return failure.cured_text(tmp_path)


def test_cure_changes_docstring_and_lines(tmp_path):
    cure = "\n# The cure: It\n# works.\n#\n#  a\n# -b\n# +c\n# +\n# @@\n# -c\n# +d\n"
    text = cured_text_of(tmp_path, cure)
    assert text == '"""It works."""\n\na\nd\n\na\n'


@pytest.mark.parametrize(
    ("cure", "words"),
    [
        ("", "gallery/port_in_use.py has no '# The cure:' with a diff"),
        ("\n# The cure: It works.\n", "has no '# The cure:' with a diff"),
        ("\n# The cure: It works.\n#\n# -a\n", "stand in the program 2 times"),
        ("\n# The cure: It works.\n#\n# -z\n", "stand in the program 0 times"),
    ],
)
def test_cure_that_does_not_fit_is_one_sentence(tmp_path, cure, words):
    with pytest.raises(GalleryError, match=re.escape(words)):
        cured_text_of(tmp_path, cure)


# The program


def gallery(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_list_shows_every_failure_below_its_symptom():
    done = gallery("--list")
    assert done.returncode == 0
    for failure in GALLERY.values():
        head = done.stdout.index(f"It {failure.symptom}:")
        assert done.stdout.index(f"  {failure.name} ") > head


def test_list_ends_quietly_when_its_reader_has_gone():
    """``--list | head -3``: no traceback once the pipe is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, str(PROGRAM), "--list"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT)
    os.close(writer)
    assert done.stderr == b"" and done.returncode == -signal.SIGPIPE


def test_program_ends_quietly_when_its_reader_has_gone():
    """``NAME | head -1``: no traceback of the program."""
    reader, writer = os.pipe()
    command = [sys.executable, str(PROGRAM), "no_set_epoch"]
    done = subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT)
    os.close(writer)
    assert os.read(reader, 100).startswith(b"$ python gallery/no_set_epoch.py")
    os.close(reader)
    assert done.communicate()[1] == b"" and done.returncode == -signal.SIGPIPE


def test_failure_ends_with_its_status_and_says_what_to_ask():
    done = gallery("port_in_use")
    failure = GALLERY["port_in_use"]
    assert done.returncode == 1 and "EADDRINUSE" in done.stdout + done.stderr
    assert re.search(rf"^Ask:  {re.escape(failure.question)}$", done.stdout, re.M)
    assert done.stdout.index("exit status 1") < done.stdout.index("\nCure: ")


def test_cured_program_has_nothing_to_explain():
    done = gallery("port_in_use", "--cured")
    assert done.returncode == 0 and "connected, 1 rank" in done.stdout
    assert "Cure:" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["port_in_us"], "did you mean port_in_use"), ([], "no failure is named: --list")],
)
def test_bad_names_are_one_sentence(arguments, words):
    done = gallery(*arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert words in line
