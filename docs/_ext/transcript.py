"""``.. transcript:: NAME``: what a command really printed, from a recorded file.

The file ``docs/transcripts/NAME.txt`` is written by ``make transcripts``: command
lines (``$ ...``), what they printed, the exit status if it was not 0, and a last
line ``Recorded with torch X on DATE``. Output is never typed into a page; a name
without a recorded file fails the build.

Each page that shows transcripts ends with a line that says when they were recorded.

``.. on-a-gpu:: NAME``: the same command on a GPU, from docs/transcripts/gpu. The suite
for GPUs writes NAME.gpu.txt into build/gpu, from where it's copied by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import catalogs
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from tools.transcript_catalog import TranscriptError, select

FOOTER = re.compile(r"^Recorded with torch (?P<torch>\S+) on (?P<date>\d{4}-\d\d-\d\d)")
CARD = re.compile(r", on (?P<card>.+), driver ")


@dataclass(frozen=True)
class Transcript:
    """A recorded file: each command with its output, and the last line."""

    steps: list[tuple[str, str]]
    footer: str


def parse(text: str, commands: list[str]) -> Transcript:
    """Split a recorded file at the commands which the catalog says it has.

    Raises:
        ValueError: it was recorded with other commands, or has no last line.
    """
    body, _, footer = text.rstrip("\n").rpartition("\n")
    if not FOOTER.match(footer):
        raise ValueError("its last line is not 'Recorded with torch X on DATE'")
    starts = []
    for command in commands:
        after = starts[-1] + 1 if starts else 0
        start = f"\n{body}\n".find(f"\n$ {command}\n", after)
        if start < 0 or (not starts and start > 0):
            raise ValueError(
                f"it does not show {command!r}, as the catalog says: record it again"
            )
        starts.append(start)
    steps = []
    for command, start, end in zip(
        commands, starts, [*starts[1:], len(body)], strict=True
    ):
        output = body[start:end].strip("\n").removeprefix(f"$ {command}")
        steps.append((f"$ {command}", output.strip("\n")))
    return Transcript(steps, footer)


class TranscriptDirective(SphinxDirective):
    """The command with its copy button, then the output, then when it was recorded."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        folder = Path(self.env.srcdir) / "docs" / "transcripts"
        path = folder / f"{name}.txt"
        self.env.note_dependency(str(path))
        try:
            entry = select(catalogs.transcripts(folder / "catalog.toml"), [name])[0]
            transcript = parse(path.read_text(encoding="utf-8"), entry.commands)
        except TranscriptError as error:
            raise self.error(str(error)) from None
        except FileNotFoundError:
            raise self.error(
                f"{name} is not recorded: python tools/transcripts.py record {name}"
            ) from None
        except (ValueError, OSError) as error:
            raise self.error(f"docs/transcripts/{name}.txt: {error}") from None
        recorded = FOOTER.match(transcript.footer)
        shown = self.env.metadata[self.env.docname].setdefault("transcripts", [])
        shown.append((recorded["date"], recorded["torch"]))
        block = _block(transcript)
        self.set_source_info(block)
        return [block]


class OnAGpuDirective(SphinxDirective):
    """A fold with what a program printed on a GPU."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        path = Path(self.env.srcdir, "docs", "transcripts", "gpu", f"{name}.gpu.txt")
        self.env.note_dependency(str(path))
        try:
            text = path.read_text(encoding="utf-8")
            transcript = parse(text, re.findall(r"^\$ (.+)$", text, re.M))
            card = CARD.search(transcript.footer)
            if not card:
                raise ValueError("its last line names no card: copy it from build/gpu")
        except FileNotFoundError:
            raise self.error(
                f"docs/transcripts/gpu/{path.name} is missing: run `make gpu` where "
                f"there is a GPU, and copy build/gpu/{path.name}"
            ) from None
        except (ValueError, OSError) as error:
            raise self.error(f"docs/transcripts/gpu/{path.name}: {error}") from None
        fold = nodes.admonition(classes=["solution"], collapsible="open")
        self.set_source_info(fold)
        fold += nodes.title("", f"On a GPU: {card['card']}")
        fold += _block(transcript)
        return [fold]


def _block(transcript: Transcript) -> nodes.container:
    block = nodes.container(classes=["transcript"])
    for command, output in transcript.steps:
        block += _listing(command, "console", "command")
        if output:
            block += _listing(output, "text", "output")
    block += nodes.paragraph("", transcript.footer, classes=["recorded"])
    return block


def _listing(text: str, language: str, kind: str) -> nodes.literal_block:
    listing = nodes.literal_block(text, text, language=language)
    listing["classes"].append(kind)
    return listing


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
    app.add_directive("on-a-gpu", OnAGpuDirective)
    app.connect("doctree-read", add_last_verified)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
