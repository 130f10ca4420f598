"""``workshop diagnose`` on what the gallery's programs printed here, and on its like.

Ranks that wait leave the same message, whatever the cause: their lines tell more.
"""

from __future__ import annotations

import re
import sys

import pytest

from tests.docs.pages import lesson_source
from tests.grader.test_diagnose import ROOT, written
from workshop.diagnose.causes import candidates, load
from workshop.diagnose.first import first_failed
from workshop.diagnose.logs import read_logs
from workshop.diagnose.report import diagnose, named

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GALLERY = tomllib.loads((ROOT / "gallery/catalog.toml").read_text(encoding="utf-8"))
WRONG = "runs and is wrong"
BY_SYMPTOM = {entry["name"]: entry["symptom"] for entry in GALLERY["failure"]}
QUIET = {name for name in BY_SYMPTOM if BY_SYMPTOM[name] in ("is slow", WRONG)}
# of these the log shows no single cause
OPEN = {"slow_save", "straggler", "link_down", "node_off", "wrong_interface"}
OPEN |= {"stale_store", "cut_mapped_file", "detail_and_ddp"}
# what these print, a healthy run of another kind may print, too
OPEN |= {"slow_link", "drifting_weights", "temporary_ddp", "same_augmentation"}
OPEN |= {"same_worker_noise", "local_batch_norm", "clock_behind"}
OPEN |= {"swapped_collectives", "float16_underflow"}
OPEN |= {"local_positions", "keys_without_gradients", "joined_without_momentum"}
# what the lines of all ranks tell from others that end with the same message
TOLD_APART = {
    "slow_save": "slow_save",
    "straggler": "slow_rank",
    "link_down": "link_down",
    "node_off": "node_off",
    "unknown_host": "name_not_resolved",
    "nobody_listens": "unreachable_rendezvous",
    "dropped_port": "unanswered_port",
}


def diagnosed(name):
    """(the one cause that is sure, or None; what is listed) of a recorded failure."""
    log = read_logs([str(ROOT / f"docs/transcripts/19_{name}.txt")])
    found = candidates(load(ROOT), log, first_failed(log))
    return named(found), found[:2]


@pytest.mark.parametrize("name", sorted(BY_SYMPTOM))
def test_log_of_the_gallery_is_recognized(name):
    sure, listed = diagnosed(name)
    assert (sure is None) == (name in OPEN)
    shown = [sure] if sure else listed
    assert name in {entry for each in shown for entry in each.cause.gallery}


@pytest.mark.parametrize("name, cause", TOLD_APART.items())
def test_failures_with_the_same_message_are_told_apart(name, cause):
    sure, listed = diagnosed(name)
    shown = [sure] if sure else listed
    (found,) = [each.cause for each in shown if name in each.cause.gallery][:1]
    assert found.name == cause
    assert found.gallery[0] == name  # whose card it names


def test_candidates_come_with_the_question_that_tells_them_apart():
    for cause in load(ROOT):
        open_cause = cause.weight < 3 or cause.maybe or len(cause.gallery) > 1
        if cause.name.startswith("mistake-"):
            continue  # its row of the lesson says what to look at
        assert not open_cause or cause.ask.count("?") >= 1, cause.name
    log = read_logs([str(ROOT / "docs/transcripts/19_link_down.txt")])
    told, sure = diagnose(log, ROOT)
    asked = [line for line in told if line.startswith("    Ask: ")]
    assert not sure and len(asked) == 2 and "ping each other?" in asked[0]


def test_cause_that_the_gallery_shows_in_several_ways_asks_which_it_is():
    log = read_logs([str(ROOT / "docs/transcripts/19_own_early_stop.txt")])
    told, sure = diagnose(log, ROOT)
    assert (
        sure
        and "Ask: Is one of the lines behind a condition on the rank" in "".join(told)
    )


def test_name_whose_lookup_failed_for_a_while_only_is_no_cause(tmp_path):
    """As older PyTorch prints it, before it connects over IPv4, and is refused."""
    warning = (
        "[W socket.cpp:601] [c10d] The IPv6 network addresses of (n1, 29500) cannot be "
        "retrieved (gai error: -2 - Name or service not known).\n"
    )
    failed = "The client socket has timed out after 5000ms while trying to connect to "
    told, _ = diagnose(written(tmp_path, f"{warning}{failed}(n2, 29500).\n"), ROOT)
    assert "couldn't reach the rendezvous" in told[1]
    told, _ = diagnose(written(tmp_path, f"{warning}{failed}(n1, 29500).\n"), ROOT)
    assert "couldn't be resolved" in told[1]


BESIDE = {"local_batch_norm": ["drifting_weights"]}  # explains the same lines


@pytest.mark.parametrize("name", sorted(QUIET))
def test_log_without_an_error_gets_no_other_candidate(name):
    log = read_logs([str(ROOT / f"docs/transcripts/19_{name}.txt")])
    found = candidates(load(ROOT), log, first_failed(log))
    assert [each.cause.name for each in found] == [name, *BESIDE.get(name, [])]
    told, sure = diagnose(log, ROOT)
    assert told[0] == "No rank reports an error." and sure == (name not in OPEN)


def test_page_says_how_many_logs_of_the_gallery_are_named():
    """Which ones these are, the tests above find out."""
    page = lesson_source("19_when_it_breaks")
    logs, quiet = len(BY_SYMPTOM), len(QUIET)
    assert (
        f"Of the gallery's {logs} logs, it names the cause of {logs - len(OPEN)} and "
        f"lists it as a candidate for {len(OPEN)}. If no rank reports an error, as in "
        f"{quiet} of the logs, it compares the numbers"
    ) in " ".join(page.split())


WAITS = """\
[rank{0}]:   File "train.py", line {1}, in step
[rank{0}]:     {2}
[rank{0}]:   File "site-packages/torch/distributed/c10d_logger.py", line 83, in f
[rank{0}]: RuntimeError: [buffer.cc:78] Timed out waiting 3000ms for recv operation
"""


def test_ranks_that_wait_in_different_lines_are_told_where(tmp_path):
    calls = [(0, 13, "dist.all_reduce(loss)"), (1, 15, "dist.barrier()")]
    log = written(tmp_path, "".join(WAITS.format(*call) for call in calls))
    assert first_failed(log).ranks == ()
    told, sure = diagnose(log, ROOT)
    assert sure
    assert any(line.startswith("Ask: Is one of the lines behind a") for line in told)


CLOSED = re.sub("Timed out.*", "Connection closed by peer [127.0.0.1]:2997", WAITS)
LATE = [(WAITS, 1), (CLOSED, 0)]


@pytest.mark.parametrize(
    "ranks, call, cause",
    [
        ([(WAITS, 0), (WAITS, 1)], "dist.all_reduce(loss)", "link_down"),
        ([(WAITS, 0), (WAITS, 1)], "dist.recv(block)", "collective_timeout"),
        ([(WAITS, 0), (WAITS, 2)], "dist.all_reduce(loss)", "collective_timeout"),
        (LATE, "dist.barrier()", "slow_save"),
        ([(WAITS, 1), (CLOSED, 2)], "dist.barrier()", "slow_save"),
        ([(WAITS, 1), (WAITS, 3)], "dist.barrier()", "collective_timeout"),
        (LATE, "dist.all_reduce(loss)", "collective_timeout"),
        ([(WAITS, 0), (CLOSED, 1)], "dist.barrier()", "collective_timeout"),
        ([(WAITS, 0)], "dist.barrier()", "node_off"),
    ],
)
def test_who_timed_out_and_where_puts_a_candidate_first(tmp_path, ranks, call, cause):
    rows = [text.format(rank, 13, call) for text, rank in ranks]
    log = written(tmp_path, "".join(rows))
    found = candidates(load(ROOT), log, first_failed(log))
    assert named(found) is None and found[0].cause.name == cause


def test_ranks_that_wait_in_the_same_line_leave_the_cause_open(tmp_path):
    text = "".join(WAITS.format(rank, 13, "dist.barrier()") for rank in range(2))
    assert not diagnose(written(tmp_path, text), ROOT)[1]
