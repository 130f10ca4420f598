"""The Makefile and the small tools behind it: each says what it does, or why not."""

import ast
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tools import figures, serve
from tools.fresh_copy import ROOT, tree_files
from tools.transcript_catalog import FOLDER
from workshop.lesson_pages import first_page, lesson_names

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    of_make = ("MAKE", "MFLAGS", "FULL")  # `make test FULL=1` hands FULL to its tests
    kept = {k: v for k, v in os.environ.items() if not k.startswith(of_make)}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, capture_output=True, text=True, env=kept
    )


# make


def test_make_alone_prints_every_command():
    done = make()
    assert done.returncode == 0
    shown = re.findall(r"^  make (\w+) +\S", done.stdout, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    assert sorted(shown) == sorted(set(phony) - {"env"})


def test_every_target_that_runs_something_brings_its_environment():
    for line in re.findall(r"^[a-z]+:.*$", MAKEFILE, re.MULTILINE):
        target, needed = line.split("##")[0].split(":")
        # gpu: where GPUs are, there is often no network to install anything
        if target in ("help", "env", "clean", "distclean", "gpu"):
            continue
        assert set(needed.split()) & {"env", "site"}, f"make {target} lacks env"


def old_pythons() -> list[str]:
    """Pythons before 3.10 on PATH or kept by pyenv."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    if os.access(kept, os.R_OK | os.X_OK):  # it may be another user's
        found = [str(path) for path in kept.glob("[23].*/bin/python")]
    found += filter(None, map(shutil.which, ("python2", "python3.8", "python3.9")))
    code = "import sys; sys.exit(sys.version_info >= (3, 10))"
    starts = [subprocess.run([name, "-c", code], capture_output=True) for name in found]
    return [done.args[0] for done in starts if done.returncode == 0]


def test_missing_or_old_python_is_one_sentence():
    for python in {"python-of-tomorrow", *old_pythons()}:
        done = make("env", f"PYTHON={python}")
        assert done.returncode == 2
        first, *rest = done.stderr.splitlines()
        assert first.startswith(f"make: {python} is missing or too old, the workshop ")
        assert "3.10 or newer" in first and "make PYTHON=" in first
        assert all(line.startswith("make") for line in rest)  # make's own last word


def test_every_tool_that_make_runs_exists():
    for path in re.findall(r"tools/\w+\.py", MAKEFILE):
        assert (ROOT / path).exists(), path


def test_readme_names_only_commands_that_exist():
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"`make ([a-z]+)", text):
            assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), (
                f"{name}: {target}"
            )


def test_links_of_readme_and_contributing_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert (ROOT / target).exists(), f"{name} links {target}"


def test_every_lesson_is_on_the_map_of_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for lesson in lesson_names(ROOT):
        page = first_page(ROOT, lesson).relative_to(ROOT).as_posix()
        assert f"({page})" in text, f"README.md lacks {page}"


def test_verdict_in_the_readme_is_the_recorded_one():
    recorded = FOLDER / "using_check_deadlock.txt"
    *lines, _footer = recorded.read_text(encoding="utf-8").splitlines()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\n".join(["```text", *lines, "```"]) in text, (
        "copy docs/transcripts/using_check_deadlock.txt into README.md again"
    )


# one prefix for all that belongs to a lesson

TESTS = [p for p in (ROOT / "tests").rglob("test_*.py") if p.parent.name != "exercises"]
PROGRAMS = sorted((ROOT / "src").rglob("[0-9]*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_tests_of_a_program_are_found_by_the_number_of_its_lesson(program):
    own = [path for path in TESTS if path.name.startswith(f"test_{program.stem[:3]}")]
    naming = re.compile(rf"\b{program.stem}\b")
    assert any(naming.search(path.read_text(encoding="utf-8")) for path in own), (
        f"no tests/*/test_{program.stem[:3]}*.py names {program.name}: write "
        f"tests/scripts/test_{program.name}, or rename the file that tests it"
    )


def test_number_of_a_lesson_stands_first_in_the_name_of_a_test():
    numbered = [path.name for path in TESTS if re.search(r"_\d\d_", path.name)]
    assert numbered
    later = [name for name in numbered if not re.match(r"test_\d\d_", name)]
    assert not later, f"tests of a lesson are named test_NN_...: {later}"


# names that the field doesn't use

HOUSE_WORDS = {"mine", "places", "numbers", "whole_bytes", "let_go", "one_voice"}
READ_BY_LEARNERS = ("src", "gallery", "solutions", "exercises", "docs/examples")
NAMED = ("id", "attr", "arg", "name", "asname")  # what nodes of ast call a name


def house_words(code: str) -> list[str]:
    """Line and name of each identifier of the code that is a house word."""
    return [
        f"line {node.lineno}: {name}"
        for node in ast.walk(ast.parse(code))
        for name in (getattr(node, field, None) for field in NAMED)
        if isinstance(name, str) and name.strip("_") in HOUSE_WORDS
    ]


@pytest.mark.parametrize("folder", [*READ_BY_LEARNERS, "workshop"])
def test_identifiers_are_words_of_the_field(folder):
    found = [
        f"{path.relative_to(ROOT)}, {word}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for word in house_words(path.read_text(encoding="utf-8"))
    ]
    assert not found, "write own, metrics... instead of\n" + "\n".join(found)


def test_the_rule_about_identifiers_finds_what_it_should():
    for code in ("mine = 1", "def let_go(): 0", "lambda places: 0", "f(numbers=1)"):
        assert len(house_words(code)) == 1, code
    assert len(house_words("x._numbers; import torch as mine")) == 2
    assert not house_words("'mine'  # numbers\nown, of_places = 1, 2")


HOLDS_A_PROGRAM = re.compile(  # also in a script that a test writes
    r"^ *(\w+) = (?:importlib\.)?import_module\([\"']\d\d_(\w+)[\"']\)$", re.M
)


def test_tests_call_a_program_by_its_present_name():
    found = 0
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for name, program in HOLDS_A_PROGRAM.findall(path.read_text(encoding="utf-8")):
            found += 1
            assert name in (program, "program"), (
                f"{path.relative_to(ROOT)}: {name} holds {program}.py"
            )
    assert found


# CI


def skipping_test(folder: Path, reason: str) -> Path:
    path = folder / "test_skips.py"
    path.write_text(f"import pytest\ndef test_it():\n    pytest.skip({reason!r})\n")
    return path


def run_strictly(path: Path) -> "subprocess.CompletedProcess[str]":
    plugins = ["-p", "tools.strict_skips", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", *plugins, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_ci_fails_where_a_package_is_missing(tmp_path):
    reason = "no chromium: sudo apt-get install chromium"
    done = run_strictly(skipping_test(tmp_path, reason))
    assert done.returncode == 1
    assert f"CI must not skip this: Skipped: {reason}" in done.stdout


def test_ci_fails_where_a_whole_file_skips_for_a_package(tmp_path):
    path = tmp_path / "test_module.py"
    path.write_text(
        "import pytest\n"
        "pytest.skip('sudo apt-get install slurm-wlm', allow_module_level=True)\n"
    )
    assert run_strictly(path).returncode != 0


def test_ci_accepts_a_skip_for_want_of_hardware(tmp_path):
    done = run_strictly(skipping_test(tmp_path, "this machine has no GPU"))
    assert done.returncode == 0
    assert "1 skipped" in done.stdout


def test_ci_runs_the_readmes_test_command_strictly():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    until = r"WORKSHOP_UNTIL=\$\(\(begin \+ \d\d \* 60\)\)"
    strict, longer = script.split("\nexport WORKSHOP_CI=1\n")
    assert "FULL=1\n" not in strict.partition("set -euo")[2]
    assert re.findall(rf"^{until} (.*)$", longer, re.M) == [
        "make test FULL=1",
        "make nightly",
    ]
    assert "tools/run_tests.py --full" in make("-n", "test", "FULL=1").stdout
    assert "tools/run_tests.py --nightly" in make("-n", "nightly").stdout
    assert "--" not in make("-n", "test").stdout.partition("run_tests.py")[2]


# serve


@pytest.mark.parametrize("text", ["0", "65536", "http", "-1", ""])
def test_impossible_port_is_one_sentence(text, capsys):
    assert serve.main([text]) == 2
    assert capsys.readouterr().err.startswith("serve: PORT must be a number")


@pytest.fixture
def pages(tmp_path, monkeypatch):
    (tmp_path / "index.html").write_text("<p>here</p>")
    (tmp_path / "404.html").write_text("<p>not here</p>")
    monkeypatch.setattr(serve, "PAGES", tmp_path)
    return tmp_path


def test_taken_port_names_another(pages, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert serve.main([str(port)]) == 2
    assert f"make serve PORT={port + 1}" in capsys.readouterr().err


def test_missing_site_names_the_command_that_builds_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(serve, "PAGES", tmp_path)
    assert serve.main([]) == 2
    assert "make site builds it" in capsys.readouterr().err


def test_pages_are_served_to_this_machine_only(pages):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        "import pathlib, sys; from tools import serve;"
        "serve.PAGES = pathlib.Path(sys.argv[1]); sys.exit(serve.main(sys.argv[2:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(pages), str(port)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert f"http://127.0.0.1:{port}" in process.stdout.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
            assert answer.read() == b"<p>here</p>"
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/no/such", timeout=20)
        assert missing.value.code == 404
        assert missing.value.read() == b"<p>not here</p>"
        process.send_signal(2)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()


# figures


def test_figure_that_cannot_be_drawn_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "good.py").write_text(
        "from pathlib import Path\nPath('good.svg').write_text('<svg/>')\n"
    )
    (tmp_path / "bad.py").write_text("raise ValueError('text leaves its box')\n")
    (tmp_path / "svg.py").write_text("raise SystemExit(1)  # the helper is no figure\n")
    monkeypatch.setattr(figures, "FOLDER", tmp_path)
    assert figures.main() == 1
    shown = capsys.readouterr()
    assert shown.out == "good.svg\n"
    assert "bad.py failed: ValueError: text leaves its box" in shown.err


# constraints and settings


def test_no_file_names_a_registry():
    """Where packages come from is the reader's own setting of pip."""
    hosts = re.compile(r"pypi\.org|files\.pythonhosted|download\.pytorch\.org/whl")
    for name in tree_files():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".txt", ".rst", ".yaml", "") and (
            path != Path(__file__)
        ):
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not hosts.search(text), f"{name} names a package registry"
