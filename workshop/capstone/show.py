"""What ``workshop capstone`` prints: a table of points, with what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from workshop.capstone.judge import Judged, Judgment
from workshop.terminal.tables import new_table

if TYPE_CHECKING:
    from workshop.learner.display import Screen


def show(screen: Screen, judgment: Judgment) -> int:
    """Print it; the exit status: 0 all points, 1 some are missing."""
    table = new_table(screen.console)
    table.add_column("property", overflow="fold", ratio=1)
    table.add_column("points", justify="right", no_wrap=True)
    told: set[str] = set()
    for each in judgment.judged:
        table.add_row(what(each, told), points_of(each))
    possible = sum(each.possible for each in judgment.judged)
    table.add_row(Text("together"), Text(f"{judgment.points} of {possible}"))
    screen.console.print(table)
    for run, number in judgment.ids.items():
        screen.say(f"The {run} run is {number}.")
    if judgment.code:
        screen.say(judgment.code)
    if judgment.distance:
        screen.say(judgment.distance)
    if judgment.broken:
        screen.say("Nothing is judged: the evidence is not as the runs left it.")
        screen.say(f"- {judgment.broken}")
    elif judgment.points < possible:
        screen.say("The table says below each property what it still lacks.")
    return 0 if judgment.points == possible else 1


def what(each: Judged, told: set[str]) -> Text:
    """The property, and below it what it lacks, where no row above has said so."""
    text = Text(each.name)
    if each.missing and each.missing not in told:
        text.append(f"\n- {each.missing}", "red")
    told.add(each.missing)
    return text


def points_of(each: Judged) -> Text:
    """Its points; of one that lacks something, those that it will give."""
    if each.missing:
        return Text(f"{each.possible} to get", "red")
    return Text(f"{each.points} of {each.possible}", "green")
