"""No script and no solution ends its process group while a DDP module is there.

What may happen otherwise is shown in lesson 7, and counted by `make bench`. What
DTensor keeps cannot be released; programs with it end at once, as lesson 14 says.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENDS = {"destroy_process_group", "cleanup"}
WRAPS = {"DDP", "DistributedDataParallel"}
MEANT_TO_SHOW_IT = {"07_teardown.py"}
LIMIT = 200  # s: a cold Python imports torch, beside other programs in a minute


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def parts(tree: ast.Module):
    """The module and its functions, each without the functions inside it."""
    for scope in ast.walk(tree):
        if isinstance(scope, (ast.Module, ast.FunctionDef)):
            yield scope


def own_nodes(scope: ast.AST):
    """What runs in the scope itself."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield child
            yield from own_nodes(child)


def offenders(text: str) -> list[str]:
    """The names of DDP modules that are still there when the group ends."""
    found = []
    for scope in parts(ast.parse(text)):
        wrapped, released, ends = set(), set(), False
        for node in own_nodes(scope):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                if name_of(node.value) in WRAPS:
                    wrapped |= {ast.unparse(target) for target in node.targets}
            elif isinstance(node, ast.Delete):
                released |= {ast.unparse(target) for target in node.targets}
            elif isinstance(node, ast.Call):
                ends = ends or name_of(node) in ENDS
        if ends:
            found += sorted(wrapped - released)
    return found


def programs():
    for folder in ("src", "solutions", "exercises"):
        for path in sorted((ROOT / folder).rglob("[0-9]*.py")):
            text = path.read_text(encoding="utf-8")
            wraps = any(f"{name}(" in text for name in WRAPS)
            if wraps and path.name not in MEANT_TO_SHOW_IT:
                yield path


@pytest.mark.parametrize(
    "path", list(programs()), ids=lambda p: f"{p.parent.name}/{p.name}"
)
def test_ddp_is_gone_before_its_group(path):
    names = offenders(path.read_text(encoding="utf-8"))
    assert not names, f"{path.name}: del {names[0]} before the process group ends"


def test_usual_shape_is_noticed_and_both_cures_are_accepted():
    usual = "def main():\n    m = DDP(net)\n    dist.destroy_process_group()\n"
    assert offenders(usual) == ["m"]
    assert offenders(usual.replace("    dist", "    del m\n    dist")) == []
    apart = "def train():\n    m = DDP(net)\ndef main():\n    train()\n    cleanup()"
    assert offenders(apart) == []


def imported_by(path: Path) -> set[str]:
    """Names that a script imports, by itself and by what it imports of src."""
    names, own = set(), [path]
    for source in own:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names |= {alias.name for alias in node.names}
                beside = ROOT / "src" / f"{str(node.module).replace('.', '/')}.py"
                if beside.exists() and beside not in own:
                    own.append(beside)
    return names


MAKES_DTENSORS = {"fully_shard", "parallelize_module", "distribute_tensor"}


def programs_in_a_group():
    """Each script of src whose ``main`` destroys a process group, and its last line."""
    for path in sorted((ROOT / "src").rglob("[0-9]*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name == "main":
                calls = [n for n in own_nodes(node) if isinstance(n, ast.Call)]
                if ENDS & {name_of(call) for call in calls}:
                    yield path, ast.unparse(body[-1]).splitlines()[-1].strip()


def test_programs_with_dtensor_end_at_once():
    with_dtensor = {
        path.name: last_line
        for path, last_line in programs_in_a_group()
        if MAKES_DTENSORS & imported_by(path)
    }
    assert {"15_fsdp.py", "14_tensor_parallel.py"} <= set(with_dtensor)
    for name, last_line in with_dtensor.items():
        assert last_line.endswith("run_and_exit(main)"), name


@pytest.mark.nightly
@pytest.mark.cold("how Python itself ends is the subject")
def test_ending_at_once_keeps_what_was_printed_and_the_exit_status():
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "import atexit; from common.gpt_training import run_and_exit\n"
        "atexit.register(print, 'cleared up')\n"
        "def main():\n    print('done')\n    WHAT\n"
        "run_and_exit(main)"
    )
    for what, status in ("pass", 0), ("sys.exit()", 0), ("sys.exit(2)", 2):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("WHAT", what)],
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert (done.stdout, done.returncode) == ("done\n", status), done.stderr


TICKING = """
import sys, threading, time
from importlib import import_module
teardown = import_module("instruments.07_teardown")

def ticking():
    def tick():
        while True:
            sum(range(10**5))
            time.sleep(0.1)
    threading.Thread(target=tick, daemon=True).start()
    time.sleep(30)  # or it ends well, and nothing is left behind

teardown.SHAPES["ticking"] = ticking
print(teardown.end_of_run("ticking", sys.argv[1]))
"""


@pytest.mark.nightly
@pytest.mark.cold("how Python itself ends is the subject")
def test_ranks_hang_although_another_thread_of_theirs_looks_round(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TICKING, tmp_path / "store"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.stdout == "hangs\n", done.stderr
