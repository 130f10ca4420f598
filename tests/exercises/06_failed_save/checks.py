"""Checks of exercises/06_failed_save.py."""

import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workshop.grader import expect

PATH = Path("snapshot.pt")


def gathered(value):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


def write_slowly(snapshot, path):
    told = f"write was called with the path {path!r}, expected {PATH!r}"
    expect.that(path == PATH, told)
    time.sleep(0.3)
    torch.save(snapshot, path)


RAISED_IT = "raised the writer's OSError: every rank must raise SaveError instead"


class Quota(Exception):
    """An error that is of no type that a program can expect."""


class Disk:
    """Refuses every write, and counts the attempts."""

    def __init__(self, error):
        self.error, self.tried = error, 0

    def write(self, snapshot, path):
        self.tried += 1
        raise self.error


def outcome(exercise, write, snapshot, path):
    """The message that this rank gets, "" if the save succeeded."""
    try:
        exercise.save_or_all_raise(write, snapshot, path)
    except exercise.SaveError as error:
        return str(error) or "a SaveError without a message"
    except OSError as error:
        if type(error) is OSError:  # the writer's, not of a file of the learner's
            raise expect.Mismatch("", f"this rank {RAISED_IT}") from None
        raise
    return ""


def says(told, why):
    """The rank has raised, and the message contains the reason that the writer gave."""
    sentence = "no SaveError was raised on this rank, though rank 0 could not write"
    expect.that(told, sentence)
    expect.that(
        why in told,
        f"the message on this rank after a failed save is {told[:80]!r}: it must "
        f"contain the reason, {why[:80]!r}",
    )


@pytest.mark.ranks(3, 4)
def test_save_that_succeeds_is_complete_when_it_returns(exercise, rank, seed):
    """When the function returns, on any rank, the file is complete."""
    if rank == 0:
        torch.save({"epochs_run": -1}, PATH)  # of an earlier save
    dist.barrier()
    told = outcome(exercise, write_slowly, {"epochs_run": seed}, PATH)
    there = PATH.exists() and torch.load(PATH, weights_only=True)
    expect.equal(told, "", "the message on this rank after a save that worked")
    expect.equal(there, {"epochs_run": seed}, "what this rank finds in the file")


@pytest.mark.ranks(3, 4)
def test_all_ranks_learn_of_a_failed_save(exercise, rank, seed):
    """If rank 0 cannot write, every rank raises SaveError with rank 0's reason."""
    why = f"No space left on device, says disk {seed}"
    disk = Disk(OSError(why))
    told = outcome(exercise, disk.write, {}, PATH)
    says(told, why)
    tried = gathered(disk.tried)
    expect.equal(
        tried, [1] + [0] * (len(tried) - 1), "how many times each rank has written"
    )


@pytest.mark.ranks(3)
def test_any_error_of_the_writer_is_told(exercise, rank, seed):
    """Any error is reported, whatever its type and text, and whatever file is there."""
    PATH.write_bytes(b"of yesterday")  # says nothing about the save of today
    # torch.save wraps some errors of the disk in a RuntimeError
    disk = Disk(RuntimeError("unexpected pos 640 vs 528"))
    says(outcome(exercise, disk.write, {}, PATH), "unexpected pos 640 vs 528")
    says(outcome(exercise, Disk(Quota("40 of 40 GB")).write, {}, PATH), "40 of 40 GB")
    told = outcome(exercise, Disk(OSError(28, "the device is full")).write, {}, PATH)
    says(told, "the device is full")  # the first of its arguments is a number
    why = f"le disque « données {seed} » est plein: " + 40 * "/ゲーム/保存"
    says(outcome(exercise, Disk(OSError(why)).write, {}, PATH), why)
    lines = ("the first save failed, of quota", "and so did the second")
    told = outcome(exercise, Disk(RuntimeError("\n".join(lines))).write, {}, PATH)
    for line in lines:  # also if the message quotes the error as Python writes it
        says(told, line)
    error = OSError("the server of the disk is gone")
    error.connection = (
        threading.Lock()
    )  # as some errors have; only its text can be sent
    says(outcome(exercise, Disk(error).write, {}, PATH), str(error))


@pytest.mark.ranks(3)
def test_failure_without_a_message_is_a_failure(exercise, rank, seed):
    """Some errors have no text; all ranks must still raise."""
    raised = False
    try:
        exercise.save_or_all_raise(Disk(OSError()).write, {}, PATH)
    except exercise.SaveError:
        raised = True
    expect.equal(gathered(raised), [True] * 3, "which ranks raised SaveError")


@pytest.mark.ranks(3)
def test_training_can_go_on_and_save_again(exercise, rank, seed):
    """After a failed save, all ranks can call all_reduce, and save again."""
    outcome(exercise, Disk(OSError("full")).write, {}, PATH)
    x = torch.tensor([float(seed + rank)])
    dist.all_reduce(x)
    expect.equal(x.item(), 3.0 * seed + 3, "an all_reduce after the failed save")
    told = outcome(exercise, write_slowly, {"epochs_run": 2}, PATH)
    expect.equal(told, "", "the message on this rank after the next save")
    expect.equal(torch.load(PATH, weights_only=True), {"epochs_run": 2}, "the file")
