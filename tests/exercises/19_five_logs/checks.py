"""Checks of exercises/19_five_logs.py: fresh logs of the five causes."""

import random

import pytest

from workshop.grader import expect

LOST = (
    "RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.2]:10141",
    "RuntimeError: [pair.cc:534] Connection reset by peer",
    "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 4000ms for recv operation",
)
OWN = {
    "gpu memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4 GiB",
    "disk full": "OSError: [Errno 28] No space left on device",
    "program": "ValueError: image 1017 has 63 pixels, not 64",
}
CAUSES = [*OWN, "killed", "absent"]


def said(rank, error):
    """A rank's traceback, with a line of the program that mentions other causes."""
    return [
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "train.py", line {20 + rank}, in step',
        f"[rank{rank}]:     log('No space left on device? CUDA out of memory?')",
        f"[rank{rank}]: {error}",
    ]


def summary(codes, per_node):
    """torchrun's list; the first of ``codes`` is what it noticed first."""
    rows = ["train.py FAILED", "Failures:"]
    order = [*list(codes)[1:], next(iter(codes))]
    for number, rank in enumerate(order, 1):
        if number == len(order):
            rows += ["Root Cause (first observed failure):"]
        rows += [
            f"[{number % len(order)}]:",
            "  time      : 2026-11-23_06:29:01",
            f"  rank      : {rank} (local_rank: {rank % per_node})",
            f"  exitcode  : {codes[rank]} (pid: {6260 + rank})",
        ]
    return rows


def record(cause, seed, ranks=12, per_node=4):
    """(log, the rank that failed first) of a run on three nodes."""
    draw = random.Random(f"{cause} {seed}")
    first = draw.randrange(5, ranks)
    others = [rank for rank in range(ranks) if rank != first]
    draw.shuffle(others)
    blocks = [said(rank, draw.choice(LOST)) for rank in others]
    codes = {rank: 1 for rank in others}
    if cause in OWN:
        second = [
            *said(others[-1], OWN["program"]),
            *said(others[-1], OWN["disk full"]),
        ]
        blocks.insert(draw.randrange(2, 8), said(first, OWN[cause]))
        blocks[-1] = second  # another rank's own error, but later in the log
        codes[first] = 1
    ended = draw.sample(others[1:-1], 3)
    codes |= {rank: -15 for rank in ended} if cause != "absent" else {}
    if cause != "absent":
        blocks = [
            b for b in blocks if not any(b[0].startswith(f"[rank{r}]") for r in ended)
        ]
    if cause == "killed":
        codes[first] = draw.choice((-9, -11))
    rows = ["W1123 06:29:01 api.py:1028] Sending process 6262 closing signal SIGTERM"]
    rows += [row for block in blocks for row in block]
    return "\n".join([*rows, *summary(codes, per_node)]) + "\n", first


@pytest.mark.ranks(1, init=False)
def test_own_errors(exercise):
    """Errors of a lost partner are left out, the others stay in the log's order."""
    rows = [*said(10, LOST[0]), *said(2, OWN["disk full"]), *said(1, LOST[2])]
    rows += [*said(2, LOST[1]), *said(11, OWN["program"]), *said(2, OWN["program"])]
    right = [(2, "[Errno 28] No space left on device")]
    words = OWN["program"].removeprefix("ValueError: ")
    right += [(11, words), (2, words)]
    found = exercise.own_errors("\n".join(rows))
    expect.equal([tuple(pair) for pair in found], right, "the own errors")


@pytest.mark.ranks(1, init=False)
def test_first_failure(exercise, seed):
    """Rank and cause of fresh logs, two of each of the five causes."""
    for number in range(2):
        for cause in CAUSES:
            log, first = record(cause, f"{seed} {number}")
            what = f"(rank, cause) of a log of 12 ranks with the cause {cause!r}"
            expect.equal(exercise.first_failure(log, 12), (first, cause), what)


@pytest.mark.ranks(1, init=False)
def test_small_logs(exercise):
    """Two ranks: one is killed, or absent, and rank 0 may be the one."""
    lost = "\n".join(said(1, LOST[2])) + "\n"
    found = exercise.first_failure(lost + "\n".join(summary({1: 1}, 2)), 2)
    expect.equal(found, (0, "absent"), "(rank, cause): rank 1 waited for rank 0")
    for code, how in ((-15, "torchrun ended by SIGTERM"), (3, "left with status 3")):
        log = lost + "\n".join(summary({1: 1, 0: code}, 2))
        what = f"(rank, cause): rank 1 waited for rank 0, which {how}"
        expect.equal(exercise.first_failure(log, 2), (0, "absent"), what)
    log = "\n".join([*said(0, LOST[2]), *summary({0: 1, 1: -15}, 2)])
    what = "(rank, cause): rank 0 waited for rank 1, which torchrun ended by SIGTERM"
    expect.equal(exercise.first_failure(log, 2), (1, "absent"), what)
    for code in (-9, -24):  # the second is SIGXCPU: the limit of a login node
        killed = "\n".join(summary({1: 1, 0: code}, 2))
        found = exercise.first_failure(lost + killed, 2)
        expect.equal(
            found, (0, "killed"), f"(rank, cause): rank 0 has exit code {code}"
        )
    both = "\n".join([*said(1, OWN["program"]), *summary({1: 1, 0: -6}, 2)])
    found = exercise.first_failure(both, 2)
    what = "(rank, cause): rank 1 has an error of its own, and rank 0 exit code -6"
    expect.equal(found, (1, "program"), what)
    ended = "\n".join(summary({0: -15, 1: -9}, 2))
    found = exercise.first_failure(ended, 2)
    expect.equal(found, (1, "killed"), "(rank, cause): exit codes -15 and -9")
