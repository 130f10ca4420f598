"""What all tests rely on: Ctrl-C, marks, ranks to run in.

A shell starts background jobs with SIGINT ignored, and whatever they start inherits
that; programs under test would then not notice the Ctrl-C that a test sends them.
"""

import signal
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

JOBS = Path(__file__).parent / "jobs"
# Files whose tests share nothing that takes time to make: any worker may have any.
APART = ("test_transcripts.py",)


def pytest_collection_modifyitems(items):
    for item in items:
        if JOBS in item.path.parents:
            item.add_marker(pytest.mark.nodes)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """What ``--dist loadfile`` means here: a file is one worker's, but for APART."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FilesOrTests(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return nodeid if file.endswith(APART) else file

    return FilesOrTests(config, log)


@pytest.fixture(scope="session")
def engine():
    """The grader's engine, warm."""
    from grader.engine import Engine  # here: most tests need no torch

    with Engine() as engine:
        engine.warm()
        yield engine


@pytest.fixture
def verdict_of(engine, tmp_path):
    """``verdict_of(check)``: what became of it in fresh ranks, without an answer."""
    nobody = tmp_path / "nobody.py"
    nobody.write_text("")
    return lambda check: engine.run_check(check, "", nobody)
