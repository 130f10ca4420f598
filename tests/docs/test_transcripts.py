"""Every recorded transcript still holds, and the tool that records them is sound."""

import ast
import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.docs import pages
from tests.needs import skip_without
from tools import transcript_catalog, transcripts
from tools.fresh_copy import fresh_copy
from tools.transcript_catalog import FOLDER, Entry, TranscriptError

CATALOG = transcript_catalog.load_catalog()
PROGRAMS = {
    path.name
    for path in (transcripts.ROOT / "src").rglob("[0-9]*.py")
    if "__main__" in path.read_text(encoding="utf-8")
}


def programs_of(entry: Entry) -> set[str]:
    """The programs of src/ that a transcript's commands, or their scripts, name."""
    text = entry.setup + entry.command
    for script in re.findall(r"(?:job_scripts|solutions)/[\w./]+", text):
        text += (transcripts.ROOT / script).read_text(encoding="utf-8")
    return {name for name in PROGRAMS if re.search(rf"\b{re.escape(name)}", text)}


LESSONS = [("01", "08"), ("09", "16"), ("17", "18"), ("19", "20")]
ON_NODES = LESSONS[1]  # 09 to 11 are on the practice cluster


def lessons(name: str) -> tuple[str, str] | None:
    """The first and last of the lessons whose commands are typed in one clone."""
    return next((some for some in LESSONS if some[0] <= name[:2] <= some[1]), None)


def in_its_clone(name: str, entry: Entry):
    """A case of the tests; conftest.py gives those of one clone to one worker."""
    some = lessons(name)
    in_gallery = bool(entry.shows)
    on_nodes = entry.needs_nodes if in_gallery or not some else some == ON_NODES
    nodes = [pytest.mark.nodes] if on_nodes else []
    number = "to".join(some or (name,))
    marks = [pytest.mark.nightly, *nodes]
    return pytest.param(name, marks=marks, id=f"{name}@{number}")


# In the order in which somebody types them who reads page after page.
TEXT = "".join(map(pages.lesson_source, pages.LESSONS))
SHOWN = re.findall(r"transcript:: (\w+)", TEXT)
SHOWN += [name for name, entry in CATALOG.items() if entry.shows]  # by failures::
ORDER = sorted(CATALOG, key=lambda name: SHOWN.index(name) if name in SHOWN else -1)
EVERY_ONE = [in_its_clone(name, CATALOG[name]) for name in ORDER]


@pytest.fixture(scope="module")
def clones():
    """A copy of the tree for each of LESSONS, made when it is first needed."""
    with ExitStack() as stack:
        yield cache(lambda some: stack.enter_context(fresh_copy()) if some else None)


def test_a_transcript_starts_every_program():
    started = set().union(*map(programs_of, CATALOG.values()))
    assert started >= PROGRAMS


@pytest.mark.parametrize("name", EVERY_ONE)
def test_command_still_prints_what_the_page_shows(name, clones):
    """Commands of lessons are typed page after page, in one folder."""
    entry = CATALOG[name]
    skip_without(*entry.needs)
    for package in entry.packages:
        pytest.importorskip(package, reason=f"no {package}: pip install {package}")
    difference = transcripts.check(entry, clones(lessons(name)))
    assert not difference, (
        f"record it again (python tools/transcripts.py record {name}) if the new "
        f"output is right:\n{difference}"
    )


# the frames of tracebacks, and those of py-spy
FRAME = re.compile(
    r'File "((?:src|gallery)/[\w/.]+)", line (\d+), in \S+\n(?:\[\w+\]:)? {3,}(\S.*)'
)
STACK = re.compile(r"([\w<>]+) \((\w+\.py):(\d+)\)")


@pytest.mark.parametrize("name", sorted(CATALOG))
def test_lines_of_our_files_are_where_a_recording_says(name):
    """Cheaper than to run the command again; and a failure's `shows` has no lines."""
    text = CATALOG[name].path.read_text(encoding="utf-8")
    for file, number, line in FRAME.findall(text):
        source = (transcripts.ROOT / file).read_text(encoding="utf-8").splitlines()
        assert source[int(number) - 1].strip() == line.strip(), f"{file}, line {number}"
    for function, file, number in STACK.findall(text):
        for program in transcripts.ROOT.glob(f"src/**/{file}"):
            called_in = function_that_calls(program, int(number))
            assert called_in == function, f"{file}, line {number}"


def function_that_calls(program: Path, line: int) -> str | None:
    """The innermost function around a call in this line; None if there is no call."""
    tree = ast.parse(program.read_text(encoding="utf-8"))
    here = [
        node
        for node in ast.walk(tree)
        if hasattr(node, "lineno") and node.lineno <= line <= node.end_lineno
    ]
    if not any(isinstance(node, ast.Call) for node in here):
        return None
    functions = [node for node in here if isinstance(node, ast.FunctionDef)]
    if not functions:
        return "<module>"
    return max(functions, key=lambda node: node.lineno).name


def test_every_transcript_of_a_lesson_is_on_a_page():
    assert {name for name in CATALOG if lessons(name)} <= set(SHOWN)


@pytest.mark.parametrize("name", [name for name in CATALOG if lessons(name)])
def test_command_leaves_the_shell_in_which_it_is_typed_as_it_was(name):
    for command in CATALOG[name].commands:
        changed = re.search(r"(^|[;&] *)(cd|ulimit|export|set|source|alias) ", command)
        assert not changed, f"{command}: put it in parentheses"


@pytest.mark.parametrize("name", [name for name in CATALOG if CATALOG[name].fewer])
def test_fewer_changes_only_how_often(name):
    shown, entry = CATALOG[name].command, CATALOG[name]
    short, number = entry.shortened(shown), r"(( --[a-z-]+)? |-)\d+\b"
    assert re.sub(number, "", short) == re.sub(number, "", shown) and short != shown


def test_every_recorded_file_is_in_the_catalog():
    files = {path.stem for path in FOLDER.glob("*.txt")}
    assert files - set(CATALOG) == set()


def test_no_recorded_file_shows_the_machine_it_was_recorded_on():
    for path in FOLDER.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        for private in (str(transcripts.ROOT), str(Path.home()), socket.gethostname()):
            found = re.search(rf"(?<!~){re.escape(private)}(?![\w.-])", text)
            assert not found, f"{path.name} shows {private}"
        elsewhere = re.search(r"/\S+/\.venv/", text)  # recorded in another folder
        assert not elsewhere, f"{path.name} shows {elsewhere[0]}"


# The tool itself


@pytest.fixture(autouse=True)
def _copies_are_small(request, monkeypatch):
    """A copy of all files for each of the commands below would take half a second."""
    if request.function is not test_command_still_prints_what_the_page_shows:
        names = ["README.md", "pyproject.toml"]
        monkeypatch.setattr("tools.fresh_copy.tree_files", lambda: names)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Recordings go to a folder of the test's own."""
    monkeypatch.setattr(transcript_catalog, "FOLDER", tmp_path)
    return tmp_path


def test_python_without_the_environment_is_one_sentence():
    tool = str(transcripts.ROOT / "tools" / "transcripts.py")
    command = [sys.executable, "-S", tool, "record", "01_train"]  # no site-packages
    done = subprocess.run(command, capture_output=True, text=True, env={})
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    assert "has no torch, activate the environment first" in sentence


def test_recording_holds_command_output_and_footer(folder):
    transcripts.record(Entry("hello", "echo one\necho two >&2"))
    lines = (folder / "hello.txt").read_text().splitlines()
    assert lines[:4] == ["$ echo one", "one", "$ echo two >&2", "two"]
    assert re.fullmatch(r"Recorded with torch 2\S+ on \d{4}-\d\d-\d\d", lines[4])
    assert transcripts.check(Entry("hello", "echo one\necho two >&2")) == ""


def test_changed_output_is_shown_as_a_difference(folder):
    transcripts.record(Entry("hello", "cat pyproject.toml | head -1; echo right"))
    path = folder / "hello.txt"
    path.write_text(path.read_text().replace("right", "wrong"))
    difference = transcripts.check(
        Entry("hello", "cat pyproject.toml | head -1; echo right")
    )
    # the command line itself was altered as well as the output
    assert "-wrong" in difference and "+right" in difference


@pytest.mark.full
def test_declared_differences_count_on_both_sides_and_are_not_shown(folder):
    entry = Entry("pid", "echo pid $$ of 4", normalize=((r"pid \d+", "pid N"),))
    transcripts.record(entry)
    shown = (folder / "pid.txt").read_text()
    assert re.search(r"^pid \d+ of 4$", shown, re.MULTILINE)
    assert transcripts.check(entry) == ""
    (folder / "pid.txt").write_text(shown.replace("of 4", "of 5"))
    assert "+pid N of 4" in transcripts.check(entry)


def test_fewer_steps_are_compared_with_those_of_the_page(folder):
    entry = Entry("steps", "seq 30 | tail -n 1", fewer=((r"\b30\b", "3"),))
    transcripts.record(entry)
    shown = (folder / "steps.txt").read_text()
    assert shown.startswith("$ seq 30 | tail -n 1\n30\n")
    assert transcripts.check(entry) == ""
    (folder / "steps.txt").write_text(shown.replace("\n30", "\n29"))
    assert {"-29", "+3"} <= set(transcripts.check(entry).splitlines())


LATE = """[W1121 09:23:59.82 TCPStore.cpp:115] [c10d] recvVector failed on SocketImpl(
Exception raised from recvBytes at /p/Utils.hpp:787 (most recent call first):
frame #0: c10::Error::Error() + 0x9d (0x7f470d131b8d in libc10.so)
<omitting python frames>
frame #29: _start + 0x21 (0x55e018860081 in .venv/bin/python)

W1121 09:23:59.97 dynamic_rendezvous.py:1298] The node 'n2_12_0' has failed to shutdown\
 the rendezvous '1.0' due to an error of type RendezvousConnectionError.
W1121 10:32:50.58 dynamic_rendezvous.py:1346] The node 'n2_4_0' has failed to send a\
 keep-alive heartbeat to the rendezvous '1' due to an error of type RendezvousError.
[W1121 12:08:41.20 TCPStore.cpp:138] [c10d] recvValueWithTimeout failed on SocketImpl(
E1121 12:08:41.365000 15356 server/api.py:1008] Error waiting on exit barrier. Elapsed
E1121 12:08:41.365000 15356 server/api.py:1008] Traceback (most recent call last):
E1121 12:08:41.365000 15356 server/api.py:1008]     store.wait([last_member_key])
"""


def test_agent_that_leaves_last_may_say_so_and_nothing_else():
    entry = Entry("farewell", "true")
    assert transcripts.comparable(entry, f"one\n{LATE}two\n") == ["one", "two"]
    failure = "[E1121 failed] the rendezvous was closed\nthe rendezvous failed\n\n"
    failure += "E1121 12:08:41.365000 15357 server/api.py:1008] rank 1 failed\n"
    assert transcripts.comparable(entry, failure) == failure.splitlines()


@pytest.mark.full
def test_lines_of_ranks_may_come_in_any_order(folder):
    forward = Entry("order", "echo a; echo b", sort_lines=True)
    transcripts.record(forward)
    path = folder / "order.txt"
    path.write_text(path.read_text().replace("\na\nb\n", "\nb\na\n"))
    assert transcripts.check(forward) == ""
    assert transcripts.check(Entry("order", "echo a; echo b")) != ""


@pytest.mark.full
def test_failing_command_is_recorded_only_where_it_was_announced(folder):
    with pytest.raises(TranscriptError, match="status 3, expected 0"):
        transcripts.record(Entry("fails", "echo so; exit 3"))
    assert not (folder / "fails.txt").exists()
    transcripts.record(Entry("fails", "echo so; exit 3", status=3))
    assert "\n[exit status 3]\n" in (folder / "fails.txt").read_text()


@pytest.mark.full
def test_failed_recording_leaves_the_old_one(folder):
    transcripts.record(Entry("kept", "echo old"))
    before = (folder / "kept.txt").read_text()
    with pytest.raises(TranscriptError):
        transcripts.record(Entry("kept", "exit 1"))
    assert (folder / "kept.txt").read_text() == before
    assert [path.name for path in folder.iterdir()] == ["kept.txt"]


@pytest.mark.nightly
def test_hanging_command_is_ended_with_all_its_children(folder, tmp_path):
    mark = tmp_path / "still-alive"
    command = f"(sleep 4; touch {mark}) & sleep 100"
    with pytest.raises(TranscriptError, match="still running after 1 s"):
        transcripts.run(Entry("hangs", command, limit=1))
    import time

    time.sleep(4.5)
    assert not mark.exists()


def test_set_up_alters_only_the_copy_and_is_not_shown(folder):
    entry = Entry("setup", "cat README.md", setup="echo altered > README.md")
    assert transcripts.run(entry) == "$ cat README.md\naltered\n"
    text = (transcripts.ROOT / "README.md").read_text(encoding="utf-8")
    assert text != "altered\n"


@pytest.mark.parametrize("command", ["true", "exit 3", "sleep 9"])
def test_clean_up_runs_whatever_happened_and_is_not_shown(folder, tmp_path, command):
    mark = tmp_path / "cleaned"
    entry = Entry("cleanup", command, cleanup=f"echo gone > {mark}", limit=1)
    if command == "true":
        assert transcripts.run(entry) == "$ true\n"
    else:
        with pytest.raises(TranscriptError):
            transcripts.run(entry)
    assert mark.read_text() == "gone\n"


def test_commands_can_run_inside_another_that_is_not_shown():
    entry = Entry("inside", "echo $WHERE 'a  b'\necho $0", inside="env WHERE=there")
    expected = "$ echo $WHERE 'a  b'\nthere a  b\n$ echo $0\nbash\n"
    assert transcripts.run(entry) == expected


def test_what_a_practice_cluster_lacks_is_named(monkeypatch):
    monkeypatch.setattr(
        "workshop.cluster.nodes.machine.missing", lambda: ["no such luck"]
    )
    entry = Entry("cluster", "true", needs=("practice cluster", "bash"))
    assert entry.missing_programs() == ["a practice cluster (no such luck)"]
    entry = Entry("package", "true", packages=("json", "no_such_package"))
    assert entry.missing_programs() == ["package no_such_package"]


def test_places_of_the_machine_are_hidden(folder):
    command = f"pwd; echo {transcripts.ROOT}/src/x.py; hostname; echo $PWD/src/y.py"
    shown = transcripts.run(Entry("places", f'bash -c "{command}"')).splitlines()[1:]
    assert shown == ["~/workshop", "src/x.py", "laptop", "src/y.py"]


def test_command_sees_no_launcher_and_no_terminal(folder, monkeypatch):
    foreign = "RANK GROUP_RANK OMPI_COMM_WORLD_RANK PMI_RANK SLURM_JOB_ID SLURM_CONF"
    foreign += " PBS_JOBID TORCHELASTIC_RUN_ID PYTEST_ADDOPTS"
    for name in foreign.split():
        monkeypatch.setenv(name, "7")
    shown = transcripts.run(
        Entry("env", f"printenv {foreign}; echo $COLUMNS; [ -t 1 ] || echo pipe")
    )
    assert shown.splitlines()[1:] == ["88", "pipe"]


def test_open_mpi_is_told_that_root_may_start_it():
    shown = transcripts.run(Entry("root", "printenv | grep -c ^OMPI_ALLOW_RUN_AS_ROOT"))
    assert shown.splitlines()[1:] == ["2"]


def test_continued_line_is_one_command():
    entry = Entry("long", "echo one \\\n  two\necho three")
    assert entry.commands == ["echo one \\\n  two", "echo three"]


GOOD = '[[transcript]]\nname = "a"\ncommand = "x"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[transcript]", "cannot read"),
        ('[[transcript]]\nname = "a"', "needs a command"),
        ('[[transcript]]\nname = "../a"\ncommand = "x"', "letters"),
        (
            '[[transcript]]\nname = "a"\ncommand = "x"\nstatsu = 1',
            "unknown fields statsu",
        ),
        ('[[transcript]]\nname = "a"\ncommand = "x"\nnormalize = [["(", ""]]', "pairs"),
        ('[[transcript]]\nname = "a"\ncommand = "x"\n' * 2, "twice"),
    ],
)
def test_mistakes_in_the_catalog_get_a_sentence(tmp_path, text, words):
    path = tmp_path / "catalog.toml"
    path.write_text(text)
    with pytest.raises(TranscriptError, match=words):
        transcript_catalog.load_catalog(path)


def test_unknown_name_offers_near_ones():
    with pytest.raises(TranscriptError, match="did you mean hello_ranks"):
        transcript_catalog.select(
            {"hello_ranks": Entry("hello_ranks", "x")}, ["hello_rank"]
        )


def test_missing_recording_names_the_command_that_makes_it(folder):
    with pytest.raises(TranscriptError, match=r"transcripts.py record nothing"):
        transcripts.check(Entry("nothing", "echo"))


def test_file_that_was_typed_by_hand_is_refused(folder):
    (folder / "typed.txt").write_text("$ echo\n\n")
    with pytest.raises(TranscriptError, match="not written by this tool"):
        transcripts.check(Entry("typed", "echo"))


@pytest.mark.full
def test_one_failure_does_not_stop_the_others(folder, capsys):
    (folder / "catalog.toml").write_text(
        '[[transcript]]\nname = "bad"\ncommand = "exit 1"\n'
        '[[transcript]]\nname = "good"\ncommand = "true"\n'
    )
    assert transcripts.main(["record"]) == 1
    assert "[2/2] good: recorded" in capsys.readouterr().out
