"""Neighboring programs differ in what the later lesson teaches, and in nothing else.

neighbors.txt lists, for each pair, every part that may differ, with the reason. A part
is a function, a class, or "top": imports and constants. Of a part that both programs
have, it lists the lines. After a change that is meant, print what differs now:

    python tests/scripts/test_neighbors.py
"""

import ast
import difflib
import re
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
LIST = Path(__file__).with_name("neighbors.txt")


def parts(name):
    """Name of each part of a program -> its lines, without blank ones."""
    text = (SRC / name).read_text(encoding="utf-8")
    lines, body = text.splitlines(), ast.parse(text).body
    found = {"top": []}
    free = set(range(body[0].end_lineno, len(lines)))  # after the docstring
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            found[node.name] = lines[first : node.end_lineno]
            free -= set(range(first, node.end_lineno))
    found["top"] = [lines[number] for number in sorted(free)]
    return {part: [line for line in own if line] for part, own in found.items()}


def differences(before, after):
    """Part -> "gone", "new", or the lines that differ, as ``-line`` and ``+line``."""
    old, new = parts(before), parts(after)
    found = {part: "gone" for part in old if part not in new}
    found |= {part: "new" for part in new if part not in old}
    for part in old.keys() & new.keys():
        changes = difflib.unified_diff(old[part], new[part], n=0, lineterm="")
        lines = [line for line in changes if not re.match(r"---|\+\+\+|@@", line)]
        if lines:
            found[part] = lines
    return found


def listed():
    """(before, after) -> {part: (reason, what may differ)}, from neighbors.txt."""
    pairs = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if not line:
            continue
        programs = re.fullmatch(r"(\w\S+) -> (\S+)", line)
        entry = re.fullmatch(r"(gone|new|changed) (\w+): (.+)", line)
        if programs:
            allowed = pairs[programs.groups()] = {}
        elif entry:
            how, part, reason = entry.groups()
            lines = [] if how == "changed" else how
            allowed[part] = (reason, lines)
        else:
            lines.append(line)
    return pairs


PAIRS = listed()


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_neighbors_differ_only_where_the_list_says_why(pair):
    allowed = {part: may for part, (_, may) in PAIRS[pair].items()}
    found = differences(*pair)
    for part in sorted(found.keys() | allowed.keys()):
        assert found.get(part) == allowed.get(part), (
            f"{' and '.join(pair)} differ in {part}: make them equal, or write the "
            f"difference and its reason into {LIST.name}"
        )


def test_each_training_program_of_lessons_1_to_9_has_a_neighbor():
    compared = {name for pair in PAIRS for name in pair}
    programs = SRC.glob("0[15789]_*.py")
    trains = {p.name for p in programs if "parse_training(" in p.read_text("utf-8")}
    assert trains == compared


def show():
    for before, after in PAIRS:
        print(f"\n{before} -> {after}")
        for part, what in sorted(differences(before, after).items()):
            reason = PAIRS[before, after].get(part, ("WHY?", []))[0]
            if isinstance(what, str):
                print(f"{what} {part}: {reason}")
            else:
                print(f"changed {part}: {reason}", *what, sep="\n")


if __name__ == "__main__":
    show()
