"""Another torch, another Python, a missing package: it works, or one sentence says why.

The torch that is too old here is a folder with a version and nothing else.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.launched import run
from tests.other_torches import python_with
from workshop import __main__ as entry
from workshop import versions
from workshop.catalog import find_exercise, load_catalog
from workshop.grader.engine.engine import Engine
from workshop.grader.verdicts.verdict import Kind

ROOT = Path(__file__).resolve().parents[2]
ONE = "02_rank_arithmetic"


@pytest.fixture
def torch_of(tmp_path, monkeypatch):
    """``torch_of("2.6.0")``: from now on, also in children, that is the torch."""

    def stand_in(version: str) -> None:
        folder = tmp_path / "torch"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("raise ImportError('of a test')\n")
        text = f"__all__ = ['__version__']\n__version__ = '{version}'\n"
        (folder / "version.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return stand_in


@pytest.mark.parametrize(
    ("version", "works"),
    [
        ("1.13.1", False),
        ("2.7.1+cu126", False),
        ("2.8.0+cu128", True),
        ("2.10.0a0+git1234", True),
        ("3.0.0", True),
        ("of a site", True),  # not known to be too old: try it
    ],
)
def test_version_is_read_without_importing_torch(torch_of, version, works):
    torch_of(version)
    assert versions.installed_torch() == version
    assert (versions.problem_with_torch() == "") is works


def test_torch_is_looked_for_where_this_python_would(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert versions.installed_torch() is None
    assert f"not installed for {sys.executable}" in versions.problem_with_torch()


@pytest.mark.cold("what is imported is the subject")
@pytest.mark.parametrize(
    "words",
    [
        ("workshop", "check", "--solutions", ONE),
        ("workshop", "doctor"),
        ("pytest", "--solutions", "-q", "-k", ONE, "-p", "no:cacheprovider"),
    ],
    ids=["check", "doctor", "pytest"],
)
def test_a_torch_that_is_too_old_is_one_sentence(torch_of, words):
    torch_of("2.6.0+cu124")
    done = run(ROOT, [sys.executable, "-m", *words])
    said = " ".join(f"{done.stdout} {done.stderr}".split())
    assert done.returncode == 3, said
    assert "2.6.0+cu124 is too old" in said and "needs 2.8 or" in said
    assert "report" not in said and "Traceback" not in said


@pytest.mark.cold("-S: without any package but the standard library's")
def test_a_missing_package_is_named_before_anything_is_imported():
    done = run(ROOT, [sys.executable, "-S", "-m", "workshop", "list"])
    assert done.returncode == 3 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("workshop: the package ") and "is missing" in line
    assert "pip install -r requirements-light.txt" in line


def test_an_exercise_may_need_a_newer_torch_than_the_grader(torch_of):
    torch_of("2.8.0")
    exercise = replace(find_exercise(load_catalog(ROOT), "15_fully_shard"), torch="2.9")
    _, verdict = Engine().read(exercise, exercise.solution)
    assert verdict is not None and verdict.kind is Kind.ENVIRONMENT
    assert "torch 2.8.0 is too old, 15_fully_shard needs 2.9" in verdict.message
    torch_of("2.9.1")
    assert Engine().read(exercise, exercise.solution)[1] is None


def test_a_module_with_another_name_than_its_package_is_told_by_the_package():
    told = versions.missing_module("No module named 'yaml.loader'")
    assert "the package pyyaml is missing" in told


def test_a_python_that_is_too_old_gets_a_sentence_not_a_syntax_error(
    monkeypatch, capsys
):
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 3
    assert "this is Python 3.9, and the workshop needs 3.10" in capsys.readouterr().err
    source = Path(entry.__file__).read_text()
    ast.parse(source, feature_version=(3, 6))


@pytest.mark.full
@pytest.mark.cold("another interpreter")
@pytest.mark.parametrize(
    "version", ["2.8.0", pytest.param("2.14.1", marks=pytest.mark.nightly)]
)
def test_the_grader_works_with_an_older_and_the_newest_torch(version):
    python = python_with(version)
    exercises = "03_ring or 05_ddp_by_hand or 15_zero_1"
    solutions = ["--solutions", "--seeds", "1", "-k", exercises]
    answers = [
        "tests/grader/test_known_answers.py",
        "-k",
        "15_zero_1",
        "-m",
        "not full",
    ]
    for words in (solutions, answers):
        done = run(ROOT, [python, "-m", "pytest", "-q", *words], limit=900)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


# -- bring your own environment ------------------------------------------------------
@pytest.fixture(scope="module")
def own_environment(tmp_path_factory):
    """A venv that sees the packages of this one, as one on top of a module does.

    A copy of the workshop lies beside it. The network is not needed, nor allowed.
    """
    folder = tmp_path_factory.mktemp("own")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    old = ["-m", "pip", "uninstall", "--yes", "--quiet", "setuptools"]
    subprocess.run([folder / "venv" / "bin" / "python", *old], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (below,) = Path(sys.prefix).glob("lib/python*/site-packages")
    (site / "module.pth").write_text(f"{below}\n")
    copy = folder / "workshop"
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return copy


def in_own_environment(copy: Path, script: str) -> subprocess.CompletedProcess[str]:
    bin_folder = copy.parent / "venv" / "bin"
    settings = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    path = f"{bin_folder}:{os.environ['PATH']}"
    return run(copy, ["bash", "-ec", script], PATH=path, PYTHONPATH="", **settings)


@pytest.mark.nightly
@pytest.mark.cold("an environment of its own")
def test_the_lines_of_the_page_bring_the_workshop_into_an_environment(own_environment):
    page = (ROOT / "docs" / "setup.rst").read_text()
    section = page.partition("\nBring your own environment\n")[2]
    block = section.partition(".. code-block:: console\n\n")[2].partition("\n\n")[0]
    lines = [line.strip().removeprefix("$ ") for line in block.splitlines()]
    assert lines[-1] == "workshop doctor" and len(lines) == 3
    done = in_own_environment(own_environment, "\n".join(lines))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Successfully installed distributed-pytorch-workshop" in done.stdout
    assert "torch" in done.stdout and "tried with" in done.stdout


@pytest.mark.full
@pytest.mark.cold("an environment of its own")
@pytest.mark.parametrize("version", ["2.4.1+module", "2.6.0", "9.0"])
def test_installing_leaves_the_torch_that_is_there(own_environment, version):
    (site,) = (own_environment.parent / "venv").glob("lib/python*/site-packages")
    info = site / f"torch-{version}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
    (info / "METADATA").write_text(head)
    script = "pip install --dry-run --report report.json --quiet . && cat report.json"
    done = in_own_environment(own_environment, script)
    (info / "METADATA").unlink()
    info.rmdir()
    assert done.returncode == 0, done.stderr
    assert '"name": "distributed-pytorch-workshop"' in done.stdout
    assert '"name": "torch"' not in done.stdout
