"""The overview of each lesson says the oldest PyTorch that its programs run with."""

import re
import sys

import pytest

from tests.docs.pages import LESSONS, ROOT, lesson_source

sys.path.insert(0, str(ROOT / "src"))
from common.torch_versions import needed

LINE = re.compile(r"\* \*\*PyTorch:\*\* (\S+) or newer((?:; .+)?)\n")


def release(program):
    return ".".join(map(str, needed(program)))


@pytest.mark.parametrize("lesson", LESSONS)
def test_overview_says_the_oldest_torch(lesson):
    line = LINE.search(lesson_source(lesson))
    assert line, f"{lesson}: no line '* **PyTorch:** 2.6 or newer' on its first page"
    own = [path.name for path in (ROOT / "src").rglob(f"{lesson[:2]}_*.py")]
    oldest = min(map(needed, own), default=needed(lesson))
    assert line[1] == ".".join(map(str, oldest))
    more = {name: release(name) for name in own if needed(name) > oldest}
    said = re.findall(r"(\S+) for ((?:``\w+\.py``(?: and )?)+)", line[2])
    named = {
        name: number for number, names in said for name in re.findall(r"\w+\.py", names)
    }
    assert named == more
