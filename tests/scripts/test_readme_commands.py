"""The commands in the table of src/README.md run, with two steps or epochs.

In FULL=1 those that stand in a transcript run there, with other numbers perhaps.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tools.transcript_catalog import load_catalog

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"\| (\d\d.*?) \| (`\d\d_\w+\.py`.*?) \| (.+) \| (.+) \|")
LINES = (ROOT / "src" / "README.md").read_text(encoding="utf-8").splitlines()
TABLE = [row.groups() for row in map(ROW.fullmatch, LINES) if row]
PROGRAMS = {path.name for path in (ROOT / "src").glob("[0-9]*.py")}
ELSEWHERE = "its first lines say how"
ONE_SCREEN = 45  # lines


def commands_of(programs: str, cell: str) -> dict[str, str]:
    """Program -> its command; a row's only command is for all of its programs."""
    names, given = re.findall(r"`(\S+)`", programs), re.findall(r"`(.+?)`", cell)
    if len(given) == 1:
        return {name: given[0].replace(names[0], name) for name in names}
    known = len(given) in (0, len(names))
    assert known, f"src/README.md: write one command, or one for each of {programs}"
    return dict(zip(names, given, strict=False))


IN_TABLE = {
    name: command
    for _, programs, _, cell in TABLE
    for name, command in commands_of(programs, cell).items()
}
BY_SBATCH = {n: c for n, c in IN_TABLE.items() if c.startswith("sbatch ")}
COMMANDS = {n: c for n, c in IN_TABLE.items() if n not in BY_SBATCH}
# What must be there first, by programs of the table
BEFORE = {
    "06_compare_snapshots.py": (
        "python src/01_single_device.py 1 1 --snapshot a.pt && cp a.pt b.pt"
    ),
    "16_checkpoint_to_file.py": (
        "torchrun src/16_fsdp_tensor_parallel.py 2 --save-every 2 "
        "--checkpoints checkpoints"
    ),
}
# Programs that no other test of the short `make test` starts
QUICK = re.compile(r"07_(one_rank|teardown|elastic)|08_link|1[2-6]_|17_fsdp|19_|20_")
FULL = bool(os.environ.get("WORKSHOP_FULL"))
FAILS = {"07_one_rank_fails.py": 1, "19_flight_recorder.py": 1}  # to show it
COLD = {"07_teardown.py": "its ranks are forked from it, and end as Python ends"}
ONE_STEP = {"07_teardown.py", "17_fsdp_accumulation.py"}  # or run: each takes seconds
LESS = {  # options of programs that measure for long where nothing is said
    "18_cost.py": "--rounds 1 --batch-size 2",
    "18_scaling.py": "--rounds 1 --steps 2 --batch-size 2",
}


def shortened(command: str) -> str:
    """With two ranks and two steps."""
    program = command.split("src/")[-1].split()[0]
    command = re.sub(r"\b\d{2,}(?=\s|$)", "1" if program in ONE_STEP else "2", command)
    command = f"{command} {LESS.get(program, '')}"
    return command.replace("torchrun ", "torchrun --standalone --nproc-per-node=2 ")


def without_numbers(command: str) -> str:
    """A command without numbers, continued lines, and what torchrun must know."""
    command = re.sub(r"\\\n|--standalone|--nproc-per-node=\d+", " ", command)
    return " ".join(re.sub(r"\b\d+\b", "N", command).split())


RECORDED = "\n".join(
    without_numbers(line)
    for entry in load_catalog().values()
    for line in entry.commands
)


def runs_here(program: str) -> bool:
    if not FULL:
        first = any(program in commands for commands in BEFORE.values())
        return bool(QUICK.match(program)) and not first
    return without_numbers(COMMANDS[program]) not in RECORDED


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, marks=pytest.mark.cold(COLD[program]))
        if program in COLD
        else program
        for program in filter(runs_here, COMMANDS)
    ],
)
def test_command_in_the_table_runs(program, tmp_path):
    for name in ("src", "gallery"):
        (tmp_path / name).symlink_to(ROOT / name)
    commands = [BEFORE[program]] if program in BEFORE else []
    commands = [shortened(one) for one in (*commands, COMMANDS[program])]
    done = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
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
    for lessons, programs, _, _ in TABLE:
        names = re.findall(r"`(\S+)`", programs)
        covered = set(re.findall(r"\d\d", lessons))
        if " to " in lessons:
            first, last = map(int, lessons.split(" to "))
            covered = {f"{number:02}" for number in range(first, last + 1)}
        assert {name[:2] for name in names} == covered, names
        named += names
    assert sorted(named) == sorted(PROGRAMS)


def test_lessons_of_the_table_are_in_order():
    first = [lessons[:2] for lessons, *_ in TABLE]
    assert first == sorted(first)


def test_every_program_has_a_command():
    """In the table, or in its own first lines, if the table refers to them."""
    for _, programs, _, cell in TABLE:
        for name in re.findall(r"`(\S+)`", programs):
            command = IN_TABLE.get(name)
            if cell == ELSEWHERE:
                told = (ROOT / "src" / name).read_text(encoding="utf-8")
                assert re.search(rf"^    .*src/{name}", told.split('"""')[1], re.M)
            elif name in BY_SBATCH:
                script = (ROOT / command.split()[1]).read_text(encoding="utf-8")
                assert f"src/{name}" in script, f"{command} does not run {name}"
            else:
                start = re.match(r"(python|torchrun) (--\S+ )*src/(\S+)", command)
                assert start and start[3] == name, f"{name}: {command}"
    assert len(COMMANDS) > 0.9 * len(PROGRAMS)


def test_table_fits_on_one_screen():
    assert len(LINES) <= ONE_SCREEN
