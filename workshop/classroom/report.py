"""A gradebook as one page for the room: who is where, and which mistakes are common.

The page needs nothing but itself: it opens from a file, offline. Whatever a learner
chose (the name of a folder, a message) is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from workshop.classroom import room
from workshop.classroom.book import NOT_FULLY, NOT_GRADED, Cell, Gradebook, Row
from workshop.classroom.formats import text_of
from workshop.classroom.report_style import RELOAD_EVERY, SCRIPT, STYLE

MOST = 12  # common mistakes that are shown
SIGNS = {"right": "✓", NOT_FULLY: "~", "wrong": "✗", "not started": "", NOT_GRADED: "…"}
CLASSES = {"right": "right", NOT_FULLY: "partial", "wrong": "wrong"}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{parts}
</main>{script}
</body>
</html>
"""
LIVE = (
    f"<p>This page reloads every {RELOAD_EVERY} seconds."
    ' <button id="pause" type="button" hidden>Pause reloading</button></p>'
    "<noscript><p>Without scripts, reload the page yourself.</p></noscript>"
)
SCROLL = '<div class="scroll" role="region" aria-label="Who is where" tabindex="0">'


def to_html(book: Gradebook, live: bool, clock: str) -> str:
    """The page. It reloads itself while it's ``live``; ``clock`` is the time of day."""
    parts = [
        _summary(book, clock),
        LIVE if live else "<p>Grading has ended.</p>",
        "<h2>Common right now</h2>",
        *_common(book),
        "<h2>Who is where</h2>",
        *_matrix(book),
        *_notes(book),
    ]
    script = f"\n<script>{SCRIPT}</script>" if live else ""
    return PAGE.format(
        title="The room right now",
        style=STYLE,
        parts="\n".join(parts),
        script=script,
    )


def escaped(text: str) -> str:
    return html.escape(text_of(text))


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _summary(book: Gradebook, clock: str) -> str:
    statuses = [cell.status for cell in book.cells]
    told = [
        counted(len(book.rows), "learner"),
        f"{statuses.count('right'):,} right",
        f"{statuses.count('wrong'):,} wrong",
    ]
    if partial := statuses.count(NOT_FULLY):
        told.append(f"{partial:,} not fully checked")
    if book.graded < book.total:
        told.append(f"{book.total - book.graded:,} still to grade")
    return f"<p>{', '.join(told)}. Last change {escaped(clock)}.</p>"


def _common(book: Gradebook) -> Iterable[str]:
    mistakes = room.common_mistakes(book)
    if not mistakes:
        yield "<p>No answer is wrong.</p>"
        return
    kinds = [f"{escaped(kind)} {number}" for kind, number in room.verdicts(book)]
    yield f"<p>By verdict: {', '.join(kinds)}.</p>"
    yield '<table class="mistakes"><thead><tr><th scope="col">Learners</th>'
    yield '<th scope="col">Exercise</th><th scope="col">Verdict</th>'
    yield '<th scope="col">What it looks like</th><th scope="col">Who</th></tr></thead>'
    yield "<tbody>"
    yield from (_mistake(mistake) for mistake in mistakes[:MOST])
    yield "</tbody></table>"
    if len(mistakes) > MOST:
        yield f"<p>{counted(len(mistakes) - MOST, 'more mistake')} not shown.</p>"
    if classics := room.classics(book):
        yield "<h2>Classic mistakes, all exercises together</h2><ul>"
        yield from (f"<li>{number}: {escaped(name)}</li>" for name, number in classics)
        yield "</ul>"


def _mistake(mistake: room.Mistake) -> str:
    shown = {
        "Learners": str(len(mistake.learners)),
        "Exercise": escaped(mistake.exercise),
        "Verdict": escaped(mistake.verdict),
        "What it looks like": escaped(mistake.text),
        "Who": ", ".join(escaped(name) for name in mistake.learners),
    }
    cells = [f'<td data-head="{head}">{text}</td>' for head, text in shown.items()]
    return f"<tr>{''.join(cells)}</tr>"


def _matrix(book: Gradebook) -> Iterable[str]:
    columns = room.touched(book)
    hidden = len(book.catalog) - len(columns)
    signs = (
        "✓ right, ~ right as far as this machine could try it, ✗ wrong, "
        "! can't be graded, … not graded yet."
    )
    yield f"<p>{signs} {_left_out(hidden)}</p>"
    yield f'{SCROLL}<table class="matrix"><thead><tr><th scope="col">Learner</th>'
    yield '<th scope="col">Points</th><th scope="col">Last begun</th>'
    for number in columns:
        name = escaped(book.catalog[number].name)
        yield f'<th scope="col" class="turned"><span>{name}</span></th>'
    yield "</tr></thead><tbody>"
    yield from (_row(row, columns) for row in book.rows)
    yield "</tbody></table></div>"


def _left_out(hidden: int) -> str:
    exercises = "exercise" if hidden == 1 else counted(hidden, "exercise")
    return f"No one has started the other {exercises}." if hidden else ""


def _row(row: Row, columns: list[int]) -> str:
    last = room.place(row)
    where = f"{last.exercise.name} {last.verdict or last.status}" if last else "nothing"
    cells = "".join(_cell(row.cells[number]) for number in columns)
    return (
        f'<tr><th scope="row">{escaped(row.learner)}</th>'
        f'<td class="number">{row.points}</td><td>{escaped(where)}</td>{cells}</tr>'
    )


def _cell(cell: Cell) -> str:
    sign = SIGNS.get(cell.status, "!")
    known = CLASSES.get(cell.status, "other")
    colored = f" {known}" if sign not in ("", "…") else ""
    words = escaped(cell.verdict or cell.status)
    return f'<td class="cell{colored}" title="{words}">{sign}</td>'


def _notes(book: Gradebook) -> Iterable[str]:
    notes = [(row.learner, note) for row in book.rows for note in row.notes()]
    if notes:
        yield "<h2>What could not be graded, and remarks</h2><ul>"
        for learner, note in notes:
            yield f"<li><strong>{escaped(learner)}</strong>: {escaped(note)}</li>"
        yield "</ul>"
