"""``.. transcript:: NAME``: what a command really printed, from a recorded file.

The file ``docs/transcripts/NAME.txt`` is written by ``make transcripts``: command
lines (``$ ...``), what they printed, the exit status if it was not 0, and a last
line ``Recorded with torch X on DATE``. Output is never typed into a page; a name
without a recorded file fails the build.

Each page that shows transcripts ends with a line that says when they were recorded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

FOOTER = re.compile(r"^Recorded with torch (?P<torch>\S+) on (?P<date>\d{4}-\d\d-\d\d)")


@dataclass(frozen=True)
class Transcript:
    """A recorded file: the commands, their output, and the last line."""

    commands: str
    output: str
    footer: str


def parse(text: str) -> Transcript:
    """Split a recorded file; a command goes on while its lines end with a backslash.

    Raises:
        ValueError: there is no command at the top, or no footer at the end.
    """
    lines = text.rstrip("\n").split("\n")
    if not lines[0].startswith("$ "):
        raise ValueError("its first line is not a command ('$ ...')")
    if not FOOTER.match(lines[-1]):
        raise ValueError("its last line is not 'Recorded with torch X on DATE'")
    end = 0
    while end < len(lines) and (
        lines[end].startswith("$ ") or (end and lines[end - 1].endswith("\\"))
    ):
        end += 1
    return Transcript(
        commands="\n".join(lines[:end]),
        output="\n".join(lines[end:-1]).strip("\n"),
        footer=lines[-1],
    )


class TranscriptDirective(SphinxDirective):
    """The command with its copy button, then the output, then when it was recorded."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        path = Path(self.env.srcdir) / "docs" / "transcripts" / f"{name}.txt"
        self.env.note_dependency(str(path))
        try:
            transcript = parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise self.error(
                f"no transcript docs/transcripts/{name}.txt: add {name!r} to "
                f"docs/transcripts/catalog.toml and record it with "
                f"'python tools/transcripts.py record {name}'"
            ) from None
        except (ValueError, OSError) as error:
            raise self.error(f"docs/transcripts/{name}.txt: {error}") from None
        recorded = FOOTER.match(transcript.footer)
        shown = self.env.metadata[self.env.docname].setdefault("transcripts", [])
        shown.append((recorded["date"], recorded["torch"]))
        return [self._block(transcript)]

    def _block(self, transcript: Transcript) -> nodes.container:
        block = nodes.container(classes=["transcript"])
        self.set_source_info(block)
        command = nodes.literal_block(
            transcript.commands, transcript.commands, language="console"
        )
        command["classes"].append("command")
        block += command
        if transcript.output:
            output = nodes.literal_block(
                transcript.output, transcript.output, language="text"
            )
            output["classes"].append("output")
            block += output
        block += nodes.paragraph("", transcript.footer, classes=["recorded"])
        return block


def add_last_verified(app, doctree: nodes.document) -> None:
    """End the page with the oldest recording of its transcripts."""
    shown = app.env.metadata[app.env.docname].pop("transcripts", None)
    if not shown:
        return
    date, torch = min(shown)
    count = "The output" if len(shown) == 1 else f"All {len(shown)} outputs"
    sentence = (
        f"{count} on this page came from the commands shown; "
        f"last verified with torch {torch} on {date}."
    )
    if len(shown) > 1 and min(shown) != max(shown):
        sentence = sentence.replace("last verified", "the oldest was recorded")
    sections = [node for node in doctree.children if isinstance(node, nodes.section)]
    if sections:
        sections[-1] += nodes.transition()
        sections[-1] += nodes.paragraph("", sentence, classes=["verified"])


def setup(app) -> dict:
    app.add_directive("transcript", TranscriptDirective)
    app.connect("doctree-read", add_last_verified)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
