"""The largest number that a formula of the shell may give."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

NO_END = float("inf")
OF_THE_JOB = ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "SLURM_ARRAY_JOB_ID")
LARGEST_RANDOM = 32767
NAME = r"\$\{?([A-Za-z_]\w*)\}?"
LAST_DIGITS = re.compile(
    rf"\$\{{([A-Za-z_]\w*):\s+-(\d)\}}|"
    rf"\$\(\s*echo\s+(-n\s+)?\"?{NAME}\"?\s*\|\s*tail\s+-c\s*(\d)\s*\)"
)
REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)(?:[:%#/-][^}]*)?\}|\$?\b([A-Za-z_]\w*)")
NO_NUMBER = re.compile(r"(?<!\w)\d+[A-Za-z_]|\d{19}")  # 29500or, and far too long
Number = int | float


@dataclass(frozen=True)
class Range:
    """From where to where a number goes; ``sure`` if it may really be the largest."""

    least: Number
    most: Number
    sure: bool = True


UNKNOWN = Range(0, NO_END, sure=False)


def largest_value(text: str, known: Callable[[str], int | None]) -> int | float | None:
    """Of ``$((A + B % C))``, ``$(expr ...)``, a number or a variable."""
    text = text.strip("\"'")
    inside = re.fullmatch(r"\$\(\((.*)\)\)|\$\(\s*expr\s+(.*)\)", text, re.S)
    formula = (inside[1] or inside[2]) if inside else text
    if not inside and not re.fullmatch(rf"\d+|{NAME}", text):
        return None
    names: dict[str, Range] = {}

    def digits(match: re.Match) -> str:
        count = int(match[2] or match[5])
        if match[5] and not match[3]:
            count -= 1  # the last character that echo prints ends the line
        return named(names, Range(0, 10**count - 1))

    def variable(match: re.Match) -> str:
        if match[0] in names:
            return match[0]
        return named(names, range_of(match[1] or match[2], known))

    formula = formula.replace("\\*", "*").replace("10#", "")
    formula = LAST_DIGITS.sub(digits, formula)
    formula = REFERENCE.sub(variable, formula).replace("/", "//")
    if NO_NUMBER.search(formula):
        return None
    try:
        found = evaluate(ast.parse(formula.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    return found.most if found.sure else None


def named(names: dict[str, Range], value: Range) -> str:
    name = f"_{len(names)}_"
    names[name] = value
    return name


def range_of(name: str, known: Callable[[str], int | None]) -> Range:
    if name in OF_THE_JOB:
        return Range(0, NO_END)
    if name == "RANDOM":
        return Range(0, LARGEST_RANDOM)
    number = known(f"${name}")
    return UNKNOWN if number is None else Range(number, number)


def evaluate(node: ast.expr, names: dict[str, Range]) -> Range:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Range(node.value, node.value)
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.BinOp):
        left, right = evaluate(node.left, names), evaluate(node.right, names)
        least, most = combined(node.op, left, right)
        return Range(least, most, left.sure and right.sure)
    raise ValueError("not such a formula")


def combined(sign: ast.operator, left: Range, right: Range) -> tuple[Number, Number]:
    if isinstance(sign, ast.Add):
        return left.least + right.least, left.most + right.most
    if isinstance(sign, ast.Sub):
        return left.least - right.most, left.most - right.least
    if isinstance(sign, ast.Mult) and right.least >= 0:
        return left.least * right.least, left.most * right.most
    constant = right.least == right.most and right.most > 0
    if isinstance(sign, ast.FloorDiv) and constant:
        return left.least // right.most, left.most // right.most
    if isinstance(sign, ast.Mod) and constant:
        return 0, min(left.most, right.most - 1)
    raise ValueError("not such a formula")
