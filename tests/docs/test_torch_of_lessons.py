"""The overview of each lesson says the oldest PyTorch that its programs run with."""

import re
import sys

import pytest

from tests.docs.pages import ROOT

sys.path.insert(0, str(ROOT / "src"))
from common.torch_versions import needed

LESSONS = sorted((ROOT / "docs" / "lessons").glob("[0-9]*.rst"))
LINE = re.compile(r"\* \*\*PyTorch:\*\* (\S+) or newer((?:; .+)?)\n")


def release(program):
    return ".".join(map(str, needed(program)))


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_overview_says_the_oldest_torch(page):
    text = page.read_text(encoding="utf-8")
    line = LINE.search(text)
    assert line, f"{page.name}: no line '* **PyTorch:** 2.6 or newer' in its overview"
    own = [path.name for path in (ROOT / "src").glob(f"{page.name[:2]}_*.py")]
    oldest = min(map(needed, own), default=needed(page.name))
    assert line[1] == ".".join(map(str, oldest))
    more = {name: release(name) for name in own if needed(name) > oldest}
    said = re.findall(r"(\S+) for ((?:``\w+\.py``(?: and )?)+)", line[2])
    named = {
        name: number for number, names in said for name in re.findall(r"\w+\.py", names)
    }
    assert named == more
