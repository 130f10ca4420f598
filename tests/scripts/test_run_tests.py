"""tools/run_tests.py: all parts run, and the table says where the time went."""

import os
import re
import subprocess
import sys
import threading
import time
import types
import xml.etree.ElementTree as ET

import pytest

from tools import passed_before, run_tests, time_is_up
from tools.run_tests import Part

CASE = '<testcase classname="test_part" name="{}" time="{}">{}</testcase>'
LATE = '<skipped message="the time of this run is up"/>'
CASES = {  # what pytest writes down of a part that fails, one that passes, one skips
    "fails": CASE.format("test_it", 0.1, "<failure/>"),
    "passes": CASE.format("test_quick", 0.1, "") + CASE.format("test_slow", 0.3, ""),
    "skips": CASE.format("test_it", 0.1, "<skipped/>"),
    "late": 2 * CASE.format("test_long", 0.0, LATE),
}
THREE = ("fails", "passes", "skips")
PYTEST = """
import os, sys
from pathlib import Path
junit, cases = sys.argv[1:]
Path(os.environ["SITE_OF_TESTS"], "site-is-built").touch()
print("site of tests:", os.environ["SITE_OF_TESTS"])
Path(junit).write_text(f"<testsuites>{cases}</testsuites>")
sys.exit("failure" in cases)
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Parts to be filled in, which are those of the runner; none has a program."""
    plan = []
    monkeypatch.setattr(run_tests, "BUILD", tmp_path / "build")
    monkeypatch.setattr(run_tests, "parts", lambda size: plan)
    monkeypatch.setattr(run_tests, "PROGRAMS", set())
    monkeypatch.setattr("sys.argv", ["run_tests.py"])
    for name in (passed_before.FOLDER, "SITE_OF_TESTS"):  # of a run around this one
        monkeypatch.delenv(name, raising=False)
    return plan


@pytest.fixture
def parts(plan, tmp_path, monkeypatch):
    """Three parts whose pytest only writes down what it would have seen."""

    def command(part: Part) -> list[str]:
        cases = CASES[part.name.removesuffix("-again")]
        return [sys.executable, "-c", PYTEST, str(part.junit), cases]

    plan += [Part(name, ()) for name in THREE]
    monkeypatch.setattr(run_tests, "command", command)
    monkeypatch.setattr(run_tests.warm, "is_possible", lambda: False)
    return tmp_path / "build"


def test_all_parts_run_when_one_has_failed(parts, capsys):
    assert run_tests.main() == 1
    shown = capsys.readouterr().out
    rows = [line.split()[:4] for line in shown.splitlines()]
    assert ["fails", "1", "1", "0"] in rows
    assert ["passes", "2", "0", "0"] in rows
    assert ["skips", "1", "0", "1"] in rows
    assert shown.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"


def test_end_names_what_failed_and_why(plan, tmp_path, capsys):
    (tmp_path / "test_fails.py").write_text("def test_it(): assert [1, 2] == [1, 3]")
    options = ("--rootdir", str(tmp_path))
    plan.append(Part("any", (*options, str(tmp_path / "test_fails.py"))))
    assert run_tests.main() == 1
    end = capsys.readouterr().out.partition(" seconds in all\n")[2].splitlines()
    assert end[0] == "FAILED test_fails::test_it"
    assert end[1].startswith("E ") and "assert [1, 2] == [1, 3]" in end[1]
    assert end[-1] == "0 passed, 1 failed, 0 skipped"


def test_long_explanation_is_cut(monkeypatch):
    monkeypatch.setattr(run_tests, "EXPLAINED", 2)
    text = "def test_it():\nE  one\nE  two\nE  three"
    failed = f"<failure>{text}</failure>"
    shown = run_tests.why_failed(ET.fromstring(CASE.format("test_it", 0.1, failed)))
    assert shown.splitlines() == [
        *("FAILED test_part::test_it", "E  one", "E  two"),
        "E  ... (1 more, above)",
    ]


def test_parts_share_one_site_which_is_gone_afterwards(parts, capsys):
    run_tests.main()
    shown = capsys.readouterr().out
    folders = set(re.findall(r"site of tests: (.*)", shown))
    assert len(folders) == 1 and shown.count("site of tests: ") > len(THREE)
    assert not os.path.exists(folders.pop())
    assert "SITE_OF_TESTS" not in os.environ


def test_slowest_tests_come_first_and_junit_holds_all(parts, capsys):
    run_tests.main()
    shown = capsys.readouterr().out
    assert shown.index("test_slow") < shown.index("test_quick")
    cases = ET.parse(parts / "junit.xml").iter("testcase")
    assert sorted(case.get("name") for case in cases) == [
        *("test_it", "test_it", "test_quick", "test_slow")
    ]


def test_part_that_takes_longer_than_usual_is_marked():
    usual = run_tests.USUAL["short"]["jobs"]
    for seconds, marked in ((usual, False), (2 * usual, True)):
        outcome = run_tests.Outcome(Part("jobs", ()), 0, seconds, [])
        assert ("slower" in run_tests.table([outcome], "short")) == marked


@pytest.mark.parametrize("size", ["short", "full"])
def test_every_part_has_its_usual_seconds(size, monkeypatch):
    monkeypatch.setattr(run_tests.machine, "missing", lambda: [])
    names = [part.name for part in run_tests.parts(size)]
    assert names == list(run_tests.USUAL[size])


def test_without_a_cluster_tests_of_jobs_skip_beside_those_of_pages(monkeypatch):
    monkeypatch.setattr(run_tests.machine, "missing", lambda: ["no slurmctld"])
    parts = {part.name: part.arguments for part in run_tests.parts("short")}
    assert "jobs" not in parts and "tests/jobs" in parts["pages"]
    assert not any("not nodes" in word for word in parts["pages"])


@pytest.mark.nightly
def test_program_that_no_test_starts_is_a_failure(plan, tmp_path, monkeypatch, capsys):
    """With a pytest of its own, whose Python is warm."""
    started = "import subprocess\ndef test_it(): subprocess.run(['python', 'is.py'])"
    (tmp_path / "test_starts.py").write_text(started)
    options = ("--rootdir", str(tmp_path))
    plan.append(Part("starts", (*options, str(tmp_path / "test_starts.py"))))
    before = dict(os.environ)
    for programs, status in (({"is.py"}, 0), ({"is.py", "is_not.py"}, 1)):
        monkeypatch.setattr(run_tests, "PROGRAMS", programs)
        assert run_tests.main() == status
        assert os.environ == before, "the warm Python of the parts is still set"
    assert "no test has started is_not.py\n" in capsys.readouterr().out


FAIL_FIRST = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", [1, 2, 3])
def test_it(number):
    been_here = Path(__file__).with_name(f"been_{number}")
    first = not been_here.exists()
    been_here.touch()
    assert number != 3 and (number == 1 or not first)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("few", [10, 1])
def test_few_failures_are_tried_once_more_and_named(
    few, plan, tmp_path, monkeypatch, capsys
):
    """One that passes, one that fails once, one that fails always."""
    (tmp_path / "test_fails_first.py").write_text(FAIL_FIRST)
    monkeypatch.setattr(run_tests, "FEW", few)
    options = ("--rootdir", str(tmp_path))
    plan.append(Part("any", (*options, str(tmp_path / "test_fails_first.py"))))
    assert run_tests.main() == 1
    shown = capsys.readouterr().out.splitlines()
    alone = [line for line in shown if line.startswith("failed beside other tests")]
    tried = few > 1
    passed = "test_fails_first::test_it[2]"
    named = f"failed beside other tests, passed alone: {passed}"
    assert alone == ([named] if tried else [])
    assert shown[-1] == f"{1 + tried} passed, {2 - tried} failed, 0 skipped"
    (tmp_path / "test_fails_first.py").write_text(
        FAIL_FIRST.replace("number != 3", "1")
    )
    (tmp_path / "been_2").unlink()
    assert run_tests.main() == 0, "one failure is few"


def test_a_contributors_run_leaves_out_only_what_is_marked():
    short, full = (run_tests.parts(size) for size in ("short", "full"))
    assert [part.name for part in short] == [part.name for part in full]
    assert not any("not full" in " ".join(part.arguments) for part in full)
    assert any("not full" in " ".join(part.arguments) for part in short)


@pytest.mark.parametrize(("size", "at_once"), [("short", 2), ("full", 3)])
def test_so_many_parts_share_the_cores(size, at_once, plan, monkeypatch):
    """Each part waits until that many run; with fewer of them, it gives up."""
    together = threading.Barrier(at_once)

    def run(part: Part) -> run_tests.Outcome:
        together.wait(timeout=20)
        return run_tests.Outcome(part, 0, 0.0, [])

    plan += [Part(f"part {number}", ()) for number in range(2 * at_once)]
    monkeypatch.setattr(run_tests, "run", run)
    outcomes, _ = run_tests.run_parts(size)
    assert [outcome.part for outcome in outcomes] == plan


def test_no_part_may_skip_for_want_of_a_package_in_ci(monkeypatch):
    part = Part("any", ("tests/docs",))
    for ci in ("", "1"):
        monkeypatch.setenv("WORKSHOP_CI", ci)
        assert ("tools.strict_skips" in run_tests.command(part)) == bool(ci)
        assert ("tools.time_is_up" in run_tests.command(part)) == bool(ci)
        assert "tools.time_is_up" not in run_tests.command(part.again)


LONG_AND_SHORT = """
import pytest

@pytest.mark.full
def test_long(): pass
def test_short(): pass
"""


def test_after_its_time_a_run_in_ci_begins_no_long_test(tmp_path):
    (tmp_path / "test_two.py").write_text(LONG_AND_SHORT)
    words = ["-m", "pytest", "-q", "-rs", "-p", "tools.time_is_up"]
    words += ["-p", "no:cacheprovider", "-o", "markers=full"]
    for until, ends in (
        (time.time() + 600, "2 passed"),
        (time.time() - 1, "1 passed, 1 skipped"),
    ):
        done = subprocess.run(
            [sys.executable, *words, str(tmp_path)],
            cwd=run_tests.ROOT,
            env=os.environ | {time_is_up.UNTIL: str(until)},
            capture_output=True,
            text=True,
        )
        assert f"{ends} in" in done.stdout
        assert (time_is_up.REASON in done.stdout) == ("skipped" in ends)


@pytest.mark.parametrize("until", range(5))
def test_each_run_in_ci_begins_with_another_file(until, monkeypatch):
    """Tests of a file stay in their order, which some of them need."""
    names = ("a1", "a2", "b1", "c1", "c2")
    items = [types.SimpleNamespace(path=name[0], name=name) for name in names]
    monkeypatch.setenv(time_is_up.UNTIL, str(until))
    time_is_up.pytest_collection_modifyitems(items)
    shown = " ".join(item.name for item in items)
    orders = ("a1 a2 b1 c1 c2", "b1 c1 c2 a1 a2", "c1 c2 a1 a2 b1")
    assert shown == orders[until % 3]


def test_tests_that_the_time_was_too_short_for_are_counted(parts, plan, capsys):
    plan[:] = [Part("late", ()), Part("skips", ())]
    assert run_tests.main() == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "0 passed, 0 failed, 1 skipped, 2 NOT RUN: the time of this run was up"
    )
