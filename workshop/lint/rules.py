"""All rules, in the order of their codes."""

from . import (
    rules_address,
    rules_containers,
    rules_cores,
    rules_devices,
    rules_directives,
    rules_ends,
    rules_environment,
    rules_files,
    rules_hosts,
    rules_launch,
    rules_lists,
    rules_loops,
    rules_names,
    rules_nccl,
    rules_nested,
    rules_numbers,
    rules_options,
    rules_pbs,
    rules_rendezvous,
    rules_requests,
    rules_status,
    rules_steps,
    rules_submitted,
    rules_submitting,
    rules_syntax,
    rules_typed,
)
from .rule import Rule

MODULES = (
    rules_directives,
    rules_syntax,
    rules_requests,
    rules_typed,
    rules_submitting,
    rules_launch,
    rules_numbers,
    rules_pbs,
    rules_cores,
    rules_devices,
    rules_names,
    rules_options,
    rules_hosts,
    rules_rendezvous,
    rules_address,
    rules_nccl,
    rules_lists,
    rules_loops,
    rules_nested,
    rules_files,
    rules_containers,
    rules_submitted,
    rules_ends,
    rules_status,
    rules_steps,
    rules_environment,
)


def code_of(rule: Rule) -> str:
    return rule.code


RULES: list[Rule] = sorted(
    (rule for module in MODULES for rule in module.TABLE.rules), key=code_of
)
BY_CODE = {rule.code: rule for rule in RULES}
