"""Every program of src/ starts in a Python that has imported torch and nothing else.

Most tests start it warm, where an import that it lacks would not be missed. Each starts
in a fork of one cold Python, as `import torch` takes longer than all the rest.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
LIMIT = 1800  # seconds for all of them; they take a minute on an idle machine
ALL = sorted(SRC.rglob("[0-9]*.py"))
PROGRAMS = [path for path in ALL if "__main__" in path.read_text("utf-8")]
# Reads paths, a line each; writes what became of each program.
START_EACH = """
import json, os, runpy, sys, tempfile
import torch

for path in sys.stdin.read().splitlines():
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv, sys.path[0] = [path, "--help"], os.path.dirname(path)
            runpy.run_path(path, run_name="__main__")
            sys.exit()
        _, status = os.waitpid(child, 0)
        said = [file.seek(0) or file.read() for file in (out, err)]
    print(json.dumps([path, os.waitstatus_to_exitcode(status), *said]), flush=True)
"""


def start_each(paths: list[Path]) -> dict[Path, tuple[int, str, str]]:
    """Program -> its exit status, standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", START_EACH],
        input="\n".join(map(str, paths)),
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


@pytest.mark.full
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_starts_cold(path, started):
    """It prints its usage, or works without one, or says that it needs a launcher."""
    status, out, err = started[path]
    if status == 0:
        assert out and not err
    else:
        assert "torchrun did not start this process" in err, err


@pytest.mark.full
def test_import_that_a_program_lacks_is_missed(tmp_path):
    lacks = tmp_path / "lacks.py"
    lacks.write_text("import torch\nprint(torch.distributed.tensor.parallel)\n")
    has = tmp_path / "has.py"
    has.write_text(f"import torch.distributed.tensor.parallel\n{lacks.read_text()}")
    ends = start_each([lacks, has])
    assert ends[lacks][0] == 1 and "AttributeError" in ends[lacks][2]
    assert ends[has][0] == 0, ends[has][2]
