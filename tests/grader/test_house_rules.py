"""No circles in workshop/, and nothing of the tests in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKSHOP = ROOT / "workshop"

Graph = dict[str, set[str]]  # module -> the modules of the same package it imports


def module_name(path: Path, root: Path) -> str:
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    return name.removesuffix(".__init__")


def imported(path: Path, name: str) -> set[str]:
    """Every name a file imports, also inside functions and for type checkers only."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def graph_of(package: Path) -> Graph:
    """Who imports whom. ``from a import b`` is an import of a.b if that is a module."""
    root = package.parent
    files = {module_name(path, root): path for path in package.rglob("*.py")}

    def module(name: str) -> str:
        return name if name in files else name.rpartition(".")[0]

    return {
        name: {module(found) for found in imported(path, name)} & set(files) - {name}
        for name, path in files.items()
    }


def circle(graph: Graph) -> list[str]:
    """Some modules that import each other in a ring, or []."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return []
        rings = (visit(other, [*trail, name]) for other in sorted(graph[name]))
        ring = next(filter(None, rings), [])
        done.add(name)
        return ring

    return next(filter(None, (visit(name, []) for name in sorted(graph))), [])


def show(heads: tuple[str, ...], rows: list[tuple]) -> None:
    columns = zip(heads, *rows, strict=True)
    widths = [max(len(str(cell)) for cell in column) for column in columns]
    for row in [heads, *rows]:
        cells = zip(row, widths, strict=True)
        print("  ".join(str(cell).ljust(width) for cell, width in cells))


def test_what_a_learner_is_told_has_no_codes():
    """A mistake is named in words, not by its number in a list that they don't have."""
    told = [
        *WORKSHOP.rglob("*.py"),
        *(ROOT / "tests/exercises").rglob("*.py"),
    ]
    codes = {
        str(path): re.findall(r"\([A-Z]\d\d\b[^)]*\)", path.read_text(encoding="utf-8"))
        for path in told
    }
    assert {name: found for name, found in codes.items() if found} == {}


def test_no_modules_import_each_other():
    graph = graph_of(WORKSHOP)
    imports = sum(map(len, graph.values()))
    ring = circle(graph)
    row = ("workshop", len(graph), imports, " -> ".join(ring) or "none")
    show(("package", "modules", "imports between them", "circle"), [row])
    assert not ring


def room_of(path: Path) -> str:
    """workshop/X, of the grader and the cluster workshop/X/Y; or a module outside."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    depth = 3 if parts[1] in ("grader", "cluster") else 2
    folders = parts[: min(depth, len(parts) - 1)]
    return "/".join(folders if len(folders) > 1 else parts)


def test_no_rooms_import_each_other():
    files = {module_name(path, ROOT): path for path in WORKSHOP.rglob("*.py")}
    rooms: Graph = {room_of(path): set() for path in files.values()}
    for name, others in graph_of(WORKSHOP).items():
        room = room_of(files[name])
        rooms[room] |= {room_of(files[other]) for other in others} - {room}
    for room in sorted(rooms):
        print(f"{room} imports {', '.join(sorted(rooms[room])) or 'none of them'}")
    assert not circle(rooms)


def test_workshop_imports_nothing_of_the_tests():
    for path in WORKSHOP.rglob("*.py"):
        names = {name.split(".")[0] for name in imported(path, module_name(path, ROOT))}
        assert "tests" not in names, path


@pytest.mark.parametrize(
    "line",
    [
        "from house.two import x",
        "from house import two",
        "from . import two",
        "from .two import x",
        "def f():\n    import house.two",
        "if TYPE_CHECKING:\n    from house.two import x",
    ],
)
def test_circle_is_found_however_it_is_written(tmp_path, line):
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").write_text("from house.one import x\n")
    (house / "one.py").write_text(line)
    (house / "two.py").write_text("import json\n")
    assert circle(graph_of(house)) == []
    (house / "two.py").write_text("from house import three")
    (house / "three.py").write_text("from house.one import x")
    ring = ["house.one", "house.two", "house.three", "house.one"]
    assert circle(graph_of(house)) == ring
