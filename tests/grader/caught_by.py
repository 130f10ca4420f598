"""Write down which check catches each known mistake, from the last full run.

``python tests/grader/caught_by.py``, after ``make test FULL=1``
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JUNIT = ROOT / "build" / "junit-answers.xml"
FILE = ROOT / "tests" / "exercises" / "caught_by.txt"


def main() -> int:
    """Exit status: 0, or 2 if there was no full run."""
    if not JUNIT.exists():
        print(f"{JUNIT} is missing: run make test FULL=1 first", file=sys.stderr)
        return 2
    lines = []
    for case in ET.parse(JUNIT).iter("testcase"):
        answer = case.get("name", "").partition("[")[2].removesuffix("]")
        for entry in case.iter("property"):
            if entry.get("name") == "caught by":
                lines.append(f"{answer} {entry.get('value')}\n")
    FILE.write_text("".join(sorted(lines)))
    print(f"{len(lines)} mistakes in {FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
