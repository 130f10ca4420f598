"""`make gpu` and tests/gpu, where there is no GPU: what runs, skips, and says so."""

import ast
import os
import re
import subprocess
import sys

import pytest
import torch

from tests.gpu import conftest, results
from tests.launched import environment, run
from tools import gpu, run_tests
from tools.fresh_copy import ROOT

SUITE = sorted((ROOT / "tests/gpu").glob("test_*.py"))


def test_machine_without_a_gpu_is_one_sentence(tmp_path):
    done = run(tmp_path, [sys.executable, ROOT / "tools/gpu.py"])
    assert done.returncode == 2 and done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("gpu: error: PyTorch ")
    assert "finds no GPU here" in sentence


def test_python_without_a_package_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "NEEDED", ("torch", "no_such_package"))
    assert gpu.main() == 2
    assert "has no no_such_package: name a Python that has it" in capsys.readouterr()[1]


def test_command_and_files_are_shown(tmp_path, monkeypatch, capsys):
    build = tmp_path / "build" / "gpu"
    results.write_numbers("memory", {"bytes": 1}, folder=build)
    results.write_transcript("18_roofline", "$ python ...", build)
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setattr(gpu, "BUILD", build)
    monkeypatch.setattr(gpu, "problem", lambda: "")
    ends_with_5 = [sys.executable, "-c", "import sys; sys.exit(5)"]
    monkeypatch.setattr(gpu, "command", lambda arguments: ends_with_5)
    monkeypatch.setattr("sys.argv", ["gpu.py"])
    assert gpu.main() == 5
    first, _, *files = capsys.readouterr().out.splitlines()
    assert first == f"$ {' '.join(ends_with_5)}"
    assert files == ["1 files build/gpu/*.json", "1 files build/gpu/*.gpu.txt"]


def collect(*arguments):
    words = [sys.executable, "-m", "pytest", "-q", "-rs", *arguments, "tests/gpu"]
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, env=environment()
    )


def test_marked_tests_are_skipped_by_name_also_in_ci():
    done = collect("-m", "gpu", "-p", "tools.strict_skips")
    assert done.returncode == 0, done.stdout
    assert "make gpu" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert "skipped" in last and "failed" not in last and "passed" not in last


@pytest.mark.parametrize("given", [None, "1"])
def test_gpu_is_not_measured_beside_other_tests(given, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("WORKSHOP_GPU", raising=False)
    if given:
        monkeypatch.setenv("WORKSHOP_GPU", given)
    assert bool(conftest.why_not()) == (given is None)


def test_make_test_runs_the_suite_in_its_dry_form():
    (rest,) = [part for part in run_tests.parts("short") if part.name == "rest"]
    assert "tests/gpu" in rest.arguments


def marks_of(function):
    return [ast.unparse(one).partition("(")[0] for one in function.decorator_list]


@pytest.mark.parametrize("path", SUITE, ids=lambda path: path.stem)
def test_file_has_a_dry_test(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    tests = [node for node in tests if node.name.startswith("test_")]
    on_a_gpu = [node for node in tests if "pytest.mark.gpu" in marks_of(node)]
    dry = [node for node in tests if node.name.endswith("_dry")]
    assert on_a_gpu and dry
    assert not any("gpu" in ast.unparse(node.args) for node in dry)
    assert not any("pytest.mark.gpu" in marks_of(node) for node in dry)


def test_numbers_and_transcripts_say_where_they_are_from(tmp_path):
    path = results.write_transcript("a", "$ ls\nfile\n\n", tmp_path)
    *_, last = path.read_text(encoding="utf-8").splitlines()
    machine = results.machine()
    assert last == (
        f"Recorded with torch {torch.__version__} on {machine['date']}, on "
        f"{machine['card']}, driver {machine['driver']}"
    )
    content = results.write_numbers("a", 3, folder=tmp_path).read_text(encoding="utf-8")
    assert '"found": 3' in content and torch.__version__ in content


def test_table_of_numbers_begins_with_the_command_that_prints_it(tmp_path):
    results.write_numbers("timers", 3, ["fast 3 ms"], tmp_path)
    first, second, last = (tmp_path / "timers.gpu.txt").read_text().splitlines()
    assert [first, second] == ["$ python tools/gpu.py -k timers", "fast 3 ms"]
    assert last.startswith("Recorded with torch ")


def test_new_tables_are_printed_and_older_ones_not(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "BUILD", tmp_path)
    results.write_numbers("old", 3, ["slow 9 ms"], tmp_path)
    os.utime(tmp_path / "old.gpu.txt", (1, 1))
    results.write_numbers("timers", 3, ["fast 3 ms"], tmp_path)
    results.write_transcript("program", "$ python src/a.py", tmp_path)
    (table,) = gpu.tables_since(begin=2)
    assert table.startswith("$ python tools/gpu.py -k timers\nfast 3 ms\n")


@pytest.mark.full
def test_each_table_s_command_chooses_one_test_that_writes_it():
    for path in SUITE:
        for name in re.findall(r'write_numbers\("(\w+)", .+, table', path.read_text()):
            done = collect("-m", "gpu", "--collect-only", "-k", name)
            assert path.name in done.stdout, name
            assert len({line.split("::")[0] for line in chosen(done.stdout)}) == 1, name


def chosen(text):
    return [line for line in text.splitlines() if line.startswith("tests/gpu/")]
