"""What ``workshop capstone`` prints: a table of points, then what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from workshop.capstone.judge import Judgment
from workshop.terminal.tables import new_table

if TYPE_CHECKING:
    from workshop.learner.display import Screen


def show(screen: Screen, judgment: Judgment) -> int:
    """Print it; the exit status: 0 all points, 1 some are missing."""
    table = new_table(screen.console)
    table.add_column("property", overflow="fold", ratio=1)
    table.add_column("points", justify="right", no_wrap=True)
    for each in judgment.judged:
        style = "red" if each.missing else "green"
        points = Text(f"{each.points} of {each.possible}", style)
        table.add_row(Text(each.name), points)
    possible = sum(each.possible for each in judgment.judged)
    table.add_row(Text("together"), Text(f"{judgment.points} of {possible}"))
    screen.console.print(table)
    for run, number in judgment.ids.items():
        screen.say(f"The {run} run is {number}.")
    if judgment.distance:
        screen.say(judgment.distance)
    sentences = [judgment.broken] if judgment.broken else missing(judgment)
    if judgment.broken:
        screen.say("Nothing is judged: the evidence is not as the runs left it.")
    for sentence in sentences:
        screen.say(f"- {sentence}")
    return 1 if sentences else 0


def missing(judgment: Judgment) -> list[str]:
    """Each sentence once: a run that is not there lacks every property."""
    return list(dict.fromkeys(each.missing for each in judgment.judged if each.missing))
