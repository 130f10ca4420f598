"""Checks of exercises/19_five_logs.py: fresh logs of the five causes."""

import random
import re

import pytest

from workshop.grader import expect, variants

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


ERROR = re.compile(r"^\[rank(\d+)\]: (?:\w+\.)*\w*Error: (.*)$", re.MULTILINE)
CODE = re.compile(r"rank +: (\d+) \(local_rank: (\d+)\)\n *exitcode +: (-?\d+)")
WORDS = {"CUDA out of memory": "gpu memory", "No space left on device": "disk full"}
PARTNER_LEFT = ("Connection closed", "Connection reset", "Timed out waiting")


def verdict(
    log,
    ranks,
    *,
    own="first",
    term=True,
    codes=lambda code: code < 0,
    absent=min,
    anywhere=False,
    local=False,
    consequences=PARTNER_LEFT,
    order=("own", "killed", "absent"),
):
    """(rank, cause, the line that decides it); the keywords are what goes wrong."""
    said = [(int(rank), text) for rank, text in ERROR.findall(log)]
    errors = [x for x in said if not any(words in x[1] for words in consequences)]
    ended = [(int(r), int(place), int(code)) for r, place, code in CODE.findall(log)]
    killed = [
        (place if local else rank, f"exitcode  : {code} of rank {rank}")
        for rank, place, code in ended
        if codes(code) and (code != -15 or not term)
    ]
    missing = set(range(ranks)) - {rank for rank, _ in said}
    for rule in order:
        if rule == "own" and errors:
            rank, text = chosen(errors, own)
            there = log if anywhere else text
            causes = [cause for words, cause in WORDS.items() if words in there]
            return rank, (causes or ["program"])[0], f"[rank{rank}]: ... {text}"
        if rule == "killed" and killed:
            return killed[0][0], "killed", killed[0][1]
        if rule == "absent" and missing:
            rank = absent(missing)
            return rank, "absent", f"no line of [rank{rank}] has an error"
    return None


def chosen(errors, own):
    """The error that decides; ``own`` says which one a learner takes."""
    if own == "last":
        return errors[-1]
    if own == "named":
        named = [x for x in errors if any(words in x[1] for words in WORDS)]
        return (named or errors)[0]
    return errors[0]


def answer(log, ranks, **options):
    found = verdict(log, ranks, **options)
    return found and found[:2]


MISTAKEN = {
    "the last error of a rank's own were the first": {"own": "last"},
    "an error with words of CAUSES counted before an earlier one without": {
        "own": "named"
    },
    "exit code -15 were a kill: it is SIGTERM, from torchrun": {"term": False},
    "any exit code but 0 were a kill: only negative ones are signals": {
        "codes": lambda code: code != 0
    },
    "-9 were the only exit code of a signal": {"codes": lambda code: code == -9},
    "signals ended at 14: any negative exit code but -15 is one": {
        "codes": lambda code: -15 < code < 0
    },
    "the words of the cause could stand anywhere in the log, not just in the line of "
    "the error": {"anywhere": True},
    "the local rank were the rank": {"local": True},
    "torchrun's list counted before the ranks' own errors": {
        "order": ("killed", "own", "absent")
    },
    "no rank were ever killed": {"order": ("own", "absent")},
    "a time-out were an error of its own": {"consequences": PARTNER_LEFT[:2]},
    "a reset connection were an error of its own": {
        "consequences": (PARTNER_LEFT[0], PARTNER_LEFT[2])
    },
    "a closed connection were an error of its own": {"consequences": PARTNER_LEFT[1:]},
    "every error were one of its own": {"consequences": ()},
    "the rank with the largest number were absent": {"absent": max},
}


def compare_failures(exercise, cases):
    """``cases``: (what, log, ranks, right); each verdict shows the deciding line."""
    found = [exercise.first_failure(log, ranks) for _, log, ranks, _ in cases]
    plain = [(log, ranks) for _, log, ranks, _ in cases]
    cause = variants.cause(found, plain, answer, MISTAKEN, most=1)
    for mine, (what, log, ranks, right) in zip(found, cases, strict=True):
        decides = verdict(log, ranks)
        assert decides is not None and decides[:2] == right, "the check is wrong"
        shown = f"{what}; what decides: {decides[2][:70]}"
        expect.equal(mine, right, shown, cause=cause)


def own_of(
    log, *, at_start=False, of_a_rank="all", by_rank=False, consequences=PARTNER_LEFT
):
    """The errors of a rank's own; the keywords are what goes wrong."""
    found, with_consequence = [], set()
    for rank, text in ERROR.findall(log):
        begins = text.startswith(tuple(consequences))
        contains = any(words in text for words in consequences)
        leave_out = begins if at_start else contains
        if leave_out:
            with_consequence.add(int(rank))
        else:
            found.append((int(rank), text))
    if of_a_rank == "nothing else":
        found = [pair for pair in found if pair[0] not in with_consequence]
    if of_a_rank == "last":
        found = list(dict(found).items())
    if of_a_rank == "first":
        first: dict[int, str] = {}
        for rank, text in found:
            first.setdefault(rank, text)
        found = list(first.items())
    if by_rank:
        found.sort(key=lambda pair: pair[0])
    return found


MISTAKEN_OWN = {
    "a message began with the words of CONSEQUENCES: they may be anywhere in it": {
        "at_start": True
    },
    "each rank had one error, the last: keep all of them": {"of_a_rank": "last"},
    "each rank had one error, the first: keep all of them": {"of_a_rank": "first"},
    "a rank with a consequence had no error of its own": {"of_a_rank": "nothing else"},
    "the errors were in the order of the ranks, not in that of the log": {
        "by_rank": True
    },
    "a time-out were an error of its own": {"consequences": PARTNER_LEFT[:2]},
    "a reset connection were an error of its own": {
        "consequences": (PARTNER_LEFT[0], PARTNER_LEFT[2])
    },
    "a closed connection were an error of its own": {"consequences": PARTNER_LEFT[1:]},
    "only the first of CONSEQUENCES counted": {"consequences": PARTNER_LEFT[:1]},
    "every error were one of its own": {"consequences": ()},
}


@pytest.mark.ranks(1, init=False)
def test_own_errors(exercise):
    """Errors of a lost partner are left out, the others stay in the log's order."""
    rows = [*said(10, LOST[0]), *said(2, OWN["disk full"]), *said(1, LOST[2])]
    rows += said(3, "RuntimeError: Connection reset by peer")
    rows += [*said(2, LOST[1]), *said(11, OWN["program"]), *said(2, OWN["program"])]
    right = [(2, "[Errno 28] No space left on device")]
    words = OWN["program"].removeprefix("ValueError: ")
    right += [(11, words), (2, words)]
    log = "\n".join(rows)
    found = [tuple(pair) for pair in exercise.own_errors(log)]
    cause = variants.cause([found], [(log,)], own_of, MISTAKEN_OWN)
    expect.equal(found, right, "the own errors", cause=cause)


@pytest.mark.ranks(1, init=False)
def test_first_failure(exercise, seed):
    """Rank and cause of fresh logs, two of each of the five causes."""
    cases = []
    for number in range(2):
        for cause in CAUSES:
            log, first = record(cause, f"{seed} {number}")
            what = f"(rank, cause) of a log of 12 ranks with the cause {cause!r}"
            cases.append((what, log, 12, (first, cause)))
    compare_failures(exercise, cases)


@pytest.mark.ranks(1, init=False)
def test_small_logs(exercise):
    """Two ranks: one is killed, or absent, and rank 0 may be the one."""
    lost = "\n".join(said(1, LOST[2])) + "\n"
    log, cases = lost + "\n".join(summary({1: 1}, 2)), []
    cases.append(("(rank, cause): rank 1 waited for rank 0", log, (0, "absent")))
    for code, how in ((-15, "torchrun ended by SIGTERM"), (3, "left with status 3")):
        log = lost + "\n".join(summary({1: 1, 0: code}, 2))
        what = f"(rank, cause): rank 1 waited for rank 0, which {how}"
        cases.append((what, log, (0, "absent")))
    log = "\n".join([*said(0, LOST[2]), *summary({0: 1, 1: -15}, 2)])
    what = "(rank, cause): rank 0 waited for rank 1, which torchrun ended by SIGTERM"
    cases.append((what, log, (1, "absent")))
    for code in (-9, -11, -24):  # the last is SIGXCPU: the limit of a login node
        log = lost + "\n".join(summary({1: 1, 0: code}, 2))
        cases.append(
            (f"(rank, cause): rank 0 has exit code {code}", log, (0, "killed"))
        )
    log = "\n".join([*said(1, OWN["program"]), *summary({1: 1, 0: -6}, 2)])
    what = "(rank, cause): rank 1 has an error of its own, and rank 0 exit code -6"
    cases.append((what, log, (1, "program")))
    log = "\n".join(summary({0: -15, 1: -9}, 2))
    cases.append(("(rank, cause): exit codes -15 and -9", log, (1, "killed")))
    compare_failures(exercise, [(what, log, 2, right) for what, log, right in cases])
