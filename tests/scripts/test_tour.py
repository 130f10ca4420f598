"""make tour: what a newcomer sees first, and what they see when it fails."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.fresh_copy import ROOT, fresh_copy
from tools.processes import last_error
from workshop.doctor.cgroup import Limits

TIMEOUT = 300


@pytest.fixture
def clone() -> Iterator[Path]:
    """The working tree as a newcomer would clone it."""
    with fresh_copy() as tree:
        yield tree


def start(clone: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "tools/tour.py"],
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "100"},
    )


def take(clone: Path) -> "subprocess.CompletedProcess[str]":
    process = start(clone)
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, out, err)


def without_site(clone: Path) -> None:
    """The pages have tests of their own; here they would only take time."""
    script = clone / "tools" / "site_builder.py"
    text = script.read_text(encoding="utf-8")
    old = 'return [sys.executable, *build, *doctrees, ".", "_build/html"]'
    assert old in text
    script.write_text(text.replace(old, 'return [sys.executable, "-c", "pass"]'))


def narrow_network(clone: Path) -> None:
    """A step takes a moment then, and the digits are still learnt."""
    data = clone / "src" / "common" / "data.py"
    text = data.read_text(encoding="utf-8")
    narrow = re.sub(r"^WIDTH = \d+", "WIDTH = 16", text, flags=re.MULTILINE)
    assert narrow != text
    data.write_text(narrow)


def replace_script(clone: Path, name: str, code: str) -> None:
    (clone / "src" / name).write_text(code)


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def processes_of(clone: Path) -> list[str]:
    """Command lines of living processes that run a script of this clone."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(clone) in command:
            found.append(command.replace("\0", " "))
    return found


def test_tour_trains_both_ways_compares_and_leaves_nothing_behind(clone):
    without_site(clone)
    if not os.environ.get("WORKSHOP_FULL"):
        narrow_network(clone)
    before = files(clone)
    done = take(clone)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    rows = re.findall(
        r"(one device|2 ranks|2 nodes x 2 ranks) +(\d) \D*(\d+) \D*([\d.]+) "
        r"\D*([\d.]+)%\D*([\d,]+)",
        done.stdout,
    )
    assert [row[:3] for row in rows] == [
        ("one device", "1", "72"),
        ("2 ranks", "2", "72"),
        ("2 nodes x 2 ranks", "4", "72"),
    ]
    for _, _, _, loss, accuracy, samples in rows:
        assert 0 < float(loss) < 1
        assert float(accuracy) > 95
        assert float(samples.replace(",", "")) > 0
    bars = re.findall(r"(\S+) +█+ (\d\.\d\d) x", done.stdout)
    assert [bar[0] for bar in bars] == ["device", "ranks", "ranks"]
    assert bars[0][1] == "1.00"
    for rank in range(4):
        node, local = divmod(rank, 2)
        assert f"[node {node} local {local} rank {rank}] Epoch 3" in done.stdout
    assert [f"[{number}/5]" in done.stdout for number in range(1, 6)] == [True] * 5
    new = files(clone) - before
    assert {name for name in new if not name.startswith("_build/")} == set()
    assert processes_of(clone) == []
    readme = (clone / "README.md").read_text(encoding="utf-8")
    excerpt = re.search(r"```text\n(\[1/5\].*?)```", readme, re.DOTALL)[1]
    missing = stable(excerpt) - stable(done.stdout)
    assert missing == set(), "README.md shows what make tour does not print"


def stable(text: str) -> set[str]:
    """The lines of an output without what differs from run to run."""
    return {re.sub(r"[\d.,\s█]+", "#", line.strip()) for line in text.splitlines()}


def test_failing_training_is_one_sentence_with_its_log(clone):
    replace_script(
        clone,
        "01_single_device.py",
        "print('begun')\nraise ValueError('no digits here')\n",
    )
    done = take(clone)
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("tour: stage 1 (one device) failed: exit status 1")
    assert "no digits here" in sentence
    log = clone / re.search(r"the full log is (\S+)", sentence)[1]
    assert "begun" in log.read_text() and "Traceback" in log.read_text()


def quick_first_stages(clone: Path) -> None:
    """First trainings that only leave their numbers behind."""
    for name in ("01_single_device.py", "07_torchrun.py"):
        quick_stage(clone, name)


def quick_stage(clone: Path, name: str) -> None:
    replace_script(
        clone,
        name,
        "import json, os, sys\nprint('Steps 1')\n"
        "if os.environ.get('RANK', '0') != '0':\n    sys.exit()\n"
        "path = sys.argv[sys.argv.index('--metrics') + 1]\n"
        "numbers = dict(loss=0.1, accuracy=0.99, samples_per_s=1)\n"
        "numbers.update(world_size=1, epochs=1)\n"
        "json.dump(numbers, open(path, 'w'))\n",
    )


def test_failing_node_ends_the_other_one(clone):
    quick_first_stages(clone)
    replace_script(
        clone,
        "08_multinode_torchrun.py",
        "import os, time\n"
        "if os.environ['GROUP_RANK'] == '1':\n"
        "    raise RuntimeError('node 1 has no disk')\n"
        "time.sleep(1000)\n",
    )
    done = take(clone)
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert "stage 3" in sentence and "node 1 has no disk" in sentence
    assert processes_of(clone) == []


def test_training_that_learns_nothing_is_a_failure(clone):
    quick_first_stages(clone)
    script = clone / "src" / "01_single_device.py"
    script.write_text(script.read_text().replace("accuracy=0.99", "accuracy=0.1"))
    done = take(clone)
    assert done.returncode == 1
    assert "it learnt too little: loss 0.1000, accuracy 10.0%" in done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        "SIGINT",
        *(pytest.param(o, marks=pytest.mark.nightly) for o in ("SIGTERM", "SIGHUP")),
    ],
)
def test_interrupted_tour_leaves_no_process(clone, name):
    quick_first_stages(clone)
    replace_script(
        clone,
        "08_multinode_torchrun.py",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a stubborn rank\n"
        "open(f'rank-{os.environ[\"RANK\"]}', 'w').close()\n"
        "time.sleep(1000)\n",
    )
    process = start(clone)
    deadline = time.monotonic() + 100
    while len(list(clone.glob("rank-*"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(list(clone.glob("rank-*"))) == 4
    assert processes_of(clone) != []
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == "tour: interrupted; all its processes are ended"
    assert processes_of(clone) == []


def test_tour_works_inside_a_batch_job(clone, monkeypatch):
    """Variables that a launcher has set must not reach the tour's own ranks."""
    quick_first_stages(clone)
    for key, value in {"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "3"}.items():
        monkeypatch.setenv(key, value)
    replace_script(
        clone,
        "08_multinode_torchrun.py",
        "import os\nassert 'SLURM_PROCID' not in os.environ\n"
        "assert os.environ['WORLD_SIZE'] == '4', os.environ['WORLD_SIZE']\n"
        "raise SystemExit('error: as it should be')\n",
    )
    assert "as it should be" in take(clone).stderr


def test_cause_is_what_a_program_said_and_not_the_agent_that_it_left_alone():
    program = "x.py: error: as it should be"
    agents = "E] failed (exitcode: 1) local_rank: 0\nBrokenPipeError: Broken pipe\n"
    assert last_error(f"{program}\n{agents}ChildFailedError:\n") == program
    left = "BrokenPipeError: Broken pipe\nRendezvousConnectionError: gone\n"
    assert last_error(f"{program}\n{left}{agents}") == program
    assert last_error(agents) == "BrokenPipeError: Broken pipe"
    assert last_error("all is well") == ""


@pytest.mark.full
def test_failing_site_is_one_sentence(clone, monkeypatch):
    quick_first_stages(clone)
    quick_stage(clone, "08_multinode_torchrun.py")
    # one page, which builds well without its last line
    (clone / "conf.py").write_text('include_patterns = ["index.rst"]\n')
    (clone / "index.rst").write_text("Pages\n=====\n\n:nonsense:`x`\n")
    done = take(clone)
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("tour: stage 5 (the pages) failed")
    assert "_build/tour/5_the_pages.log" in sentence
    log = (clone / "_build/tour/5_the_pages.log").read_text(encoding="utf-8")
    assert 'Unknown interpreted text role "nonsense"' in log


def test_old_python_is_told_that_only_the_site_is_missing(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import site_builder

    assert site_builder.why_not() == "" or sys.version_info < (3, 11)
    monkeypatch.setattr(site_builder.sys, "version_info", (3, 10, 13))
    assert "the site needs Python 3.11" in site_builder.why_not()


@pytest.mark.parametrize(("allowed", "expected"), [(None, 8), (1.5, 1), (0.5, 1)])
def test_tour_counts_the_cores_that_a_container_may_use(monkeypatch, allowed, expected):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import tour

    monkeypatch.setattr(tour.os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(tour, "limits", lambda: Limits(cpus=allowed))
    assert tour.cores() == expected


@pytest.mark.parametrize(
    ("cores", "words"),
    [
        (1, "This machine has one core: ranks take turns on it, so none is faster."),
        (2, "at most 2 x is possible. The best of them processed 1.70 times"),
        (16, "this machine has 16, so at most 4 x is possible."),
    ],
)
def test_tour_says_what_limits_the_speed(monkeypatch, cores, words):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import tour

    monkeypatch.setattr(tour, "cores", lambda: cores)
    rates = (1000, 1700, 1500)
    outcomes = [tour.Outcome("", {"samples_per_s": rate}, 1) for rate in rates]
    assert words in tour.explain_speed(outcomes)


def test_tour_explains_more_than_is_possible(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import tour

    monkeypatch.setattr(tour, "cores", lambda: 2)
    rates = (1000, 2380)
    outcomes = [tour.Outcome("", {"samples_per_s": rate}, 1) for rate in rates]
    told = tour.explain_speed(outcomes)
    assert "2.38 times" in told and "something else used these cores" in told
    assert "The rest goes to" not in told
