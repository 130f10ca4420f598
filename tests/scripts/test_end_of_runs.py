"""No script and no solution ends its process group while a DDP module is there.

What may happen otherwise is shown in lesson 7, and counted by `make bench`.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENDS = {"destroy_process_group", "cleanup"}
WRAPS = {"DDP", "DistributedDataParallel"}
MEANT_TO_SHOW_IT = {"teardown.py"}


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
        for path in sorted((ROOT / folder).glob("*.py")):
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
