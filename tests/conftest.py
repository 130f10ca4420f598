"""What all tests rely on: Ctrl-C, marks, a warm Python, ranks to run in.

A shell starts background jobs with SIGINT ignored, nohup with SIGHUP, and whatever they
start inherits that; programs under test would then not notice what a test sends them.
"""

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from tests import own_network, warm, world_sizes
from workshop.plugin import CheckItem
from workshop.system.environment import NO_GPU

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

JOBS = Path(__file__).parent / "jobs"
EXERCISES = Path(__file__).parent / "exercises"
# With it, print() writes a line and its end in two steps: the lines of two ranks mix.
os.environ.pop("PYTHONUNBUFFERED", None)
# All that is tested here runs on the CPU; tests/gpu has a conftest.py of its own.
os.environ.update(NO_GPU)
WARM = pytest.StashKey[warm.WarmPython]()
# Any worker may have any of these files' tests, but those with one word after the @.
# Deadlocks wait: those of test_verdicts.py do it side by side.
APART = ("test_transcripts.py", "test_verdicts.py")


def pytest_configure(config):
    """Programs that tests start are warm: `python` is one of tests/warm's wrappers."""
    if hasattr(config, "workerinput"):
        own_network.enter()
    if not warm.is_possible():
        return
    paths = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    if all(EXERCISES in (path, *path.parents) for path in paths):
        return  # a learner's run: the grader has a server of its own
    if "WARM_PYTHON_BIN" not in os.environ:
        config.stash[WARM] = warm.WarmPython()
        config.stash[WARM].enter()
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        sys.executable = f"{os.environ['WARM_PYTHON_BIN']}/python"
        multiprocessing.set_executable(sys.executable)


def pytest_unconfigure(config):
    if session := config.stash.get(WARM, None):
        session.close()


@pytest.fixture(autouse=True)
def _cold(request, monkeypatch):
    """``@pytest.mark.cold("why")``: what this test starts is a new interpreter."""
    if marker := request.node.get_closest_marker("cold"):
        (why,) = marker.args
        assert why, "say why this test starts cold"
        monkeypatch.setenv("COLD_PYTHON", "1")


@pytest.fixture(autouse=True)
def _one_thread():
    """Torch computes in one thread here: on busy cores, two would wait by turns."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    sizes = {}  # of each check of an exercise
    for item in items:
        if JOBS in item.path.parents:
            item.add_marker(pytest.mark.nodes)
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.full)
        if isinstance(item, CheckItem):
            sizes.setdefault(of_check(item), set()).add(item.check.world_size)
    for item in items:
        if isinstance(item, CheckItem):
            in_short = item.check.world_size == world_sizes.usual(sizes[of_check(item)])
            if not in_short:
                item.add_marker(pytest.mark.full)


def of_check(item):
    return item.path, item.check.function


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """What ``--dist loadfile`` means here: a file is one worker's, but for APART."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FilesOrTests(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            if not file.endswith(APART):
                return file
            return f"{file}@{nodeid.partition('@')[2] or nodeid}"

    return FilesOrTests(config, log)


@pytest.fixture(scope="session")
def engine():
    """The grader's engine, warm."""
    from workshop.grader.engine.engine import Engine  # here: most tests need no torch

    with Engine() as engine:
        engine.warm()
        yield engine


@pytest.fixture
def verdict_of(engine, tmp_path):
    """``verdict_of(check)``: what became of it in fresh ranks, without an answer."""
    nobody = tmp_path / "nobody.py"
    nobody.write_text("")
    return lambda check: engine.run_check(check, "", nobody)
