"""Every program of src/ starts in a Python that has imported torch and nothing else.

Most tests start it warm, where an import that it lacks would not be missed. Each starts
in a fork of one cold Python, as `import torch` takes longer than all the rest. What
several programs import at their beginning is imported once, in a fork for them alone:
no program finds a module that it doesn't import itself.
"""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
LIMIT = 1800  # seconds for all of them; they take a minute on an idle machine
ALL = sorted(SRC.rglob("[0-9]*.py"))
PROGRAMS = [path for path in ALL if "__main__" in path.read_text("utf-8")]
# Reads [imports, path] of each program, sorted; writes what became of each. All whose
# first import is the same start in a fork that has done this import.
START_EACH = """
import importlib, itertools, json, os, runpy, sys, tempfile, traceback
import torch

def in_a_fork(work, *arguments):
    if os.fork() == 0:
        status = 1
        try:
            work(*arguments)
            status = 0
        except SystemExit as request:
            if isinstance(request.code, str):
                print(request.code, file=sys.stderr)
            else:
                status = request.code or 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(status)  # to take torch apart would cost most of the time
    return os.waitstatus_to_exitcode(os.wait()[1])

def run(path, *outputs):
    for number, output in enumerate(outputs, start=1):
        os.dup2(output.fileno(), number)
    sys.argv, sys.path[0] = [path, "--help"], os.path.dirname(path)
    runpy.run_path(path, run_name="__main__")

def start_one(path):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status = in_a_fork(run, path, out, err)
        said = [file.seek(0) or file.read() for file in (out, err)]
    print(json.dumps([path, status, *said]), flush=True)

def start_after(name, programs):
    importlib.import_module(name)
    start([(imports[1:], path) for imports, path in programs])

def start(programs):
    for first, some in itertools.groupby(programs, lambda program: program[0][:1]):
        if first:
            assert in_a_fork(start_after, first[0], some) == 0, first
        else:
            for _, path in some:
                start_one(path)

start(json.load(sys.stdin))
"""


def modules_of(path: Path, seen: set[Path]) -> list[str]:
    """What a program imports at its beginning, and what of common/ does, in order."""
    seen.add(path)
    found = []
    for statement in ast.parse(path.read_text("utf-8")).body:
        names = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            names = [statement.module or ""]
        for name in names:
            inside = SRC / f"{name.replace('.', '/')}.py"
            if inside.is_file() and inside not in seen:
                found += modules_of(inside, seen)
            elif name.partition(".")[0] not in {*sys.stdlib_module_names, "common", ""}:
                found.append(name)
    return list(dict.fromkeys(found))


def start_each(paths: list[Path]) -> dict[Path, tuple[int, str, str]]:
    """Program -> its exit status, standard output and standard error."""
    modules = {path: modules_of(path, set()) for path in paths}
    users = Counter(name for names in modules.values() for name in names)

    def most_used_first(name: str) -> tuple[int, str]:
        return -users[name], name

    programs = sorted(
        (sorted(names, key=most_used_first), str(path))
        for path, names in modules.items()
    )
    done = subprocess.run(
        [sys.executable, "-c", START_EACH],
        input=json.dumps(programs),
        env={**os.environ, "COLD_PYTHON": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(path): (status, out, err) for path, status, out, err in ends}


@pytest.fixture(scope="module")
def started() -> dict[Path, tuple[int, str, str]]:
    return start_each(PROGRAMS)


@pytest.mark.nightly
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_starts_cold(path, started):
    """It prints its usage, or works without one, or says that it needs a launcher."""
    status, out, err = started[path]
    if status == 0:
        assert out and not err
    else:
        assert "torchrun did not start this process" in err, err


@pytest.mark.nightly
def test_import_that_a_program_lacks_is_missed(tmp_path):
    """Also after another one that has it: `tqdm` makes it the second one to start."""
    uses = "print(torch.distributed.tensor.parallel)\n"
    lacks = tmp_path / "lacks.py"
    lacks.write_text(f"import torch\nimport tqdm\n{uses}")
    has = tmp_path / "has.py"
    has.write_text(f"import torch\nimport torch.distributed.tensor.parallel\n{uses}")
    ends = start_each([lacks, has])
    assert ends[lacks][0] == 1 and "AttributeError" in ends[lacks][2]
    assert ends[has][0] == 0, ends[has][2]
