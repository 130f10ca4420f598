"""Checks that run side by side give the verdicts of checks one after the other."""

import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from workshop.grader.checks import Check
from workshop.grader.engine import look_ahead
from workshop.grader.engine.look_ahead import Cancelled, Ticket, in_order, may_overlap

PATIENCE = 30  # seconds; only a test that fails waits that long


def checks(count: int, **options) -> list[Check]:
    return [
        Check(Path("checks.py"), f"test_{number}", "", 3, 1, **options)
        for number in range(count)
    ]


def as_verdict(check: Check) -> Any:
    return check.function


@pytest.mark.parametrize("overlap", [False, True])
def test_the_verdicts_keep_the_order_of_the_checks(overlap: bool):
    asked = checks(7)
    found = list(in_order(asked, lambda check, _: as_verdict(check), overlap))
    assert found == [(check, as_verdict(check)) for check in asked]


def test_the_third_check_begins_while_the_second_one_runs():
    third_began = threading.Event()

    def run(check: Check, ticket: Ticket) -> Any:
        if check.function == "test_1":
            assert third_began.wait(PATIENCE), "the third check waited for the second"
        if check.function == "test_2":
            third_began.set()
        return as_verdict(check)

    assert len(list(in_order(checks(3), run, overlap=True))) == 3


def test_the_first_check_runs_alone():
    """A wrong answer, which mostly fails there, takes no longer than before."""
    begun = []

    def run(check: Check, ticket: Ticket) -> Any:
        begun.append(check.function)
        return as_verdict(check)

    with contextlib.closing(in_order(checks(3), run, overlap=True)) as found:
        next(found)
    assert begun == ["test_0"]


def test_a_check_that_is_not_wanted_any_more_is_ended():
    ours, theirs = socket.socketpair()
    running, ended = threading.Event(), threading.Event()

    def run(check: Check, ticket: Ticket) -> Any:
        if check.function == "test_2":
            ticket.begin(ours)
            running.set()
            ours.recv(1)  # returns at once when the ticket is cancelled
            ended.set()
            raise Cancelled
        if check.function == "test_1":
            assert running.wait(PATIENCE)
        return as_verdict(check)

    ours.settimeout(PATIENCE)
    with contextlib.closing(in_order(checks(4), run, overlap=True)) as found:
        assert [next(found)[1], next(found)[1]] == ["test_0", "test_1"]
    assert ended.is_set()
    ours.close()
    theirs.close()


def test_a_fault_of_the_set_up_is_raised_in_its_turn():
    def run(check: Check, ticket: Ticket) -> Any:
        if check.function == "test_1":
            raise OSError("no more processes")
        return as_verdict(check)

    found = in_order(checks(4), run, overlap=True)
    assert next(found)[1] == "test_0"
    with pytest.raises(OSError, match="no more processes"):
        next(found)


def test_a_ticket_that_was_cancelled_begins_nothing():
    ticket = Ticket()
    ticket.cancel()
    with socket.socket() as client, pytest.raises(Cancelled):
        ticket.begin(client)


def test_checks_that_share_the_practice_cluster_do_not_overlap(monkeypatch):
    cores = {0, 1}
    monkeypatch.setattr(
        look_ahead.os, "sched_getaffinity", lambda _: cores, raising=False
    )
    assert may_overlap(checks(3))
    assert not may_overlap([*checks(2), *checks(1, scheduler=True)])
    cores.discard(1)
    assert not may_overlap(checks(3))
