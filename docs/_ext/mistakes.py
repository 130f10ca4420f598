"""``.. common-mistakes:: 05``: the table of a lesson's mistakes, or the cheat sheet's.

The rows are those of workshop/diagnose/mistakes.toml, where the first lines explain
them. Each has an address, so that the search can lead to it. ``:heads:`` names the
columns, if they aren't "Symptom, Cause, Cure".
"""

from __future__ import annotations

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from workshop.common_mistakes import FOLDER, MISTAKES, SHEET, rows_of, table


class CommonMistakesDirective(SphinxDirective):
    """All rows of a lesson, on the page that they name."""

    required_arguments = 1
    option_spec: ClassVar = {"heads": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        which = self.arguments[0]
        self.env.note_dependency(str(MISTAKES))
        mistakes = rows_of(which)
        if not mistakes:
            raise self.error(f"{MISTAKES.name} has no row of {which}")
        elsewhere = {one.page for one in mistakes} - {
            self.env.docname.removeprefix(f"{FOLDER}/")
        }
        if which != SHEET and elsewhere:
            raise self.error(f"rows of {which} belong to {sorted(elsewhere)}")
        found = self.parse_text_to_nodes(table(which, self.options.get("heads", "")))
        if which != SHEET:
            (body,) = found[0].findall(nodes.tbody)
            for row, mistake in zip(body.findall(nodes.row), mistakes, strict=True):
                row["ids"] = [mistake.row]
        return found


def setup(app) -> dict:
    app.add_directive("common-mistakes", CommonMistakesDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
