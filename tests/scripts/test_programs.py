"""What holds for the programs and instruments of src/: imports, and what steps do."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from workshop.lesson_pages import lesson_names

SRC = Path(__file__).resolve().parents[2] / "src"
PROGRAMS = sorted(SRC.glob("*.py"))
INSTRUMENTS = sorted((SRC / "instruments").glob("*.py"))
STARTED = [*PROGRAMS, *INSTRUMENTS]
COMMON = SRC / "common"
MODULES = sorted(path for path in COMMON.rglob("*.py") if path.stem[0] != "_")
STARTERS = sorted((SRC / "starter").glob("*.py"))


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


ALL = [*STARTED, *MODULES, *STARTERS]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_group_on_accelerators_is_told_its_device(path):
    """Without device_id NCCL connects late, and barrier() guesses the device."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called.endswith("init_process_group"):
            on_cpu = ast.unparse(node.args[0]) == "'gloo'"
            given = {keyword.arg for keyword in node.keywords}
            assert on_cpu or "device_id" in given, f"{path.name}, line {node.lineno}"


# Lesson 05 teaches these lines, and 07_elastic.py needs nothing of common.
SPELLED_OUT = {"05_ddp_spawn.py", "07_elastic.py"}


def test_programs_join_by_one_call():
    """Choosing device and backend, and connecting, are the three lines of join."""
    for path in {*STARTED, *MODULES} - {COMMON / "process_group.py"}:
        text = path.read_text(encoding="utf-8")
        if path.name not in SPELLED_OUT:
            assert "device_id=" not in text, f"{path.name}: call process_group.join"
    spelled = (SRC / "05_ddp_spawn.py").read_text(encoding="utf-8")
    assert "get_default_backend_for_device(device)" in spelled


@pytest.mark.parametrize("path", [*STARTED, *STARTERS], ids=lambda path: path.name)
def test_no_step_waits_for_the_device_or_sends_its_loss(path):
    """What only a log line needs is computed where that line is printed."""
    waits = {"item", "tolist", "cpu", "numpy", "synchronize", "float()", "int()"}
    for call in calls_of_every_step(ast.parse(path.read_text(encoding="utf-8"))):
        text, name = ast.unparse(call), ast.unparse(call.func)
        last = name.rpartition(".")[2] if "." in name else f"{name}()"
        assert last not in waits, f"{path.name}: {text} waits for the device"
        sent = name.startswith("dist.") and "loss" in text
        assert not sent, f"{path.name}: {text} in every step"


STEPS = {"step", "train_step", "compute_gradients", "update"}


def calls_of_every_step(tree):
    """In functions of STEPS, and in loops over ``.steps()``, under no if."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in STEPS:
            always = [node]
        elif isinstance(node, ast.For) and ".steps(" in ast.unparse(node.iter):
            always = [part for part in node.body if not isinstance(part, ast.If)]
        else:
            continue
        for part in always:
            yield from (call for call in ast.walk(part) if isinstance(call, ast.Call))


def definitions(path):
    """Name -> text of each function and class of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {n.name: ast.unparse(n) for n in body if isinstance(n, kinds)}


def methods_of(name, path):
    """Name -> text of each method of a class of a file."""
    (found,) = (
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    return {
        n.name: ast.unparse(n) for n in found.body if isinstance(n, ast.FunctionDef)
    }


# Of DDP or FSDP: the model, its precision and its forward pass, when a rank first waits
# for others, and how a run ends.
OWN = {
    *("make_model", "Run", "make_run", "low_precision", "forward", "evaluate"),
    *("compute_gradients", "train", "main", "parse_command_line", "leave_group"),
    *("Config", "add_options_for_speed", "RunLog", "count_flops"),
}


def test_starters_share_what_is_not_of_ddp_or_fsdp():
    ddp, fsdp = map(definitions, STARTERS)
    assert {name for name in ddp.keys() & fsdp if ddp[name] != fsdp[name]} == OWN
    shared = {"find_world", "join_ranks", "refuse", "TrainingBatches", "start_loader"}
    assert shared < ddp.keys() & fsdp.keys()


def test_logs_of_both_starters_differ_only_in_when_a_rank_waits():
    ddp, fsdp = (methods_of("RunLog", path) for path in STARTERS)
    assert ddp.keys() == fsdp.keys()
    differ = {name for name in ddp if ddp[name] != fsdp[name]}
    assert differ == {"__init__", "_note_forward"}


@pytest.mark.parametrize("path", STARTERS, ids=lambda path: path.name)
def test_starter_copies_batches_from_pinned_memory_without_waiting(path):
    found = definitions(path)
    assert path.read_text(encoding="utf-8").count("data.DataLoader(") == 1
    assert "pin_memory=torch.cuda.is_available()" in found["start_loader"]
    texts = [text for name, text in found.items() if name not in ("make_run", "main")]
    copies = re.findall(r"\w+\.to\(.*?\)", "".join(texts))
    assert copies == ["batch.to(device, non_blocking=True)"]


def names_a_program(node):
    """The program or instrument that a string or an import names, or ''."""
    stems = {path.stem for path in STARTED}
    if isinstance(node, ast.Constant):
        word = str(node.value)
        return word if word.removeprefix("instruments.") in stems else ""
    modules = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        modules = [str(node.module)]
    return next((name for name in modules if name.startswith("instruments")), "")


@pytest.mark.parametrize("path", [*STARTED, *MODULES], ids=lambda path: path.name)
def test_nothing_imports_a_program_or_an_instrument(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found = names_a_program(node)
        assert not found, f"{path.name}, line {node.lineno}, names {found}"


@pytest.mark.parametrize(
    "line",
    [
        "cost = import_module('instruments.18_cost')",
        "cost = import_module('instruments.18_cost')",
        "cost = import_module('13_train_gpt')",
        "from instruments import timing",
        "import instruments",
    ],
)
def test_import_of_an_instrument_is_found(line):
    assert any(map(names_a_program, ast.walk(ast.parse(line))))


FINDS_COMMON = "sys.path.insert(0, str(Path(__file__).resolve().parents[1]))"


@pytest.mark.parametrize("path", INSTRUMENTS, ids=lambda path: path.name)
def test_instrument_finds_common_by_one_line_before_it_imports_it(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    first = next(n for n, s in enumerate(lines) if re.match("(from|import) common", s))
    own = [n for n, line in enumerate(lines) if line.startswith(FINDS_COMMON)]
    assert own == [first - 2], f"{path.name} must find common as the others do"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_programs_train_and_count_nothing(path):
    """Counting is apart from training: in instruments, and in common/cost."""
    counts = {name for name in imported(path) if name.startswith("cost.")}
    assert not counts, f"{path.name} measures: move that into an instrument"


def test_module_named_by_its_path_is_opened_too():
    assert imported(SRC / "instruments/18_why_slow.py") == {
        "distributed",
        "cost.step_watch",
    }


def test_modules_import_no_circle():
    for path in MODULES:
        assert name_of(path) not in opened(path), f"{name_of(path)} imports itself"


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
    assert others == {"common", "instruments", "starter", "README.md"}
    inside = {path.name for path in (SRC / "instruments").iterdir()}
    assert inside - {"__pycache__"} == {path.name for path in INSTRUMENTS}


def test_programs_are_named_after_their_lesson():
    pages = {name[:2] for name in lesson_names(SRC.parent)}
    for path in STARTED:
        assert re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem), path.name
        assert path.name[:2] in pages, f"{path.name}: no such lesson"


def test_readme_has_programs_and_instruments_in_a_table_each():
    text = (SRC / "README.md").read_text(encoding="utf-8")
    tables = text.split("\n## ")[1:]
    for table, paths in zip(tables, (PROGRAMS, INSTRUMENTS), strict=True):
        rows = re.findall(r"^\| \d\d[^|]* \| ([^|]+) \|", table, re.M)
        named = re.findall(r"`(\w+\.py)`", "".join(rows))
        assert sorted(named) == [path.name for path in paths]
