"""The commands in the table of src/README.md, and how to run them small."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"\| (\d\d.*?) \| (`\d\d_\w+\.py`.*?) \| (.+?) \| (.+) \| (.+) \|")
LINES = (ROOT / "src" / "README.md").read_text(encoding="utf-8").splitlines()
# lessons, programs, oldest torch, what it shows, command
TABLE = [row.groups() for row in map(ROW.fullmatch, LINES) if row]
ELSEWHERE = "its first lines say how"


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
    for _, programs, _, _, cell in TABLE
    for name, command in commands_of(programs, cell).items()
}
BY_SBATCH = {n: c for n, c in IN_TABLE.items() if c.startswith("sbatch ")}
COMMANDS = {n: c for n, c in IN_TABLE.items() if n not in BY_SBATCH}
# What must be there first, by programs of the table
BEFORE = {
    "06_compare_snapshots.py": (
        "python src/01_single_device.py 1 1 --snapshot a.pt && cp a.pt b.pt"
    ),
    "06_token_stream.py": "python src/06_write_tokens.py tokens",
    "16_checkpoint_to_file.py": (
        "torchrun src/16_fsdp_tensor_parallel.py 2 --save-every 2 "
        "--checkpoints checkpoints"
    ),
    "17_watch_run.py": (
        "torchrun src/starter/train_ddp.py 1 --workers 0 --log-file run.jsonl"
    ),
}
FAILS = {  # to show it
    "07_one_rank_fails.py": 1,
    "19_flight_recorder.py": 1,
    "19_stacks.py": 1,
}
ONE_STEP = {"07_teardown.py", "17_fsdp_accumulation.py"}  # or run: each takes seconds
SMALL = {"23_kills.py": ("60 --kill 1@20", "6 --kill 1@2")}  # steps after the kill
LESS = {  # options of programs that measure for long where nothing is said
    "18_cost.py": "--rounds 1 --batch-size 2",
    "18_scaling.py": "--rounds 1 --steps 2 --batch-size 2",
}


def shortened(command: str) -> str:
    """With two ranks and two steps."""
    program = Path(command.split("src/")[-1].split()[0]).name
    number = "1" if program in ONE_STEP else "2"
    if program in SMALL:
        command = command.replace(*SMALL[program])
    command = re.sub(r"\b\d{2,}(?=\s|$)", number, command)
    command = f"{command} {LESS.get(program, '')}"
    return command.replace("torchrun ", "torchrun --standalone --nproc-per-node=2 ")


def small_script(program: str) -> str:
    """Lines of bash that run a program of the table, and before it what it needs."""
    commands = [BEFORE[program]] if program in BEFORE else []
    return "\n".join(shortened(one) for one in (*commands, COMMANDS[program]))
