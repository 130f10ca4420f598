""".editorconfig agrees with the files as they are, and with ruff."""

import configparser
import fnmatch
import functools
import re
import sys
from pathlib import Path

from tools.fresh_copy import ROOT, tree_files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPECIAL = re.compile(r"\{([^{}]*)\}")


@functools.cache
def editor_sections() -> list[tuple[str, dict[str, str]]]:
    """Pattern and settings, in order; a section of {a,b} is one for a, one for b."""
    parser = configparser.ConfigParser(strict=True)
    text = (ROOT / ".editorconfig").read_text(encoding="utf-8")
    parser.read_string(f"[top]\n{text}")
    return [
        (pattern, dict(parser[section]))
        for section in parser.sections()
        if section != "top"
        for pattern in spelled_out(section)
    ]


def spelled_out(pattern: str) -> list[str]:
    """The patterns that one with {a,b} stands for."""
    found = SPECIAL.search(pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [
        before + choice + rest
        for choice in found[1].split(",")
        for rest in spelled_out(after)
    ]


def editor_settings(name: str) -> dict[str, str]:
    """What .editorconfig says about a file: the later section wins."""
    settings: dict[str, str] = {}
    for pattern, more in editor_sections():
        subject = name
        if "/" not in pattern:
            subject = Path(name).name
        if fnmatch.fnmatchcase(subject, pattern):
            settings |= more
    return settings


def test_files_are_as_editors_will_save_them():
    """Otherwise an editor changes lines that its user never touched."""
    wrong = []
    for name in tree_files():
        data = (ROOT / name).read_bytes()
        if b"\0" in data or not data:
            continue
        settings = editor_settings(name)
        lines = data.decode("utf-8", errors="replace").split("\n")
        if settings.get("insert_final_newline") == "true" and lines[-1]:
            wrong.append(f"{name}: no newline at its end")
        if settings.get("trim_trailing_whitespace") == "true":
            ending = [line for line in lines if line != line.rstrip(" \t")]
            wrong += [f"{name}: {line!r} ends with spaces" for line in ending]
        if settings.get("end_of_line") == "lf" and b"\r\n" in data:
            wrong.append(f"{name}: line endings of Windows")
        tab = any(line.startswith("\t") for line in lines)
        if tab and settings.get("indent_style") == "space":
            wrong.append(f"{name}: indented by tabs")
    assert wrong == []


def test_editors_know_the_width_that_ruff_knows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    width = str(project["tool"]["ruff"]["line-length"])
    assert editor_settings("src/01_single_device.py")["max_line_length"] == width
    assert editor_settings("Makefile")["indent_style"] == "tab"
    assert editor_settings("tests/exercises/a/b.py")["end_of_line"] == "unset"
