"""All rules, in the order of their codes."""

from . import (
    rules_directives,
    rules_ends,
    rules_environment,
    rules_launch,
    rules_rendezvous,
)
from .rule import Rule

RULES: list[Rule] = [
    *rules_directives.TABLE.rules,
    *rules_launch.TABLE.rules,
    *rules_rendezvous.TABLE.rules,
    *rules_ends.TABLE.rules,
    *rules_environment.TABLE.rules,
]
BY_CODE = {rule.code: rule for rule in RULES}
