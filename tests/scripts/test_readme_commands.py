"""The commands in the table of src/README.md run, with two steps or epochs.

Of programs that other tests of `make test` start, the command runs at night; if it
stands in a transcript, it runs there, with other numbers perhaps.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from pathlib import Path

import pytest

from common.torch_versions import needed
from tools.readme_commands import (
    BEFORE,
    BY_SBATCH,
    COMMANDS,
    ELSEWHERE,
    FAILS,
    IN_TABLE,
    LINES,
    ROW,
    TABLE,
    small_script,
)
from tools.transcript_catalog import load_catalog

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {path.name: path for path in (ROOT / "src").rglob("[0-9]*.py")}
ONE_SCREEN, COLUMNS = 50, 100  # lines of a terminal, and how wide they are
# Programs that no other test of the short `make test` starts
QUICK = re.compile(r"07_(one_rank|teardown|elastic)|08_link|1[2-6]_|17_fsdp|19_|20_")
COLD = {"07_teardown.py": "its ranks are forked from it, and end as Python ends"}


def without_numbers(command: str) -> str:
    """A command without numbers, continued lines, and what torchrun must know."""
    command = re.sub(r"\\\n|--standalone|--nproc-per-node=\d+", " ", command)
    return " ".join(re.sub(r"\b\d+\b", "N", command).split())


RECORDED = "\n".join(
    without_numbers(line)
    for entry in load_catalog().values()
    for line in entry.commands
)


def is_quick(program: str) -> bool:
    """Whether no other test of `make test` starts it, and no row's set-up does."""
    first = any(program in commands for commands in BEFORE.values())
    return bool(QUICK.match(program)) and not first


def is_recorded(program: str) -> bool:
    return without_numbers(COMMANDS[program]) in RECORDED


def case(program: str):
    marks = [] if is_quick(program) else [pytest.mark.nightly]
    if program in COLD:
        marks.append(pytest.mark.cold(COLD[program]))
    return pytest.param(program, marks=marks)


@pytest.mark.parametrize(
    "program", [case(one) for one in COMMANDS if is_quick(one) or not is_recorded(one)]
)
def test_command_in_the_table_runs(program, tmp_path):
    for name in ("src", "gallery"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(
        ["bash", "-ec", small_script(program)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == FAILS.get(program, 0), done.stdout + done.stderr
    assert done.stdout + done.stderr


def test_every_program_is_in_the_table_once_in_the_row_of_its_lesson():
    named = []
    for lessons, programs, *_ in TABLE:
        names = re.findall(r"`(\S+)`", programs)
        covered = set(re.findall(r"\d\d", lessons))
        if " to " in lessons:
            first, last = map(int, lessons.split(" to "))
            covered = {f"{number:02}" for number in range(first, last + 1)}
        assert {name[:2] for name in names} == covered, names
        named += names
    assert sorted(named) == sorted(PROGRAMS)


def test_each_row_says_the_oldest_torch_of_its_programs():
    """One number for all of them, or one for each of them."""
    for _, programs, torch, _, _ in TABLE:
        oldest = [needed(name) for name in re.findall(r"`(\S+)`", programs)]
        words = [".".join(map(str, release)) for release in oldest]
        if len({*words}) == 1:
            words = words[:1]
        assert torch == ", ".join(words), programs


def test_lessons_of_the_table_are_in_order():
    groups = "\n".join(LINES).split("\n## ")[1:]
    assert len(groups) == 2
    for group in groups:
        rows = filter(None, map(ROW.fullmatch, group.splitlines()))
        first = [row[1][:2] for row in rows]
        assert first == sorted(first) and len(first) > 10


def test_every_program_has_a_command():
    """In the table, or in its own first lines, if the table refers to them."""
    for _, programs, _, _, cell in TABLE:
        for name in re.findall(r"`(\S+)`", programs):
            command = IN_TABLE.get(name)
            if cell == ELSEWHERE:
                path = PROGRAMS[name]
                told = path.read_text(encoding="utf-8").split('"""')[1]
                shown = re.escape(path.relative_to(ROOT).as_posix())
                assert re.search(rf"^    .*{shown}", told, re.M), name
            elif name in BY_SBATCH:
                script = (ROOT / command.split()[1]).read_text(encoding="utf-8")
                assert f"src/{name}" in script, f"{command} does not run {name}"
            else:
                start = re.match(r"(python|torchrun) (--\S+ )*(\S+)", command)
                path = PROGRAMS[name].relative_to(ROOT).as_posix()
                assert start and start[3] == path, f"{name}: {command}"
    assert len(COMMANDS) > 0.9 * len(PROGRAMS)


def test_what_lessons_walk_through_fits_on_one_screen():
    second = LINES.index("## Instruments: what measures, draws, breaks and compares")
    lines = sum(max(1, math.ceil(len(line) / COLUMNS)) for line in LINES[:second])
    assert lines <= ONE_SCREEN, f"{lines} lines: shorten what a program shows"
