"""``.. switches::``: for each library, which switch does what a lesson does by hand.

The tables come from docs/production/switches.toml. Each switch leads to a file of the
library at the commit that was read; ``tools/library_switches.py`` looks them up again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CATALOG = Path(__file__).resolve().parents[1] / "production" / "switches.toml"
SECTION = """\
.. rubric:: {name}

{what} (`{repository} <https://github.com/{repository}>`__, read as of {date})

.. list-table::
   :header-rows: 1
   :widths: 30 14 56

   * - By hand here
     - Lesson
     - The switch there
"""
ROW = """\
   * - {here}
     - :ref:`{lesson} <lesson-{lesson}>`
     - {there}{note} (`{file} <{address}>`__)
"""


def load_libraries() -> list[dict]:
    return tomllib.loads(CATALOG.read_text(encoding="utf-8"))["library"]


def literals(text: str) -> str:
    """`code` as reStructuredText."""
    return text.replace("`", "``")


def address(library: dict, switch: dict) -> str:
    base = f"https://github.com/{library['repository']}/blob/{library['commit']}"
    return f"{base}/{switch['file']}"


def table(library: dict) -> str:
    """A library's heading, sentence and table, as reStructuredText."""
    head = {**library, "what": literals(library["what"])}
    rows = [SECTION.format(**head)]
    for switch in library["switch"]:
        note = f": {literals(switch['note'])}" if switch["note"] else ""
        rows.append(
            ROW.format(
                here=literals(switch["here"]),
                lesson=switch["lesson"],
                there=literals(switch["there"]),
                note=note,
                file=Path(switch["file"]).name,
                address=address(library, switch),
            )
        )
    return "".join(rows)


class SwitchesDirective(SphinxDirective):
    """One table for each library of the catalog."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(CATALOG))
        text = "\n".join(map(table, load_libraries()))
        return self.parse_text_to_nodes(text)


def setup(app) -> dict:
    app.add_directive("switches", SwitchesDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
