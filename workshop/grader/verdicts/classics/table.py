"""Every classic mistake by its key."""

from __future__ import annotations

from workshop.grader.verdicts.classics.calls import IN_CALLS, IN_DIFFERENCES
from workshop.grader.verdicts.classics.classic import Classic, Table
from workshop.grader.verdicts.classics.exceptions import IN_CRASHES, IN_EXCEPTIONS
from workshop.grader.verdicts.classics.hangs import IN_COUNTS, IN_GROUPS, IN_MESSAGES
from workshop.grader.verdicts.classics.scripts import IN_SCRIPTS
from workshop.grader.verdicts.classics.values import IN_SHAPES, IN_VALUES, NAMED

NAMED_BY_LIMITS: Table = {
    "memory": Classic(
        "far more memory than the exercise needs: is a size computed wrongly?"
    ),
    "polled": Classic(
        "with gloo, `is_completed()` of a send or receive stays False until its "
        "`wait()` is called: call `wait()`, which returns when it is complete"
    ),
}
TABLES: tuple[Table, ...] = (
    NAMED,
    IN_SHAPES,
    IN_VALUES,
    IN_CALLS,
    IN_DIFFERENCES,
    IN_MESSAGES,
    IN_COUNTS,
    IN_GROUPS,
    IN_EXCEPTIONS,
    IN_CRASHES,
    IN_SCRIPTS,
    NAMED_BY_LIMITS,
)
CLASSICS: Table = {key: entry for table in TABLES for key, entry in table.items()}
