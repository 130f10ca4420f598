"""How much a reader opens for each program of src/, and what may never grow again.

pytest tests/scripts/test_programs.py -s -k table    # prints the table
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
SCRIPTS = SRC.parent / "docs" / "_static" / "js"
PROGRAMS = sorted(SRC.glob("*.py"))
MODULES = sorted(path for path in (SRC / "common").glob("*.py") if path.stem[0] != "_")
OWN_LINES, MODULE_LINES = 180, 250
EARLY, LATE = (3, 600), (6, 1200)  # modules of common, lines: to lesson 11, and after
# own lines, modules, lines; the capstone puts together what lessons 6 to 17 teach
ONLY = {"07_elastic.py": (60, 0, 60), "20_capstone.py": (179, 6, 1249)}

# (own lines, modules, lines) of programs that do not meet the bounds yet: may shrink
NOT_YET = {
    "01_single_device.py": (77, 3, 648),
    "04_data_parallel.py": (90, 3, 661),
    "05_ddp_spawn.py": (102, 3, 673),
    "06_checkpoint.py": (163, 3, 734),
    "07_torchrun.py": (114, 3, 685),
    "08_multinode_spawn.py": (136, 3, 707),
    "08_multinode_torchrun.py": (104, 3, 675),
    "09_requeue.py": (153, 3, 724),
    "09_srun.py": (138, 3, 709),
}
# how many public names of a module fewer than two files of src use: may shrink
NOT_YET_TWICE = {
    "byte_gpt.py": 5,
    "checkpoint.py": 7,
    "cost.py": 1,
    "formulas.py": 3,  # the types of its arguments, which JavaScript does not need
    "full_state.py": 5,
    "gallery.py": 2,  # the page's cards and the transcripts use them, too
    "links.py": 1,
    "manifest.py": 1,
    "measure.py": 4,
    "mesh.py": 3,
    "model_parallel.py": 1,
    "pipeline.py": 6,
    "tensor_parallel.py": 13,
    "trace.py": 1,
    "zero.py": 5,
}
# modules of more than MODULE_LINES, with their lines: may shrink
TOO_LONG: dict[str, int] = {}


def imported(path):
    """The modules of common that a file imports itself."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "common":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            package, _, module = node.module.partition(".")
            found |= {module} if package == "common" else set()
    return found


def opened(path):
    """All modules that a reader of a program may have to open."""
    found, new = set(), imported(path)
    while new:
        found |= new
        modules = [SRC / "common" / f"{name}.py" for name in new]
        new = {name for module in modules for name in imported(module)} - found
    return found


def public_names(path):
    """The functions and classes of a module that do not begin with an underscore."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {
        node.name for node in body if isinstance(node, kinds) and node.name[0] != "_"
    }


@cache
def used_names(path):
    """(module of common, name) of everything that a file takes from common."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found, modules = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "common":
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and str(node.module)[:7] == "common.":
            found |= {(node.module[7:], alias.name) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {(modules.get(node.value.id), node.attr)}
    return found


def in_pages(path):
    """The words of each script of the site, if the module has its partner there."""
    partner = (SCRIPTS / f"{path.stem}.js").exists()
    scripts = SCRIPTS.glob("*.js") if partner else []
    return [set(re.findall(r"\w+", file.read_text("utf-8"))) for file in scripts]


def used_once(path):
    """The public names of a module that fewer than two files use, itself included."""
    text = path.read_text(encoding="utf-8")
    own = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    uses = [used_names(file) for file in [*PROGRAMS, *MODULES] if file != path]
    uses.append({(path.stem, name) for name in own})
    uses += [{(path.stem, word) for word in words} for words in in_pages(path)]
    names = public_names(path)
    return {n for n in names if sum((path.stem, n) in use for use in uses) < 2}


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def size(path):
    """(lines of the program, modules it needs, lines of all of them)"""
    modules = opened(path)
    others = sum(lines(SRC / "common" / f"{name}.py") for name in modules)
    return lines(path), len(modules), lines(path) + others


def bounds(path):
    if path.name in ONLY:
        return ONLY[path.name]
    return OWN_LINES, *(EARLY if path.name < "12" else LATE)


def meets(found, most):
    return all(value <= limit for value, limit in zip(found, most, strict=True))


def test_table_of_programs():
    print(f"\n{'program':<30} {'lines':>5} {'modules':>7} {'lines in all':>12}")
    for path in PROGRAMS:
        own, modules, everything = size(path)
        short = "" if meets(size(path), bounds(path)) else "  more than the bound"
        print(f"{path.name:<30} {own:>5} {modules:>7} {everything:>12}{short}")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_reader_of_a_program_opens_little(path):
    found, most = size(path), bounds(path)
    if path.name in NOT_YET:
        assert not meets(found, most), f"strike {path.name} from NOT_YET: it is short"
        most = NOT_YET[path.name]
    assert meets(found, most), f"{path.name} has {found}, at most {most}"


@pytest.mark.parametrize("path", [*PROGRAMS, *MODULES], ids=lambda path: path.name)
def test_group_on_accelerators_is_told_its_device(path):
    """Without device_id NCCL connects late, and barrier() guesses the device."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called.endswith("init_process_group"):
            on_cpu = ast.unparse(node.args[0]) == "'gloo'"
            given = {keyword.arg for keyword in node.keywords}
            assert on_cpu or "device_id" in given, f"{path.name}, line {node.lineno}"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_no_step_waits_for_the_device_or_sends_its_loss(path):
    """What only a log line needs is computed where that line is printed."""
    waits = {"item", "tolist", "cpu", "numpy", "synchronize", "float()", "int()"}
    for call in calls_of_every_step(ast.parse(path.read_text(encoding="utf-8"))):
        text, name = ast.unparse(call), ast.unparse(call.func)
        last = name.rpartition(".")[2] if "." in name else f"{name}()"
        assert last not in waits, f"{path.name}: {text} waits for the device"
        sent = name.startswith("dist.") and "loss" in text
        assert not sent, f"{path.name}: {text} in every step"


def calls_of_every_step(tree):
    """In ``step`` and ``train_step``, and in loops over ``.steps()``, under no if."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in {"step", "train_step"}:
            always = [node]
        elif isinstance(node, ast.For) and ".steps(" in ast.unparse(node.iter):
            always = [part for part in node.body if not isinstance(part, ast.If)]
        else:
            continue
        for part in always:
            yield from (call for call in ast.walk(part) if isinstance(call, ast.Call))


def test_program_imports_no_program():
    names = {path.stem for path in PROGRAMS}
    for path in [*PROGRAMS, *MODULES]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            assert text not in names, f"{path.name} names the program {text}"


def test_modules_import_no_circle():
    for path in MODULES:
        assert path.stem not in opened(path), f"common/{path.name} imports itself"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_module_is_short(path):
    if path.name in TOO_LONG:
        assert MODULE_LINES < lines(path) <= TOO_LONG[path.name]
    else:
        assert lines(path) <= MODULE_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_public_names_are_used_twice(path):
    """By two programs, or a program and a module: else it belongs to the one user."""
    once = sorted(used_once(path))
    most = NOT_YET_TWICE.get(path.name, 0)
    assert len(once) <= most, f"{once}: give it to its user, or begin it with _"


def test_exceptions_are_of_files_that_exist():
    assert set(NOT_YET) <= {path.name for path in PROGRAMS}
    assert set(TOO_LONG) <= {path.name for path in MODULES}


def test_programs_are_named_after_their_lesson():
    pages = {page.name[:2] for page in (SRC.parent / "docs/lessons").glob("*.rst")}
    for path in PROGRAMS:
        assert re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem), path.name
        assert path.name[:2] in pages, f"{path.name}: no such lesson"


def test_readme_names_exactly_the_programs_that_exist():
    text = (SRC / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| \d\d \| `(\w+\.py)`", text, re.M)
    assert named == [path.name for path in PROGRAMS]
