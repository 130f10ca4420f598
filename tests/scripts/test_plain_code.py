"""One idea per line: what a line of the code that people read must not hold, too."""

import ast
from collections.abc import Callable, Iterator

import pytest

from tools.fresh_copy import ROOT

READ = ("src", "workshop", "gallery", "solutions", "exercises", "tools", "docs")

Rule = Callable[[ast.AST, dict[ast.AST, ast.AST]], bool]


def parents_in(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Node -> the node that it is a part of."""
    nodes = ast.walk(tree)
    return {child: node for node in nodes for child in ast.iter_child_nodes(node)}


def walrus_inside(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """`:=` is the whole condition of an if or a while, or it is two lines."""
    if not isinstance(node, ast.NamedExpr):
        return False
    above = parents[node]
    return not (isinstance(above, (ast.If, ast.While)) and above.test is node)


def choice_inside(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """`a if b else c` in the arguments of a call, in a `with` or in an f-string."""
    if not isinstance(node, ast.IfExp):
        return False
    while not isinstance(node, ast.stmt):
        inner, node = node, parents[node]
        if isinstance(node, ast.Call) and inner is not node.func:
            return True
        if isinstance(node, (ast.withitem, ast.FormattedValue)):
            return True
    return False


def lambda_with_a_name(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """`name = lambda: ...`, also where it is one of two: `def` it."""
    if not isinstance(node, ast.Lambda):
        return False
    above = parents[node]
    if isinstance(above, ast.IfExp):
        above = parents[above]
    return isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr))


def union_with_a_literal(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """`a |= {"b": 1}`: an assignment for each, or one literal with all of them."""
    if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.BitOr):
        return False
    return isinstance(node.value, (ast.Dict, ast.Set))


CONFIGURATION = ("args", "config")


def written_configuration(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """`args.ranks = ...`: what a run finds out has a name of its own."""
    if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
        return False
    owner = node.value
    name = owner.attr if isinstance(owner, ast.Attribute) else None
    if isinstance(owner, ast.Name):
        name = owner.id
    return name in CONFIGURATION


def hash_of_something(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """`hash((seed, rank))`: a seed is made by arithmetic that one can read."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id == "hash"


RULES: list[Rule] = [
    walrus_inside,
    choice_inside,
    lambda_with_a_name,
    union_with_a_literal,
    written_configuration,
    hash_of_something,
]


def refused(code: str) -> Iterator[tuple[int, Rule]]:
    """Lines of the code, and the rule that refuses each."""
    tree = ast.parse(code)
    parents = parents_in(tree)
    for node in parents:
        for rule in RULES:
            if rule(node, parents):
                yield getattr(node, "lineno", 0), rule


@pytest.mark.parametrize("folder", READ)
def test_a_line_holds_one_idea(folder):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {rule.__doc__}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, rule in refused(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


READS_A_CONFIGURATION = ("parse_training(", "parse_text_training(")


def hands_on_a_namespace(text: str) -> bool:
    """Whether a program's functions take what argparse found, instead of a Config."""
    reads = any(name in text for name in READS_A_CONFIGURATION)
    return reads and "argparse.Namespace" in text


def test_a_training_program_hands_on_its_configuration_as_a_dataclass():
    programs = sorted((ROOT / "src").rglob("*.py"))
    found = [
        str(path.relative_to(ROOT))
        for path in programs
        if hands_on_a_namespace(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"derive a Config, as src/20_capstone.py does: {found}"


def test_a_namespace_is_found():
    text = "config = parse_training(__doc__)\ndef train(args: argparse.Namespace): 0"
    assert hands_on_a_namespace(text)
    assert not hands_on_a_namespace("config = parse_training(__doc__)")


REFUSED = [
    (walrus_inside, "if a and (b := c()): 0"),
    (walrus_inside, "while (b := c()) > 0: 0"),
    (walrus_inside, "if not (b := c()): 0"),
    (walrus_inside, "[b for a in c if (b := a)]"),
    (walrus_inside, "add = (parser := P()).add"),
    (choice_inside, "f(a if b else c)"),
    (choice_inside, "f(a=a if b else c)"),
    (choice_inside, "f([a if b else c for b in d])"),
    (choice_inside, "f(a[1 if b else 0])"),
    (choice_inside, "with a if b else c(): 0"),
    (choice_inside, "f'{a if b else c}'"),
    (lambda_with_a_name, "a = lambda: 0"),
    (lambda_with_a_name, "a = print if b else lambda *_: None"),
    (union_with_a_literal, "a |= {'b': 1}"),
    (union_with_a_literal, "a |= {1}"),
    (written_configuration, "args.a = 1"),
    (written_configuration, "self.args.a = 1"),
    (written_configuration, "args.a, b = 1, 2"),
    (hash_of_something, "seed(hash((a, b)))"),
]
ALLOWED = """
if match := find(text): 0
while item := take(): 0
a = b if c else d
f(key=lambda pair: pair[1])
(a if b else c)(d)
a |= b
args = parse()
hash.of(a)
"""


@pytest.mark.parametrize(("rule", "code"), REFUSED)
def test_the_rule_finds_what_it_should(rule, code):
    assert list(refused(code)) == [(1, rule)]


def test_the_rules_find_nothing_else():
    assert not list(refused(ALLOWED))
