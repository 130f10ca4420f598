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
COMMON = SRC / "common"
MODULES = sorted(path for path in COMMON.rglob("*.py") if path.stem[0] != "_")
TESTS = sorted(SRC.parent.glob("tests/*/*.py"))
PAGES = [*SRC.parent.glob("docs/**/*.rst"), *SRC.parent.glob("docs/**/*.inc")]
USERS = [*SRC.rglob("*.py"), *SRC.parent.glob("docs/**/*.py")]
USERS += SRC.parent.glob("tools/*.py")
STARTERS = sorted((SRC / "starter").glob("*.py"))
OWN_LINES, MODULE_LINES = 180, 249
STARTER_LINES = {"train_ddp.py": 250, "train_fsdp.py": 261}
EARLY, LATE = (3, 600), (6, 1200)  # modules of common, lines: to lesson 11, and after
# own lines, modules, lines; the capstone puts together what lessons 6 to 17 teach
ONLY = {"07_elastic.py": (60, 0, 60), "20_capstone.py": (179, 6, 1249)}


def name_of(path):
    """How programs name a module of common: ``data``, or ``parallel.mesh``."""
    return ".".join(path.relative_to(COMMON).with_suffix("").parts)


def file_of(module):
    return COMMON.joinpath(*module.split(".")).with_suffix(".py")


def modules_of(node):
    """Modules of common that an import asks for -> the name that each has here."""
    if not isinstance(node, ast.ImportFrom):
        return {}
    package, _, module = f"{node.module}.".partition(".")
    if package != "common" or file_of(module.rstrip(".") or "?").exists():
        return {module.rstrip("."): None} if package == "common" else {}
    return {module + alias.name: alias.asname or alias.name for alias in node.names}


@cache
def imported(path):
    """The modules of common that a file imports, or names the path of, itself."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found |= modules_of(node).keys()
        if isinstance(node, ast.BinOp):  # Path(...) / "common" / "x.py"
            path = re.search(r"/ 'common' / ('.*)\.py'$", ast.unparse(node))
            found |= {re.sub("' / '", ".", path[1]).strip("'")} if path else set()
    return found


@cache
def opened(path):
    """All modules that a reader of a program may have to open."""
    found, new = set(), imported(path)
    while new:
        found |= new
        modules = [file_of(name) for name in new]
        new = {name for module in modules for name in imported(module)} - found
    return found


@cache
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
        for module, name in modules_of(node).items():
            modules |= {name: module} if name else {}
            found |= set() if name else {(module, alias.name) for alias in node.names}
        if isinstance(node, ast.Assign):
            modules |= {ast.unparse(node.targets[0]): by_import_module(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            module = modules.get(owner) or by_import_module(node.value)
            found |= {(module, node.attr)}
    return found


def by_import_module(node):
    """The module x of ``importlib.import_module("common.x")``; None for the rest."""
    call = re.fullmatch(
        r"(importlib\.)?import_module\('common\.([\w.]+)'\)", ast.unparse(node)
    )
    return call and call[2]


@cache
def in_scripts(path):
    """The words of each script of the site, if the module has its partner there."""
    partner = (SCRIPTS / f"{path.stem}.js").exists()
    scripts = SCRIPTS.glob("*.js") if partner else []
    return [set(re.findall(r"\w+", file.read_text("utf-8"))) for file in scripts]


def on_pages(path):
    """The names that each page shows, by ``:pyobject:`` or between two markers."""
    text, found = path.read_text(encoding="utf-8"), []
    listing = (
        rf"literalinclude:: \S*/{path.relative_to(SRC).as_posix()}\n((?: +:.*\n)*)"
    )
    for page in PAGES:
        shown = re.findall(listing, page.read_text(encoding="utf-8"))
        names = set(re.findall(r":pyobject: (\w+)", "".join(shown)))
        for part in re.findall(r":start-after: \[start (\w+)\]", "".join(shown)):
            part = text.partition(f"[start {part}]")[2].partition(f"[end {part}]")[0]
            names |= set(re.findall(r"^(?:def|class) (\w+)", part, re.M))
        found.append(names)
    return found


def used_once(path):
    """The public names of a module with fewer than two users, itself included."""
    text = path.read_text(encoding="utf-8")
    own = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    uses = [used_names(file) for file in USERS if file != path]
    uses.append(set().union(*(used_names(file) for file in TESTS)))
    words = [set(own), *in_scripts(path), *on_pages(path)]
    uses += [{(name_of(path), word) for word in some} for some in words]
    names = public_names(path)
    return {n for n in names if sum((name_of(path), n) in use for use in uses) < 2}


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def size(path):
    """(lines of the program, modules it needs, lines of all of them)"""
    modules = opened(path)
    others = sum(lines(file_of(name)) for name in modules)
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
    assert meets(found, most), f"{path.name} has {found}, at most {most}"


ALL = [*PROGRAMS, *MODULES, *STARTERS]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_group_on_accelerators_is_told_its_device(path):
    """Without device_id NCCL connects late, and barrier() guesses the device."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called.endswith("init_process_group"):
            on_cpu = ast.unparse(node.args[0]) == "'gloo'"
            given = {keyword.arg for keyword in node.keywords}
            assert on_cpu or "device_id" in given, f"{path.name}, line {node.lineno}"


@pytest.mark.parametrize("path", [*PROGRAMS, *STARTERS], ids=lambda path: path.name)
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


def functions(path):
    """Name -> text of each function of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {n.name: ast.unparse(n) for n in body if isinstance(n, ast.FunctionDef)}


def test_starters_are_short():
    assert {path.name for path in STARTERS} == set(STARTER_LINES)
    assert all(lines(path) <= STARTER_LINES[path.name] for path in STARTERS)


def test_starters_share_what_is_not_of_ddp_or_fsdp():
    ddp, fsdp = map(functions, STARTERS)
    differ = {name for name in ddp.keys() & fsdp if ddp[name] != fsdp[name]}
    assert differ == {"make_model", "loss_function", "train_step", "evaluate", "train"}
    assert {"make_datasets", "join_ranks", "from_rank_0", "micro_batch"} < {*ddp, *fsdp}


@pytest.mark.parametrize("path", STARTERS, ids=lambda path: path.name)
def test_starter_copies_batches_from_pinned_memory_without_waiting(path):
    text = path.read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    loaders = [c for c in map(ast.unparse, calls) if c.startswith("data.DataLoader(")]
    assert len(loaders) == 2 and all(c.endswith(", **args.load)") for c in loaders)
    assert '"pin_memory": torch.cuda.is_available()' in text
    steps = [functions(path).get(name, "") for name in ("train_step", "mean_loss")]
    copies = re.findall(r"\w+\.to\(.*?\)", "".join(steps))
    assert copies and all("non_blocking=True" in copy for copy in copies)


def test_program_imports_no_program():
    names = {path.stem for path in PROGRAMS}
    for path in [*PROGRAMS, *MODULES]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            assert text not in names, f"{path.name} names the program {text}"


def test_module_named_by_its_path_is_opened_too():
    assert imported(SRC / "18_why_slow.py") == {"distributed", "cost.step_watch"}


def test_no_folder_of_common_is_a_heap():
    folders = [COMMON, *(path for path in COMMON.iterdir() if path.is_dir())]
    assert len(folders) > 2
    for folder in folders:
        assert len([path for path in MODULES if path.parent == folder]) <= 12, folder


def test_modules_import_no_circle():
    for path in MODULES:
        assert name_of(path) not in opened(path), f"{name_of(path)} imports itself"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_module_is_short(path):
    assert lines(path) <= MODULE_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_public_names_are_used_twice(path):
    """Else a name belongs to its one user, or begins with an underscore.

    A user is the module itself, another file of src/, a script of docs/ or tools/, a
    script of the site, or a page that shows the name. All tests together are one user.
    """
    assert used_once(path) == set(), "give it to its user, or begin it with _"


def test_exceptions_are_of_files_that_exist():
    assert set(ONLY) <= {path.name for path in PROGRAMS}


def test_loops_that_tools_measure_import_what_exists():
    for tool in sorted(SRC.parent.glob("tools/bench*.py")):
        text = tool.read_text(encoding="utf-8")
        for module, names in re.findall(
            r"^from common\.([\w.]+) import (.+)$", text, re.M
        ):
            defined = file_of(module).read_text(encoding="utf-8")
            for name in names.split(", "):
                made = re.search(rf"^(def |class )?{name}\b", defined, re.M)
                assert made, f"{tool.name}: common.{module} has no {name}"


def test_src_holds_programs_and_nothing_else():
    names = {path.name for path in SRC.iterdir() if path.name != "__pycache__"}
    others = names - {path.name for path in PROGRAMS}
    assert others == {"common", "starter", "README.md"}


def test_programs_are_named_after_their_lesson():
    pages = {page.name[:2] for page in (SRC.parent / "docs/lessons").glob("*.rst")}
    for path in PROGRAMS:
        assert re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem), path.name
        assert path.name[:2] in pages, f"{path.name}: no such lesson"


def test_readme_names_exactly_the_programs_that_exist():
    text = (SRC / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d\d[^|]* \| ([^|]+) \|", text, re.M)
    named = re.findall(r"`(\w+\.py)`", "".join(rows))
    assert sorted(named) == [path.name for path in PROGRAMS]
