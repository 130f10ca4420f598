"""Run the tests in parts, some side by side, and show where the time went.

    python tools/run_tests.py              # what a contributor waits for: make test
    python tools/run_tests.py --full       # all that a change needs: make test FULL=1
    python tools/run_tests.py --nightly    # only what that leaves out: make nightly

Deadlocks wait for quiet time and clusters for timers, so two parts share the cores at
any time, and three in longer runs. What pytest prints of a part is in build/PART.log
meanwhile, and shown when it has ended; all parts run, also when one has failed. At the
end there is a table of the parts, each beside its usual seconds, and of the slowest
tests, each failed test with what pytest said of it, and a JUnit file, build/junit.xml.

A few failures are tried once more, one at a time with nothing beside them: on a busy
machine a program may miss its time. What passes then is named at the end.

Exit status: 0 all passed, 1 some failed, or no test has started a program of src/.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `python tools/run_tests.py`
from tests import warm  # noqa: E402
from tests.grader.chosen_answers import remember_run  # noqa: E402
from tools import passed_before, time_is_up  # noqa: E402
from tools.readme_commands import BY_SBATCH  # noqa: E402
from workshop.cluster.nodes import machine  # noqa: E402

BUILD = ROOT / "build"
ANSWERS = "tests/grader/test_known_answers.py"
PAGES = "tests/docs"
JOBS = (PAGES, "tests/jobs")
REST = (
    f"--ignore={ANSWERS}",
    "tests/grader",
    "tests/lint",
    "tests/scripts",
    "tests/gpu",
)
PROGRAMS = {path.name for path in (ROOT / "src").rglob("[0-9]*.py")}
ONE_SEED = ("--seeds", "1")
OTHER_SEED = ("--seeds", "77")  # than those which a learner's checks have
AT_ONCE = {"short": 2, "full": 3, "nightly": 3}  # parts
# What pytest chooses by its marks; tests/conftest.py marks as full what is nightly.
CHOSEN = {
    "short": "quick or not full",
    "full": "quick or not nightly",
    "nightly": "nightly and not quick",
}
SLOWEST = 10
EXPLAINED = 40  # lines of one failure, at the end
AGAIN = "-again"
FEW = 30  # failures that one part may repeat; a browser that hangs fails a file of them
# Seconds of each part on two cores, one run of each size (2026-11-30); the short jobs
# were timed where they skip. Write down new ones when a part rightly takes longer.
USUAL = {
    "short": {
        "jobs": 35,
        "skeletons": 5,
        "solutions": 141,
        "rest": 398,
        "pages": 156,
        "answers": 95,
    },
    "full": {
        "jobs": 584,
        "skeletons": 14,
        "solutions": 269,
        "rest": 1599,
        "pages": 706,
        "answers": 1595,
    },
    "nightly": {},  # never run as a whole yet
}


class Part(NamedTuple):
    """Tests that pytest runs at one time; `arguments` are pytest's."""

    name: str
    arguments: tuple[str, ...]
    workers: int = 0

    @property
    def again(self) -> Part:
        """Those tests of this part that failed, one at a time."""
        failed = (*self.arguments, "--last-failed", "--last-failed-no-failures", "none")
        return Part(f"{self.name}{AGAIN}", failed, workers=1)

    @property
    def is_repeated(self) -> bool:
        return self.name.endswith(AGAIN)

    @property
    def junit(self) -> Path:
        return BUILD / f"junit-{self.name}.xml"

    @property
    def cache(self) -> Path:
        """Where pytest remembers what failed."""
        return BUILD / f"cache-{self.name.removesuffix(AGAIN)}"

    @property
    def log(self) -> Path:
        return BUILD / f"{self.name}.log"


class Outcome(NamedTuple):
    """What became of a part."""

    part: Part
    status: int
    seconds: float
    cases: list[ET.Element]

    def count(self, *kinds: str) -> int:
        return sum(case.find(kind) is not None for case in self.cases for kind in kinds)

    @property
    def failed(self) -> list[str]:
        return [name_of(case) for case in self.cases if has_failed(case)]


def name_of(case: ET.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def has_failed(case: ET.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def parts(size: str) -> list[Part]:
    """In the order of their starts; the next one starts when one has ended."""
    chosen = CHOSEN[size]
    by_file = ("--dist", "loadfile", "-m")
    if size == "nightly":  # time may be short: tools/time_is_up.py says what is first
        by_file = ("--no-loadscope-reorder", *by_file)
    # three: much of it waits for quiet time
    rest = Part("rest", (*by_file, f"not nodes and ({chosen})", *REST), workers=3)
    pages = Part("pages", (*by_file, f"not nodes and ({chosen})", PAGES), workers=2)
    jobs = [Part("jobs", (*by_file, f"nodes and ({chosen})", *JOBS), workers=2)]
    if machine.missing():  # most of them skip, in one moment
        jobs = []
        pages = Part("pages", (*by_file, chosen, *JOBS), workers=2)
    answers = Part("answers", (ANSWERS, "-m", chosen), workers=4)
    if size == "nightly":
        return [*jobs, rest, pages, answers]
    seeds = ONE_SEED if size == "short" else OTHER_SEED
    return [
        *jobs,
        Part("skeletons", ()),
        Part("solutions", ("--solutions", *seeds, "-m", chosen), workers=2),
        rest,
        pages,
        # last, when no other part is left to fill a core: it has the smallest pieces
        answers,
    ]


def command(part: Part) -> list[str]:
    """The pytest of a part; in CI a skip for want of a system package is a failure."""
    words = [sys.executable, "-m", "pytest", "-q", "-rs", f"--junitxml={part.junit}"]
    words += ["-o", f"cache_dir={part.cache}"]
    if os.environ.get("WORKSHOP_CI"):
        words += ["-p", "tools.strict_skips"]
        if not part.is_repeated:  # what has failed gets its second try at any time
            words += ["-p", "tools.time_is_up"]
    if os.environ.get(passed_before.FOLDER):
        words += ["-p", "tools.passed_before"]
    if part.workers:
        words += ["-n", str(part.workers)]
    return [*words, *part.arguments]


def run(part: Part) -> Outcome:
    """Run a part, and print what pytest said of it once it has ended."""
    start = time.monotonic()
    with part.log.open("w") as log:
        done = subprocess.run(command(part), cwd=ROOT, stdout=log, stderr=log)
    seconds = time.monotonic() - start
    print(f"== {part.name}\n{part.log.read_text()}", flush=True)
    cases = list(ET.parse(part.junit).iter("testcase")) if part.junit.exists() else []
    return Outcome(part, done.returncode, seconds, cases)


def try_again(outcome: Outcome) -> Outcome:
    """Repeat its failures, if they are few; those that pass now have passed."""
    some_failed = outcome.status == pytest.ExitCode.TESTS_FAILED
    if not some_failed or not 0 < len(outcome.failed) <= FEW:
        return outcome
    repeated = run(outcome.part.again)
    passed_now = {name_of(case) for case in repeated.cases if not has_failed(case)}
    by_name = {name_of(case): case for case in repeated.cases}
    cases = [
        by_name[name_of(case)] if name_of(case) in passed_now else case
        for case in outcome.cases
    ]
    seconds = outcome.seconds + repeated.seconds
    return Outcome(outcome.part, repeated.status, seconds, cases)


def run_parts(size: str) -> tuple[list[Outcome], list[str]]:
    """All parts; and the tests that failed beside others and passed alone."""
    with ThreadPoolExecutor(AT_ONCE[size]) as pool:
        first = list(pool.map(run, parts(size)))
    last = [try_again(outcome) for outcome in first]
    failed_first = {name for outcome in first for name in outcome.failed}
    failed_last = {name for outcome in last for name in outcome.failed}
    return last, sorted(failed_first - failed_last)


@contextmanager
def one_site() -> Iterator[None]:
    """A folder for the site that the first test of pages builds, and all others read.

    Also those in a pytest that a test starts to hide a package from it.
    """
    with tempfile.TemporaryDirectory(prefix="site-") as folder:
        os.environ["SITE_OF_TESTS"] = folder
        try:
            yield
        finally:
            del os.environ["SITE_OF_TESTS"]


def run_all(size: str) -> tuple[list[Outcome], list[str], set[str]]:
    """As :func:`run_parts`, with a warm Python; and the programs none has started."""
    BUILD.mkdir(exist_ok=True)
    # some systems set it, and each process of each part would compile all tests again
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if size != "short":
        # tests/grader/test_known_answers.py reads it, for one
        os.environ["WORKSHOP_FULL"] = "1"
    for old in BUILD.glob("junit*.xml"):
        old.unlink()
    for old in BUILD.glob("cache-*"):  # of what failed in another run
        shutil.rmtree(old)
    if not warm.is_possible():
        return *run_parts(size), set()
    with closing(warm.WarmPython()) as session:
        session.enter()
        outcomes, passed_alone = run_parts(size)
        shutil.copy(session.log, BUILD / "warm.log")  # why some starts were cold
        return outcomes, passed_alone, programs_to_start(size) - session.started()


def programs_to_start(size: str) -> set[str]:
    """What some test must start; jobs are submitted only where a cluster can run.

    What a run before has tested, and is left out now, that one has started.
    """
    if size == "nightly":
        return set()
    if passed_before.leaves_out():
        return PROGRAMS & set(BY_SBATCH)
    return PROGRAMS - set(BY_SBATCH) if machine.missing() else PROGRAMS


def table(outcomes: list[Outcome], size: str) -> str:
    """Part, tests, seconds, usual ones; then the slowest tests of all parts."""
    heads = ("tests", "failed", "skipped", "seconds", "usually")
    lines = [f"{'part':<12}" + "".join(f"{head:>9}" for head in heads)]
    for outcome in outcomes:
        usual = USUAL[size].get(outcome.part.name, 0)
        row = (
            *(len(outcome.cases), outcome.count("failure", "error")),
            *(outcome.count("skipped"), round(outcome.seconds), usual),
        )
        slower = "  slower" if usual and outcome.seconds > 1.5 * usual else ""
        cells = "".join(f"{value:>9}" for value in row)
        lines.append(f"{outcome.part.name:<12}{cells}{slower}")
    cases = [case for outcome in outcomes for case in outcome.cases]
    slowest = sorted(cases, key=lambda case: -float(case.get("time", 0)))[:SLOWEST]
    lines += ["", "slowest tests, in seconds"]
    for case in slowest:
        lines.append(f"{float(case.get('time', 0)):>9.1f}  {name_of(case)}")
    return "\n".join(lines)


def why_failed(case: ET.Element) -> str:
    """The name of a failed test, and what pytest marked as its explanation."""
    lines = [f"FAILED {name_of(case)}"]
    told = [*case.iter("failure"), *case.iter("error")]
    text = "\n".join(part.text or "" for part in told)
    explanation = [line for line in text.splitlines() if line.startswith("E ")]
    lines += explanation[:EXPLAINED]
    if len(explanation) > EXPLAINED:
        lines.append(f"E  ... ({len(explanation) - EXPLAINED} more, above)")
    return "\n".join(lines)


def totals(outcomes: list[Outcome]) -> str:
    """The last line, as pytest would have written it for all parts together.

    Tests that the time was too short for are no skips like others.
    """
    failed = sum(outcome.count("failure", "error") for outcome in outcomes)
    skipped = sum(outcome.count("skipped") for outcome in outcomes)
    passed = sum(len(outcome.cases) for outcome in outcomes) - failed - skipped
    late = never_begun(outcomes)
    told = f"{passed} passed, {failed} failed, {skipped - late} skipped"
    return f"{told}, {late} NOT RUN: the time of this run was up" if late else told


def never_begun(outcomes: list[Outcome]) -> int:
    """How many tests were left out because the time of the run was up."""
    skips = [case.find("skipped") for outcome in outcomes for case in outcome.cases]
    return sum(
        time_is_up.REASON in (skip.get("message") or "")
        for skip in skips
        if skip is not None
    )


def write_junit(outcomes: list[Outcome]) -> None:
    """All parts' results in one file, build/junit.xml."""
    whole = ET.Element("testsuites")
    for outcome in outcomes:
        suite = ET.SubElement(whole, "testsuite", name=outcome.part.name)
        suite.extend(outcome.cases)
    ET.ElementTree(whole).write(BUILD / "junit.xml", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--full",
        dest="size",
        action="store_const",
        const="full",
        default="short",
        help="all that a change needs",
    )
    sizes.add_argument(
        "--nightly",
        dest="size",
        action="store_const",
        const="nightly",
        help="the long variants that --full leaves out",
    )
    size = parser.parse_args().size
    start = time.monotonic()
    with one_site():
        outcomes, passed_alone, never_started = run_all(size)
    write_junit(outcomes)
    for outcome in outcomes:
        if outcome.part.name == "answers" and size != "nightly":
            remember_run(outcome.cases)
    print(f"{table(outcomes, size)}\n\n{time.monotonic() - start:.0f} seconds in all")
    for outcome in outcomes:
        for case in filter(has_failed, outcome.cases):
            print(why_failed(case))
    for name in passed_alone:
        print(f"failed beside other tests, passed alone: {name}")
    if never_started:
        print(f"no test has started {', '.join(sorted(never_started))}")
    print(totals(outcomes))
    return int(bool(never_started) or any(outcome.status for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
