"""The results of a gradebook as text: JSON, CSV, JUnit."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree

from workshop.classroom.book import COUNTED, NOT_FULLY, Cell, Gradebook

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_json(book: Gradebook) -> str:
    learners = [
        {
            "learner": text_of(row.learner),
            "folder": text_of(str(row.folder)),
            "points": row.points,
            "possible": row.possible,
            "remarks": [text_of(remark) for remark in row.remarks],
            "exercises": [
                {
                    "name": cell.exercise.name,
                    "status": cell.status,
                    "verdict": cell.verdict,
                    "points": cell.points,
                    "possible": cell.exercise.points,
                    "message": text_of(cell.message),
                    "seconds": round(cell.seconds, 3),
                }
                for cell in row.cells
            ],
        }
        for row in book.rows
    ]
    done = {"complete": book.graded == book.total, "learners": learners}
    return json.dumps(done, indent=1, ensure_ascii=False) + "\n"


def to_csv(book: Gradebook) -> str:
    """A row per learner; two columns per exercise: points and verdict."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [exercise.name for exercise in book.catalog]
    heads = [head for name in names for head in (name, f"{name} verdict")]
    counted = [*COUNTED, "other"]
    writer.writerow(["learner", "points", "possible", *counted, *heads])
    for row in book.rows:
        counts = row.counts()
        cells = [
            one
            for cell in row.cells
            for one in (cell.points, cell.verdict or cell.status)
        ]
        writer.writerow(
            [_harmless(text_of(row.learner)), row.points, row.possible]
            + [counts[name] for name in counted]
            + cells
        )
    return text.getvalue()


def to_junit(book: Gradebook) -> str:
    """A test suite per learner, a test case per exercise."""
    top = ElementTree.Element("testsuites", name="workshop grade")
    for row in book.rows:
        counts = row.counts()
        suite = ElementTree.SubElement(
            top,
            "testsuite",
            name=text_of(row.learner),
            tests=str(len(row.cells)),
            failures=str(counts["wrong"]),
            errors=str(counts["other"]),
            skipped=str(counts["not started"] + counts[NOT_FULLY]),
            time=f"{sum(cell.seconds for cell in row.cells):.3f}",
        )
        for cell in row.cells:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=text_of(row.learner),
                name=cell.exercise.name,
                time=f"{cell.seconds:.3f}",
            )
            _outcome(case, cell)
    ElementTree.indent(top)
    body = ElementTree.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _outcome(case: ElementTree.Element, cell: Cell) -> None:
    if cell.status == "right":
        return
    tags = {"wrong": "failure", "not started": "skipped", NOT_FULLY: "skipped"}
    tag = tags.get(cell.status, "error")
    message = text_of(cell.message)
    first = message.splitlines()[0] if message else cell.status
    if cell.status == NOT_FULLY:
        first = " ".join(line.strip() for line in message.splitlines())
    attributes = {"message": first}
    if tag != "skipped":
        attributes["type"] = cell.verdict or cell.status
    element = ElementTree.SubElement(case, tag, attributes)
    if tag != "skipped":
        element.text = message


def text_of(text: str) -> str:
    """What every format can hold: no control characters, no broken bytes."""
    return _NOT_IN_XML.sub("?", text)


def _harmless(text: str) -> str:
    """Spreadsheets run a cell that begins like a formula: quote it."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text
