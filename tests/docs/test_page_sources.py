"""What pages may contain: code and output only from files, and every file's parts."""

from __future__ import annotations

import ast
import re
from collections import Counter
from itertools import pairwise
from keyword import iskeyword
from pathlib import Path

import pytest

from tests.docs.pages import (
    LESSONS,
    ROOT,
    Directive,
    all_directives,
    lesson_directives,
    lesson_source,
    sources,
)
from tools.transcript_catalog import load_catalog as load_transcripts
from workshop.catalog import load_catalog
from workshop.lesson_pages import first_page, parts_of
from workshop.skeleton import holes, parse, skeleton_text

MARKER = re.compile(r"^\s*# \[(?P<kind>start|end) (?P<name>[^\]]+)\]\s*$", re.M)
ANSWER = re.compile(r"^answer \d+$")
OWN_NAME = re.compile(r"(?<![.\w\"'])(?!dist\b|torch\b)[a-z_]\w*(?![\w(\"'])")
ONE_COLON = re.compile(r"^\s*\.\. (?!_)(?P<name>[A-Za-z][A-Za-z-]*):(\s|$)")


def code_files():
    """The files whose named parts pages may show."""
    for folder in ("src", "gallery", "solutions", "job_scripts", "docs/examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".sh", ".sbatch", ".pbs"):
                yield path


def markers(path) -> Counter:
    """(kind, name) of each marker of a file, without those of the grader."""
    text = path.read_text(encoding="utf-8")
    return Counter(
        (match["kind"], match["name"])
        for match in MARKER.finditer(text)
        if not ANSWER.match(match["name"])
    )


def shown_markers() -> set[tuple[str, str, str]]:
    """(file, kind, name) of each marker that a page names."""
    shown = set()
    for listing in all_directives("literalinclude"):
        name = listing.file.relative_to(ROOT).as_posix()
        for option, kind in (("start-after", "start"), ("end-before", "end")):
            if option in listing.options:
                marker = re.fullmatch(rf"\[{kind} (.+)\]", listing.options[option])
                assert marker, (
                    f"{listing.place}: write :{option}: [{kind} NAME], "
                    f"not {listing.options[option]!r}"
                )
                shown.add((name, kind, marker[1]))
    return shown


# Code comes from files


def test_every_marker_that_a_page_names_exists():
    exists = {
        (path.relative_to(ROOT).as_posix(), kind, name)
        for path in code_files()
        for kind, name in markers(path)
    }
    missing = shown_markers() - exists
    assert not missing, f"pages show parts that no file has: {sorted(missing)}"


def test_every_marker_of_a_file_is_shown_by_a_page():
    exists = {
        (path.relative_to(ROOT).as_posix(), kind, name)
        for path in code_files()
        for kind, name in markers(path)
    }
    unused = exists - shown_markers()
    assert not unused, f"no page shows these parts, remove them: {sorted(unused)}"


def test_each_part_of_a_file_starts_once_and_ends_once():
    for path in code_files():
        for (kind, name), count in markers(path).items():
            assert count == 1, f"{path.name}: [{kind} {name}] is there {count} times"
            other = ("end" if kind == "start" else "start", name)
            assert other in markers(path), f"{path.name}: [{name}] has no {other[0]}"


def test_listings_are_chosen_by_name_never_by_line_number():
    for listing in all_directives("literalinclude"):
        numbered = {"lines", "lineno-start"} & set(listing.options)
        assert not numbered, f"{listing.place}: use :pyobject: or markers"
        assert listing.file.is_file(), f"{listing.place}: no file {listing.argument}"


def test_no_code_or_output_is_typed_into_a_page():
    typed = ("code", "sourcecode", "parsed-literal", "highlight", "code-block")
    for block in all_directives(*typed):
        console = block.name == "code-block" and block.argument == "console"
        assert console, (
            f"{block.place}: show code with literalinclude and output with "
            "transcript; only commands are typed, in 'code-block:: console'"
        )


def test_a_console_block_holds_commands_only():
    for block in all_directives("code-block"):
        continued = False
        for line in block.body:
            assert continued or line.strip().startswith("$ "), (
                f"{block.place}: {line.strip()!r} is output: record a transcript"
            )
            continued = line.endswith("\\")


def test_the_first_column_of_a_table_has_a_heading():
    """A screen reader says it before each row; axe finds it only in a browser."""
    for table in all_directives("list-table"):
        if table.options.get("header-rows") == "1":
            head = table.body[0].strip()
            assert head != "* -", f"{table.place}: its first heading is empty"


def test_no_literal_block_hides_after_two_colons():
    for page in sources():
        lines = page.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            place = f"{page.relative_to(ROOT)}:{number}"
            text = line.strip()
            paragraph = text.endswith("::") and not text.startswith("..")
            assert not paragraph, f"{place}: a literal block: {text!r}"
            assert not text.startswith(">>>"), f"{place}: a typed session: {text!r}"


def test_a_directive_has_two_colons():
    """With one colon it is a comment, which no reader sees and no build reports."""
    for page in sources():
        lines = page.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            assert not ONE_COLON.match(line), (
                f"{page.relative_to(ROOT)}:{number}: {line.strip()!r} is a comment: "
                "write two colons"
            )


def test_the_rule_about_colons_finds_what_it_should():
    assert ONE_COLON.match("   .. warning: dask on HPC")
    assert not ONE_COLON.match(".. warning:: dask on HPC")
    assert not ONE_COLON.match(".. _label:")
    assert not ONE_COLON.match(".. a comment: with a colon")


# Exercises and transcripts


def test_every_exercise_stands_on_the_page_of_its_lesson():
    shown = {
        (directive.argument, directive.page.relative_to(ROOT).as_posix())
        for directive in all_directives("exercise")
    }
    for exercise in load_catalog(ROOT):
        assert (exercise.name, exercise.page) in shown, (
            f"{exercise.page} does not show {exercise.name}"
        )
    counts = Counter(directive.argument for directive in all_directives("exercise"))
    assert all(count == 1 for count in counts.values()), counts


def code_lines(text: str) -> list[str]:
    """The lines of a program, whatever its variables are called: no comments."""
    lines = [" ".join(line.split("  #")[0].split()) for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return [OWN_NAME.sub(lambda n: n[0] if iskeyword(n[0]) else "x", x) for x in lines]


def shown_lines(listing: Directive) -> tuple[int, int]:
    """The first and the last line that a listing shows; all for a difference."""
    text = listing.file.read_text(encoding="utf-8")
    if "pyobject" in listing.options:
        node = ast.parse(text)
        for name in listing.options["pyobject"].split("."):
            node = next(one for one in node.body if getattr(one, "name", "") == name)
        return node.lineno, node.end_lineno or node.lineno
    first, last = 1, len(text.splitlines())
    if "start-after" in listing.options:
        first = text.partition(listing.options["start-after"])[0].count("\n") + 2
    if "end-before" in listing.options:
        last = text.partition(listing.options["end-before"])[0].count("\n")
    return first, last


def shown_part(listing: Directive) -> str:
    """The part of its file that a listing shows; all of it for a difference."""
    first, last = shown_lines(listing)
    lines = listing.file.read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[first - 1 : last])


def gives_away(shown: list[str], answer: list[str]) -> list[str]:
    """Three lines in a row of an answer that the lines shown have as well."""
    threes = {tuple(shown[n : n + 3]) for n in range(len(shown) - 2)}
    for n in range(len(answer) - 2):
        if tuple(answer[n : n + 3]) in threes:
            return answer[n : n + 3]
    return []


def test_no_listing_above_an_exercise_has_its_answer():
    for exercise in load_catalog(ROOT):
        parts = parse(exercise.solution.read_text(), exercise.file)
        answers = [code_lines("\n".join(hole.answer)) for hole in holes(parts)]
        for directive in lesson_directives(exercise.lesson):
            if directive.name == "exercise" and directive.argument == exercise.name:
                break
            if directive.name == "literalinclude":
                shown = code_lines(shown_part(directive))
                told = [lines for lines in answers if gives_away(shown, lines)]
                assert not told, f"{directive.place} shows {exercise.name}: {told[0]}"


def test_the_rule_about_answers_finds_what_it_should():
    answer = code_lines("a = f(b)  # why\n    if a:\n\n# a comment\ndist.g(a)\n")
    shown = "import y\n  b = f(c)\n  if b:\n  dist.g(c)"
    assert gives_away(code_lines(shown), answer) == answer
    assert not gives_away(code_lines(shown.replace("if b:", "if b:\n  pass")), answer)
    assert not gives_away(code_lines(shown.replace("f(c)", "h(c)")), answer)


def test_the_overview_counts_the_minutes_of_the_exercises():
    catalog = load_catalog(ROOT)
    for lesson in LESSONS:
        text = first_page(ROOT, lesson).read_text(encoding="utf-8")
        said = re.search(r"\*\*Exercises:\*\* (\d+) min", text)
        assert said, f"{lesson}: write '**Exercises:** N min' on its first page"
        minutes = sum(e.minutes for e in catalog if e.lesson == lesson)
        assert int(said[1]) == minutes, f"{lesson}: the catalog has {minutes} min"
        assert re.search(r"\*\*Tutorial:\*\* \d+ min", text), lesson


def parts_of_programs(lesson: str) -> dict[str, list[list[Directive]]]:
    """Program -> its parts above a page's first exercise, and those below it."""
    found: dict[str, list[list[Directive]]] = {}
    below: set[Path] = set()  # pages whose first exercise was passed
    for directive in lesson_directives(lesson):
        if directive.name == "exercise":
            below.add(directive.page)
        if directive.name != "literalinclude" or "diff" in directive.options:
            continue
        if directive.file.parent in (ROOT / "src", ROOT / "src" / "instruments"):
            parts = found.setdefault(directive.file.name, [[], []])
            parts[directive.page in below].append(directive)
    return found


def out_of_order(parts: list[Directive]) -> str:
    """The first part that ends before the one above it does, or an empty string."""
    for before, after in pairwise(parts):
        if shown_lines(after)[1] <= shown_lines(before)[1]:
            lines = shown_lines(after)[0], shown_lines(before)[0]
            return f"{after.place}: line {lines[0]} is shown after line {lines[1]}"
    return ""


@pytest.mark.parametrize("lesson", LESSONS)
def test_program_has_its_parts_in_the_order_of_its_lesson(lesson):
    """A reader who goes down the pages goes down the program.

    The answers start again at the top: a page shows them below its first exercise,
    however early the program needs them, and they are in order among themselves. A
    part that shows an earlier one again, with the lines around it, counts by its last
    line. A difference shows the whole program and is no part.
    """
    for name, halves in parts_of_programs(lesson).items():
        wrong = [text for text in map(out_of_order, halves) if text]
        assert not wrong, f"{name}: {wrong[0]}; move the function, or the listing"


def test_skeletons_equal_their_solutions_but_for_the_holes():
    for exercise in load_catalog(ROOT):
        expected = skeleton_text(exercise.solution.read_text(), exercise.suffix)
        assert exercise.path.read_text() == expected, (
            f"exercises/{exercise.file} differs from what its solution gives"
        )


def test_every_transcript_is_shown_and_every_shown_one_is_in_the_catalog():
    recorded = set(load_transcripts())
    shown = {directive.argument for directive in all_directives("transcript")}
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    shown_by_readme = {name for name in recorded if f"transcripts/{name}.txt" in text}
    assert shown <= recorded, f"not in the catalog: {sorted(shown - recorded)}"
    in_gallery = {name for name, one in load_transcripts().items() if one.shows}
    unused = recorded - shown - shown_by_readme - in_gallery
    assert not unused, f"no page shows these transcripts: {sorted(unused)}"


def test_no_transcript_file_is_left_over():
    recorded = set(load_transcripts())
    files = {path.stem for path in (ROOT / "docs" / "transcripts").glob("*.txt")}
    assert files <= recorded, f"not in the catalog: {sorted(files - recorded)}"


def test_lessons_have_a_label_an_overview_key_points_and_further_reading():
    for lesson in LESSONS:
        text = lesson_source(lesson)
        assert f".. _lesson-{lesson[:2]}:" in text, f"{lesson} has no label"
        boxes = [d for d in lesson_directives(lesson) if d.name == "admonition"]
        titles = [box.argument for box in boxes]
        first = first_page(ROOT, lesson).read_text(encoding="utf-8")
        assert "**You will be able to**\n" in first, lesson
        if parts_of(ROOT, lesson):
            assert ".. lesson-contents::\n" in first, f"{lesson} has no contents"
        else:
            assert titles[:1] == ["Overview"], f"{lesson} has no Overview first"
        assert "Key Points" in titles, f"{lesson}: Key Points"
        end = text.partition(".. admonition:: Key Points")[2]
        assert "\nFurther reading\n---------------\n\n* " in end, (
            f"{lesson} has no list of Further reading after its Key Points"
        )
        kinds = {
            "Overview": "Overview",
            "Explanation": "attention",
            "Key Points": "hint",
        }
        for box in boxes:
            kind = kinds.get(box.argument)
            assert kind is None or box.options.get("class") == kind, (
                f"{box.place}: {box.argument} has :class: {kind}"
            )


def test_folded_answers_say_so():
    for box in all_directives("admonition"):
        if box.argument in ("Answer", "Solution"):
            assert box.options.get("collapsible") == "closed", f"{box.place} is open"


READERS_CHOICE = ("Answer", "Solution", "In depth")


def test_only_what_a_reader_chooses_is_folded():
    """Answers, what is in depth, and listings of whole files or their differences."""
    for box in all_directives("admonition"):
        if box.options.get("collapsible") == "closed":
            chosen = box.argument.startswith(READERS_CHOICE)
            listing = any("literalinclude::" in line for line in box.body)
            assert chosen or listing, f"{box.place}: open the box {box.argument!r}"
