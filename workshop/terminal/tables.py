"""The tables of the ``workshop`` command: in ASCII, and narrower on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from workshop.catalog import Exercise
from workshop.terminal.console import STYLES, printable

KINDS = ("right", "not fully checked", "wrong", "not started", "other")
# narrow enough for the names of exercises beside them, at 80 columns
HEADS = ("right", "partly", "wrong", "not started", "other")


def of_catalog(
    console: Console, catalog: list[Exercise], states: dict[str, str]
) -> Table:
    """Every exercise in order with its state."""
    table, wide = new_table(console), console.width >= 100
    if wide:
        table.add_column("#", justify="right", no_wrap=True)
    table.add_column("name", no_wrap=True)
    table.add_column("title", overflow="fold", ratio=1)
    if wide:
        table.add_column("lesson", no_wrap=True)
    table.add_column("min", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for number, exercise in enumerate(catalog, start=1):
        state = states[exercise.name]
        row = [Text(printable(exercise.name)), Text(printable(exercise.title))]
        if wide:  # narrow: the name begins with the lesson
            row = [Text(str(number)), *row, Text(printable(exercise.lesson))]
        table.add_row(*row, str(exercise.minutes), Text(state, STYLES.get(state, "")))
    return table


def of_doctor(console: Console, checks: Iterable) -> Table:
    """What works on this machine, and the cure for what does not."""
    words = {
        True: ("works", "green"),
        False: ("broken", "red"),
        None: ("absent", "dim"),
    }
    table = new_table(console)
    table.add_column("part", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what was seen; what to do", overflow="fold", ratio=1)
    for check in checks:
        word, style = words[check.ok]
        told = Text(printable(check.detail))
        if check.cure and not check.ok:
            told.append("\n" + printable(check.cure), "dim")
        table.add_row(Text(printable(check.name)), Text(word, style), told)
    return table


def of_learners(console: Console, book) -> Table:
    """A row per learner."""
    learners = new_table(console)
    learners.add_column("learner", overflow="fold", ratio=1)
    for head in (*HEADS, "points"):
        learners.add_column(head, justify="right", no_wrap=True)
    for row in book.rows:
        counts = row.counts()
        learners.add_row(
            Text(printable(row.learner)),
            *(str(counts[kind]) for kind in KINDS),
            f"{row.points} / {row.possible}",
        )
    return learners


def of_exercises(console: Console, book) -> Table:
    """A row per exercise: which one is hard?"""
    table = new_table(console)
    table.add_column("exercise", overflow="fold", ratio=1)
    for head in HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("most common verdict", no_wrap=True)
    for name, counts, common in book.by_exercise():
        cells = [str(counts[kind]) for kind in KINDS]
        table.add_row(Text(name), *cells, Text(common))
    return table


def new_table(console: Console) -> Table:
    if not console.is_terminal:
        return Table(box=box.ASCII_DOUBLE_HEAD, show_edge=False, pad_edge=False)
    wide = console.width > 120
    table = Table(box=box.SIMPLE, show_edge=False, expand=not wide)
    table.padding = (0, 1, 0, 0)
    return table
