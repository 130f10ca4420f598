"""The check functions of an exercise, read from their file without running it.

A check is a plain function ``test_*`` marked ``@pytest.mark.ranks(3, 4)``; it is
run in fresh ranks once per world size (twice, with two seeds, if there is only
one). Reading the marks from the syntax tree keeps torch out of this process.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from pathlib import Path

from workshop.errors import UserError

SEEDS = (1, 2)
DEFAULT_LIMIT = 5.0


@dataclass(frozen=True)
class Check:
    """One run of one check function.

    Attributes:
        sentence: first line of its docstring, shown to the learner.
        init: whether the process group is initialized before the check.
        scheduler: whether it asks for a scheduler to submit job scripts to.
        limit: seconds that every rank may take.
    """

    path: Path
    function: str
    sentence: str
    world_size: int
    seed: int
    init: bool = True
    limit: float = DEFAULT_LIMIT
    line: int = 1
    scheduler: bool = False

    @property
    def id(self) -> str:
        return f"{self.function}[{self.world_size} ranks, seed {self.seed}]"


def checks_in(path: Path, seeds: tuple[int, ...] = SEEDS) -> list[Check]:
    """Every run that the file asks for: first each function once, as in the file.

    A wrong answer is found sooner in this order than if a function came with all its
    world sizes first.

    Raises:
        UserError: the file is missing or not Python, a ``test_`` function has no
            ``ranks`` mark, or a mark's arguments are not literals.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise UserError(f"there are no checks: {path} is missing", 3) from None
    except (OSError, SyntaxError, ValueError) as error:
        raise UserError(f"cannot read the checks in {path}: {error}", 3) from error
    functions = [
        _runs(path, node, seeds)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    if not functions:
        raise UserError(f"{path} has no function that begins with test_", 3)
    rounds = itertools.zip_longest(*functions)
    return [check for round_ in rounds for check in round_ if check is not None]


def _runs(path: Path, node: ast.FunctionDef, seeds: tuple[int, ...]) -> list[Check]:
    where = f"{path.name}, line {node.lineno}: {node.name}"
    world_sizes, options = _mark(node, where)
    sentence = (ast.get_docstring(node) or "").strip().splitlines()
    text = sentence[0] if sentence else node.name[5:].replace("_", " ")
    if len(world_sizes) == 1:
        runs = [(world_sizes[0], seed) for seed in seeds]
    else:
        runs = [(w, seeds[i % len(seeds)]) for i, w in enumerate(world_sizes)]
    options["line"] = node.lineno
    options["scheduler"] = any(arg.arg == "scheduler" for arg in node.args.args)
    return [
        Check(path, node.name, text, world_size, seed, **options)
        for world_size, seed in runs
    ]


def _mark(node: ast.FunctionDef, where: str) -> tuple[list[int], dict]:
    """(world sizes, options) of ``@pytest.mark.ranks(3, 4, limit=5)``."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _name(decorator.func) == "ranks":
            try:
                sizes = [ast.literal_eval(a) for a in decorator.args]
                options = {k.arg: ast.literal_eval(k.value) for k in decorator.keywords}
            except ValueError:
                raise UserError(f"{where}: ranks() takes only literals", 3) from None
            if not sizes or not all(isinstance(s, int) and s > 0 for s in sizes):
                raise UserError(f"{where}: ranks() takes positive numbers", 3)
            if unknown := set(options) - {"init", "limit"}:
                raise UserError(f"{where}: ranks() has no option {unknown}", 3)
            return sizes, options
    raise UserError(f"{where} needs @pytest.mark.ranks(N), as in ranks(3, 4)", 3)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
